//! A backend as a program: `origin [--listen 127.0.0.1:8000] [--proxy] [--echo]`.
//!
//! Prints `listening on ADDRESS` on standard error, then serves until it is stopped. `GET /?s=20k` answers with
//! 20 KiB; with `--proxy` each connection must start with a PROXY header, which `GET /proxy` gives back.

use std::{env, process::ExitCode, thread};

use courser_testkit::{Behaviour, OriginServer, origin::Setup};

fn main() -> ExitCode {
    let started =
        parse(env::args().skip(1)).and_then(|setup| setup.try_start().map_err(|error| error.to_string()));
    match started {
        Ok(origin) => serve(&origin),
        Err(why) => {
            eprintln!("origin: {why}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Setup, String> {
    let mut behaviour = Behaviour::Http;
    let (mut listen, mut proxy) = (None, false);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--listen" => listen = arguments.next(),
            "--proxy" => proxy = true,
            "--echo" => behaviour = Behaviour::Echo,
            other => {
                return Err(format!(
                    "unknown argument {other}; usage: origin [--listen ADDRESS] [--proxy] [--echo]"
                ));
            }
        }
    }
    let mut setup = OriginServer::setup(behaviour);
    if let Some(address) = listen {
        setup = setup.listen(address.parse().map_err(|_| format!("not an address: {address}"))?);
    }
    Ok(if proxy { setup.proxy() } else { setup })
}

fn serve(origin: &OriginServer) -> ! {
    eprintln!("listening on {}", origin.backend());
    loop {
        // Its own thread serves; this one has nothing to do until a signal ends the process.
        thread::park();
    }
}
