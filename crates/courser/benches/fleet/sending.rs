//! The sender: this process makes sessions and tells others.

use std::{io, net::SocketAddr, time::Duration};

use courser_net::datagram::Interface;
use courser_sharing::{FleetHandle, FleetStatus};

use crate::{
    hosts::{self, Maker, pace},
    options::Options,
    others::Others,
    sample::{CpuSpan, Sample},
};

/// An address for private use (RFC 2365), on the loopback interface.
const GROUP: &str = "239.255.77.7:0";

/// A member that makes sessions, and those that are told.
pub(crate) struct Sending {
    member: FleetHandle,
    sinks: Others,
    maker: Maker,
    rate: u32,
    length: Duration,
}

impl Sending {
    pub(crate) fn unicast(options: &Options, key: &str) -> io::Result<Self> {
        let (sinks, addresses) = Others::sinks(options.peers)?;
        let socket = hosts::open(hosts::loopback(0), None)?;
        Self::new(hosts::join("sender", socket, addresses, key)?, sinks, options)
    }

    pub(crate) fn multicast(options: &Options, key: &str) -> io::Result<Self> {
        let group: SocketAddr = GROUP.parse().map_err(io::Error::other)?;
        let interface = Interface::find("lo").map_err(io::Error::other)?;
        let socket = hosts::open(group, Some(interface))?;
        let sinks = Others::sink_in(socket.address())?;
        Self::new(hosts::join("sender", socket, Vec::new(), key)?, sinks, options)
    }

    fn new(member: FleetHandle, sinks: Others, options: &Options) -> io::Result<Self> {
        Ok(Self { member, sinks, maker: Maker::new()?, rate: options.made, length: options.stretch })
    }

    pub(crate) fn sample(&mut self) -> io::Result<Sample> {
        let quiet = CpuSpan::begin()?;
        pace(self.rate, self.length, || ());
        let idle = quiet.end()?;
        let (taken, before) = (self.sinks.taken()?, sent(&self.member)?);
        let busy = CpuSpan::begin()?;
        let made = pace(self.rate, self.length, || self.member.push(self.maker.session()));
        // It answers when it has sent them.
        hosts::status(&self.member)?;
        let (share, seconds) = (busy.end()?.beyond(idle), busy.seconds());
        let (taken, after) = (self.sinks.taken()? - taken, sent(&self.member)?);
        let dropped = after.dropped - before.dropped;
        if dropped > 0 {
            eprintln!("warning: {dropped} sessions were dropped, since the fleet's thread lagged behind");
        }
        let lost = (after.datagrams - before.datagrams).saturating_sub(taken);
        Ok(Sample { share, idle, seconds, made, datagrams: taken, lost })
    }
}

struct Sent {
    datagrams: u64,
    dropped: u64,
}

fn sent(member: &FleetHandle) -> io::Result<Sent> {
    let FleetStatus { member, peers, dropped, .. } = hosts::status(member)?;
    Ok(Sent { datagrams: member.sent.messages * peers.len() as u64, dropped })
}
