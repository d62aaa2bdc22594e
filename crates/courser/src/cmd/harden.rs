//! `courser harden --nft`: rules for the kernel, for whoever has the privilege to load them. Prints, and changes nothing.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::ArgMatches;

use crate::cmd::pages;
use crate::exit::Failure;

pub(crate) fn harden(flags: &ArgMatches) -> Result<ExitCode, Failure> {
    let ports: Vec<u16> = flags.get_many("port").expect("it has a default").copied().collect();
    let rate = *flags.get_one::<u32>("rate").expect("it has a default");
    pages::print(rules(&ports, rate).as_bytes())
}

/// A ruleset of nftables: SYNs of a network beyond its rate are dropped before TCP sees them. The set of networks is bounded and
/// forgets who is quiet for a minute.
fn rules(ports: &[u16], rate: u32) -> String {
    let ports = ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    let burst = rate.saturating_mul(2);
    let mut text = HEAD.to_owned();
    for (name, kind, source, mask) in [
        ("v4", "ipv4_addr", "ip saddr", "255.255.255.0"),
        ("v6", "ipv6_addr", "ip6 saddr", "ffff:ffff:ffff:ff00::"),
    ] {
        let _ = writeln!(
            text,
            "    set {name} {{
        type {kind}
        size 65536
        flags dynamic,timeout
        timeout 1m
    }}
    chain {name}_rate {{
        update @{name} {{ {source} & {mask} limit rate over {rate}/second burst {burst} packets }} counter drop
    }}"
        );
    }
    let _ = writeln!(
        text,
        "    chain new_connections {{
        type filter hook prerouting priority raw; policy accept;
        tcp dport {{ {ports} }} tcp flags & (syn | ack) == syn meta nfproto vmap {{ ipv4 : jump v4_rate, ipv6 : jump v6_rate }}
    }}
}}"
    );
    text
}

const HEAD: &str = "\
#!/usr/sbin/nft -f
# New connections of a network (IPv4 /24, IPv6 /56) beyond a rate are dropped before they cost anything.
# Load: nft -f FILE    Look: nft list table inet courser    Undo: nft delete table inet courser
table inet courser
delete table inet courser
table inet courser {
";
