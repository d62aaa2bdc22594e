//! One run of the engine: a probe first, then the load under the eyes of whoever watches, until its end or Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use courser_load::failure::Class;
use courser_load::plan::{LoadTarget, Plan};
use courser_load::run::{self, Run, Stop};
use courser_load::tally::{Negotiated, Tally};

use courser_load::spec::LoadSpec;
use courser_record as record;

use crate::exit::Failure;
use crate::findings::{self, Evidence};
use crate::reading::{Reader, Reading, Watched};
use crate::to_record;
use crate::watch::Watch;

/// What a run of ours comes to.
pub(crate) type Outcome = run::Outcome<Reading>;

/// Ctrl-C, seen by all runs of this process.
#[derive(Clone)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Takes SIGINT and SIGTERM over. A second one ends the process at once.
    pub(crate) fn install() -> Result<Self, Failure> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            let again = signal_hook::flag::register_conditional_shutdown(signal, 6, Arc::clone(&flag));
            let first = signal_hook::flag::register(signal, Arc::clone(&flag));
            again.and(first).map_err(|why| Failure::system("taking over Ctrl-C", why))?;
        }
        Ok(Self(flag))
    }

    /// Whether it came.
    pub(crate) fn came(&self) -> bool {
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

/// Makes one connection as the plan says, and explains what is wrong if it fails.
pub(crate) fn probe(plan: &Plan) -> Result<Option<Negotiated>, Failure> {
    let run =
        Run::start(plan.probe(), None, || ()).map_err(|why| Failure::system("starting a thread", why))?;
    let outcome = run.finish().map_err(|why| Failure::system("a first connection", why))?;
    let tally = &outcome.windows[0].tally;
    match tally.failures.iter().next() {
        Some((class, _)) => explain(class, tally, &plan.target),
        None => Ok(tally.negotiated.iter().next().map(|(negotiated, _)| negotiated.clone())),
    }
}

/// A target that cannot be loaded at all is said so before the load; one that only answers wrongly is loaded: how often
/// it does is a result.
fn explain(class: &Class, tally: &Tally, target: &LoadTarget) -> Result<Option<Negotiated>, Failure> {
    let address = target.addresses.first().map(ToString::to_string).unwrap_or_default();
    let detail = tally.failure_samples.first().cloned().unwrap_or_default();
    let told = |advice: &str| format!("{address}: {detail}; {advice}");
    match class {
        Class::Refused => Err(Failure::Unreachable(told("is it running, and is the port right?"))),
        Class::Unreachable => Err(Failure::Unreachable(told("look at address, route and firewall"))),
        Class::Timeout(courser_load::failure::Step::Connect) => Err(Failure::Unreachable(told(
            "a firewall may drop what we send; --connect-timeout gives more time",
        ))),
        Class::NotTls => Err(Failure::NoTls(told("for HTTP in clear write http://"))),
        Class::Certificate => Err(Failure::NoTls(told("give the right --ca and --sni, or leave --ca out"))),
        Class::Alert(_) | Class::Incompatible => {
            let advice = "see with `courser-bench inspect` what it accepts, and offer that (--tls, --suites, --groups, \
                          --schemes, --sni, --cert)";
            Err(Failure::NoTls(told(advice)))
        }
        Class::BadSource => Err(Failure::Usage(told("--source takes addresses of this machine"))),
        Class::WrongOffer => Err(Failure::Usage(told("the engine cannot offer that"))),
        Class::Internal => Err(Failure::System(told("this is a fault of the generator"))),
        _ => Ok(None),
    }
}

/// Runs plans of a load, and judges what they show.
pub(crate) struct Runner {
    pub(crate) interrupt: Interrupt,
    pub(crate) watch: Watch,
    reader: Option<Reader>,
    watched: Watched,
    reuse: u32,
    start_at: Option<SystemTime>,
}

impl Runner {
    /// # Errors
    /// When the server's processes cannot be read.
    pub(crate) fn new(spec: &LoadSpec, interrupt: Interrupt, watch: Watch) -> Result<Self, Failure> {
        let (reader, watched) = Reader::new(&spec.server)?;
        let (reuse, start_at) = (spec.reuse, spec.start_at);
        Ok(Self { interrupt, watch, reader: Some(reader), watched, reuse, start_at })
    }

    /// Runs a plan; records and judges each of its windows.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub(crate) fn run(&mut self, label: &str, plan: &Plan) -> Result<(Outcome, Vec<record::Run>), Failure> {
        self.watch.label(label);
        let reader = self.reader.take().ok_or_else(|| Failure::System("the sampler is gone".into()))?;
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
    watch: &mut Watch,
) -> Result<(Outcome, Reader), Failure> {
    let (give_back, taken) = std::sync::mpsc::channel();
    let mut lent = Lent { reader: Some(reader), give_back };
    let run = Run::start(plan.clone(), at, move || lent.read());
    let mut run = run.map_err(|why| Failure::system("starting a thread", why))?;
    let over = Arc::new(AtomicBool::new(false));
    interrupt.ends(run.stopper(), Arc::clone(&over));
    watch.begin(plan);
    while let Some((number, interval)) = run.next_second() {
        watch.second(number, interval);
    }
    over.store(true, Ordering::Relaxed);
    watch.end();
    let outcome = run.finish().map_err(|why| Failure::system("the load", why))?;
    let reader = taken.recv().map_err(|_| Failure::System("the sampler ended early".into()))?;
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
