//! The kernel's floor as rows: reads and writes of a connection without TLS, the part of the limit that is no cryptography.

use courser_machine::allowed_cpus;
use courser_record::lab::{Era, Figure};

use super::{KERNEL, Row, RowLabel};
use crate::cores::{ByHand, CoreMap};
use crate::limit::floor::{self, Cores, Floor};
use crate::limit::{Exchanges, Needs};

/// Bytes of a request, and of an answer of 1 KB with its head.
const REQUEST: u64 = 60;
const ANSWER: u64 = 1024 + 120;

/// Names and titles of the rows, with the version, whether it is a full handshake, and whether there is a request.
const ROWS: [(&str, &str, &str, bool, bool); 6] = [
    ("kernel-tls13-full", "TLS 1.3, full handshake", "1.3", true, false),
    ("kernel-tls12-full", "TLS 1.2, full handshake", "1.2", true, false),
    ("kernel-tls12-resumed", "TLS 1.2, resumed handshake", "1.2", false, false),
    ("kernel-tls13-full-1k", "TLS 1.3, full handshake, 1 KB from a backend", "1.3", true, true),
    ("kernel-tls12-full-1k", "TLS 1.2, full handshake, 1 KB from a backend", "1.2", true, true),
    ("kernel-tls12-resumed-1k", "TLS 1.2, resumed handshake, 1 KB from a backend", "1.2", false, true),
];

/// How many there are.
pub(super) const COUNT: usize = ROWS.len();

/// All rows, each after a call of `next` with its title.
pub(super) fn rows(mut next: impl FnMut(&str)) -> Vec<Row> {
    let map = CoreMap::new(&allowed_cpus(), 1, &ByHand::default());
    // Of a single core both ends have it.
    let cores = map.as_ref().map_or_else(|_| Cores::default(), Cores::from);
    let row = |&(case, title, version, is_full, has_request): &(&str, &str, &str, bool, bool)| {
        next(title);
        let exchanges = Exchanges::of(&needs(version, has_request), is_full);
        let label =
            RowLabel { case: case.to_owned(), title: title.to_owned(), era: Era::Modern, kind: "kernel" };
        label.row(KERNEL, floor::measure(&exchanges, cores).map(|floor| vec![figure(&floor)]))
    };
    ROWS.iter().map(row).collect()
}

fn needs(version: &str, has_request: bool) -> Needs {
    Needs {
        version: version.to_owned(),
        key: "P-256".to_owned(),
        group: None,
        suite: String::new(),
        full: 1.0,
        tickets: false,
        bytes_in: if has_request { REQUEST } else { 0 },
        bytes_out: if has_request { ANSWER } else { 0 },
        reencrypted: false,
    }
}

fn figure(floor: &Floor) -> Figure {
    Figure {
        name: "reads and writes".to_owned(),
        unit: "s".to_owned(),
        value: floor.us / 1e6,
        low: Some(floor.range.0 / 1e6),
        high: Some(floor.range.1 / 1e6),
    }
}
