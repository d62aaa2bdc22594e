//! `origin`: a backend, until it is told to stop.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::thread::available_parallelism;

use courser_load::origin::{Address, Counts, Mode, OriginServer, Proxy, Settings};
use courser_report::figure::count;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::cli::{OriginArgs, ProxyMode};
use crate::deliver::print;
use crate::exit::{Ended, Failure};

/// Serves until SIGINT or SIGTERM. Standard output has where it listens, then which threads serve, as soon as
/// connections are accepted, and at the end what it has done.
pub(crate) fn origin(args: &OriginArgs) -> Result<Ended, Failure> {
    let addresses = args.listen.iter().map(|text| address(text)).collect::<Result<Vec<_>, _>>()?;
    // Taken over before anyone can know that we listen.
    let mut signals =
        Signals::new([SIGINT, SIGTERM]).map_err(|why| Failure::system("taking over Ctrl-C", why))?;
    let origin =
        OriginServer::bind(&addresses, &settings(args)).map_err(|why| Failure::System(why.to_string()))?;
    print(&greeting(origin.addresses(), origin.threads(), args.echo));
    signals.forever().next();
    print(&farewell(origin.counts()));
    origin.stop().map_err(|why| Failure::System(why.to_string()))?;
    Ok(Ended::Well)
}

fn settings(args: &OriginArgs) -> Settings {
    let pin = args.cpus.as_ref().map(|cpus| cpus.0.clone()).unwrap_or_default();
    let cores = || if pin.is_empty() { available_parallelism().map_or(1, usize::from) } else { pin.len() };
    let threads = args.threads.unwrap_or_else(cores);
    let proxy = match args.proxy {
        ProxyMode::Accepted => Proxy::Accepted,
        ProxyMode::Required => Proxy::Required,
        ProxyMode::Off => Proxy::Off,
    };
    let mode = if args.echo { Mode::Echo } else { Mode::Http };
    Settings { threads, pin, proxy, mode, ..Settings::default() }
}

/// `host:port`, `:port` for all addresses, `unix:/path` or `abstract:name`.
fn address(text: &str) -> Result<Address, Failure> {
    if let Some(path) = text.strip_prefix("unix:") {
        return Ok(Address::Unix(PathBuf::from(path)));
    }
    if let Some(name) = text.strip_prefix("abstract:") {
        return Ok(Address::Abstract(name.to_owned()));
    }
    let whole = if text.starts_with(':') { format!("[::]{text}") } else { text.to_owned() };
    let bad =
        |why| Failure::usage(format!("{text} is no address: {why}; write 127.0.0.1:8000 or unix:/path"));
    let found: Option<SocketAddr> = whole.to_socket_addrs().map_err(|why| bad(why.to_string()))?.next();
    found.map(Address::Ip).ok_or_else(|| bad("nothing has that name".to_owned()))
}

fn greeting(addresses: &[Address], threads: &[i32], echo: bool) -> String {
    let scheme = if echo { "tcp" } else { "http" };
    let shown = |address: &Address| match address {
        Address::Ip(address) => format!("listening on {scheme}://{address}\n"),
        other => format!("listening on {other}\n"),
    };
    let threads: Vec<String> = threads.iter().map(ToString::to_string).collect();
    addresses.iter().map(shown).collect::<String>() + &format!("threads {}\n", threads.join(" "))
}

fn farewell(counts: Counts) -> String {
    let Counts { accepted, answered, refused } = counts;
    let [accepted, answered, refused] = [accepted, answered, refused].map(count);
    format!("accepted {accepted} connections, answered {answered} requests, refused {refused} connections\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_every_kind() {
        let read = |text| address(text).map_err(|_| ());
        assert_eq!(read("127.0.0.1:80"), Ok(Address::Ip(([127, 0, 0, 1], 80).into())));
        assert_eq!(read(":80").map(|address| address.to_string()), Ok("[::]:80".to_owned()));
        assert_eq!(read("unix:/run/o"), Ok(Address::Unix("/run/o".into())));
        assert_eq!(read("abstract:o"), Ok(Address::Abstract("o".into())));
        assert_eq!((read("8000"), read("127.0.0.1")), (Err(()), Err(())));
    }

    #[test]
    fn whoever_started_it_can_read_where_it_is() {
        let addresses = [Address::Ip(([127, 0, 0, 1], 8000).into()), Address::Unix("/run/o".into())];
        let expected = "listening on http://127.0.0.1:8000\nlistening on unix:/run/o\nthreads 7 8\n";
        assert_eq!(greeting(&addresses, &[7, 8], false), expected);
        assert!(greeting(&addresses, &[7], true).starts_with("listening on tcp://127.0.0.1:8000\n"));
    }

    #[test]
    fn it_tells_at_the_end_what_it_did() {
        let counts = Counts { accepted: 1200, answered: 34_000, refused: 0 };
        assert_eq!(
            farewell(counts),
            "accepted 1,200 connections, answered 34,000 requests, refused 0 connections\n"
        );
    }
}
