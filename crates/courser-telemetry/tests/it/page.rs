//! The tables of docs/life-of-a-connection.md that are made from the names here.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use courser_telemetry::connection::{FIELDS, Offered, Peer};
use courser_telemetry::{CloseReason, ConnectionRecord};

/// Set it to 1 to write the tables as they are now.
const UPDATE: &str = "UPDATE_SNAPSHOTS";

#[test]
fn the_page_has_the_names_of_today() {
    hold("life-of-a-connection.md", |page| {
        let page = with_table(page, "close reasons", &close_reasons());
        with_table(&page, "log fields", &log_fields())
    });
}

/// Compares a page of docs with what it should be, or writes that.
pub(crate) fn hold(name: &str, change: impl FnOnce(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    let kept = fs::read_to_string(&path).expect("the page is in the repository");
    let page = change(&kept);
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, &page).expect("the page can be written");
    } else {
        assert_eq!(kept, page, "out of date: run {UPDATE}=1 cargo test -p courser-telemetry");
    }
}

#[test]
fn a_line_has_the_fields_of_the_table() {
    let mut line = String::new();
    unknown().write(&mut line, false);
    let names = line.split_ascii_whitespace().filter_map(|field| field.split_once('=')).map(|(name, _)| name);
    assert!(names.eq(FIELDS.iter().map(|(name, _)| *name)), "{line}");
}

fn close_reasons() -> String {
    let row = |reason: &CloseReason| {
        format!("| `{reason}` | {} | {} |\n", reason.cause().name(), reason.meaning().replace('|', "\\|"))
    };
    let rows: String = CloseReason::ALL.iter().map(row).collect();
    format!("| `close_reason` | `cause` | what happened |\n|---|---|---|\n{rows}")
}

fn log_fields() -> String {
    let rows: String = FIELDS.iter().map(|(name, meaning)| format!("| `{name}` | {meaning} |\n")).collect();
    format!("| field | what it says |\n|---|---|\n{rows}")
}

/// The page with what stands between `<!-- NAME` and `<!-- /NAME -->` replaced.
pub(crate) fn with_table(page: &str, name: &str, table: &str) -> String {
    let (start, end) = (format!("<!-- {name}"), format!("<!-- /{name} -->"));
    let (before, rest) = page.split_once(&start).expect("the page has the table's beginning");
    let (comment, rest) = rest.split_once("-->\n").expect("the beginning is a comment");
    let (_, after) = rest.split_once(&end).expect("the page has the table's end");
    format!("{before}{start}{comment}-->\n\n{table}\n{end}{after}")
}

/// A record of which as little is known as can be.
fn unknown() -> ConnectionRecord {
    ConnectionRecord {
        accepted: SystemTime::UNIX_EPOCH,
        worker: 0,
        number: 1,
        listener: "a".into(),
        tls_mode: None,
        host: None,
        client: Peer::Unix,
        via: None,
        sni: None,
        offered: Offered::default(),
        alpn: None,
        version: None,
        suite: None,
        group: None,
        scheme: None,
        key: None,
        client_cert: None,
        session: None,
        not_resumed: None,
        backend: None,
        backend_tls: None,
        retries: 0,
        bytes_in: 0,
        bytes_out: 0,
        hello: None,
        handshake: None,
        connect: None,
        total: Duration::ZERO,
        close: CloseReason::Probe.into(),
    }
}
