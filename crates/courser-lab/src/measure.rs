//! One run of the engine: a probe first, then the load under the eyes of whoever watches, until its end or Ctrl-C.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use courser_load::failure::Class;
use courser_load::plan::Plan;
use courser_load::run::{self, Run, Stop};
use courser_load::tally::{Negotiated, Tally};

use courser_load::spec::LoadSpec;
use courser_record as record;

use crate::error::Error;
use crate::findings::{self, Evidence};
use crate::reading::{Reader, Reading, Watched};
use crate::to_record;

/// What a run of ours comes to.
pub type Outcome = run::Outcome<Reading>;

/// Ctrl-C, seen by all runs of this process.
#[derive(Clone)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// An interrupt that comes when the flag is set.
    pub fn new(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }

    /// Whether it came.
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Ends a run when it comes. The thread ends with the run or the process.
    fn ends(&self, stop: Stop, over: Arc<AtomicBool>) {
        let interrupt = self.clone();
        thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                if interrupt.came() {
                    stop.stop();
                    return;
                }
                thread::sleep(Duration::from_millis(50));
            }
        });
    }
}

/// Makes one connection to each address as the plan says, and explains what is wrong if one fails. Returns what the first
/// one negotiates.
pub fn probe(plan: &Plan) -> Result<Option<Negotiated>, Error> {
    let mut first = None;
    for address in &plan.target.addresses {
        let negotiated = probe_address(plan, *address)?;
        first = first.or(negotiated);
    }
    Ok(first)
}

fn probe_address(plan: &Plan, address: SocketAddr) -> Result<Option<Negotiated>, Error> {
    let run = Run::start(plan.probe(address), None, || ())
        .map_err(|why| Error::system("starting a thread", why))?;
    let outcome = run.finish().map_err(|why| Error::system("a first connection", why))?;
    let tally = &outcome.windows[0].tally;
    let negotiated = tally.negotiated.iter().next().map(|(negotiated, _)| negotiated.clone());
    match tally.failures.iter().next() {
        Some((class, _)) => explain(class, tally, address),
        None => Ok(negotiated),
    }
}

/// A target that cannot be loaded at all is said so before the load; one that only answers wrongly is loaded: how often
/// it does is a result.
fn explain(class: &Class, tally: &Tally, address: SocketAddr) -> Result<Option<Negotiated>, Error> {
    let detail = tally.failure_samples.first().cloned().unwrap_or_default();
    let detail = detail.replace(&format!("{address}: "), "");
    let explained = |advice: &str| format!("{address}: {detail}; {advice}");
    match class {
        Class::Refused => Err(Error::Unreachable(explained("is it running, and is the port right?"))),
        Class::Unreachable => Err(Error::Unreachable(explained("look at address, route and firewall"))),
        Class::Timeout(courser_load::failure::Step::Connect) => Err(Error::Unreachable(explained(
            "a firewall may drop what we send; --connect-timeout gives more time",
        ))),
        Class::NotTls => Err(Error::NoTls(explained("for HTTP in clear write http://"))),
        Class::Certificate if detail.contains("wrong signature") => Err(Error::NoTls(explained(
            "the signature is not by the certificate's key, or --ca is another authority of the same name: \
                 give the right --ca and --sni",
        ))),
        Class::Certificate => {
            Err(Error::NoTls(explained("give the right --ca and --sni, or leave --ca out")))
        }
        Class::Alert(_) | Class::Incompatible => {
            let advice = "see with `courser-bench inspect` what it accepts, and offer that (--tls, --suites, --groups, \
                          --schemes, --sni, --cert)";
            Err(Error::NoTls(explained(advice)))
        }
        Class::Http2NotAgreed => {
            Err(Error::NoTls(explained("offer HTTP/1.1 beside it (--alpn h2,http/1.1), or leave --alpn out")))
        }
        Class::BadSource => Err(Error::Input(explained("--source takes addresses of this machine"))),
        Class::WrongOffer => Err(Error::Input(explained("the engine cannot offer that"))),
        Class::Internal => Err(Error::System(explained("this is a fault of the generator"))),
        _ => Ok(None),
    }
}

