//! Local ports: how many connections a second one client machine can make before they run out.
//!
//! The side that closes first keeps the pair of addresses and ports in TIME_WAIT. A server that closes first keeps it
//! on its side, and a connection ended by a reset leaves none: then nothing here limits the rate.

use std::path::Path;
use std::time::Duration;

use super::files::Files;

/// How long a closed connection is in TIME_WAIT: TCP_TIMEWAIT_LEN of the kernel, which no setting changes.
const TIME_WAIT: Duration = Duration::from_secs(60);

/// After how long a port in TIME_WAIT may be used again, before there was a setting for it (Linux 6.14).
const REUSE_DELAY: Duration = Duration::from_secs(1);

/// The local ports that the kernel gives to connections, and when it gives one again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports {
    /// How many there are for each pair of source address and target (net.ipv4.ip_local_port_range, less the reserved
    /// ones).
    pub count: u32,
    /// Where a port in TIME_WAIT may be used again early.
    pub reuse: Reuse,
    /// After how long it may.
    pub reuse_delay: Duration,
}

/// Where a port in TIME_WAIT may be used again early, if the target's port is to be the same (net.ipv4.tcp_tw_reuse).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Nowhere: it is off, or timestamps are, on which it depends.
    Nowhere,
    /// Towards this machine only: the default since Linux 4.19.
    Loopback,
    /// Towards anybody.
    Everywhere,
}

impl Ports {
    /// Reads this machine's settings; `None` when there are none to read.
    pub fn read() -> Option<Self> {
        Self::read_under(&Files::new(Path::new("/")))
    }

    fn read_under(files: &Files) -> Option<Self> {
        let range = files.sysctl("net.ipv4.ip_local_port_range")?;
        let (first, last) = range.split_once(' ')?;
        let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
        let reserved = files.sysctl("net.ipv4.ip_local_reserved_ports").unwrap_or_default();
        let delay = files.sysctl("net.ipv4.tcp_tw_reuse_delay").and_then(|text| text.parse().ok());
        Some(Self {
            count: (u32::from(last) + 1)
                .saturating_sub(first.into())
                .saturating_sub(within(&reserved, first, last)),
            reuse: reuse(files),
            reuse_delay: delay.map_or(REUSE_DELAY, Duration::from_millis),
        })
    }

    /// How many connections a second can be made towards one address and port, from `sources` local addresses, for as
    /// long as one likes, if this side closes first and does not reset. `loopback`: the target is this machine.
    pub fn connections_per_second(&self, sources: u32, loopback: bool) -> f64 {
        f64::from(self.count) * f64::from(sources) / self.held(loopback).as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// How long a connection keeps its port after its end.
    fn held(&self, loopback: bool) -> Duration {
        let early = self.reuse == Reuse::Everywhere || (self.reuse == Reuse::Loopback && loopback);
        if early { self.reuse_delay.min(TIME_WAIT) } else { TIME_WAIT }
    }
}

fn reuse(files: &Files) -> Reuse {
    let timestamps = files.sysctl("net.ipv4.tcp_timestamps").is_none_or(|text| text != "0");
    match files.sysctl("net.ipv4.tcp_tw_reuse").as_deref() {
        Some("1") if timestamps => Reuse::Everywhere,
        Some("2") if timestamps => Reuse::Loopback,
        _ => Reuse::Nowhere,
    }
}

/// How many ports of a list such as "8080,9148-9200" are among `first` to `last`.
fn within(list: &str, first: u16, last: u16) -> u32 {
    let range = |text: &str| {
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        Some((from.parse::<u16>().ok()?, to.parse::<u16>().ok()?))
    };
    let ranges = list.split(',').filter_map(range);
    ranges.map(|(from, to)| (u32::from(to.min(last)) + 1).saturating_sub(from.max(first).into())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(reuse: Reuse) -> Ports {
        Ports { count: 28_232, reuse, reuse_delay: REUSE_DELAY }
    }

    #[test]
    fn time_wait_bounds_the_rate() {
        assert_eq!(ports(Reuse::Nowhere).connections_per_second(1, true).round(), 471.0);
        assert_eq!(ports(Reuse::Loopback).connections_per_second(1, false).round(), 471.0);
        assert_eq!(ports(Reuse::Loopback).connections_per_second(2, true).round(), 56_464.0);
        assert_eq!(ports(Reuse::Everywhere).connections_per_second(1, false).round(), 28_232.0);
    }

    #[test]
    fn reserved_ports_are_not_given() {
        assert_eq!(within("", 32_768, 60_999), 0);
        assert_eq!(within("80,32768,33000-33009,60990-65535", 32_768, 60_999), 1 + 10 + 10);
    }

    #[test]
    fn this_machine_has_some() {
        assert!(Ports::read().is_some_and(|ports| ports.count > 0));
    }
}
