//! Tells a service manager that asks for it (`WatchdogSec=`) that the workers turn. Where one is stuck it says nothing, and the
//! manager starts the service anew.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use courser_net::systemd;
use courser_proxy::{Threads, since_start};

use super::{STOP_TIME, Service};
use crate::exit::Failure;
use crate::process::Process;

pub(crate) struct Watchdog {
    process: Arc<Process>,
    /// The time after which the manager gives the service up.
    limit: Duration,
    thread: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl Watchdog {
    /// `None` where no service manager asks for it. The variables of a process that another one has replaced count for that.
    pub(crate) fn new(process: &Arc<Process>, is_successor: bool) -> Option<Self> {
        let limit = systemd::watchdog(is_successor)?;
        Some(Self { process: Arc::clone(process), limit, thread: Mutex::default() })
    }

    fn thread(&self) -> MutexGuard<'_, Option<(Sender<()>, Receiver<()>)>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service for Watchdog {
    fn name(&self) -> &'static str {
        "watchdog"
    }

    fn start(&self, threads: &Threads) -> Result<(), Failure> {
        let (stop, stopped) = channel();
        let (running, ended) = channel();
        let (process, limit) = (Arc::clone(&self.process), self.limit);
        let work = move || {
            let _running = running;
            // A process that another one has replaced is not the one that is watched.
            while !process.is_superseded.load(Ordering::Relaxed) {
                if !process.pulses.iter().any(|pulse| pulse.is_stuck(since_start(), limit / 2)) {
                    systemd::notify("WATCHDOG=1");
                }
                // Twice in the half of the time that sd_watchdog_enabled(3) advises.
                if stopped.recv_timeout(limit / 4) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let started = threads.spawn("watchdog", work);
        started.map_err(|error| Failure::runtime("cannot start the thread watchdog", error))?;
        *self.thread() = Some((stop, ended));
        Ok(())
    }

    fn stop(&self) -> bool {
        let Some((stop, ended)) = self.thread().take() else { return true };
        drop(stop);
        ended.recv_timeout(STOP_TIME) == Err(RecvTimeoutError::Disconnected)
    }
}
