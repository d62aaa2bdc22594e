//! What a run is: whom it loads, how connections arrive, and what each of them does. Plain values; the program makes
//! them from its flags.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use courser_record::{CloseMode, Phase};
use courser_tls_client::ClientTlsConfig;

use crate::http::{Expect, Rendered};
use crate::names::Names;
use crate::origin::OriginSockets;
use crate::schedule::{Arrivals, Piece, Share};

/// One run.
#[derive(Clone)]
pub struct Plan {
    /// Whom.
    pub target: LoadTarget,
    /// How connections arrive.
    pub model: Model,
    /// How often a client comes back with its TLS session.
    pub reuse: Reuse,
    /// What a connection is for.
    pub exchange: Workload,
    /// How a connection ends once its exchange is over.
    pub close: CloseMode,
    /// Sockets.
    pub sockets: Sockets,
    /// Phases around the steady one.
    pub phases: Phases,
    /// A CPU to stay on, or none, for each thread of the generator.
    pub threads: Vec<Option<usize>>,
    /// Which part of the arrivals, or of the clients of a closed loop, is this generator's.
    pub share: Share,
    /// Where randomness comes from: names, source addresses.
    pub seed: u64,
    /// The origin behind what is loaded, if the first thread of the generator is to serve it.
    pub origin: Option<OriginSockets>,
}

/// Whom to load.
#[derive(Clone)]
pub struct LoadTarget {
    /// Where it listens. With several, each connection of a client goes to the next one.
    pub addresses: Vec<SocketAddr>,
    /// TLS, or none.
    pub security: Option<Security>,
}

/// TLS as a client speaks it.
#[derive(Clone)]
pub struct Security {
    /// What is offered.
    pub terms: ClientTlsConfig,
    /// Whether the first request is sent as early data where the session allows it (RFC 8446, section 2.3).
    pub early_data: bool,
    /// Whether HTTP/2 has to be agreed on: it is offered, and no version of HTTP beside it.
    pub requires_http2: bool,
    /// Server names.
    pub names: Arc<Names>,
    /// What a ClientHello must offer; checked on every connection.
    pub check: crate::offered::Check,
}

/// How connections arrive.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// Sessions arrive on a schedule; each makes its connections one after the other (partly open; Schroeder, Wierman,
    /// Harchol-Balter, NSDI 2006). The rate counts sessions.
    Sessions(Offered),
    /// Connections arrive on a schedule (open loop), from clients that have been there before as often as
    /// [`Reuse`] says. The rate counts connections.
    Connections(Offered),
    /// So many clients, each with a new connection as soon as the last one has ended (closed loop). For saturation only.
    Closed(u64),
}

/// Offered load over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Offered {
    /// The steady phase: one stretch, or the steps of a staircase. Each is counted apart.
    pub steps: Vec<Piece>,
    /// Spacing.
    pub arrivals: Arrivals,
}

/// How often a client connects with one TLS session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// So many connections per session, the first with a full handshake. 1 never resumes.
    Times(u32),
    /// One full handshake per client, ever.
    Always,
}

impl Reuse {
    /// Of `clients` that all begin at once: how many connections the first session of one of them makes fewer. Otherwise all
    /// would make their full handshakes at the same time, again and again, and a short window would have none or all of them.
    pub(crate) fn fewer_at_first(self, client: u64, clients: u64) -> u32 {
        match self {
            Self::Times(times) => (u64::from(times) * client / clients.max(1)).try_into().unwrap_or(0),
            Self::Always => 0,
        }
    }
}

/// What a connection is for.
#[derive(Clone, Debug)]
pub enum Workload {
    /// The handshake alone, up to the server's confirmation.
    Handshake,
    /// HTTP requests, so many; `None`: as many as fit into the run.
    Http {
        /// What is sent.
        request: Arc<Rendered>,
        /// What must come back.
        expect: Arc<Expect>,
        /// Requests per connection.
        count: Option<u32>,
    },
    /// Bytes that the server sends back as they are.
    Echo {
        /// How many.
        bytes: usize,
        /// How often per connection.
        count: u32,
    },
    /// The client goes away in the middle of the handshake: the attack.
    Abandon {
        /// How long after the ClientHello.
        after: Duration,
    },
    /// After the handshake, and one request if there is one, the connection stays open and silent until the run ends.
    Hold {
        /// What is asked first.
        first: Option<(Arc<Rendered>, Arc<Expect>)>,
        /// The clients of a closed loop connect evenly over this time; zero: at once.
        over: Duration,
    },
}

/// Sockets of the clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sockets {
    /// Source addresses that take turns; the system's choice when there is none.
    pub sources: Vec<IpAddr>,
    /// Leaves Nagle's algorithm on, as naive clients do (RFC 896).
    pub nagle: bool,
    /// Segments that a ClientHello is sent in: the one of X25519MLKEM768 does not fit into one of Ethernet's. Zero: one, or
    /// eight over [`Self::hello_over`].
    pub hello_segments: u32,
    /// A ClientHello is sent in segments over this time, as slow clients and slow attacks do; zero: at once.
    pub hello_over: Duration,
}

