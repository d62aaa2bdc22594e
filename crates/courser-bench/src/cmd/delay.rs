//! `delay`: forwards connections with an added round-trip time.

use courser_load::delay::DelayProxy;

use crate::cli::DelayArgs;
use crate::deliver::print;
use crate::exit::{Ended, Failure};

/// Forwards connections until the process ends; prints its address once it listens.
pub(crate) fn delay(args: &DelayArgs) -> Result<Ended, Failure> {
    if let Some(cpu) = args.cpu {
        courser_machine::pin(cpu).map_err(|why| Failure::system(format!("CPU {cpu}"), why))?;
    }
    let proxy = DelayProxy::bind(args.listen, args.to, args.rtt);
    let proxy = proxy.map_err(|why| Failure::system(format!("listening on {}", args.listen), why))?;
    print(&format!("listening on {}\n", proxy.address()));
    proxy.run().map_err(|why| Failure::system("forwarding", why))?;
    Ok(Ended::Well)
}
