//! Targets of a case against each other: figures of different cipher suites, keys or kinds of resumption are figures of
//! different experiments, whoever chose them.

use std::collections::{BTreeMap, BTreeSet};

use courser_record::lab::{Cell, CellState, Verified};

use crate::state::State;
use crate::target::TICKETS;

/// What a target negotiated, by client and by name.
type Facts = BTreeMap<(String, &'static str), String>;

/// What a target is known to do otherwise than others, and cannot be set up to do alike.
pub(crate) type Exceptions<'a> = &'a dyn Fn(&str) -> Vec<String>;

/// Fails the cells of a case that negotiated something else than most others; where there is no majority, all of them.
pub(crate) fn check(case: &str, exceptions: Exceptions<'_>, state: &mut State) {
    let is_of_case =
        |cell: &&Cell| cell.case == case && matches!(cell.state, CellState::Pending | CellState::Done);
    let all: Vec<(String, Facts)> = state
        .lab
        .cells
        .iter()
        .filter(is_of_case)
        .map(|cell| {
            let excepted = exceptions(&cell.target);
            let mut facts = facts(cell);
            facts.retain(|(_, what), _| !excepted.iter().any(|known| known == what));
            (cell.target.clone(), facts)
        })
        .filter(|(_, facts)| !facts.is_empty())
        .collect();
    for (target, why) in unequal(&all) {
        let cell = state.cell(case, &target);
        if cell.state == CellState::Pending {
            (cell.state, cell.reason) = (CellState::Failed, Some(why));
        }
    }
}

/// Empty without TLS.
fn facts(cell: &Cell) -> Facts {
    let alone = cell.verified.iter().map(|verified| (String::new(), verified));
    let clients = cell.clients.iter().filter_map(|one| Some((one.client.clone(), one.verified.as_ref()?)));
    let secure = alone.chain(clients).filter(|(_, verified)| verified.version != "clear");
    secure
        .flat_map(|(client, verified)| {
            negotiated(verified)
                .into_iter()
                .filter_map(move |(what, value)| Some(((client.clone(), what), value?)))
        })
        .collect()
}

/// What has to be equal. A target that resumes nothing is a result, and has a finding.
fn negotiated(verified: &Verified) -> [(&'static str, Option<String>); 8] {
    let again = verified.again.clone().filter(|again| again != "full");
    [
        ("version", Some(verified.version.clone())),
        ("cipher suite", Some(verified.suite.clone())),
        ("group", verified.group.clone()),
        ("signature scheme", verified.scheme.clone()),
        ("key", verified.key.clone()),
        ("application protocol", verified.alpn.clone()),
        ("second connection", again),
        (TICKETS, verified.tickets.map(|count| count.to_string())),
    ]
}

/// The targets that differ, each with how.
fn unequal(all: &[(String, Facts)]) -> Vec<(String, String)> {
    let names: BTreeSet<&(String, &str)> = all.iter().flat_map(|(_, facts)| facts.keys()).collect();
    let mut found: Vec<(String, String)> = Vec::new();
    for name in names {
        let has = |value: &str| -> Vec<&str> {
            let same = all.iter().filter(|(_, facts)| facts.get(name).is_some_and(|other| other == value));
            same.map(|(target, _)| target.as_str()).collect()
        };
        let values: BTreeSet<&String> = all.iter().filter_map(|(_, facts)| facts.get(name)).collect();
        let most = values.iter().map(|value| has(value).len()).max().unwrap_or(0);
        let common: Vec<&&String> = values.iter().filter(|value| has(value).len() == most).collect();
        for value in values.iter().filter(|value| common.len() > 1 || !common.contains(value)) {
            let others = values.iter().filter(|other| *other != value);
            let others: Vec<String> =
                others.map(|other| format!("{} {other}", has(other).join(", "))).collect();
            for target in has(value) {
                let client =
                    if name.0.is_empty() { String::new() } else { format!(" of a client that {}", name.0) };
                let why = format!(
                    "the targets do not negotiate the same: {}{client}: {target} {value}; {}",
                    name.1,
                    others.join("; ")
                );
                if !found.iter().any(|(known, _)| known == target) {
                    found.push((target.to_owned(), why));
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(target: &str, suite: &str, tickets: u32) -> (String, Facts) {
        let verified = Verified {
            version: "TLS 1.3".into(),
            suite: suite.into(),
            tickets: Some(tickets),
            ..Verified::default()
        };
        let cell = Cell { verified: Some(verified), ..Cell::default() };
        (target.to_owned(), facts(&cell))
    }

    #[test]
    fn the_one_that_differs_is_named_and_how() {
        let all = [of("nginx", "AES_128", 2), of("haproxy", "AES_256", 2), of("hitch", "AES_128", 2)];
        let [(target, why)] = &unequal(&all)[..] else { panic!("{:?}", unequal(&all)) };
        assert_eq!(target, "haproxy");
        assert!(why.ends_with("cipher suite: haproxy AES_256; nginx, hitch AES_128"), "{why}");
        assert!(unequal(&all[..1]).is_empty() && unequal(&[all[0].clone(), all[2].clone()]).is_empty());
    }

    #[test]
    fn without_a_majority_all_differ() {
        let all = [of("nginx", "AES_128", 2), of("caddy", "AES_128", 1)];
        let names: Vec<String> = unequal(&all).into_iter().map(|(target, _)| target).collect();
        assert_eq!(names, ["caddy", "nginx"]);
    }

    #[test]
    fn the_way_without_tls_is_not_compared() {
        let clear = Cell {
            verified: Some(Verified { version: "clear".into(), ..Verified::default() }),
            ..Cell::default()
        };
        assert!(facts(&clear).is_empty());
    }
}
