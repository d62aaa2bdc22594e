//! Upgrade: the running process starts its successor, hands over its listening sockets and what it remembers, and ends when its
//! connections have.
//!
//! The two speak over a pair of sockets, of which the successor has one end as its standard input. In order:
//!
//! | step | from the successor | from the predecessor |
//! |---|---|---|
//! | 1 | [`Message::Hello`]: protocol and version | |
//! | 2 | the names that arrived | [`Message::Sockets`]: each listening socket with its name |
//! | 3 | that it has arrived | [`Message::Memory`]: a sealed file in memory |
//! | 4 | that they have arrived | [`Message::Process`]: sockets of the fleet, for control and for operators; earlier processes that drain |
//! | 5 | [`Message::Ready`], or [`Message::Failed`] with the reason | |
//! | 6 | that it serves | [`Message::Memory`]: what has changed since step 3 |
//!
//! Up to the last message of step 6 the predecessor serves as if nothing were; whatever goes wrong, it goes on. From then on the
//! successor serves, and the predecessor drains, and says what still changes and how many connections it has, until it ends.

mod endpoints;
mod memory;
mod message;
mod old_processes;
mod predecessor;
mod successor;

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

pub(crate) use endpoints::{Endpoint, Endpoints, Shared};
pub(crate) use memory::Memory;
pub(crate) use message::{OldProcess, TakenOver};
pub(crate) use old_processes::OldProcesses;
pub(crate) use predecessor::{Farewell, Upgrader};
pub(crate) use successor::Succession;

/// Version of the messages and of the memory. Processes of different ones cannot succeed each other.
const PROTOCOL: u32 = 1;

/// How long the other process may say nothing.
const SILENCE: Duration = Duration::from_secs(60);

/// Names the process that started this one as its successor.
const PREDECESSOR: &str = "COURSER_PREDECESSOR";

/// Where an upgrade is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Start,
    Sockets,
    Memory,
    Process,
    Build,
    Switch,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "step 1 (start)",
            Self::Sockets => "step 2 (listening sockets)",
            Self::Memory => "step 3 (keys and sessions)",
            Self::Process => "step 4 (fleet and control socket)",
            Self::Build => "step 5 (configuration and workers)",
            Self::Switch => "step 6 (switch)",
        })
    }
}

/// What an upgrade is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    /// An absolute path; `None`: the program that runs.
    pub(crate) program: Option<PathBuf>,
    /// How long the new program may say nothing, in seconds.
    pub(crate) silence_s: u64,
}

/// What an upgrade has done, as the control socket says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// Another process serves.
    Done(Success),
    /// The process that was asked serves on.
    Refused(Refusal),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Success {
    pub(crate) pid: u32,
    pub(crate) version: String,
    /// Listening sockets that were handed over.
    pub(crate) sockets: usize,
    /// Sessions that were handed over.
    pub(crate) sessions: usize,
    pub(crate) taken_ms: u64,
}

/// Why the running process serves on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// Exit code of the command: 1 where the system refused, 2 else.
    pub(crate) exit_code: u8,
    pub(crate) why: String,
}

/// What is under way, for who asks for another one.
#[derive(Clone, Debug, Default)]
pub(crate) enum State {
    #[default]
    None,
    Running {
        since: Instant,
        step: Option<Step>,
    },
    Done {
        pid: u32,
        /// Whoever asked for it knows.
        is_answered: bool,
    },
}

impl State {
    /// Why no upgrade can begin now.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        let why = match self {
            Self::None => return None,
            Self::Running { since, step } => {
                let step = step.map_or_else(|| "it has not begun".to_owned(), |step| step.to_string());
                format!("an upgrade is under way, for {} s: {step}", since.elapsed().as_secs())
            }
            Self::Done { pid, .. } => format!("process {pid} has taken over already"),
        };
        Some(Refusal { exit_code: 2, why })
    }
}
