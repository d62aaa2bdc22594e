//! What an endpoint negotiates, found out by asking: versions, suites and whose order counts, groups, certificates,
//! application protocols, resumption.
//!
//! Most of it comes from ClientHellos made here and the clear part of the server's answer: no TLS library's opinion of
//! what may be offered stands in between. What is said under encryption, and whether a session is really resumed, takes
//! handshakes, and those are courser-tls' clients'. It is no load path: blocking sockets, one connection at a time to
//! each host, hosts side by side.
//!
//! Each question is a connection. An endpoint with all of OpenSSL's suites sees some two hundred of them, and will log
//! most as broken off in the handshake.

mod endpoint;

mod prober;
mod question;

mod dialogue;
mod negotiation;
mod post_quantum;
mod resumption;
mod served;

mod rows;

pub use dialogue::HandshakeBytes;
pub use endpoint::{InspectedEndpoint, TargetError};
pub use negotiation::{Negotiated, Order, Retry};
pub use post_quantum::{PostQuantum, TimeOfBoth};
pub use prober::InspectError;
pub use resumption::{EarlyData, Resumption};
pub use rows::Row;
pub use served::{ClientKind, Served, leaf};

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use prober::Prober;

use crate::channel::HTTP2;

/// How to ask.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long a connect may take, and an endpoint be silent.
    pub timeout: Duration,
    /// How often each kind of resumption is tried.
    pub attempts: u32,
    /// Application protocols to offer (RFC 7301).
    pub protocols: Vec<Vec<u8>>,
    /// How many handshakes with X25519MLKEM768, and as many with X25519, are measured; 0 for none.
    pub pairs: usize,
    /// How many endpoints are asked at a time.
    pub parallel: usize,
}

impl Default for Options {
    /// 5 seconds, 5 attempts, HTTP/2 and HTTP/1, 30 handshakes of each kind, 8 endpoints.
    fn default() -> Self {
        let protocols = ["h2", "http/1.1", "http/1.0"].map(Into::into).into();
        Self { timeout: Duration::from_secs(5), attempts: 5, protocols, pairs: 30, parallel: 8 }
    }
}

/// What an endpoint was found to negotiate.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The address that was asked.
    pub address: SocketAddr,
    /// Each version that is accepted, newest first.
    pub versions: Vec<Negotiated>,
    /// What TLS 1.3 does when the client's key share is of a group that the server likes less.
    pub retry: Option<Retry>,
    /// Certificates by the kind of client that gets them.
    pub certificates: Vec<Served>,
    /// Whether a client certificate is asked for, as far as versions up to TLS 1.2 tell.
    pub asks_certificate: bool,
    /// Application protocols that are accepted, in the order in which the server prefers them over one another.
    pub protocols: Vec<Vec<u8>>,
    /// Whether HTTP/2 is spoken; none where it is not accepted.
    pub http2: Option<bool>,
    /// Each kind of resumption that could be tried.
    pub resumptions: Vec<Resumption>,
    /// Tickets after a full TLS 1.3 handshake.
    pub tickets: Option<u32>,
    /// What becomes of early data in TLS 1.3.
    pub early_data: Option<EarlyData>,
    /// What X25519MLKEM768 costs; none where it is not accepted, or there is no X25519 to hold it against.
    pub post_quantum: Option<PostQuantum>,
    /// Connections that were made to find all this out.
    pub connections: u32,
}

/// Asks one endpoint.
///
/// # Errors
/// When it cannot be reached, or does not speak TLS as far as we do. What fails later counts as refused.
pub fn inspect(target: &InspectedEndpoint, options: &Options) -> Result<Inspection, InspectError> {
    let mut prober = Prober::reach(target, options)?;
    let (versions, asks_certificate) = negotiation::versions(&mut prober)?;
    let retry = negotiation::retry(&mut prober, &versions)?;
    let certificates = served::certificates(&mut prober, &versions)?;
    let protocols = resumption::protocols(&mut prober, &versions, &options.protocols);
    let accepted = protocols.iter().any(|protocol| protocol == HTTP2);
    let http2 = accepted.then(|| resumption::speaks_http2(&mut prober, &versions)).flatten();
    let (resumptions, tickets) = resumption::try_all(&mut prober, &versions, options.attempts);
    let early_data = resumption::early_data(&mut prober, &versions);
    let post_quantum = post_quantum::post_quantum(&mut prober, &versions, options);
    Ok(Inspection {
        address: prober.address,
        versions,
        retry,
        certificates,
        asks_certificate,
        protocols,
        http2,
        resumptions,
        tickets,
        early_data,
        post_quantum,
        connections: prober.connections,
    })
}

/// Asks several endpoints, [`Options::parallel`] at a time; the answers are in the order of the targets.
pub fn inspect_all(
    targets: &[InspectedEndpoint],
    options: &Options,
) -> Vec<Result<Inspection, InspectError>> {
    let next = AtomicUsize::new(0);
    let answers = Mutex::new(Vec::new());
    let work = || {
        while let Some((index, target)) = nth(targets, next.fetch_add(1, Ordering::Relaxed)) {
            let answer = inspect(target, options);
            answers.lock().unwrap_or_else(PoisonError::into_inner).push((index, answer));
        }
    };
    thread::scope(|scope| {
        for _ in 0..options.parallel.clamp(1, targets.len().max(1)) {
            scope.spawn(work);
        }
    });
    let mut answers = answers.into_inner().unwrap_or_else(PoisonError::into_inner);
    answers.sort_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

fn nth<T>(items: &[T], index: usize) -> Option<(usize, &T)> {
    items.get(index).map(|item| (index, item))
}
