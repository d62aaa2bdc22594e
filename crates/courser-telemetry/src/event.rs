//! Event lines for people, on standard error: start-up, warnings, errors; repeated ones are rate-limited.
//!
//! They are logged in many places, and there is one standard error: so where they go belongs to the process, and is not a
//! handle that everything would have to be given.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::{Display, Write as _};
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::losses::Losses;
use crate::named::named;
use crate::writer::{Batch, Output, Writer};

named! {
    /// How much an event line matters.
    Level {
        /// What the program does.
        Info = "info",
        /// Something is wrong, and the program goes on.
        Warning = "warning",
        /// Something has failed.
        Error = "error",
    }
}

/// Lines of one kind that may appear within one [`WINDOW`]; a fault that hits every connection repeats thousands of
/// times a second, and the first few lines are enough.
const LINES_PER_WINDOW: u32 = 10;

/// How long a kind's allowance lasts.
const WINDOW: Duration = Duration::from_secs(10);

/// Lines that may wait for a slow reader before lines are dropped: some minutes of what the rate limit lets through.
const QUEUE: usize = 512;

/// Where event lines go. The lock is held for no longer than it takes to hand a line over.
static OUTPUT: Mutex<Destination> = Mutex::new(Destination::Direct);

enum Destination {
    /// Written at once, and waited for: in commands that end by themselves.
    Direct,
    /// Through a queue: in a service.
    Queued(Writer),
    Over,
}

/// From now on event lines go to `output` through a queue, and who logs one does not wait for its reader. The result is the
/// writer's work, for a thread of its own.
pub fn queue(output: impl Output + Send + 'static) -> impl FnOnce() + Send + 'static {
    let (writer, work) = Writer::new(output, QUEUE);
    *lock() = Destination::Queued(writer);
    work
}

/// Has the writer begin anew where that was asked for, without waiting for a line.
pub fn wake() {
    if let Destination::Queued(writer) = &*lock() {
        writer.wake();
    }
}

/// Waits until every line is written, at most for `limit`. For the end of the process; what is logged after it is lost.
pub fn finish(limit: Duration) {
    let queued = std::mem::replace(&mut *lock(), Destination::Over);
    if let Destination::Queued(writer) = queued {
        writer.finish(limit);
    }
}

/// What is lost of event lines; `None` where they do not go through a queue.
pub fn losses() -> Option<Arc<Losses>> {
    match &*lock() {
        Destination::Queued(writer) => Some(Arc::clone(writer.losses())),
        _ => None,
    }
}

/// Logs one event line. It is lost, and counted, when too many wait already.
pub fn log(level: Level, message: impl Display) {
    print(line(level, message));
}

/// As [`log`], but returns whether the line is on its way, and does not count it if it is not: for what is logged again.
pub fn try_log(level: Level, message: impl Display) -> bool {
    send(line(level, message)).is_ok()
}

/// Writes lines that are in their form already, each with its newline; lost as those of [`log`].
pub fn print(lines: String) {
    if let (Err(batch), Destination::Queued(writer)) = (send(lines), &*lock()) {
        writer.queue().count_lost(batch.lines);
    }
}

fn send(text: String) -> Result<(), Batch> {
    match &*lock() {
        Destination::Queued(writer) => {
            let lines = text.lines().count() as u64;
            return writer.queue().try_send(Batch { text, lines });
        }
        Destination::Over => return Ok(()),
        Destination::Direct => {}
    }
    // Past the lock: this may wait.
    let _ = std::io::stderr().write_all(text.as_bytes());
    Ok(())
}

fn lock() -> MutexGuard<'static, Destination> {
    OUTPUT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn line(level: Level, message: impl Display) -> String {
    let mut line = String::new();
    crate::time::write_rfc3339(SystemTime::now(), &mut line);
    let _ = writeln!(line, " {}: {message}", level.name());
    line
}

/// A thread's rate limiter of event lines, by kind.
#[derive(Default)]
pub struct Events {
    kinds: RefCell<HashMap<&'static str, Allowance>>,
}

struct Allowance {
    since: Instant,
    written: u32,
    suppressed: u64,
}

impl Events {
    /// Writes `message` unless `kind` has used up its allowance; the first line of the next window says how many were
    /// suppressed.
    pub fn warn(&self, kind: &'static str, message: impl Display) {
        match self.admit(kind, Instant::now()) {
            Some(0) => log(Level::Warning, message),
            Some(suppressed) => {
                log(
                    Level::Warning,
                    format_args!("{message} ({suppressed} more `{kind}` lines suppressed before)"),
                );
            }
            None => {}
        }
    }

    /// `Some(lines suppressed before)` when a line may be written at `now`.
    fn admit(&self, kind: &'static str, now: Instant) -> Option<u64> {
        let mut kinds = self.kinds.borrow_mut();
        let fresh = Allowance { since: now, written: 0, suppressed: 0 };
        let allowance = kinds.entry(kind).or_insert(fresh);
        let suppressed = if now.duration_since(allowance.since) >= WINDOW {
            *allowance = Allowance { since: now, written: 0, suppressed: allowance.suppressed };
            std::mem::take(&mut allowance.suppressed)
        } else {
            0
        };
        if allowance.written == LINES_PER_WINDOW {
            allowance.suppressed += 1;
            return None;
        }
        allowance.written += 1;
        Some(suppressed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_not_written() {
        let events = Events::default();
        let start = Instant::now();
        let written = (0..1000).filter(|_| events.admit("accept", start).is_some()).count();
        assert_eq!(written, 10);
        assert_eq!(events.admit("other", start), Some(0));
        assert_eq!(events.admit("accept", start + WINDOW), Some(990));
        assert_eq!(events.admit("accept", start + WINDOW), Some(0));
    }
}
