//! Reloads, one after the other, on a thread of their own: asked for by a signal, by the control socket, or by files that have
//! changed.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use courser_net::systemd;
use courser_proxy::Threads;
use courser_telemetry::event::{self, Level, log};
use courser_tls::Identity;
use courser_tls::identity::Validity;
use rustix::process::{Pid, Signal, kill_process};

use super::{STOP_TIME, Service};
use crate::certificates::{CertificateEnd, Period};
use crate::exit::Failure;
use crate::expiry::ExpiryWatch;
use crate::low_priority::at_low_priority;
use crate::reload::{Outcome, Reloader};
use crate::served::Served;
use crate::stamp::Stamps;
use crate::status;
use crate::succeed::{self, State};
use crate::validity;

/// Between two looks at the files. Events of the file system do not tell of changes over the network, in overlays, or behind
/// the links that Kubernetes swaps.
const LOOK: Duration = Duration::from_secs(5);

/// Added to it for each file: a hundred thousand of them cost two percent of a processor.
const LOOK_AT_EACH: Duration = Duration::from_micros(100);

/// How long files may not fit together after a change before that is reported: a chain and its key are written one after the
/// other, by tools that know nothing of each other.
const SETTLING: Duration = Duration::from_secs(60);

/// What the thread is asked for.
enum Request {
    Reload { only_check: bool, answer: Option<Sender<Outcome>> },
    Upgrade { program: Option<PathBuf>, silence: Duration, answer: Sender<succeed::Outcome> },
    Stop,
}

/// Asks for reloads.
#[derive(Clone)]
pub(crate) struct ReloadHandle {
    requests: Sender<Request>,
    last: Arc<Mutex<Last>>,
    upgrade: Arc<Mutex<State>>,
}

/// The running generation, and the last attempt to replace it.
struct Last {
    generation: u64,
    since: Instant,
    served: Served,
    attempt: Option<(Instant, Outcome)>,
    /// Of the last attempt, or the start.
    tried_at: SystemTime,
}

impl ReloadHandle {
    /// The way to ask, and the receiver for [`ReloadService::new`].
    pub(crate) fn new(served: Served) -> (Self, ReloadRequests) {
        let (requests, received) = mpsc::channel();
        let last =
            Last { generation: 1, since: Instant::now(), served, attempt: None, tried_at: SystemTime::now() };
        let last = Arc::new(Mutex::new(last));
        (Self { requests, last, upgrade: Arc::default() }, ReloadRequests(received))
    }

    /// Asks for a reload, and does not wait for it.
    pub(crate) fn ask(&self) {
        self.send(Request::Reload { only_check: false, answer: None });
    }

    /// Reloads, or only checks what a reload would do. `None` when the program ends, or another process has taken over.
    pub(crate) fn reload(&self, only_check: bool) -> Option<Outcome> {
        let (answer, outcome) = mpsc::channel();
        self.send(Request::Reload { only_check, answer: Some(answer) });
        outcome.recv().ok()
    }

    /// Whether the last reload was accepted, or there was none.
    pub(crate) fn last_was_successful(&self) -> bool {
        self.last().attempt.as_ref().is_none_or(|(_, outcome)| outcome.refusal.is_none())
    }

    /// When the last reload was tried, or the start.
    pub(crate) fn last_attempt(&self) -> SystemTime {
        self.last().tried_at
    }

    /// The certificates that end first.
    pub(crate) fn ending(&self, most: usize) -> Vec<CertificateEnd> {
        self.last().served.certificates.iter().take(most).cloned().collect()
    }

    /// What serves, for the status: known before the thread that replaces it runs.
    pub(crate) fn serving(&self) -> status::Generation {
        let last = self.last();
        status::Generation {
            number: last.generation,
            age_s: last.since.elapsed().as_secs(),
            listeners: last.served.listeners.to_vec(),
            certificates: last.served.certificates.len(),
            ending: last.served.certificates.iter().take(SHOWN).map(ending).collect(),
            staples: staples(&last.served.certificates, validity::now()),
            refused_staples: last.served.refused_staples.iter().take(SHOWN).cloned().collect(),
            last_reload: last.attempt.as_ref().map(|(when, outcome)| status::LastReload {
                age_s: when.elapsed().as_secs(),
                refused: outcome.refusal.as_ref().map(|refusal| refusal.why.clone()),
                needs_restart: outcome.needs_restart.clone(),
            }),
        }
    }

    /// Has another process take over: `program`, or the one of this process. `None` when the program ends.
    pub(crate) fn upgrade(&self, program: Option<PathBuf>, silence: Duration) -> Option<succeed::Outcome> {
        {
            let mut state = lock(&self.upgrade);
            if let Some(refusal) = state.refusal() {
                return Some(succeed::Outcome::Refused(refusal));
            }
            *state = State::Running { since: Instant::now(), step: None };
        }
        let (answer, outcome) = mpsc::channel();
        self.send(Request::Upgrade { program, silence, answer });
        outcome.recv().ok()
    }

