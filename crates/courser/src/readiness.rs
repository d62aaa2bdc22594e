//! Whether the process lives, and whether clients should be sent to it: for probes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use courser_proxy::since_start;

use crate::process::Process;

/// A worker that has not come round for so long is stuck: all that it does waits in between.
const STUCK: Duration = Duration::from_secs(10);

pub(crate) struct Readiness {
    process: Arc<Process>,
    /// Each worker has its first generation.
    is_accepting: AtomicBool,
    is_draining: Arc<AtomicBool>,
}

impl Readiness {
    pub(crate) fn new(process: &Arc<Process>, is_draining: Arc<AtomicBool>) -> Self {
        Self { process: Arc::clone(process), is_accepting: AtomicBool::new(false), is_draining }
    }

    /// From here on connections are accepted.
    pub(crate) fn set_accepting(&self) {
        self.is_accepting.store(true, Ordering::Relaxed);
    }

    /// An error where a worker is stuck.
    pub(crate) fn health(&self) -> Result<(), String> {
        let pulses = self.process.pulses.iter().enumerate();
        match pulses
            .filter(|(_, pulse)| pulse.is_stuck(since_start(), STUCK))
            .map(|(worker, _)| worker)
            .next()
        {
            Some(worker) => Err(format!("worker {worker} has not come round for {} s", STUCK.as_secs())),
            None => Ok(()),
        }
    }

    /// An error before connections are accepted, and once they no longer are.
    pub(crate) fn readiness(&self) -> Result<(), String> {
        match (self.is_accepting.load(Ordering::Relaxed), self.is_draining.load(Ordering::Relaxed)) {
            (_, true) => Err("draining".to_owned()),
            (false, _) => Err("starting".to_owned()),
            (true, false) => self.health(),
        }
    }
}
