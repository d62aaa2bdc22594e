//! More clients than can be served: who is served, what becomes of the others, and that it ends.

mod hand_over;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use courser_testkit::client::{Client, Connection, Resume, Version};
use courser_testkit::tools::raise_descriptor_limit;
use courser_testkit::{Courser, KeyType, OriginServer};
use serde_json::Value;
use socket2::{Domain, Protocol, Socket, Type};

use crate::admin::url;
use crate::memory::open_at_once;
use crate::stage::{self, Stage, eventually};

/// Clients that have been here get in during a flood of strangers; what is refused is counted once, and nothing is refused any
/// more when the flood is over.
#[test]
fn a_flood_is_shed_and_visitors_get_in() {
    let (stage, origin) = (Stage::with(KeyType::Rsa2048), OriginServer::http());
    let courser = stage.courser().backend(origin.backend()).args(SENSITIVE).start();
    let client = stage.client(&courser, Version::Tls13);
    let mut before = client.connect().unwrap();
    before.get(1_000, false).unwrap();
    client.connect().unwrap().get(1_000, true).unwrap();
    let backlog = status(&courser)["listeners"][0]["queue_limit"].clone();
    let served = during_a_flood(&courser, &client, strangers, || {
        // Established connections are not touched.
        before.get(1_000, false).unwrap();
        (0..10).filter(|_| visit(courser.address(), &client).is_ok()).count()
    });
    assert!(served >= 9, "{served} of 10 visits");
    // Soon all is as before.
    courser.wait_stderr("its end is told", |lines| {
        lines.iter().any(|line| line.contains("overload is over")).then_some(())
    });
    let refused = shed(&courser);
    (0..50).for_each(|_| visit(courser.address(), &client).unwrap());
    assert_eq!(shed(&courser), refused);
    assert_eq!(status(&courser)["listeners"][0]["queue_limit"], backlog);
    before.close().unwrap();
    // Each client that is refused after accept is one line in the log, and in one counter.
    let after_accept = ["source/over_share", "hello/late", "line/deadline"];
    let counted: u64 = after_accept.iter().filter_map(|reason| refused.get(*reason)).sum();
    assert!(counted > 0, "{refused:?}");
    eventually("a line for each", || {
        let lines = courser.connections_json(0);
        lines.iter().filter(|line| line["close_reason"] == "shed").count() as u64 == counted
    });
    scraped_alike(&courser, &refused);
}

/// A network that takes more than the others leave is named and limited; the others are served.
#[test]
fn a_noisy_network_is_named_and_takes_nothing_from_the_others() {
    let (stage, origin) = (Stage::with(KeyType::Rsa2048), OriginServer::http());
    let courser = stage.courser().backend(origin.backend()).args(SENSITIVE).start();
    let client = stage.client(&courser, Version::Tls13);
    let from = |number: u32| Source::Itself(0x7f10_0500 + number % 250);
    let served = during_a_flood(&courser, &client, from, || {
        wait_limited(&courser, "127.16.5.0/24");
        (0..10).filter(|_| visit(courser.address(), &client).is_ok()).count()
    });
    assert!(served >= 9, "{served} of 10 from elsewhere");
}

/// Behind a balancer the network is that of the PROXY header, and the balancer is nobody's neighbour.
#[test]
fn behind_a_balancer_the_clients_count_by_its_headers() {
    let (stage, origin) = (Stage::with(KeyType::Rsa2048), OriginServer::http());
    let courser = behind_a_balancer(&stage, &origin, "");
    let client = stage.client(&courser, Version::Tls13);
    let from = |number: u32| Source::Header(0x0a01_0100 + number % 250);
    let served = during_a_flood(&courser, &client, from, || {
        wait_limited(&courser, "10.1.1.0/24");
        (0..10).filter(|number| visit_as(&courser, &client, 0x0a02_0000 + (number << 8)).is_ok()).count()
    });
    assert!(served >= 9, "{served} of 10 of another network");
    let refused = shed(&courser);
    assert!(refused.contains_key("source/over_share"), "{refused:?}");
}

