//! One run from start to end: the threads, the seconds as they pass, what was sampled beside them, the outcome.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use courser_net::timer;
use courser_record::Second;
use courser_stats::Histogram;

use crate::plan::{MeasurementWindow, Plan};
use crate::tally::{Tally, ThreadStats};
use crate::thread::Task;
use crate::worker::Control;

/// Threads are up when the run starts.
const HEAD_START: Duration = Duration::from_millis(50);

/// How often someone who waits looks whether the run is to stop.
const LOOK: Duration = Duration::from_millis(100);

/// A run that is going on. `S`: what is sampled at both ends of each window: processor times and the like.
pub struct Run<S> {
    plan: Arc<Plan>,
    start: Duration,
    control: Arc<Control>,
    threads: Vec<JoinHandle<io::Result<ThreadStats>>>,
    reports: Receiver<Second<Histogram>>,
    /// Seconds that not all threads have reported, and how many have.
    pending: Vec<(usize, Second<Histogram>)>,
    seconds: Vec<Second>,
    /// When the run starts, by the wall clock.
    started: SystemTime,
    sampler: JoinHandle<Vec<[S; 2]>>,
}

/// What a run came to.
#[derive(Debug)]
pub struct Outcome<S> {
    /// Each stretch of the steady phase: when, what was counted, what was sampled at its two ends.
    pub windows: Vec<Counted<S>>,
    /// Every second, whatever its phase.
    pub seconds: Vec<Second>,
    /// Most connections open at a time.
    pub most_in_flight: u64,
    /// Handshakes in all phases.
    pub handshakes: u64,
    /// When the run started.
    pub started: SystemTime,
    /// Whether it was stopped before its time.
    pub cut: bool,
}

/// One stretch of the steady phase.
#[derive(Debug)]
pub struct Counted<S> {
    /// Its bounds; the end is earlier than planned if the run was cut.
    pub window: MeasurementWindow,
    /// What was counted of the connections that were meant to start in it.
    pub tally: Tally,
    /// Samples at its start and end; none if the run was cut before.
    pub samples: Option<[S; 2]>,
}

/// Ends a run early, from any thread.
#[derive(Clone)]
pub struct Stop(Arc<Control>);

impl Stop {
    /// Nothing new starts; what is open gets the drain's time.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }

    /// Connections held open at the moment.
    pub fn held(&self) -> u64 {
        self.0.held.load(Ordering::Relaxed)
    }
}

