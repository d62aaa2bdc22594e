//! What the main thread does once a second: rolls keys, removes expired sessions, reports lost lines. Before the first
//! connection and after the last it reads and writes the session file.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use courser_proxy::Threads;
use courser_telemetry::{Losses, event};

use super::Service;
use crate::exit::Failure;
use crate::fleet_keys::unix_now;
use crate::loss_report::LossReport;
use crate::process::Process;
use crate::session_file::SessionFile;

/// Between two searches for expired sessions.
const SWEEP: Duration = Duration::from_secs(60);

pub(crate) struct Housekeeping {
    process: Arc<Process>,
    session_file: Option<SessionFile>,
    due: Mutex<Due>,
}

struct Due {
    swept: Instant,
    losses: Vec<LossReport>,
}

impl Housekeeping {
    pub(crate) fn new(process: &Arc<Process>, session_file: Option<SessionFile>, log: Arc<Losses>) -> Self {
        let events = event::losses().map(|losses| LossReport::new("events", losses));
        let losses = [LossReport::new("connection log", log)].into_iter().chain(events).collect();
        let due = Mutex::new(Due { swept: Instant::now(), losses });
        Self { process: Arc::clone(process), session_file, due }
    }

    /// Reports the lines that were lost since the last report: at the end, when the logs are written.
    pub(crate) fn report_last_losses(&self) {
        self.due().losses.drain(..).for_each(LossReport::report_last);
    }

    fn due(&self) -> MutexGuard<'_, Due> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service for Housekeeping {
    fn name(&self) -> &'static str {
        "housekeeping"
    }

    fn start(&self, _threads: &Threads) -> Result<(), Failure> {
        if let Some(file) = &self.session_file {
            file.restore();
        }
        self.tick(Instant::now());
        Ok(())
    }

    fn tick(&self, now: Instant) {
        if !self.process.is_superseded.load(Ordering::Relaxed) {
            self.process.keys.advance();
        }
        let mut due = self.due();
        if now.duration_since(due.swept) >= SWEEP {
            due.swept = now;
            // Secrets of sessions that can no longer be resumed do not stay in the memory of an idle process.
            if let Some(cache) = &self.process.sessions.cache {
                cache.sweep(unix_now());
            }
        }
        due.losses.iter_mut().for_each(|losses| losses.report(now));
    }

    /// It has no thread; writing the session file takes as long as the disk does.
    fn stop(&self) -> bool {
        let file = self.session_file.as_ref().filter(|_| !self.process.is_superseded.load(Ordering::Relaxed));
        file.into_iter().for_each(SessionFile::save);
        true
    }
}
