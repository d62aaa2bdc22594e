//! How the machine is tuned, beside what published experiments set: what to read a result with. It changes nothing.
//!
//! The settings are data, `record/published/tuning.toml`: what was set, by whom, what it does to a measurement.

use courser_record::Machine;
use courser_record::lab::Tuning;
use serde::Deserialize;

use crate::to_record;

const SETTINGS: &str = include_str!("../../../record/published/tuning.toml");

/// The settings of this machine, in the order of a report.
pub fn tuning() -> Vec<Tuning> {
    of(&to_record::machine())
}

/// The settings of a machine.
pub fn of(machine: &Machine) -> Vec<Tuning> {
    let file: File = toml::from_str(SETTINGS).expect("a test reads the same file");
    file.setting.into_iter().map(|setting| setting.on(machine)).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    setting: Vec<Setting>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    name: String,
    published: Option<String>,
    #[serde(default)]
    rule: Rule,
    source: Option<String>,
    why: String,
    command: Option<String>,
}

/// When a machine differs from what was published.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Rule {
    #[default]
    Equal,
    /// When it has less.
    Least,
    /// When it has more.
    Most,
    /// When the fact does not begin with it.
    Begins,
    /// Never: it is no value to compare with.
    Note,
}

impl Setting {
    fn on(self, machine: &Machine) -> Tuning {
        let here = here(machine, &self.name);
        let differs =
            here.as_deref().zip(self.published.as_deref()).is_some_and(|(is, was)| self.rule.breaks(is, was));
        let word = match self.rule {
            Rule::Least => " or more",
            Rule::Most => " or less",
            _ => "",
        };
        Tuning {
            name: self.name,
            here,
            published: self.published.map(|value| value + word),
            source: self.source,
            differs,
            why: self.why,
            command: self.command,
        }
    }
}

impl Rule {
    fn breaks(self, here: &str, published: &str) -> bool {
        let numbers = || Some((here.parse::<u128>().ok()?, published.parse::<u128>().ok()?));
        match self {
            Self::Equal => here != published,
            // What is no number cannot be said to be enough.
            Self::Least => numbers().is_none_or(|(here, published)| here < published),
            Self::Most => numbers().is_none_or(|(here, published)| here > published),
            Self::Begins => !here.starts_with(published),
            Self::Note => false,
        }
    }
}

/// A sysctl, or a fact of the record.
fn here(machine: &Machine, name: &str) -> Option<String> {
    match name {
        "open files" => Some(machine.open_files.to_string()),
        "hypervisor" => machine.virtualisation.clone(),
        _ => machine.sysctls.get(name).or_else(|| machine.facts.get(name)).cloned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(pairs: &[(&str, &str)]) -> Machine {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Machine { open_files: 1024, sysctls: pairs.iter().map(owned).collect(), ..Machine::default() }
    }

    fn row(machine: &Machine, name: &str) -> Tuning {
        of(machine).into_iter().find(|row| row.name == name).unwrap()
    }

    #[test]
    fn more_than_was_published_is_no_difference_where_it_is_a_limit() {
        let more = machine(&[("net.core.somaxconn", "200000"), ("net.ipv4.tcp_fin_timeout", "60")]);
        assert!(!row(&more, "net.core.somaxconn").differs);
        assert!(row(&more, "net.ipv4.tcp_fin_timeout").differs);
        let files = row(&more, "open files");
        assert_eq!(
            (files.here.as_deref(), files.published.as_deref()),
            (Some("1024"), Some("100000 or more"))
        );
        assert!(files.differs);
    }

    #[test]
    fn choices_are_compared_as_text() {
        let here = machine(&[
            ("net.ipv4.tcp_congestion_control", "highspeed"),
            ("interrupts of network cards", "not pinned (eth0 0-3)"),
            ("transparent huge pages", "madvise"),
        ]);
        assert!(!row(&here, "net.ipv4.tcp_congestion_control").differs);
        assert!(row(&here, "interrupts of network cards").differs);
        assert!(row(&here, "transparent huge pages").differs);
        let pinned = machine(&[("interrupts of network cards", "each on one processor (eth0 0 1)")]);
        assert!(!row(&pinned, "interrupts of network cards").differs);
    }

    #[test]
    fn what_cannot_be_read_is_unknown_and_not_different() {
        let hidden = row(&machine(&[]), "net.core.netdev_max_backlog");
        assert_eq!((hidden.here, hidden.differs), (None, false));
    }

    #[test]
    fn every_setting_says_what_it_does_and_who_set_it() {
        for row in of(&Machine::default()) {
            assert!(row.why.len() > 20 && !row.why.ends_with('.'), "{row:?}");
            assert!(row.published.is_none() || row.source.is_some(), "{row:?}");
        }
    }
}
