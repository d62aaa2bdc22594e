//! What is lost of a log on its way out, counted by who hands lines over and by who writes them. No lock: workers count.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use crate::named::named;

named! {
    /// Why lines are lost.
    LossCause {
        /// Too many waited already: what reads them is too slow.
        QueueFull = "queue_full",
        /// The system refused them.
        WriteError = "write_error",
    }
}

/// What was lost of an output's lines.
#[derive(Debug, Default)]
pub struct Losses {
    /// In the order of [`LossCause`].
    lost: [AtomicU64; 2],
    /// Handed over, and neither written nor lost yet.
    pub(crate) waiting: AtomicU64,
    /// The last reason: an error number of the system, or [`TOO_SLOW`].
    reason: AtomicI32,
}

/// The reader did not take the lines in time.
pub(crate) const TOO_SLOW: i32 = 0;

impl Losses {
    /// Lines since the start.
    pub fn lines(&self) -> u64 {
        self.by_cause().iter().sum()
    }

    /// Lines since the start, in the order of [`LossCause`].
    pub fn by_cause(&self) -> [u64; LossCause::ALL.len()] {
        self.lost.each_ref().map(|lost| lost.load(Ordering::Relaxed))
    }

    /// Why lines were last lost, for people.
    pub fn reason(&self) -> String {
        match self.reason.load(Ordering::Relaxed) {
            TOO_SLOW => "their reader is too slow".to_owned(),
            error => io::Error::from_raw_os_error(error).to_string(),
        }
    }

    /// Counts lines that are lost for an error of the system, or since they are [`TOO_SLOW`].
    pub(crate) fn count(&self, lines: u64, reason: i32) {
        if lines > 0 {
            self.reason.store(reason, Ordering::Relaxed);
            let cause = if reason == TOO_SLOW { LossCause::QueueFull } else { LossCause::WriteError };
            self.lost[cause as usize].fetch_add(lines, Ordering::Relaxed);
        }
    }
}
