//! A small load as a program: `knock ADDRESS [--seconds N] [--connections N] [--concurrency N] [--tls12] [--rsa]
//! [--resume ticket|session-id] [--handshake]`.
//!
//! Each connection makes a handshake and one request for 1 KiB (with `--handshake`: none), every byte checked, and is
//! closed. Prints connections per second. Certificates are not verified.

use std::{env, net::SocketAddr, process::ExitCode, time::Duration};

use courser_testkit::{
    KeyType,
    client::{Client, Resume, Version},
    load::{Load, Until, Workload},
};

const ANSWER: usize = 1024;

fn main() -> ExitCode {
    match parse(env::args().skip(1)).and_then(|knock| knock.run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("knock: {why}");
            ExitCode::FAILURE
        }
    }
}

/// What to do, from the command line.
struct Knock {
    address: SocketAddr,
    version: Version,
    key: KeyType,
    resume: Resume,
    load: Load,
}

impl Knock {
    fn run(&self) -> Result<(), String> {
        let client = Client::new(self.address, self.version, self.key, self.resume);
        if self.load.resumed {
            let first = Load { resumed: false, concurrency: 1, until: Until::Connections(1), ..self.load };
            first.run(&client).map_err(|failure| failure.to_string())?;
        }
        let outcome = self.load.run(&client).map_err(|failure| failure.to_string())?;
        let seconds = outcome.elapsed.as_secs_f64();
        println!("{:.0} connections per second ({} in {seconds:.2} s)", outcome.rate(), outcome.connections);
        Ok(())
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Knock, String> {
    let address = arguments.next().ok_or("which address?")?;
    let mut knock = Knock {
        address: address.parse().map_err(|_| format!("not an address: {address}"))?,
        version: Version::Tls13,
        key: KeyType::EcdsaP256,
        resume: Resume::Never,
        load: Load {
            workload: Workload::Request(ANSWER),
            resumed: false,
            concurrency: 16,
            until: Until::Elapsed(Duration::from_secs(3)),
        },
    };
    while let Some(argument) = arguments.next() {
        option(&mut knock, &argument, &mut arguments)?;
    }
    Ok(knock)
}

fn option(knock: &mut Knock, name: &str, rest: &mut impl Iterator<Item = String>) -> Result<(), String> {
    let mut number = || -> Result<usize, String> {
        rest.next().and_then(|text| text.parse().ok()).ok_or(format!("{name} wants a number"))
    };
    match name {
        "--seconds" => {
            knock.load.until = Until::Elapsed(Duration::from_secs(number()?.try_into().unwrap_or(u64::MAX)));
        }
        "--connections" => knock.load.until = Until::Connections(number()?),
        "--concurrency" => knock.load.concurrency = number()?,
        "--tls12" => knock.version = Version::Tls12,
        "--rsa" => knock.key = KeyType::Rsa2048,
        "--handshake" => knock.load.workload = Workload::Handshake,
        "--resume" => {
            knock.resume = resume(rest.next().as_deref())?;
            // The client's tickets are used once each in TLS 1.3: there it may find none when many knock at a time.
            knock.version = Version::Tls12;
            knock.load.resumed = true;
        }
        other => return Err(format!("unknown option {other}")),
    }
    Ok(())
}

fn resume(value: Option<&str>) -> Result<Resume, String> {
    match value {
        Some("ticket") => Ok(Resume::Ticket),
        Some("session-id") => Ok(Resume::SessionId),
        _ => Err("--resume wants ticket or session-id".into()),
    }
}
