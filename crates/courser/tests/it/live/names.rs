//! A close reason has one name: in the log, in metrics, on the page and in `courser top`.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Command;

use courser_testkit::client::Version;
use courser_testkit::{OriginServer, PATIENCE, require};

use super::browser::Browser;
use super::watched;
use crate::admin::url;
use crate::stage::{Stage, eventually, run, run_courser};

/// What clients send who do not get far, and what then ends their connections.
const STRANGERS: &[(&[u8], &str)] = &[
    (b"", "probe"),
    (b"GET / HTTP/1.1\r\n\r\n", "not_tls"),
    (b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n", "unexpected_proxy_header"),
    (
        &[0x80, 0x1c, 1, 0, 2, 0, 3, 0, 0, 0, 16, 7, 0, 0xc0, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9],
        "sslv2_hello",
    ),
    (&[22, 3, 1, 0, 0], "zero_length_record"),
    (&[22, 3, 1, 0x40, 1, 1, 0], "oversized_record"),
    (&[22, 3, 1, 0x40, 0, 1, 1, 0, 0], "hello_too_long"),
    (&[23, 3, 3, 0, 1, 0], "malformed_hello"),
    (&[22, 3, 1, 0, 9, 1], "closed_in_hello"),
];

/// A pair of reason and cause.
type Names = BTreeSet<(String, String)>;

#[test]
fn a_reason_has_the_same_name_wherever_it_is_seen() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let control = stage.folder.join("control.sock").display().to_string();
    let courser = watched(stage.courser().backend(origin.backend())).args(["--control", &control]).start();
    let url = url(&courser);
    for (bytes, _) in STRANGERS {
        let mut stranger = TcpStream::connect(courser.address()).unwrap();
        stranger.set_read_timeout(Some(PATIENCE)).unwrap();
        stranger.write_all(bytes).unwrap();
        stranger.shutdown(Shutdown::Write).unwrap();
        // A reset ends it too.
        let _ = stranger.read_to_end(&mut Vec::new());
    }
    // One that closes without close_notify, and one whose backend is gone.
    drop(stage.client(&courser, Version::Tls13).connect().unwrap().get(10, false));
    drop(origin);
    let _ = stage.client(&courser, Version::Tls13).connect().and_then(|mut client| client.get(10, true));
    let mut in_log = Names::new();
    for line in courser.connections_json(STRANGERS.len() + 2) {
        let text = |field: &str| line[field].as_str().unwrap().to_owned();
        in_log.insert((text("close_reason"), text("cause")));
    }
    in_log.retain(|(_, cause)| cause != "none");
    for (_, reason) in STRANGERS {
        assert!(in_log.contains(&((*reason).to_owned(), "client".to_owned())), "{reason} in {in_log:?}");
    }
    assert!(in_log.contains(&("no_backend".to_owned(), "backend".to_owned())), "{in_log:?}");

    let Some(curl) = require("curl") else { return };
    let scraped = run(Command::new(curl).args(["--silent", &format!("{url}/metrics")])).stdout;
    let label = |line: &str, name: &str| {
        let rest = line.split_once(&format!("{name}=\""))?.1;
        Some(rest.split_once('"')?.0.to_owned())
    };
    let counted = scraped
        .lines()
        .filter(|line| line.starts_with("courser_connections_total{") && !line.ends_with(" 0"));
    let mut in_metrics: Names =
        counted.map(|line| (label(line, "reason").unwrap(), label(line, "cause").unwrap())).collect();
    in_metrics.retain(|(_, cause)| cause != "none");
    assert_eq!(in_metrics, in_log);

    let frame = run_courser(&["top", "--once", "--control", &control]).stdout;
    let (_, table) = frame.split_once("3 Failures").unwrap();
    let rows = table.lines().take_while(|line| !line.is_empty()).filter_map(|line| {
        let mut words = line.split_whitespace().map(str::to_owned);
        Some((words.next()?, words.next()?))
    });
    let in_top: Names =
        rows.filter(|row| in_log.contains(row) || row.1 == "client" || row.1 == "backend").collect();
    assert_eq!(in_top, in_log, "{frame}");

    let Some(mut browser) = Browser::start() else { return };
    browser.open(&url);
    browser.wait("document.querySelectorAll('#failures tbody tr').length > 0");
    let script = "[...document.querySelectorAll('#failures tbody tr')].map(row => row.innerText.trim().split(/\\s+/).slice(0, 2).join(' '))";
    let expected: BTreeSet<String> =
        in_log.iter().map(|(reason, cause)| format!("{reason} {cause}")).collect();
    eventually("the page has them", || {
        let rows = browser.value(script);
        let rows = rows.as_array().unwrap().iter().filter_map(|row| Some(row.as_str()?.to_owned()));
        rows.collect::<BTreeSet<_>>() == expected
    });
}
