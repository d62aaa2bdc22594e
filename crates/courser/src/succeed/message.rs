//! What the two processes say, as JSON.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;

use courser_net::channel::Channel;
use serde::{Deserialize, Serialize};

use crate::sockets::SocketName;

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub(super) enum Message {
    /// Of every protocol: what else it has may differ.
    Hello {
        protocol: u32,
        #[serde(default)]
        version: String,
    },
    /// A name for each descriptor that comes with it.
    Sockets {
        names: Vec<SocketName>,
        /// Whether further ones follow.
        more: bool,
    },
    /// With one descriptor, or without as the answer.
    Memory,
    /// With the descriptors of what it names, in this order.
    Process(Process),
    Ready(TakenOver),
    Failed {
        exit_code: u8,
        why: String,
    },
    /// The successor serves.
    Serves,
    /// The predecessor is not done yet.
    Drains(OldProcess),
}

/// What belongs to a process beside its listening sockets.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Process {
    /// Where the fleet's messages come, as configured, and how many descriptors that has.
    pub(crate) fleet: Option<(SocketAddr, usize)>,
    pub(crate) control: Option<PathBuf>,
    /// Addresses for operators, as configured.
    #[serde(default)]
    pub(crate) admin: Vec<String>,
    /// Predecessors of the predecessor.
    pub(crate) old: Vec<OldProcess>,
}

/// What a successor has taken over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TakenOver {
    /// Addresses of listening sockets.
    pub(crate) sockets: Vec<String>,
    /// The control socket.
    pub(crate) control: bool,
    /// Addresses for operators.
    #[serde(default)]
    pub(crate) admin: Vec<String>,
}

/// A process that drains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OldProcess {
    pub(crate) pid: u32,
    pub(crate) version: String,
    pub(crate) connections: usize,
    /// Seconds since its start.
    #[serde(default)]
    pub(crate) up_s: u64,
    /// Seconds until it cuts them off.
    pub(crate) ends_in_s: u64,
}

pub(super) fn send(channel: &Channel, message: &Message, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    channel.send(&serde_json::to_vec(message)?, descriptors)
}

/// The next message; `None` where the other process has ended.
pub(super) fn receive(channel: &Channel) -> io::Result<Option<(Message, Vec<OwnedFd>)>> {
    let Some(received) = channel.receive()? else { return Ok(None) };
    let message = serde_json::from_slice(&received.bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a message that makes no sense"))?;
    Ok(Some((message, received.descriptors)))
}
