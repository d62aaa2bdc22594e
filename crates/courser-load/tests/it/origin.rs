//! The origin, spoken to over plain sockets, and judged by curl, wrk, nginx and HAProxy.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use courser_load::http::body;
use courser_load::origin::{Mode, OriginServer, Proxy, Settings};
use courser_net::Address;
use courser_testkit::{Folder, Process, free_port, require, skip};

const V1: &[u8] = b"PROXY TCP4 192.0.2.1 192.0.2.2 1000 443\r\n";
/// LOCAL, as health checks send it: version 2 with nothing in it.
const V2_LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";

fn origin(settings: &Settings) -> (OriginServer, SocketAddr) {
    let any = Address::Ip((Ipv4Addr::LOCALHOST, 0).into());
    let origin = OriginServer::bind(&[any], settings).unwrap();
    let Address::Ip(address) = origin.addresses()[0] else { panic!("it listens on TCP") };
    (origin, address)
}

fn http() -> (OriginServer, SocketAddr) {
    origin(&Settings::default())
}

/// Sends `request`, then reads until the origin closes.
fn ask(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

fn get(address: SocketAddr, target: &str) -> Vec<u8> {
    ask(address, format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").as_bytes())
}

fn body_of(answer: &[u8]) -> &[u8] {
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("an answer has a head");
    &answer[end + 4..]
}

#[test]
fn objects_have_the_wanted_size_and_bytes() {
    let (origin, address) = http();
    for size in [0, 1, 1024, 65_520, 65_521, 1_000_000] {
        assert!(body_of(&get(address, &format!("/?s={size}"))) == body(size), "size {size}");
    }
    let counts = origin.counts();
    assert_eq!((counts.accepted, counts.answered, counts.refused), (6, 6, 0));
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let (_origin, address) = http();
    let requests = b"GET /?s=3 HTTP/1.1\r\n\r\nPOST /?echo HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello\
        GET /?s=200k&d=1ms HTTP/1.1\r\n\r\nHEAD /?s=9 HTTP/1.1\r\n\r\nGET /?s=2 HTTP/1.1\r\nConnection: close\r\n\r\n";
    let answers = ask(address, requests);
    let heads: Vec<_> = answers.windows(15).filter(|bytes| *bytes == b"HTTP/1.1 200 OK").collect();
    assert_eq!(heads.len(), 5);
    let found = |part: &[u8]| answers.windows(part.len()).position(|bytes| bytes == part).expect("an answer");
    let (first, second, third) =
        (found(b"\r\n\r\nabcHTTP"), found(b"\r\n\r\nhelloHTTP"), found(b"Content-Length: 204800"));
    assert!(first < second && second < third);
    assert!(answers.ends_with(b"\r\n\r\nab"));
}

#[test]
fn an_answer_is_as_late_as_asked() {
    let (_origin, address) = http();
    let begun = Instant::now();
    assert_eq!(body_of(&get(address, "/?s=1&d=30ms")), b"a");
    assert!(begun.elapsed() >= Duration::from_millis(30));
}

#[test]
fn what_cannot_be_answered_is_told_and_counted() {
    let (origin, address) = http();
    for (request, status) in [
        (b"GET /?s=many HTTP/1.1\r\n\r\n".as_slice(), "400"),
        (b"\x16\x03\x01\x00\x05hello", "400"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", "400"),
    ] {
        let answer = String::from_utf8(ask(address, request)).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
    }
    assert_eq!(origin.counts().refused, 3);
    origin.stop().unwrap();
    let error = TcpStream::connect(address).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "it was stopped");
}

#[test]
fn a_proxy_header_is_told_back() {
    let (_origin, address) = http();
    let ask = |request: &[u8]| String::from_utf8(ask(address, &[V1, request].concat())).unwrap();
    let answer = ask(b"GET /?peer HTTP/1.0\r\n\r\n");
    assert!(answer.contains("\r\nX-Proxied-For: 192.0.2.1:1000\r\n"), "{answer}");
    let told: serde_json::Value = serde_json::from_slice(body_of(answer.as_bytes())).unwrap();
    assert_eq!(told["proxy"]["addresses"]["destination"], "192.0.2.2:443");
    assert!(ask(b"GET /?proxy HTTP/1.0\r\n\r\n").as_bytes().ends_with(V1));
    assert!(ask(b"GET /?s=70000 HTTP/1.0\r\n\r\n").contains("X-Proxied-For"));
}

#[test]
fn a_proxy_header_is_required_accepted_or_not_looked_for() {
    let plain: &[u8] = b"GET /?s=1 HTTP/1.0\r\n\r\n";
    let answers = |proxy, front: &[u8]| {
        let (_origin, address) = origin(&Settings { proxy, ..Settings::default() });
        let answer = ask(address, &[front, plain].concat());
        String::from_utf8_lossy(&answer).chars().skip(9).take(3).collect::<String>()
    };
    assert_eq!(answers(Proxy::Required, V1), "200");
    assert_eq!(answers(Proxy::Required, V2_LOCAL), "200");
    assert_eq!(answers(Proxy::Accepted, V2_LOCAL), "200");
    assert_eq!(answers(Proxy::Accepted, b""), "200");
    assert_eq!(answers(Proxy::Off, b""), "200");
    assert_eq!(answers(Proxy::Off, V1), "400");
}

#[test]
fn without_the_required_header_nothing_is_answered() {
    let (origin, address) = origin(&Settings { proxy: Proxy::Required, ..Settings::default() });
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    // A reset or an end, as the kernel likes.
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.is_empty());
    assert_eq!(origin.counts().answered, 0);
    assert_eq!(origin.counts().refused, 1);
}

#[test]
fn raw_bytes_come_back() {
    let (_origin, address) = origin(&Settings { mode: Mode::Echo, proxy: Proxy::Off, ..Settings::default() });
    let mut stream = TcpStream::connect(address).unwrap();
    let sent = body(300_000);
    let mut writer = stream.try_clone().unwrap();
    let written = std::thread::spawn(move || {
        writer.write_all(&sent).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    written.join().unwrap();
    assert!(received == body(300_000));
}

#[test]
fn a_unix_socket_and_several_threads_serve_too() {
    let folder = Folder::new();
    let addresses = [Address::Ip((Ipv4Addr::LOCALHOST, 0).into()), Address::Unix(folder.join("origin.sock"))];
    let origin = OriginServer::bind(&addresses, &Settings { threads: 2, ..Settings::default() }).unwrap();
    let mut stream = UnixStream::connect(folder.join("origin.sock")).unwrap();
    stream.write_all(b"GET /?s=4 HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("\r\n\r\nabcd"), "{answer}");
    let name = |id: &i32| fs::read_to_string(format!("/proc/self/task/{id}/comm")).unwrap().trim().to_owned();
    assert_eq!(origin.threads().iter().map(name).collect::<Vec<_>>(), ["origin-0", "origin-1"]);
}

#[test]
fn an_address_in_use_is_named() {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let error = OriginServer::bind(&[Address::Ip(address)], &Settings::default()).unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

/// What curl prints, with these arguments before the address.
fn curl(program: &Path, arguments: &[&str], address: SocketAddr, target: &str) -> Vec<u8> {
    let output = Command::new(program)
        .args(["-sS", "--http1.1"])
        .args(arguments)
        .arg(format!("http://{address}{target}"))
        .output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn curl_understands_every_kind_of_answer() {
    let Some(program) = require("curl") else { return };
    let (_origin, address) = http();
    let curl = |arguments: &[&str], target: &str| curl(&program, arguments, address, target);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    assert!(curl(&[], "/?s=3m") == body(3 << 20));
    assert!(curl(&[], "/?s=3m&chunked") == body(3 << 20));
    assert_eq!(text(curl(&["-o", "/dev/null", "-w", "%{http_code}"], "/?status=503")), "503");
    assert!(text(curl(&["-I"], "/?s=20k")).contains("Content-Length: 20480\r\n"));
    let proxied = text(curl(&["--haproxy-protocol", "-i"], "/?s=1"));
    assert!(proxied.contains("X-Proxied-For: 127.0.0.1:"), "{proxied}");
}

#[test]
fn curl_gets_its_uploads_back() {
    let Some(program) = require("curl") else { return };
    let (_origin, address) = http();
    let folder = Folder::new();
    // Beyond 1 MiB curl waits to be told to go on.
    let file = folder.write("upload", body(3_000_000));
    let upload = format!("@{}", file.display());
    let curl = |arguments: &[&str], target: &str| curl(&program, arguments, address, target);
    assert!(curl(&["--data-binary", &upload], "/?echo") == body(3_000_000));
    let chunked = ["--data-binary", &upload, "-H", "Transfer-Encoding: chunked"];
    assert!(curl(&chunked, "/?echo") == body(3_000_000));
    let Some(sha256sum) = require("sha256sum") else { return };
    let sum = Command::new(sha256sum).arg(&file).output().unwrap().stdout;
    let expected = format!("{{\"bytes\":3000000,\"sha256\":\"{}\"}}\n", String::from_utf8_lossy(&sum[..64]));
    assert_eq!(String::from_utf8(curl(&chunked, "/?hash")).unwrap(), expected);
    assert_eq!(curl(&["--data-binary", &upload], "/?s=7"), b"abcdefg");
}

#[test]
fn wrk_counts_what_the_origin_counts() {
    let Some(wrk) = require("wrk") else { return };
    let (origin, address) = http();
    let arguments = ["-t1", "-c20", "-d1s", &format!("http://{address}/?s=100")];
    let finished = Process::start(Command::new(wrk).args(arguments)).finish();
    let line = finished.stdout.lines().find(|line| line.contains(" requests in ")).unwrap();
    let counted: u64 = line.split_whitespace().next().unwrap().parse().unwrap();
    let answered = origin.counts().answered;
    // wrk leaves with a request under way on each connection.
    assert!(counted > 0 && (counted..=counted + 20).contains(&answered), "{answered}\n{}", finished.stdout);
    assert!(
        !finished.stdout.contains("Non-2xx") && !finished.stdout.contains("Socket errors"),
        "{}",
        finished.stdout
    );
}

#[test]
fn nginx_and_haproxy_in_front_are_understood() {
    let (_origin, address) = origin(&Settings { proxy: Proxy::Required, ..Settings::default() });
    for (program, proxy) in [("nginx", nginx as Front), ("haproxy", haproxy)] {
        let Some(path) = require(program) else { continue };
        let (folder, port) = (Folder::new(), free_port());
        let Some(_running) = proxy(&path, &folder, port, address) else { continue };
        let front = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut stream = connect(front);
        stream.write_all(b"GET /?peer HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let us = stream.local_addr().unwrap();
        assert!(answer.contains(&format!("\r\nX-Proxied-For: {us}\r\n")), "{program}: {answer}");
        assert!(answer.contains(&format!("\"destination\":\"{front}\"")), "{program}: {answer}");
    }
}

type Front = fn(&Path, &Folder, u16, SocketAddr) -> Option<Process>;

fn nginx(program: &Path, folder: &Folder, port: u16, origin: SocketAddr) -> Option<Process> {
    let module = Path::new("/usr/lib/nginx/modules/ngx_stream_module.so");
    if !module.exists() {
        skip("nginx has no stream module (scripts/install.sh installs it)");
        return None;
    }
    let configuration = format!(
        "load_module {};\ndaemon off;\npid {}/pid;\nerror_log stderr;\nevents {{ }}\n\
         stream {{ server {{ listen 127.0.0.1:{port}; proxy_pass {origin}; proxy_protocol on; }} }}\n",
        module.display(),
        folder.path().display()
    );
    let file = folder.write("nginx.conf", configuration);
    Some(Process::start(Command::new(program).arg("-c").arg(file).args(["-e", "stderr"])))
}

fn haproxy(program: &Path, folder: &Folder, port: u16, origin: SocketAddr) -> Option<Process> {
    let configuration = format!(
        "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\n\
         listen front\n  bind 127.0.0.1:{port}\n  server origin {origin} send-proxy-v2\n"
    );
    let file = folder.write("haproxy.cfg", configuration);
    Some(Process::start(Command::new(program).arg("-db").arg("-f").arg(file)))
}

/// Waits until somebody listens.
fn connect(address: SocketAddr) -> TcpStream {
    let begun = Instant::now();
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => return stream,
            Err(error) if begun.elapsed() > courser_testkit::PATIENCE => panic!("{address}: {error}"),
            Err(_) => std::thread::yield_now(),
        }
    }
}
