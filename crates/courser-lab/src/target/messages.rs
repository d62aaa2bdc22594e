//! What hosts of a fleet tell each other, in their own counts: bytes on the wire for each session that they share.

use std::process::Command;

use serde::Deserialize;
use serde_json::Value;

/// How a program tells: a command of it that prints JSON, and where its counts are in that (RFC 6901).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Messages {
    /// A condition on the specification: whether there are messages.
    pub(super) when: String,
    /// Arguments of the program, templates.
    pub(super) arguments: Vec<String>,
    /// Bytes sent since the start.
    pub(super) bytes: String,
    /// Sessions status to others since the start.
    pub(super) sessions: String,
}

/// The command of one host.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    /// The program, then its arguments.
    pub(super) command: Vec<String>,
    /// As in [`Messages`].
    pub(super) bytes: String,
    pub(super) sessions: String,
}

/// Counts since the start, of all hosts together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    bytes: u64,
    sessions: u64,
}

impl Sent {
    /// Bytes for each session that was status since an earlier count; none when there was no session.
    pub fn per_session_since(self, earlier: Self) -> Option<f64> {
        let sessions = self.sessions.checked_sub(earlier.sessions).filter(|sessions| *sessions > 0)?;
        Some(self.bytes.checked_sub(earlier.bytes)? as f64 / sessions as f64)
    }
}

/// Asks all hosts; none when there is nobody to ask, or one does not tell.
pub(super) fn sent(asks: &[Ask]) -> Option<Sent> {
    let add =
        |sum: Sent, one: Sent| Sent { bytes: sum.bytes + one.bytes, sessions: sum.sessions + one.sessions };
    asks.iter().map(ask).collect::<Option<Vec<Sent>>>()?.into_iter().reduce(add)
}

fn ask(ask: &Ask) -> Option<Sent> {
    let (program, arguments) = ask.command.split_first()?;
    let output = Command::new(program).args(arguments).output().ok()?;
    let status: Value = serde_json::from_slice(&output.stdout).ok()?;
    let count = |at: &str| status.pointer(at).and_then(Value::as_u64);
    Some(Sent { bytes: count(&ask.bytes)?, sessions: count(&ask.sessions)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Ask {
        let command = ["echo", text].map(str::to_owned).to_vec();
        Ask { command, bytes: "/sent/bytes".into(), sessions: "/sent/sessions".into() }
    }

    #[test]
    fn counts_of_all_hosts_are_added_and_a_host_that_does_not_tell_is_no_zero() {
        let status = of(r#"{"sent": {"bytes": 500, "sessions": 2}}"#);
        let both = sent(&[status.clone(), status.clone()]);
        assert_eq!(both, Some(Sent { bytes: 1000, sessions: 4 }));
        assert_eq!(sent(&[status, of("nothing")]), None);
        assert_eq!(sent(&[]), None);
    }

    #[test]
    fn only_what_was_sent_meanwhile_counts() {
        let (early, late) = (Sent { bytes: 100, sessions: 1 }, Sent { bytes: 400, sessions: 3 });
        assert_eq!(late.per_session_since(early), Some(150.0));
        assert_eq!(late.per_session_since(late), None);
    }
}
