//! Event lines for people, on standard error: start-up, warnings, errors; repeated ones are rate-limited.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::{Display, Write as _};
use std::io::Write as _;
use std::time::{Duration, Instant, SystemTime};

/// Lines of one kind that may appear within one [`WINDOW`]; a fault that hits every connection repeats thousands of
/// times a second, and the first few lines say all there is to say.
const LINES_PER_WINDOW: u32 = 10;

/// How long a kind's allowance lasts.
const WINDOW: Duration = Duration::from_secs(10);

/// Writes one event line now. For start-up and shutdown, which do not repeat.
pub fn say(level: &str, message: impl Display) {
    let mut line = String::new();
    crate::time::write_rfc3339(SystemTime::now(), &mut line);
    let _ = writeln!(line, " {level}: {message}");
    let _ = std::io::stderr().write_all(line.as_bytes());
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
