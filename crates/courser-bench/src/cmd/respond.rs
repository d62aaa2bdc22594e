//! `respond`: the TLS server that `calibrate` starts, in a process of its own so that its costs are not the generator's.

use std::io::{Read, Write};
use std::thread;

use courser_lab::responder::Responder;

use crate::cli::RespondArgs;
use crate::exit::{Ended, Failure};

/// Says its address on standard output, and serves until standard input ends: with whoever has started it.
pub(crate) fn respond(args: &RespondArgs) -> Result<Ended, Failure> {
    if let Some(cpu) = args.cpu {
        courser_machine::pin(cpu).map_err(|why| Failure::system(format!("staying on CPU {cpu}"), why))?;
    }
    let responder = Responder::bind(args.listen).map_err(|why| Failure::system(args.listen, why))?;
    println!("{}", responder.address());
    let _ = std::io::stdout().flush();
    thread::spawn(move || responder.run());
    let _ = std::io::stdin().read(&mut [0]);
    Ok(Ended::Well)
}
