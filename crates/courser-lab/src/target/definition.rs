//! What a target is: a file of data. The files that are built in, and those that somebody else writes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use serde::Deserialize;

use super::messages::Messages;
use super::template;

/// What a terminator in front of the balancer is called: `hitch+haproxy`.
const BALANCER: (&str, &str) = ("haproxy-balancer", "haproxy");

/// The files that are built in, in the order of reports.
const BUILT_IN: [&str; 11] = [
    include_str!("../../../../targets/courser.toml"),
    include_str!("../../../../targets/nginx.toml"),
    include_str!("../../../../targets/nginx-stream.toml"),
    include_str!("../../../../targets/haproxy.toml"),
    include_str!("../../../../targets/hitch.toml"),
    include_str!("../../../../targets/stunnel.toml"),
    include_str!("../../../../targets/caddy.toml"),
    include_str!("../../../../targets/sozu.toml"),
    include_str!("../../../../targets/haproxy-relay.toml"),
    include_str!("../../../../targets/haproxy-balancer.toml"),
    include_str!("../../../../targets/direct.toml"),
];

/// A target, as its file describes it. In what is a template or a condition, the specification is at hand as
/// [`template::Context`] names it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// What the command line calls it.
    pub name: String,
    /// What a report calls it.
    pub title: String,
    /// How it works, in a sentence: threads, processes, what they share.
    pub note: String,
    /// What it does with a connection.
    #[serde(default)]
    pub role: Role,
    /// What has to be installed; none when nothing is started.
    pub(super) program: Option<Program>,
    /// Arguments of the program, templates.
    #[serde(default)]
    pub(super) arguments: Vec<String>,
    /// Variables of its environment, templates; one that comes out empty is not set.
    #[serde(default)]
    pub(super) environment: BTreeMap<String, String>,
    /// Files that it reads, in the order of their names.
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
    /// Files that it reads too, and that no record has: secrets that hosts share. One that comes out empty is not
    /// written.
    #[serde(default)]
    pub(super) secrets: BTreeMap<String, String>,
    /// How its hosts say what they tell each other; none when they do not.
    pub(super) messages: Option<Messages>,
    /// Limits of what can be asked of it.
    #[serde(default)]
    pub(super) only: Only,
    /// What it cannot do.
    #[serde(default)]
    pub(super) cannot: Vec<Cannot>,
    /// What a reader has to know when it is set up so.
    #[serde(default)]
    pub(super) remark: Vec<Remark>,
    /// The target that it forwards to, in a chain.
    #[serde(skip)]
    pub(super) behind: Option<Box<Self>>,
}

/// What a target does with a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It ends TLS.
    #[default]
    Terminator,
    /// It chooses among listeners by what the ClientHello says.
    Relay,
    /// It spreads connections in clear text over several backends.
    Balancer,
    /// Nothing stands between generator and origin.
    Direct,
}

/// A program that has to be installed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Program {
    /// Its names, the first that is found counts.
    pub(super) names: Vec<String>,
    /// Whether it may lie beside this program, and is taken from there first.
    #[serde(default)]
    pub(super) beside: bool,
    /// Files of which one has to be there too.
    #[serde(default)]
    pub(super) needs: Vec<String>,
    /// How to install it: a command, or what to do.
    pub(super) install: String,
    /// How its version is found.
    pub(super) version: Ask,
    /// How its TLS library is found.
    pub(super) library: Option<Ask>,
}

/// How something is found out about a program.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Ask {
    /// What it is started with, to tell.
    pub(super) arguments: Vec<String>,
    /// What the answer stands behind, in what it prints: the first of these that is there.
    pub(super) after: Vec<String>,
    /// What the answer ends before; the end of the line too.
    pub(super) until: Option<String>,
    /// What stands before the answer when it is told on.
    pub(super) prefix: String,
    /// The shared library that says it, instead of the program: `libcrypto`.
    pub(super) linked: Option<String>,
    /// The answer, for programs that do not tell.
    pub(super) fixed: Option<String>,
}