impl<S: Send + 'static> Run<S> {
    /// Starts the threads of `plan`; the run itself begins a moment later, or at `at` if that is later still.
    /// `sample` is called at both ends of each window, on a thread of its own.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(
        plan: Plan,
        at: Option<SystemTime>,
        sample: impl FnMut() -> S + Send + 'static,
    ) -> io::Result<Self> {
        let plan = Arc::new(plan);
        let wait = at.and_then(|at| at.duration_since(SystemTime::now()).ok()).unwrap_or_default();
        let start = timer::now() + wait.max(HEAD_START);
        let control = Arc::new(Control::default());
        let (seconds, reports) = channel();
        let task = |index| Task {
            plan: Arc::clone(&plan),
            index,
            start,
            control: Arc::clone(&control),
            seconds: seconds.clone(),
        };
        let spawn = |index| {
            let task = task(index);
            let (sampling, sampled) = channel::<Infallible>();
            let thread = thread::Builder::new().name(thread_name(index)).spawn(move || {
                let stats = task.run();
                // The processor time of a thread that has ended cannot be read.
                let _ = sampled.recv();
                stats
            })?;
            Ok((thread, sampling))
        };
        let threads = (0..plan.threads.len()).map(spawn).collect::<io::Result<Vec<_>>>()?;
        let (threads, sampling): (Vec<_>, Vec<_>) = threads.into_iter().unzip();
        let windows = plan.windows();
        let stop = Stop(Arc::clone(&control));
        let sampler = thread::Builder::new().name("load-sampler".into()).spawn(move || {
            let samples = sample_windows(&windows, start, &stop, sample);
            drop(sampling);
            samples
        })?;
        let (pending, seconds) = (Vec::new(), Vec::new());
        let started = SystemTime::now() + start.saturating_sub(timer::now());
        Ok(Self { plan, start, control, threads, reports, pending, seconds, started, sampler })
    }

    /// Ends the run from elsewhere.
    pub fn stopper(&self) -> Stop {
        Stop(Arc::clone(&self.control))
    }

    /// Waits for the next second of all threads. `None` when the run is over.
    pub fn next_second(&mut self) -> Option<&Second> {
        loop {
            if self.pending.first().is_some_and(|(reported, _)| *reported == self.threads.len()) {
                return self.take_first();
            }
            match self.reports.recv_timeout(LOOK) {
                Ok(second) => self.add(&second),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.take_first(), // what is known of a second that not all reported
            }
        }
    }

    /// Waits for the end of the run.
    ///
    /// # Errors
    /// When a thread could not be set up, or failed.
    pub fn finish(mut self) -> io::Result<Outcome<S>> {
        while self.next_second().is_some() {}
        let planned_end = self.plan.steady_end();
        let mut stats = Vec::new();
        for thread in self.threads {
            stats.push(thread.join().map_err(|_| io::Error::other("a thread of the generator failed"))??);
        }
        let samples = self.sampler.join().map_err(|_| io::Error::other("the sampler failed"))?;
        let cut = self.control.stop.load(Ordering::Relaxed);
        let end = if cut { timer::now().saturating_sub(self.start).min(planned_end) } else { planned_end };
        Ok(Outcome {
            windows: count(&self.plan, &mut stats, samples, end),
            seconds: self.seconds,
            most_in_flight: stats.iter().map(|stats| stats.most_in_flight).sum(),
            handshakes: stats.iter().map(|stats| stats.handshakes).sum(),
            started: self.started,
            cut,
        })
    }

    fn add(&mut self, second: &Second<Histogram>) {
        let index = usize::try_from(second.second).unwrap_or(usize::MAX) - self.seconds.len();
        if self.pending.len() <= index {
            self.pending.resize_with(index + 1, Default::default);
        }
        let (reported, sum) = &mut self.pending[index];
        *reported += 1;
        sum.add(second);
    }

    /// The first of the seconds that are pending, with its place in the run.
    fn take_first(&mut self) -> Option<&Second> {
        let (_, counted) = (!self.pending.is_empty()).then(|| self.pending.remove(0))?;
        let second = self.seconds.len() as u64;
        let at = Duration::from_secs(second);
        let (phase, offered_rate) = self.plan.at(at);
        let start_unix_us = (self.started + at).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let start_unix_us = u64::try_from(start_unix_us.as_micros()).unwrap_or(u64::MAX);
        let counted = counted.with(|response| response.into());
        self.seconds.push(Second { second, start_unix_us, phase, offered_rate, ..counted });
        self.seconds.last()
    }
}

/// Names of the generator's threads, as /proc shows them.
pub fn thread_name(index: usize) -> String {
    format!("load-{index}")
}

fn count<S>(plan: &Plan, stats: &mut [ThreadStats], samples: Vec<[S; 2]>, end: Duration) -> Vec<Counted<S>> {
    let mut samples = samples.into_iter();
    let mut counted = Vec::new();
    for (number, mut window) in plan.windows().into_iter().enumerate() {
        window.to = window.to.min(end).max(window.from);
        let mut tally = Tally::default();
        for stats in &mut *stats {
            tally.merge(std::mem::take(&mut stats.tallies[number]));
        }
        counted.push(Counted { window, tally, samples: samples.next() });
    }
    counted
}

fn sample_windows<S>(
    windows: &[MeasurementWindow],
    start: Duration,
    stop: &Stop,
    mut sample: impl FnMut() -> S,
) -> Vec<[S; 2]> {
    let mut samples = Vec::new();
    for window in windows {
        if !sleep_until(start + window.from, stop) {
            break;
        }
        let before = sample();
        sleep_until(start + window.to, stop);
        samples.push([before, sample()]);
    }
    samples
}

/// Whether the time came before the stop.
fn sleep_until(moment: Duration, stop: &Stop) -> bool {
    loop {
        let left = moment.saturating_sub(timer::now());
        if left.is_zero() {
            return true;
        }
        if stop.0.stop.load(Ordering::Relaxed) {
            return false;
        }
        thread::sleep(left.min(LOOK));
    }
}