/// Who has been here comes first also from another address: a ticket, or the ID of a session, proves it.
#[test]
fn a_session_from_before_proves_an_earlier_visit_from_anywhere() {
    let (stage, origin) = (Stage::with(KeyType::Rsa2048), OriginServer::http());
    let courser = behind_a_balancer(&stage, &origin, "");
    let stranger = stage.client(&courser, Version::Tls13);
    let ticket = |version| Client::new(courser.address(), version, KeyType::Rsa2048, Resume::Ticket);
    let by_id = Client::new(courser.address(), Version::Tls12, KeyType::Rsa2048, Resume::SessionId);
    let visitors = [ticket(Version::Tls13), ticket(Version::Tls12), by_id];
    for visitor in &visitors {
        visit_as(&courser, visitor, 0x0a02_0101).unwrap();
    }
    let from = |number: u32| Source::Header(0x0a10_0000 + (number.wrapping_mul(0x9e37_79b1) >> 12));
    during_a_flood(&courser, &stranger, from, || {
        for (visitor, kind) in visitors.iter().zip(0_u32..) {
            let address = |number: u32| 0x0a03_0000 + (kind << 16) + (number << 8);
            let served =
                (0..10).filter(|number| visit_as(&courser, visitor, address(*number)).is_ok()).count();
            assert!(served >= 9, "{served} of 10 visits, kind {kind}");
        }
        let served =
            (0..30).filter(|number| visit_as(&courser, &stranger, 0x0a08_0000 + (number << 8)).is_ok());
        let served = served.count();
        assert!(served < 25, "{served} of 30 strangers: there is no overload");
    });
}

/// Where only long prefixes have a budget, a network that comes by many of its addresses is not found out.
#[test]
fn the_lengths_of_prefixes_that_have_a_budget_can_be_set() {
    let (stage, origin) = (Stage::with(KeyType::Rsa2048), OriginServer::http());
    let courser = behind_a_balancer(&stage, &origin, "overload_prefixes = ['ipv4/16']\n");
    let client = stage.client(&courser, Version::Tls13);
    // A /16, and no /24 of it makes more than a little.
    let from = |number: u32| Source::Header(0x0a01_0000 + (number.wrapping_mul(0x9e37_79b1) >> 16));
    during_a_flood(&courser, &client, from, || wait_limited(&courser, "10.1.0.0/16"));
}

/// Where all come from one address, nothing is taken from others: it may have all there is.
#[test]
fn a_lone_address_is_served_what_can_be() {
    let (stage, origin) = (Stage::with(KeyType::Rsa2048), OriginServer::http());
    let courser = stage.courser().backend(origin.backend()).args(SENSITIVE).start();
    let client = stage.client(&courser, Version::Tls13);
    let from = |_| Source::Itself(0x7f00_0001);
    during_a_flood(&courser, &client, from, || {
        // A client that does not get in comes again from another port: a small share of them is let in.
        let served = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    for _ in (0..100).take_while(|_| served.load(Ordering::Relaxed) < 10) {
                        let got_in = visit(courser.address(), &client).is_ok();
                        served.fetch_add(got_in.into(), Ordering::Relaxed);
                    }
                });
            }
        });
        assert!(served.into_inner() >= 10);
    });
}

/// All that come at once are served, however long it takes within the clients' patience. A build without optimisation serves 75 a
/// second on a busy machine: these are done in a third of the longest patience that can be set.
#[test]
fn a_burst_that_can_be_cleared_is_served_whole() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let arguments = ["--patience", "1m", "--admin", "127.0.0.1:0", "--handshake-timeout", "1m"];
    let courser = stage.courser().backend(origin.backend()).args(arguments).start();
    raise_descriptor_limit().unwrap();
    let _alone = alone();
    let served = open_at_once(&courser, &stage.client(&courser, Version::Tls13), 1_500);
    assert_eq!(served.len(), 1_500);
    assert_eq!(shed(&courser), BTreeMap::new());
}