/// Limits of what can be asked of a target; none where a list is not there.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Only {
    /// Versions of TLS that it speaks.
    pub(super) versions: Option<Vec<String>>,
    /// Suites that it has, IANA names.
    pub(super) suites: Option<Vec<String>>,
    /// Groups that it has.
    pub(super) groups: Option<Vec<String>>,
    /// Bits of the smallest RSA key that it takes.
    pub(super) least_rsa_bits: Option<u32>,
}

/// Something that a target cannot do.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cannot {
    /// A condition on the specification.
    pub(super) when: String,
    /// Why, as it follows "NAME cannot: ".
    pub(super) reason: String,
}

/// Something to know about a target.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Remark {
    /// A condition on the specification.
    pub(super) when: String,
    /// A sentence.
    pub(super) text: String,
}

/// All targets that are built in, in the order of reports.
pub fn catalogue() -> &'static [Definition] {
    static ALL: OnceLock<Vec<Definition>> = OnceLock::new();
    ALL.get_or_init(|| {
        let parsed = BUILT_IN.iter().map(|text| Definition::parse(text).expect("a test reads all of them"));
        let mut all: Vec<Definition> = parsed.collect();
        all.extend(chains(&all));
        all
    })
}

/// Every terminator with the balancer behind it.
fn chains(all: &[Definition]) -> Vec<Definition> {
    let Some(balancer) = all.iter().find(|one| one.name == BALANCER.0) else { return Vec::new() };
    let chain = |front: &Definition| Definition {
        name: format!("{}+{}", front.name, BALANCER.1),
        title: format!("{}, then {}", front.title, balancer.title),
        note: format!("{} Behind it: {}", front.note, balancer.note),
        behind: Some(Box::new(balancer.clone())),
        ..front.clone()
    };
    all.iter().filter(|one| one.role == Role::Terminator).map(chain).collect()
}

impl Definition {
    /// A target of somebody else's making.
    ///
    /// # Errors
    /// When the file cannot be read or is wrong: with line and column.
    pub fn read(path: &Path) -> Result<Self, String> {
        let named = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let text = std::fs::read_to_string(path).map_err(|why| named(&why))?;
        Self::parse(&text).map_err(|why| named(&why))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let definition: Self = toml::from_str(text).map_err(|why| why.to_string())?;
        definition.check_templates()?;
        Ok(definition)
    }

    fn check_templates(&self) -> Result<(), String> {
        let asking = self.messages.iter().flat_map(|messages| &messages.arguments);
        let arguments = self.arguments.iter().chain(asking).map(|text| ("arguments", text));
        let named = self.files.iter().chain(&self.secrets).chain(&self.environment);
        let templates = named.map(|(name, text)| (name.as_str(), text)).chain(arguments);
        let conditions = self.cannot.iter().map(|one| &one.when);
        let conditions = conditions.chain(self.remark.iter().map(|one| &one.when));
        template::check(templates, conditions.chain(self.messages.iter().map(|messages| &messages.when)))
    }

    /// Whether there is a balancer behind it.
    pub fn is_chain(&self) -> bool {
        self.behind.is_some()
    }

    /// The programs that connections pass, the first first: one, or two of a chain.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |part| part.behind.as_deref())
    }

    /// What this part is called on its own: folders and messages have this name.
    pub(super) fn own_name(&self) -> &str {
        self.name.split('+').next().unwrap_or(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_file_that_is_built_in_can_be_read_and_has_a_name_of_its_own() {
        for text in BUILT_IN {
            Definition::parse(text).unwrap_or_else(|why| panic!("{why}"));
        }
        let names: BTreeSet<&str> = catalogue().iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names.len(), catalogue().len());
        assert!(names.contains("hitch+haproxy") && !names.contains("haproxy-balancer+haproxy"), "{names:?}");
    }

    #[test]
    fn a_mistake_is_told_with_its_line_and_column() {
        let key = "name = 'a'\ntitle = 'A'\nnote = 'n'\nagruments = []\n";
        let why = Definition::parse(key).unwrap_err();
        assert!(why.contains("line 4, column 1") && why.contains("agruments"), "{why}");
        let template = "name = 'a'\ntitle = 'A'\nnote = 'n'\n[files]\n'a.conf' = '''\nx\n{% if %}'''\n";
        let why = Definition::parse(template).unwrap_err();
        assert!(why.contains("a.conf") && why.contains('2'), "{why}");
    }
}