/// Time limits, and the phases around the steady one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phases {
    /// At a tenth of the first rate: caches fill, the first ClientHellos are checked.
    pub warm_up: Duration,
    /// The rate climbs to the first rate.
    pub ramp: Duration,
    /// The steady phase of a closed loop; elsewhere the steps say it.
    pub steady: Duration,
    /// How long the last connections may take after the steady phase.
    pub drain: Duration,
    /// How long a connect may take.
    pub connect_timeout: Duration,
    /// How long an exchange may take: the handshake, or a request and its answer.
    pub timeout: Duration,
    /// How long a connection of HTTP/1.1 rests between an answer and its next request.
    pub pause: Duration,
    /// Connections open at a time, at most, in this generator.
    pub in_flight: usize,
}

/// A stretch of the steady phase whose counts are kept apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasurementWindow {
    /// From the start of the run.
    pub from: Duration,
    /// From the start of the run.
    pub to: Duration,
    /// Arrivals per second on offer (sessions or connections, over all generators); none in a closed loop.
    pub rate: Option<f64>,
}

impl Plan {
    /// All pieces of an open schedule: warm-up, ramp, steps.
    pub fn pieces(&self) -> Vec<Piece> {
        let (Model::Sessions(offered) | Model::Connections(offered)) = &self.model else { return Vec::new() };
        let first = offered.steps.first().map_or(0.0, |step| step.from);
        let warm_up = Piece::even(first / 10.0, self.phases.warm_up);
        let ramp = Piece { length: self.phases.ramp, from: first / 10.0, to: first };
        let around = [warm_up, ramp].into_iter().filter(|piece| !piece.length.is_zero());
        around.chain(offered.steps.iter().copied()).collect()
    }

    /// The windows that count.
    pub fn windows(&self) -> Vec<MeasurementWindow> {
        let mut from = self.phases.warm_up + self.phases.ramp;
        let (Model::Sessions(offered) | Model::Connections(offered)) = &self.model else {
            return vec![MeasurementWindow { from, to: from + self.phases.steady, rate: None }];
        };
        let mut windows = Vec::new();
        for step in &offered.steps {
            let rate = Some(f64::midpoint(step.from, step.to));
            windows.push(MeasurementWindow { from, to: from + step.length, rate });
            from += step.length;
        }
        windows
    }

    /// The phase in which a moment lies, and the rate on offer then.
    pub fn at(&self, moment: Duration) -> (Phase, Option<f64>) {
        let rate = self.windows().iter().find(|window| moment < window.to).and_then(|window| window.rate);
        let phase = if moment >= self.steady_end() {
            Phase::Drain
        } else if moment >= self.phases.warm_up + self.phases.ramp {
            Phase::Steady
        } else if moment >= self.phases.warm_up {
            Phase::Ramp
        } else {
            Phase::WarmUp
        };
        (phase, rate)
    }

    /// Whether its transactions are requests.
    pub fn has_requests(&self) -> bool {
        match &self.exchange {
            Workload::Http { .. } | Workload::Echo { .. } => true,
            Workload::Hold { first, .. } => first.is_some(),
            Workload::Handshake | Workload::Abandon { .. } => false,
        }
    }

    /// When the steady phase ends, from the start of the run.
    pub fn steady_end(&self) -> Duration {
        self.windows().last().map_or(Duration::ZERO, |window| window.to)
    }

    /// A plan of one connection to one of the addresses that does once what this one does.
    pub fn probe(&self, address: SocketAddr) -> Self {
        const LENGTH: Duration = Duration::from_millis(99);
        let once = Offered { steps: vec![Piece::even(10.0, LENGTH)], arrivals: Arrivals::Even };
        let exchange = match &self.exchange {
            Workload::Http { request, expect, .. } => {
                Workload::Http { request: Arc::clone(request), expect: Arc::clone(expect), count: Some(1) }
            }
            Workload::Echo { bytes, .. } => Workload::Echo { bytes: *bytes, count: 1 },
            _ => Workload::Handshake,
        };
        let phases = Phases {
            warm_up: Duration::ZERO,
            ramp: Duration::ZERO,
            drain: self.phases.timeout + self.phases.connect_timeout,
            ..self.phases
        };
        Self {
            target: LoadTarget { addresses: vec![address], ..self.target.clone() },
            model: Model::Connections(once),
            reuse: Reuse::Times(1),
            exchange,
            phases,
            threads: vec![None],
            share: Share::WHOLE,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_sessions_end_one_after_the_other() {
        let fewer = |reuse: Reuse| (0..5).map(|client| reuse.fewer_at_first(client, 5)).collect::<Vec<_>>();
        assert_eq!(fewer(Reuse::Times(10)), [0, 2, 4, 6, 8]);
        assert_eq!(fewer(Reuse::Times(1)), [0; 5]);
        assert_eq!(fewer(Reuse::Always), [0; 5]);
    }
}