    /// Has the process that has taken over reload: it may have read the files before they changed.
    fn pass_on(&self) {
        if let State::Done { pid, .. } = *lock(&self.upgrade)
            && let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw)
        {
            // One that has ended needs no reload.
            let _ = kill_process(pid, Signal::HUP);
        }
    }

    /// Whoever asked for an upgrade has the answer.
    pub(crate) fn upgrade_is_answered(&self) {
        if let State::Done { is_answered, .. } = &mut *lock(&self.upgrade) {
            *is_answered = true;
        }
    }

    /// Where an upgrade is.
    pub(crate) fn upgrade_state(&self) -> Arc<Mutex<State>> {
        Arc::clone(&self.upgrade)
    }

    fn send(&self, request: Request) {
        // Without a thread the program ends.
        let _ = self.requests.send(request);
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, outcome: &Outcome, served: &Served) {
        let mut last = self.last();
        last.served = served.clone();
        let now = Instant::now();
        if last.generation != outcome.generation {
            (last.generation, last.since) = (outcome.generation, now);
        }
        last.attempt = Some((now, outcome.clone()));
        last.tried_at = SystemTime::now();
    }
}

/// What was asked for.
pub(crate) struct ReloadRequests(Receiver<Request>);

pub(crate) struct ReloadService {
    handle: ReloadHandle,
    /// Taken by the thread.
    work: Mutex<Option<(ReloadRequests, Reloader)>>,
    /// Disconnected when the thread has ended.
    ended: Mutex<Option<Receiver<()>>>,
    watches: bool,
    expiry: Mutex<ExpiryWatch>,
}

impl ReloadService {
    /// Reloads on request, and where it `watches` by itself when files have changed.
    pub(crate) fn new(
        handle: ReloadHandle,
        requests: ReloadRequests,
        reloader: Reloader,
        watches: bool,
    ) -> Self {
        Self {
            handle,
            work: Mutex::new(Some((requests, reloader))),
            ended: Mutex::default(),
            watches,
            expiry: Mutex::default(),
        }
    }
}

impl Service for ReloadService {
    fn name(&self) -> &'static str {
        "reload"
    }

    fn start(&self, threads: &Threads) -> Result<(), Failure> {
        let Some((requests, reloader)) = lock(&self.work).take() else { return Ok(()) };
        let (running, ended) = mpsc::channel();
        *lock(&self.ended) = Some(ended);
        let watch = self.watches.then(|| Watch::new(reloader.looked_at.clone()));
        let mut work = Work { handle: self.handle.clone(), reloader, watch };
        let started = threads.spawn("reload", move || {
            let _running = running;
            work.serve(&requests.0);
        });
        started.map(drop).map_err(|error| Failure::runtime("cannot start the thread reload", error))
    }

    fn tick(&self, now: Instant) {
        let last = self.handle.last();
        lock(&self.expiry).look(&last.served.certificates, now, validity::now());
    }

    fn stop(&self) -> bool {
        self.handle.send(Request::Stop);
        let ended = lock(&self.ended).take();
        ended.is_none_or(|ended| ended.recv_timeout(STOP_TIME) == Err(RecvTimeoutError::Disconnected))
    }
}

fn ending(certificate: &CertificateEnd) -> status::EndingCertificate {
    let Identity { not_before, not_after, .. } = *certificate.identity;
    let lifetime_s = not_after.saturating_sub(not_before);
    status::EndingCertificate {
        name: certificate.name().to_owned(),
        key: certificate.key().to_owned(),
        lifetime_s,
        days_left: (not_after - validity::now()).div_euclid(86_400),
    }
}

/// The certificates with a staple or a need of one, the most urgent first.
fn staples(certificates: &[CertificateEnd], now: i64) -> Vec<status::StapleRow> {
    let row = |certificate: &CertificateEnd| {
        let (state, left_s, lifetime_s) = match certificate.staple.as_deref().copied() {
            None if !certificate.identity.must_staple => return None,
            None => ("missing", 0, 0),
            Some(Period { not_before, not_after }) => {
                let state = match Validity::at(now, not_before, not_after) {
                    Validity::Valid => "sent",
                    Validity::NotYet { .. } => "not_yet",
                    Validity::Expired { .. } => "expired",
                };
                (state, not_after - now, not_after - not_before)
            }
        };
        let (name, key, state) =
            (certificate.name().to_owned(), certificate.key().to_owned(), state.to_owned());
        let is_demanded = certificate.identity.must_staple;
        Some(status::StapleRow { name, key, state, left_s, lifetime_s, is_demanded })
    };
    let mut rows: Vec<_> = certificates.iter().filter_map(row).collect();
    rows.sort_by_key(|row| row.left_s);
    rows.truncate(SHOWN);
    rows
}