/// No handshake is made for a client that has closed behind its ClientHello.
#[test]
fn who_has_left_gets_no_handshake() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let courser = stage.courser().backend(origin.backend()).args(["--admin", "127.0.0.1:0"]).start();
    let hello = hello(&stage.client(&courser, Version::Tls13));
    for _ in 0..5 {
        // All of it is there when it is accepted: the hello and the end behind it.
        let mut socket = TcpStream::connect(courser.address()).unwrap();
        let (first, rest) = hello.split_at(hello.len() - 1);
        socket.write_all(first).unwrap();
        socket.write_all(rest).unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
    }
    let lines = courser.connections_json(5);
    assert!(lines.iter().all(|line| line["close_reason"] == "closed_in_handshake"), "{lines:?}");
    let gone = shed(&courser).get("hello/gone").copied();
    assert!(gone > Some(0) && gone <= Some(5), "{gone:?}");
}

#[test]
fn it_can_be_switched_off() {
    let (stage, origin) = (Stage::with(KeyType::Rsa2048), OriginServer::http());
    let arguments = ["--no-overload", "--target-wait", "1ms", "--patience", "1ms"];
    let courser = stage.courser().backend(origin.backend()).args(arguments).start();
    let client = stage.client(&courser, Version::Tls13);
    let hello = hello(&client);
    let waiting: Vec<_> =
        (0..100).filter_map(|_| knock(courser.address(), Source::Itself(0x7f00_0001), &hello)).collect();
    assert_eq!(waiting.len(), 100);
    // Whoever comes last is served after all of them.
    client.connect().unwrap().get(1_000, true).unwrap();
    drop(waiting);
    let lines: Vec<Value> = courser.connections_json(101);
    assert!(lines.iter().all(|line| line["close_reason"] != "shed"));
}

/// A worker that is told by PROXY headers who its clients are.
fn behind_a_balancer(stage: &Stage, origin: &OriginServer, more: &str) -> Courser {
    let settings = format!(
        "workers = 1\nlog = 'json'\ntarget_wait = '2ms'\npatience = '500ms'\n{more}\
         [admin]\nlisten = '127.0.0.1:0'\n[[listener]]\nlisten = '127.0.0.1:0'\ncert = '{}'\nbackend = '{}'\nproxy_protocol = {{ from = ['127.0.0.0/8'] }}\n",
        stage.certificate.display(),
        origin.backend(),
    );
    stage::courser().config(&stage.folder.write("courser.toml", settings)).start()
}

/// A connection with a request of the client that a header names.
fn visit_as(courser: &Courser, client: &Client, address: u32) -> io::Result<()> {
    let mut socket = TcpStream::connect(courser.address())?;
    socket.write_all(Source::Header(address).header().as_bytes())?;
    Connection::complete(client.session(), socket)?.get(1_000, true)
}

/// The bytes of a ClientHello.
fn hello(client: &Client) -> Vec<u8> {
    let mut bytes = Vec::new();
    client.session().write_tls(&mut bytes).unwrap();
    bytes
}

/// Overload is soon certain, so that little need be offered.
const SENSITIVE: [&str; 6] = ["--target-wait", "2ms", "--patience", "500ms", "--admin", "127.0.0.1:0"];

/// Where a client is from.
#[derive(Clone, Copy)]
enum Source {
    /// Its own address.
    Itself(u32),
    /// What a PROXY header says of it.
    Header(u32),
}

impl Source {
    fn header(self) -> String {
        match self {
            Self::Itself(_) => String::new(),
            Self::Header(address) => {
                format!("PROXY TCP4 {} 127.0.0.1 4711 443\r\n", Ipv4Addr::from_bits(address))
            }
        }
    }
}

/// Neighbours come at different times: no network stands out.
fn strangers(number: u32) -> Source {
    Source::Itself(0x7f10_0000 + (number.wrapping_mul(0x9e37_79b1) >> 12))
}