/// Shows a run while it lasts.
pub trait Watch {
    /// Names the next run.
    fn label(&mut self, label: &str);
    /// A run of this plan begins.
    fn begin(&mut self, plan: &Plan);
    /// A second is over.
    fn second(&mut self, second: &record::Second);
    /// The run is over.
    fn end(&mut self);
}

/// Shows nothing.
impl Watch for () {
    fn label(&mut self, _: &str) {}
    fn begin(&mut self, _: &Plan) {}
    fn second(&mut self, _: &record::Second) {}
    fn end(&mut self) {}
}

/// Runs plans of a load, and judges what they show.
pub struct Runner<W> {
    /// Ends its runs.
    pub interrupt: Interrupt,
    /// Shows its runs.
    pub watch: W,
    reader: Option<Reader>,
    watched: Watched,
    reuse: u32,
    start_at: Option<SystemTime>,
}

impl<W: Watch> Runner<W> {
    /// # Errors
    /// When the server's processes cannot be read.
    pub fn new(spec: &LoadSpec, interrupt: Interrupt, watch: W) -> Result<Self, Error> {
        let (reader, watched) = Reader::new(&spec.server)?;
        let (reuse, start_at) = (spec.reuse, spec.start_at);
        Ok(Self { interrupt, watch, reader: Some(reader), watched, reuse, start_at })
    }

    /// Runs a plan; records and judges each of its windows.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub fn run(&mut self, label: &str, plan: &Plan) -> Result<(Outcome, Vec<record::Run>), Error> {
        self.watch.label(label);
        let reader = self.reader.take().ok_or_else(|| Error::System("the sampler is gone".into()))?;
        let (outcome, reader) = run(plan, self.start_at, reader, &self.interrupt, &mut self.watch)?;
        self.reader = Some(reader);
        let mut runs = to_record::runs(label, plan, &outcome, &self.watched);
        for (run, counted) in runs.iter_mut().zip(&outcome.windows) {
            let (watched, reuse, cut) = (&self.watched, self.reuse, outcome.cut);
            let evidence = Evidence { plan, counted, run, watched, reuse, cut };
            (run.findings, run.verdict) = findings::judge(&evidence);
        }
        Ok((outcome, runs))
    }
}

/// Runs a plan to its end.
fn run(
    plan: &Plan,
    at: Option<SystemTime>,
    reader: Reader,
    interrupt: &Interrupt,
    watch: &mut impl Watch,
) -> Result<(Outcome, Reader), Error> {
    let (give_back, taken) = std::sync::mpsc::channel();
    let mut lent = Lent { reader: Some(reader), give_back };
    let run = Run::start(plan.clone(), at, move || lent.read());
    let mut run = run.map_err(|why| Error::system("starting a thread", why))?;
    let over = Arc::new(AtomicBool::new(false));
    interrupt.ends(run.stopper(), Arc::clone(&over));
    watch.begin(plan);
    while let Some(second) = run.next_second() {
        watch.second(second);
    }
    over.store(true, Ordering::Relaxed);
    watch.end();
    let outcome = run.finish().map_err(|why| Error::system("the load", why))?;
    let reader = taken.recv().map_err(|_| Error::System("the sampler ended early".into()))?;
    Ok((outcome, reader))
}

/// A reader that comes back when its run is over.
struct Lent {
    reader: Option<Reader>,
    give_back: std::sync::mpsc::Sender<Reader>,
}

impl Lent {
    fn read(&mut self) -> Reading {
        self.reader.as_mut().expect("it is given back when this is dropped").read()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(reader) = self.reader.take() {
            let _ = self.give_back.send(reader);
        }
    }
}
