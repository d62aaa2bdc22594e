//! The receiver: others make sessions and tell this process.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use courser_fleet::ReceivedCounts;
use courser_sharing::FleetHandle;

use crate::{
    hosts::{self, PATIENCE},
    options::Options,
    others::Others,
    sample::{CpuSpan, Sample},
};

/// After this long, what has not come will not.
const STRAGGLERS: Duration = Duration::from_millis(100);

/// A member, and those that tell it of their sessions.
pub(crate) struct Receiving {
    member: FleetHandle,
    senders: Others,
    rate: u32,
    length: Duration,
}

impl Receiving {
    pub(crate) fn new(options: &Options, key: &str, key_file: &str) -> io::Result<Self> {
        let socket = hosts::open(hosts::loopback(0), None)?;
        let address = socket.address();
        let member = hosts::join("receiver", socket, Vec::new(), key)?;
        let senders = Others::hosts(options.senders, address, key_file)?;
        wait_for_peers(&member, usize::from(options.senders))?;
        Ok(Self { member, senders, rate: options.received, length: options.stretch })
    }

    pub(crate) fn sample(&mut self) -> io::Result<Sample> {
        let quiet = CpuSpan::begin()?;
        thread::sleep(self.length);
        let idle = quiet.end()?;
        let before = received(&self.member)?;
        let busy = CpuSpan::begin()?;
        let made = self.senders.make(self.rate, self.length)?;
        let (share, seconds) = (busy.end()?.beyond(idle), busy.seconds());
        thread::sleep(STRAGGLERS);
        let after = received(&self.member)?;
        let lost = made.saturating_sub(after.taken - before.taken);
        Ok(Sample { share, idle, seconds, made, datagrams: after.accepted - before.accepted, lost })
    }
}

fn wait_for_peers(member: &FleetHandle, count: usize) -> io::Result<()> {
    let begun = Instant::now();
    while hosts::status(member)?.member.peers.len() < count {
        if begun.elapsed() > PATIENCE {
            return Err(io::Error::other("the hosts do not hear each other"));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn received(member: &FleetHandle) -> io::Result<ReceivedCounts> {
    Ok(hosts::status(member)?.member.received)
}
