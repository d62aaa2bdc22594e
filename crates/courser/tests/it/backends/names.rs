//! Backends by name, with a resolver of the test's own: in a namespace where /etc is its own too.

use std::collections::HashMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;

use courser_testkit::client::Version;
use courser_testkit::courser::Setup;
use courser_testkit::network::{enter_namespace, sh};
use courser_testkit::{Behaviour, Courser, Folder, OriginServer};

use crate::stage::{Stage, assert_closed, only_line};

#[test]
fn a_look_up_that_hangs_holds_up_neither_the_start_nor_other_names() {
    if !enter_namespace("backends::names::a_look_up_that_hangs_holds_up_neither_the_start_nor_other_names") {
        return;
    }
    let (stage, resolver, origin) = (Stage::new(), Resolver::start(), OriginServer::http());
    resolver.say("hangs.test", Reply::Nothing);
    resolver.say("works.test", Reply::Address(Ipv4Addr::LOCALHOST));
    let port = origin.address().port();
    let backends = ["hangs.test", "works.test"].map(|name| format!("{name}:{port}"));
    let courser = backends.iter().fold(stage.courser(), Setup::backend).start();
    let client = stage.client(&courser, Version::Tls13);
    for _ in 0..4 {
        client.connect().unwrap().get(10, true).unwrap();
    }
    assert_eq!(origin.accepted(), 4);
    courser.wait_stderr_line("hangs.test: no address yet");
}

#[test]
fn a_denied_name_loses_its_address_and_a_failing_resolver_takes_none() {
    if !enter_namespace("backends::names::a_denied_name_loses_its_address_and_a_failing_resolver_takes_none")
    {
        return;
    }
    let (stage, resolver, origin) = (Stage::new(), Resolver::start(), OriginServer::http());
    let names = ["denied.test", "failing.test"];
    names.iter().for_each(|name| resolver.say(name, Reply::Address(Ipv4Addr::LOCALHOST)));
    let serve = |name: &str| stage.serve(format!("{name}:{}", origin.address().port()));
    let get = |courser: &Courser| stage.client(courser, Version::Tls13).connect().unwrap().get(10, true);
    let [denied, failing] = names.map(serve);
    get(&denied).unwrap();
    get(&failing).unwrap();
    resolver.say("denied.test", Reply::NoSuchName);
    resolver.say("failing.test", Reply::Failure);
    denied.wait_stderr_line(
        "denied.test: no such name, or no address; it had 1, which get no more connections",
    );
    failing.wait_stderr_line("failing.test: cannot look the name up");
    assert!(get(&denied).is_err());
    assert_closed(&denied.connections_json(2)[1], "no_backend", "backend");
    get(&failing).unwrap();
    assert_eq!(origin.accepted(), 3, "the denied name's address gets no more plaintext");
}

#[test]
fn every_address_of_a_name_gets_its_share() {
    if !enter_namespace("backends::names::every_address_of_a_name_gets_its_share") {
        return;
    }
    let (stage, _resolver) = (Stage::new(), Resolver::start());
    let first = OriginServer::setup(Behaviour::Http).listen(([127, 0, 0, 2], 0).into()).start();
    let port = first.address().port();
    let second = OriginServer::setup(Behaviour::Http).listen(([127, 0, 0, 3], port).into()).start();
    let hosts = stage.folder.write("hosts", "127.0.0.2 several.test\n127.0.0.3 several.test\n");
    sh(&format!("mount --bind {} /etc/hosts", hosts.display()));
    let courser = stage.serve(format!("several.test:{port}"));
    let client = stage.client(&courser, Version::Tls13);
    for _ in 0..10 {
        client.connect().unwrap().get(10, true).unwrap();
    }
    assert_eq!([&first, &second].map(OriginServer::accepted), [5, 5]);
    drop(first);
    for _ in 0..2 {
        client.connect().unwrap().get(10, true).unwrap();
    }
    assert_eq!(second.accepted(), 7, "what is left serves all");
}

#[test]
fn a_name_that_nobody_answers_for_is_no_backend() {
    if !enter_namespace("backends::names::a_name_that_nobody_answers_for_is_no_backend") {
        return;
    }
    let (stage, resolver) = (Stage::new(), Resolver::start());
    resolver.say("hangs.test", Reply::Nothing);
    let courser = stage.serve("hangs.test:80");
    assert!(stage.client(&courser, Version::Tls13).connect().unwrap().get(10, true).is_err());
    let line = only_line(&courser);
    assert_closed(&line, "no_backend", "backend");
    assert!(line["detail"].as_str().unwrap().contains("has no address"), "{line}");
}

/// What a resolver says of a name.
#[derive(Clone, Copy)]
enum Reply {
    Address(Ipv4Addr),
    /// NXDOMAIN.
    NoSuchName,
    /// SERVFAIL.
    Failure,
    Nothing,
}

/// The resolver of this test's namespace. Names that it knows nothing of do not exist.
struct Resolver {
    replies: Arc<Mutex<HashMap<String, Reply>>>,
    _folder: Folder,
}

impl Resolver {
    fn start() -> Self {
        let folder = Folder::new();
        // An answer that does not come is waited for longer than any test.
        let config = folder.write("resolv.conf", "nameserver 127.0.0.1\noptions timeout:30 attempts:2\n");
        let switch = folder.write("nsswitch.conf", "hosts: files dns\n");
        sh(&format!(
            "mount --bind {} /etc/resolv.conf; mount --bind {} /etc/nsswitch.conf",
            config.display(),
            switch.display()
        ));
        let socket = UdpSocket::bind("127.0.0.1:53").unwrap();
        let replies: Arc<Mutex<HashMap<String, Reply>>> = Arc::default();
        let known = Arc::clone(&replies);
        thread::spawn(move || {
            let mut question = [0; 512];
            while let Ok((len, client)) = socket.recv_from(&mut question) {
                if let Some(answer) = answer(&question[..len], &known.lock().unwrap()) {
                    socket.send_to(&answer, client).unwrap();
                }
            }
        });
        Self { replies, _folder: folder }
    }

    fn say(&self, name: &str, reply: Reply) {
        self.replies.lock().unwrap().insert(name.to_owned(), reply);
    }
}

/// RFC 1035, section 4.1: header, the question again, and for an A record its address.
fn answer(query: &[u8], replies: &HashMap<String, Reply>) -> Option<Vec<u8>> {
    let (name, len) = name(&query[12..]);
    let question = &query[12..12 + len + 4];
    let is_a = question[len..len + 2] == [0, 1];
    let reply = replies.get(&name).copied().unwrap_or(Reply::NoSuchName);
    let code = match reply {
        Reply::Nothing => return None,
        Reply::Address(_) => 0,
        Reply::Failure => 2,
        Reply::NoSuchName => 3,
    };
    let address = if let Reply::Address(address) = reply { Some(address).filter(|_| is_a) } else { None };
    let answers = u8::from(address.is_some());
    let mut bytes = [&query[..2], &[0x85, 0x80 | code, 0, 1, 0, answers, 0, 0, 0, 0], question].concat();
    if let Some(address) = address {
        bytes.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        bytes.extend(address.octets());
    }
    Some(bytes)
}

/// A name with dots, and how many bytes it takes.
fn name(bytes: &[u8]) -> (String, usize) {
    let (mut labels, mut at) = (Vec::new(), 0);
    while bytes[at] != 0 {
        let end = at + 1 + usize::from(bytes[at]);
        labels.push(String::from_utf8_lossy(&bytes[at + 1..end]).into_owned());
        at = end;
    }
    (labels.join("."), at + 1)
}
