//! `relay`: a round trip between a generator and a target on one machine.

use courser_load::delay::Relay;

use crate::cli::RelayArgs;
use crate::deliver::print;
use crate::exit::{Ended, Failure};

/// Relays until the process ends. Standard output has where it listens as soon as it does.
pub(crate) fn relay(args: &RelayArgs) -> Result<Ended, Failure> {
    if let Some(cpu) = args.cpu {
        courser_machine::pin(cpu).map_err(|why| Failure::system(format!("CPU {cpu}"), why))?;
    }
    let relay = Relay::bind(args.listen, args.to, args.rtt);
    let relay = relay.map_err(|why| Failure::system(format!("listening on {}", args.listen), why))?;
    print(&format!("listening on {}\n", relay.address()));
    relay.run().map_err(|why| Failure::system("relaying", why))?;
    Ok(Ended::Well)
}
