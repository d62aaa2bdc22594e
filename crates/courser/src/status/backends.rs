//! Servers of pools, as `courser backend` prints them. May not know where the figures come from.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::{counts, millis, read};

/// The servers in the status.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Backends {
    /// How many, by state.
    pub(crate) states: BTreeMap<String, u64>,
    pub(crate) connections: u64,
    pub(crate) queue_length: u64,
    pub(crate) failures: u64,
    pub(crate) retries: u64,
    pub(crate) ejections: u64,
    /// How many, by result.
    pub(crate) checks: BTreeMap<String, u64>,
    pub(crate) servers: Vec<ServerRow>,
}

/// A server: a line of `backend list --json`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ServerRow {
    pub(crate) pool: String,
    /// As it is configured, with its address where a name has several.
    pub(crate) server: String,
    pub(crate) address: String,
    /// `up`, `starting`, `ejected`, `down` or `draining`.
    pub(crate) state: String,
    /// Of its share, while it is starting.
    pub(crate) starting_percent: Option<u32>,
    /// How much longer, while it is ejected.
    pub(crate) ejected_ms: Option<u64>,
    /// `operator`, `agent`, `resolver`.
    pub(crate) drained_by: Vec<String>,
    /// As it is configured.
    pub(crate) weight: u32,
    /// What operator and agent have left of it.
    pub(crate) weight_percent: u32,
    /// Now.
    pub(crate) connections: u32,
    pub(crate) max_connections: Option<u32>,
    /// Connections that wait for any server of its pool.
    pub(crate) waiting: usize,
    /// Since the start, as the rest.
    pub(crate) served: u64,
    pub(crate) failures: u64,
    pub(crate) ejections: u64,
    /// How long it takes to connect, of late.
    #[serde(default)]
    pub(crate) connect_us: u64,
    /// The last of each kind.
    pub(crate) checks: Vec<CheckRow>,
}

/// The last check of a kind.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CheckRow {
    pub(crate) kind: String,
    pub(crate) passed: bool,
    pub(crate) seen: String,
    pub(crate) ago_ms: u64,
    pub(crate) taken_us: u64,
}

impl Backends {
    /// For a row of the status.
    pub(crate) fn summary(&self) -> String {
        let (connections, waiting) = (self.connections, self.queue_length);
        format!(
            "{}; {connections} connections, {waiting} waiting (`courser backend list`)",
            counts(&self.states)
        )
    }
}

/// A line of an answer.
pub(crate) fn server(line: &str) -> Result<ServerRow, String> {
    read(line)
}

/// The servers as a table, for people.
pub(crate) fn table(servers: &[ServerRow]) -> String {
    let heading =
        ["pool", "server", "state", "weight", "connections", "limit", "waiting", "failures", "last check"];
    let mut rows = vec![heading.map(str::to_owned)];
    rows.extend(servers.iter().map(|server| {
        [
            server.pool.clone(),
            server.server.clone(),
            server.state(),
            match server.weight_percent {
                100 => server.weight.to_string(),
                percent => format!("{} at {percent}%", server.weight),
            },
            server.connections.to_string(),
            server.max_connections.map_or_else(|| "-".to_owned(), |limit| limit.to_string()),
            server.waiting.to_string(),
            server.failures.to_string(),
            server.last_checks(),
        ]
    }));
    let mut text = String::new();
    let widths: Vec<usize> = (0..heading.len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}

impl ServerRow {
    /// Whether it gets new connections.
    pub(crate) fn gets_connections(&self) -> bool {
        matches!(self.state.as_str(), "up" | "starting")
    }

    pub(crate) fn state(&self) -> String {
        match (self.starting_percent, self.ejected_ms, self.drained_by.as_slice()) {
            (Some(percent), ..) => format!("{} {percent}%", self.state),
            (_, Some(left), _) => format!("{}, {} left", self.state, millis(left)),
            (_, _, []) => self.state.clone(),
            (.., by) => format!("{} ({})", self.state, by.join(", ")),
        }
    }

    pub(crate) fn last_checks(&self) -> String {
        let check = |check: &CheckRow| {
            let mark = if check.passed { "" } else { "FAILED, " };
            format!("{}: {mark}{}, {} ago", check.kind, check.seen, millis(check.ago_ms))
        };
        let checks: Vec<_> = self.checks.iter().map(check).collect();
        if checks.is_empty() { "-".to_owned() } else { checks.join("; ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_why_a_server_gets_no_connections() {
        let row = r#"{"pool":"shop","server":"a:80","address":"10.0.0.1:80","state":"STATE","starting_percent":null,
            "ejected_ms":null,"drained_by":[],"weight":3,"weight_percent":50,"connections":7,"max_connections":200,
            "waiting":0,"served":9,"failures":1,"ejections":0,"checks":[{"kind":"http","passed":false,"seen":"HTTP 503",
            "ago_ms":1200,"taken_us":800}]}"#;
        let mut row = server(row).unwrap();
        row.state = "draining".to_owned();
        row.drained_by = vec!["operator".to_owned()];
        let text = table(&[row]);
        let (heading, line) = text.split_once('\n').unwrap();
        assert!(heading.starts_with("pool  server  state"), "{heading}");
        for part in
            ["shop  a:80", "draining (operator)", "3 at 50%", "200", "http: FAILED, HTTP 503, 1200 ms ago"]
        {
            assert!(line.contains(part), "no {part:?} in {line}");
        }
    }
}
