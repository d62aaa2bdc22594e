//! Load in an open loop, by the engine of `courser-bench`: a connection begins when it is due, whether earlier ones have ended
//! or not, so that a server that stands still for a moment shows.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use courser_load::offered::Session;
use courser_load::run::Run;
use courser_load::spec::{Load, LoadSpec, RequestSpec, Work};
use courser_load::tls_options::ResumeChoice;

/// By what the clients come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Every handshake is full: TLS 1.3.
    Nothing,
    /// Session tickets of TLS 1.2.
    Ticket,
    /// Pre-shared keys of TLS 1.3.
    Psk,
    /// Session IDs of TLS 1.2.
    SessionId,
}

/// A load that goes on.
pub struct OpenLoad {
    run: Run<()>,
    offer: Offer,
}

/// What became of its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Connections that were due.
    pub connections: u64,
    /// Those that did not get their whole answer.
    pub failed: u64,
    /// The first failures, in words.
    pub failures: Vec<String>,
    /// Handshakes that offered a session.
    pub offered: u64,
    /// Those of them that were resumed.
    pub resumed: u64,
}

/// For one step of a connection: long on a machine that does other work too.
const PATIENCE: Duration = Duration::from_secs(30);

impl OpenLoad {
    /// Begins `rate` connections a second to `address`, a name or an IP address with a port, for `duration`: each fetches an object
    /// of so many bytes.
    ///
    /// # Errors
    /// When no load can be made.
    pub fn start(
        address: impl Display,
        offer: Offer,
        rate: f64,
        bytes: usize,
        duration: Duration,
    ) -> io::Result<Self> {
        let url = format!("https://{address}/?s={bytes}").parse().map_err(io::Error::other)?;
        let request = RequestSpec { count: 1, expect_length: Some(bytes), ..RequestSpec::default() };
        let mut spec = LoadSpec::new(url, Load::Connections(rate), Work::Requests(request));
        // A client makes one full handshake, and is resumed from then on.
        spec.reuse = u32::from(offer == Offer::Nothing);
        let (version, resume) = match offer {
            Offer::Nothing => ("1.3", ResumeChoice::Never),
            Offer::Psk => ("1.3", ResumeChoice::Ticket),
            Offer::Ticket => ("1.2", ResumeChoice::Ticket),
            Offer::SessionId => ("1.2", ResumeChoice::SessionId),
        };
        spec.tls.versions = vec![version.to_owned()];
        spec.tls.resume = resume;
        spec.phases.warm_up = Duration::ZERO;
        spec.phases.ramp = Duration::ZERO;
        spec.phases.steady = duration;
        (spec.phases.drain, spec.phases.timeout, spec.phases.connect_timeout) =
            (PATIENCE, PATIENCE, PATIENCE);
        let plan = spec.plan(&|path| std::fs::read(path)).map_err(io::Error::other)?;
        Ok(Self { run: Run::start(plan, None, || ())?, offer })
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When the generator has failed.
    pub fn finish(self) -> io::Result<Account> {
        let kind = match self.offer {
            Offer::Nothing => None,
            Offer::Ticket => Some(Session::Ticket),
            Offer::Psk => Some(Session::Psk),
            Offer::SessionId => Some(Session::Id),
        };
        let windows = self.run.finish()?.windows;
        let tally = windows.into_iter().map(|window| window.tally).reduce(|mut all, tally| {
            all.merge(tally);
            all
        });
        let tally = tally.unwrap_or_default();
        let resumed = tally.negotiated.iter().filter(|(handshake, _)| Some(handshake.resumed) == kind);
        Ok(Account {
            connections: tally.connections,
            failed: tally.connections - tally.connections_succeeded + tally.wrong_offers,
            resumed: resumed.map(|(_, count)| count).sum(),
            offered: kind.map_or(0, |kind| tally.offered.get(&kind)),
            failures: tally.failure_samples,
        })
    }
}
