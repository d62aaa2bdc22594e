//! A TLS server that answers handshakes and nothing else: what the generator is calibrated against. It is made of the
//! terminator's end of TLS, so that it costs little, and speaks both versions with a certificate of its own making.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use courser_net::{Address, AsyncListener, ListenSocket, Stream, Then};
use courser_session::{EpochLength, FleetKeys, PolicyHash, Ticketer, UnixSeconds};
use courser_tls::{
    HandshakePlan, Identity, ServerConnection, ServerTlsConfig, ServerTlsSpec, SessionOffer, Sessions, State,
    SuiteOrder, Version,
};
use courser_wire::hello::ClientHello;
use courser_wire::record::{Assembly, assemble};
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::spawn_local;

/// Longest ClientHello that is answered.
const LONGEST_HELLO: usize = 16 * 1024;

/// Groups, the most wanted first: X25519 where a client sends it, P-256 where it does not.
const GROUPS: [u16; 2] = [0x001d, 0x0017];

/// A server that listens and has not been run.
pub struct Responder {
    socket: ListenSocket,
    shared: Shared,
}

struct Shared {
    terms: ServerTlsConfig,
    identity: Arc<Identity>,
}

impl Responder {
    /// Listens on an address, which says the port if it named none.
    ///
    /// # Errors
    /// When the address cannot be had, or no key can be made.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = ListenSocket::open(&Address::Ip(address), false, 4096, 1)?.pop();
        let socket = socket.ok_or_else(|| io::Error::other("no socket was opened"))?;
        let identity = courser_tls::self_signed(&["localhost".to_owned()]).map_err(io::Error::other)?;
        let offer = ServerTlsSpec {
            versions: vec![Version::Tls12, Version::Tls13],
            suites: vec![0x1301, 0xc02b],
            groups: GROUPS.to_vec(),
            tickets: 1,
            ..ServerTlsSpec::default()
        };
        let terms = ServerTlsConfig::new(offer, &sessions()).map_err(io::Error::other)?;
        Ok(Self { socket, shared: Shared { terms, identity: Arc::new(identity) } })
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        self.socket.address()
    }

    /// Serves on this thread until the process ends.
    ///
    /// # Errors
    /// When the thread cannot be set up.
    pub fn run(self) -> io::Result<()> {
        let runtime = Builder::new_current_thread().enable_io().build_local(LocalOptions::default())?;
        let shared = Rc::new(self.shared);
        runtime.block_on(async {
            let listener = AsyncListener::new(self.socket)?;
            loop {
                let accepted = listener.accept().await?;
                let shared = Rc::clone(&shared);
                spawn_local(async move {
                    // A client that went away is no concern of ours.
                    let _ = serve(&shared, accepted.stream).await;
                });
            }
        })
    }
}

/// Tickets under keys of this process alone.
fn sessions() -> Sessions {
    let lifetime = Duration::from_secs(2 * 3600);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let keys = FleetKeys::alone(EpochLength::DEFAULT, lifetime, UnixSeconds(now));
    let ticketer =
        Ticketer::new(Arc::new(keys.expect("the lifetime is in range, and the system has random bytes")));
    Sessions { cache: None, ticketer: Some(Arc::new(ticketer)), lifetime }
}

async fn serve(shared: &Shared, stream: Stream) -> io::Result<()> {
    let (mut received, mut plaintext, mut outgoing) = (Vec::new(), Vec::new(), Vec::new());
    let Some(group) = hello(&stream, &mut received).await? else { return Ok(()) };
    let policy = PolicyHash::builder("responder", "localhost").finish();
    let plan = HandshakePlan::new(Arc::clone(&shared.identity), policy, SessionOffer::Tickets);
    let tls = ServerConnection::new(&shared.terms, group, SuiteOrder::Configured, plan);
    let mut tls = tls.map_err(io::Error::other)?;
    loop {
        let progress = tls.process(&mut received, &mut plaintext, &mut outgoing);
        let closed = progress.as_ref().map_or(true, |progress| progress.state == State::PeerClosed);
        received.drain(..progress.map_or(0, |progress| progress.consumed));
        plaintext.clear();
        if closed {
            let _ = tls.send_close_notify(&mut received, &mut outgoing);
            write(&stream, &mut outgoing).await?;
            return Ok(());
        }
        write(&stream, &mut outgoing).await?;
        if read(&stream, &mut received).await? == 0 {
            return Ok(());
        }
    }
}

/// Reads the ClientHello, and gives the group that its key share is for.
async fn hello(stream: &Stream, received: &mut Vec<u8>) -> io::Result<Option<u16>> {
    while read(stream, received).await? > 0 {
        match assemble(received, LONGEST_HELLO) {
            Ok(Assembly::Incomplete) => {}
            Ok(Assembly::Complete(body)) => {
                return Ok(ClientHello::parse(&body).ok().map(|hello| group(&hello)));
            }
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}

fn group(hello: &ClientHello<'_>) -> u16 {
    let shared = GROUPS.into_iter().find(|&group| hello.key_shares.groups().any(|shared| shared == group));
    let listed = || GROUPS.into_iter().find(|&group| hello.groups.contains(group));
    shared.or_else(listed).unwrap_or(GROUPS[0])
}

async fn read(stream: &Stream, received: &mut Vec<u8>) -> io::Result<usize> {
    let read = poll_fn(|cx| stream.poll_read(cx, received, |received| received.reserve(4096))).await?;
    if received.is_empty() {
        *received = Vec::new();
    }
    Ok(read)
}

async fn write(stream: &Stream, outgoing: &mut Vec<u8>) -> io::Result<()> {
    let mut written = 0;
    while written < outgoing.len() {
        written += poll_fn(|cx| stream.poll_write(cx, &outgoing[written..], Then::Wait)).await?;
    }
    *outgoing = Vec::new();
    Ok(())
}