/// Certificates that the status shows.
const SHOWN: usize = 10;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Work {
    handle: ReloadHandle,
    reloader: Reloader,
    watch: Option<Watch>,
}

impl Work {
    fn serve(&mut self, requests: &Receiver<Request>) {
        loop {
            let pause = self.watch.as_ref().map_or(Duration::MAX, Watch::pause);
            match requests.recv_timeout(pause) {
                Ok(first) => {
                    // What has come meanwhile is answered by the same reload.
                    let all: Vec<Request> = std::iter::once(first).chain(requests.try_iter()).collect();
                    if all.iter().any(|request| matches!(request, Request::Stop)) {
                        return;
                    }
                    self.answer(all);
                }
                Err(RecvTimeoutError::Timeout) => self.look(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn answer(&mut self, requests: Vec<Request>) {
        let (mut outcomes, mut is_passed_on) = ([None, None], false);
        for request in requests {
            let (only_check, answer) = match request {
                Request::Reload { only_check, answer } => (only_check, answer),
                Request::Upgrade { program, silence, answer } => {
                    self.upgrade(program, silence, &answer);
                    continue;
                }
                Request::Stop => continue,
            };
            if self.reloader.process.is_superseded.load(Ordering::Relaxed) {
                // Who waits for an answer asks again, and reaches the process that serves.
                if answer.is_none() && !std::mem::replace(&mut is_passed_on, true) {
                    self.handle.pass_on();
                }
                continue;
            }
            let outcome = match &outcomes[usize::from(only_check)] {
                Some(outcome) => outcome,
                None => outcomes[usize::from(only_check)].insert(self.reload(only_check)),
            };
            // Whoever asked may have gone.
            let _ = answer.map(|answer| answer.send(outcome.clone()));
        }
    }

    fn upgrade(&mut self, program: Option<PathBuf>, silence: Duration, answer: &Sender<succeed::Outcome>) {
        let outcome = self.reloader.upgrade(program, silence);
        if let succeed::Outcome::Done(_) = outcome {
            // The files are another process's now.
            self.watch = None;
        }
        // Whoever asked may have gone.
        let _ = answer.send(outcome);
    }

    fn reload(&mut self, only_check: bool) -> Outcome {
        if !only_check {
            systemd::notify(&format!("RELOADING=1\nMONOTONIC_USEC={}", systemd::monotonic_micros()));
        }
        let outcome = self.reloader.reload(only_check);
        if !only_check {
            let state = if outcome.refusal.is_some() { " (the last reload was refused)" } else { "" };
            systemd::notify(&format!("READY=1\nSTATUS=generation {} serves{state}", outcome.generation));
            report(&outcome);
            self.handle.record(&outcome, &self.reloader.current.served);
            self.watch = self.watch.take().map(|_| Watch::new(self.reloader.looked_at.clone()));
        }
        outcome
    }

    /// Reloads if files have changed since the last look.
    fn look(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        let now = at_low_priority(|| watch.seen.now());
        if now == watch.seen && watch.unsettled.is_none() {
            return;
        }
        if now != watch.seen {
            watch.seen = now;
            watch.unsettled.get_or_insert_with(Instant::now);
        }
        let outcome = self.reloader.reload(false);
        let Some(watch) = &mut self.watch else { return };
        let is_settled = outcome.refusal.is_none();
        let is_overdue = watch.unsettled.is_some_and(|since| since.elapsed() >= SETTLING);
        if is_settled || is_overdue {
            report(&outcome);
            self.handle.record(&outcome, &self.reloader.current.served);
            *watch = Watch::new(self.reloader.looked_at.clone());
        }
    }
}

/// Files whose changes reload.
struct Watch {
    /// As they were at the last look.
    seen: Stamps,
    /// When files changed that do not fit together yet.
    unsettled: Option<Instant>,
}

impl Watch {
    fn new(seen: Stamps) -> Self {
        Self { seen, unsettled: None }
    }

    fn pause(&self) -> Duration {
        LOOK + LOOK_AT_EACH * u32::try_from(self.seen.len()).unwrap_or(u32::MAX)
    }
}

fn report(outcome: &Outcome) {
    let Outcome { generation, changes, needs_restart, warnings, refusal } = outcome;
    event::print(warnings.clone());
    if let Some(refusal) = refusal {
        event::print(refusal.why.clone());
        let message = format_args!("reload refused: generation {generation} serves on");
        return log(Level::Error, message);
    }
    log(Level::Info, format_args!("reload: generation {generation} serves, changes: {}", changes.len()));
    for change in changes {
        log(Level::Info, format_args!("reload: {change}"));
    }
    for change in needs_restart {
        log(Level::Warning, format_args!("reload: {change}: takes `courser upgrade`"));
    }
}
