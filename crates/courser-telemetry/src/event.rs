//! Event lines for people, on standard error: start-up, warnings, errors; repeated ones are rate-limited.
//!
//! They are said in many places, by whoever has something to say, and there is one standard error: so where they go is the
//! one thing here that belongs to the process, and not a handle that everybody would have to be given.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::{Display, Write as _};
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::losses::Losses;
use crate::writer::{Batch, Writer};

/// Lines of one kind that may appear within one [`WINDOW`]; a fault that hits every connection repeats thousands of
/// times a second, and the first few lines say all there is to say.
const LINES_PER_WINDOW: u32 = 10;

/// How long a kind's allowance lasts.
const WINDOW: Duration = Duration::from_secs(10);

/// Lines that may wait for a slow reader before lines are left out: some minutes of what the rate limit lets through.
const QUEUE: usize = 512;

/// Where event lines go. The lock is held for no longer than it takes to hand a line over.
static WAY: Mutex<Way> = Mutex::new(Way::Direct);

enum Way {
    /// Written by who says them: by commands that end by themselves, and nobody waits for.
    Direct,
    /// Through a queue: by a service.
    Queued(Writer),
    /// The process ends.
    Over,
}

/// From now on event lines go to `output` through a queue, and nobody who says one waits for its reader. The result is the
/// writer's work, for a thread of its own.
pub fn queue(output: impl Write + Send + 'static) -> impl FnOnce() + Send + 'static {
    let (writer, work) = Writer::new(output, QUEUE);
    *way() = Way::Queued(writer);
    work
}

/// Waits until every line is written, at most for `limit`. For the end of the process; what is said after it is lost.
pub fn finish(limit: Duration) {
    let queued = std::mem::replace(&mut *way(), Way::Over);
    if let Way::Queued(writer) = queued {
        writer.finish(limit);
    }
}

/// What is lost of event lines; `None` where they do not go through a queue.
pub fn losses() -> Option<Arc<Losses>> {
    match &*way() {
        Way::Queued(writer) => Some(Arc::clone(writer.losses())),
        _ => None,
    }
}

/// Says one event line. It is lost, and counted, when too many wait already.
pub fn say(level: &str, message: impl Display) {
    print(line(level, message));
}

/// As [`say`], but says whether the line is on its way, and counts it not if it is not: for what is said again.
pub fn try_say(level: &str, message: impl Display) -> bool {
    hand_over(line(level, message)).is_ok()
}

/// Writes lines that are in their form already, each with its newline; lost as those of [`say`].
pub fn print(lines: String) {
    if let (Err(batch), Way::Queued(writer)) = (hand_over(lines), &*way()) {
        writer.queue().lose(batch.lines);
    }
}

fn hand_over(text: String) -> Result<(), Batch> {
    match &*way() {
        Way::Queued(writer) => {
            let lines = text.lines().count() as u64;
            return writer.queue().offer(Batch { text, lines });
        }
        Way::Over => return Ok(()),
        Way::Direct => {}
    }
    // Past the lock: this may wait.
    let _ = std::io::stderr().write_all(text.as_bytes());
    Ok(())
}

fn way() -> MutexGuard<'static, Way> {
    WAY.lock().unwrap_or_else(PoisonError::into_inner)
}

fn line(level: &str, message: impl Display) -> String {
    let mut line = String::new();
    crate::time::write_rfc3339(SystemTime::now(), &mut line);
    let _ = writeln!(line, " {level}: {message}");
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
    left_out: u64,
}

impl Events {
    /// Writes `message` unless `kind` has used up its allowance; the first line of the next window says how many were
    /// left out.
    pub fn warn(&self, kind: &'static str, message: impl Display) {
        match self.admit(kind, Instant::now()) {
            Some(0) => say("warning", message),
            Some(left_out) => {
                say("warning", format_args!("{message} ({left_out} more `{kind}` lines left out before)"));
            }
            None => {}
        }
    }

    /// `Some(lines left out before)` when a line may be written at `now`.
    fn admit(&self, kind: &'static str, now: Instant) -> Option<u64> {
        let mut kinds = self.kinds.borrow_mut();
        let fresh = Allowance { since: now, written: 0, left_out: 0 };
        let allowance = kinds.entry(kind).or_insert(fresh);
        let left_out = if now.duration_since(allowance.since) >= WINDOW {
            *allowance = Allowance { since: now, written: 0, left_out: allowance.left_out };
            std::mem::take(&mut allowance.left_out)
        } else {
            0
        };
        if allowance.written == LINES_PER_WINDOW {
            allowance.left_out += 1;
            return None;
        }
        allowance.written += 1;
        Some(left_out)
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