/// Does `work` while clients from these sources come several times as fast as they can be served, each waits for a second, and
/// overload has been told.
fn during_a_flood<T>(
    courser: &Courser,
    client: &Client,
    from: impl Fn(u32) -> Source + Send,
    work: impl FnOnce() -> T,
) -> T {
    let _alone = alone();
    let (hello, is_told, is_over) = (hello(client), AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| flood(courser.address(), &hello, from, &is_told, &is_over));
        let _end = Ends(&is_over);
        courser.wait_stderr("the overload is told", |lines| {
            lines.iter().any(|line| line.contains("more clients come than can be served")).then_some(())
        });
        is_told.store(true, Ordering::Relaxed);
        work()
    })
}

/// One flood or burst at a time: two would take each other's processor time.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static FLOOD: Mutex<()> = Mutex::new(());
    FLOOD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends a flood, also where the test fails in it.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Four times as many clients come with each two seconds in which overload was not told: some machines sign ten times as fast as
/// others.
fn flood(
    address: SocketAddr,
    hello: &[u8],
    from: impl Fn(u32) -> Source,
    is_told: &AtomicBool,
    is_over: &AtomicBool,
) {
    let mut waiting = std::collections::VecDeque::new();
    let (mut pause, mut faster_at) = (Duration::from_micros(300), Instant::now() + TELLING);
    for number in 0_u32.. {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        waiting.push_back((Instant::now(), knock(address, from(number), hello)));
        while waiting.front().is_some_and(|(since, _)| since.elapsed() > Duration::from_secs(1)) {
            waiting.pop_front();
        }
        if !is_told.load(Ordering::Relaxed) && Instant::now() > faster_at {
            (pause, faster_at) = (pause / 4, Instant::now() + TELLING);
        }
        std::thread::sleep(pause);
    }
}

/// Overload is told a second after it began.
const TELLING: Duration = Duration::from_secs(2);

/// A client that has sent its ClientHello, if its SYN was answered at once.
fn knock(address: SocketAddr, source: Source, hello: &[u8]) -> Option<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
    if let Source::Itself(address) = source {
        let address = IpAddr::from(Ipv4Addr::from_bits(address));
        socket.bind(&SocketAddr::new(address, 0).into()).unwrap();
    }
    socket.set_linger(Some(Duration::ZERO)).unwrap();
    socket.set_nonblocking(true).unwrap();
    let _begun = socket.connect(&address.into());
    let mut stream: TcpStream = socket.into();
    stream.peer_addr().ok()?;
    stream.write_all(&[source.header().as_bytes(), hello].concat()).ok()?;
    Some(stream)
}

/// A connection with a request, from the address that loopback chooses. One whose SYN was dropped gives up soon.
fn visit(address: SocketAddr, client: &Client) -> io::Result<()> {
    let socket = TcpStream::connect_timeout(&address, Duration::from_millis(300))?;
    Connection::complete(client.session(), socket)?.get(1_000, true)
}

/// Waits until the log names this network as one that is limited. The line comes a second after overload began.
fn wait_limited(courser: &Courser, network: &str) {
    courser.wait_stderr("the network is named", |lines| {
        lines.iter().any(|line| line.contains("limited: ") && line.contains(network)).then_some(())
    });
}

fn status(courser: &Courser) -> Value {
    serde_json::from_str(&get(courser, "/status.json")).unwrap()
}

/// What was not served, by stage and reason, as the status has it.
fn shed(courser: &Courser) -> BTreeMap<String, u64> {
    serde_json::from_value(status(courser)["connections"]["shed"].clone()).unwrap()
}

/// Monitoring sees the same numbers.
fn scraped_alike(courser: &Courser, refused: &BTreeMap<String, u64>) {
    let scraped = get(courser, "/metrics");
    for (name, count) in refused {
        let (stage, reason) = name.split_once('/').unwrap();
        let line = format!("courser_shed_total{{stage=\"{stage}\",reason=\"{reason}\"}} {count}");
        assert!(scraped.lines().any(|it| it == line), "{line} in {scraped}");
    }
}

fn get(courser: &Courser, path: &str) -> String {
    let url = url(courser);
    let mut socket = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    write!(socket, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}
