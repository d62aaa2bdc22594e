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
const BUILT_IN: [&str; 20] = [
    include_str!("../../../../targets/courser.toml"),
    include_str!("../../../../targets/nginx.toml"),
    include_str!("../../../../targets/nginx-stream.toml"),
    include_str!("../../../../targets/haproxy.toml"),
    include_str!("../../../../targets/haproxy-short.toml"),
    include_str!("../../../../targets/hitch.toml"),
    include_str!("../../../../targets/stunnel.toml"),
    include_str!("../../../../targets/caddy.toml"),
    include_str!("../../../../targets/sozu.toml"),
    include_str!("../../../../targets/haproxy-relay.toml"),
    include_str!("../../../../targets/haproxy-balancer.toml"),
    include_str!("../../../../targets/courser-relay.toml"),
    include_str!("../../../../targets/courser-sticky.toml"),
    include_str!("../../../../targets/haproxy-sticky.toml"),
    include_str!("../../../../targets/courser-spread.toml"),
    include_str!("../../../../targets/courser-shared.toml"),
    include_str!("../../../../targets/haproxy-pair.toml"),
    include_str!("../../../../targets/nginx-farm.toml"),
    include_str!("../../../../targets/nginx-farm-shared.toml"),
    include_str!("../../../../targets/direct.toml"),
];

/// A target, as its file describes it. In what is a template or a condition, the specification is at hand as
/// [`template::Context`] names it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// What the command line calls it.
    #[serde(default)]
    pub name: String,
    /// What a report calls it [default: the name].
    #[serde(default)]
    pub title: String,
    /// How it works, in a sentence: threads, processes, what they share.
    #[serde(default)]
    pub note: String,
    /// Another target that has everything that this file does not say.
    pub(super) like: Option<String>,
    /// What it does with a connection.
    #[serde(default)]
    pub role: Role,
    /// What has to be installed; none when nothing is started.
    pub(super) program: Option<Program>,
    /// Whether its child processes are its workers, to be bound to a processor each: it has no setting for that.
    #[serde(default)]
    pub(super) worker_processes: bool,
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
    /// Connections that may wait to be accepted, instead of what all targets get.
    pub(super) backlog: Option<u32>,
    /// Clients at a time, instead of what all targets get.
    pub(super) connections: Option<u64>,
    /// Limits of what can be asked of it.
    #[serde(default)]
    pub(super) only: Only,
    /// Application protocols that its files can set it up for, as `tls.alpn` asks (ALPN).
    #[serde(default)]
    pub(super) alpn: Vec<String>,
    /// What it negotiates otherwise than others and has no setting for, so that it is not held against it:
    /// `tickets per full handshake`.
    #[serde(default)]
    pub(crate) differs: Vec<String>,
    /// What it cannot do.
    #[serde(default)]
    pub(super) cannot: Vec<Cannot>,
    /// What a reader has to know when it is set up so.
    #[serde(default)]
    pub(super) remark: Vec<Remark>,
    /// The built-in target that is started with it, to forward to: by name.
    in_front_of: Option<String>,
    /// The target that it forwards to, in a chain.
    #[serde(skip)]
    pub(super) behind: Option<Box<Self>>,
}

/// What a target does with a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It ends TLS.
    #[default]
    Terminator,
    /// It chooses among listeners by what the ClientHello says.
    Relay,
    /// It ends TLS where a relay hands connections over.
    BehindRelay,
    /// It spreads connections in clear text over several backends.
    Balancer,
    /// Nothing stands between generator and origin.
    Direct,
}

/// A program that has to be installed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Program {
    /// Its names, or paths from the file's folder; the first that is found counts.
    #[serde(default)]
    pub(super) names: Vec<String>,
    /// Folder of shared libraries that go before the system's, as `LD_LIBRARY_PATH` names it.
    pub(super) libraries: Option<String>,
    /// Whether it may lie beside this program, and is taken from there first.
    #[serde(default)]
    pub(super) beside: bool,
    /// Files of which one has to be there too.
    #[serde(default)]
    pub(super) needs: Vec<String>,
    /// How to install it: a command, or what to do.
    #[serde(default)]
    pub(super) install: String,
    /// How its version is found.
    #[serde(default)]
    pub(super) version: Ask,
    /// How its TLS library is found.
    pub(super) library: Option<Ask>,
}

/// How something is found out about a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
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

/// The file of a target that is built in: the first one's of a chain.
pub fn source(name: &str) -> Option<&'static str> {
    let found = catalogue().iter().position(|one| one.name == name.split('+').next().unwrap_or(name))?;
    BUILT_IN.get(found).copied()
}

/// All targets that are built in, in the order of reports.
pub fn catalogue() -> &'static [Definition] {
    static ALL: OnceLock<Vec<Definition>> = OnceLock::new();
    ALL.get_or_init(|| {
        let parsed = BUILT_IN.iter().map(|text| Definition::parse(text).expect("a test reads all of them"));
        let known: Vec<Definition> = parsed.collect();
        let complete = |one: &Definition| one.clone().complete(&known).expect("a test reads all of them");
        let mut all: Vec<Definition> = known.iter().map(complete).collect();
        for front in &mut all {
            let name = front.in_front_of.as_ref();
            let behind = name.map(|name| known.iter().find(|one| one.name == *name));
            front.behind = behind.map(|found| Box::new(found.expect("a test reads all of them").clone()));
        }
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
        let mut definition = Self::parse(&text).map_err(|why| named(&why))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let folder = std::path::absolute(folder.join(".")).map_err(|why| named(&why))?;
        if let Some(program) = &mut definition.program {
            let paths = program.names.iter_mut().filter(|name| name.contains('/'));
            paths
                .chain(&mut program.libraries)
                .for_each(|path| *path = folder.join(&*path).display().to_string());
        }
        definition.complete(catalogue()).map_err(|why| named(&why))
    }

    /// The same with what its file leaves to another one of `known`.
    fn complete(mut self, known: &[Self]) -> Result<Self, String> {
        if let Some(like) = self.like.take() {
            let base = known.iter().find(|one| one.name == like);
            let base = base.ok_or_else(|| format!("like = {like:?}: there is no such target"))?;
            self = self.over(base.clone());
        }
        if self.name.is_empty() || self.name.contains([':', '@', '=', ',']) {
            return Err(format!(
                "name = {:?}: a target needs a name without `:`, `@`, `=` and `,`",
                self.name
            ));
        }
        if self.title.is_empty() {
            self.title.clone_from(&self.name);
        }
        Ok(self)
    }

    /// What this file says, over what the other one does.
    fn over(self, base: Self) -> Self {
        fn either<T: Default + PartialEq>(own: T, base: T) -> T {
            if own == T::default() { base } else { own }
        }
        let title = if self.title.is_empty() { self.name.clone() } else { self.title };
        let program = match (self.program, base.program) {
            (Some(own), Some(base)) => Some(Program {
                beside: own.beside || (own.names.is_empty() && base.beside),
                names: either(own.names, base.names),
                libraries: own.libraries.or(base.libraries),
                needs: either(own.needs, base.needs),
                install: either(own.install, base.install),
                version: either(own.version, base.version),
                library: own.library.or(base.library),
            }),
            (own, base) => own.or(base),
        };
        Self {
            name: self.name,
            title,
            note: either(self.note, base.note),
            like: None,
            role: either(self.role, base.role),
            program,
            worker_processes: self.worker_processes || base.worker_processes,
            arguments: either(self.arguments, base.arguments),
            environment: base.environment.into_iter().chain(self.environment).collect(),
            files: base.files.into_iter().chain(self.files).collect(),
            secrets: base.secrets.into_iter().chain(self.secrets).collect(),
            messages: self.messages.or(base.messages),
            backlog: self.backlog.or(base.backlog),
            connections: self.connections.or(base.connections),
            only: either(self.only, base.only),
            alpn: either(self.alpn, base.alpn),
            differs: self.differs.into_iter().chain(base.differs).collect(),
            cannot: self.cannot.into_iter().chain(base.cannot).collect(),
            remark: self.remark.into_iter().chain(base.remark).collect(),
            in_front_of: self.in_front_of.or(base.in_front_of),
            behind: base.behind,
        }
    }

    /// The same target with this program, whatever is installed; of a chain, its first part's.
    #[must_use]
    pub fn with_program(&self, path: &Path) -> Self {
        let mut definition = self.clone();
        if let Some(program) = &mut definition.program {
            program.names = vec![path.display().to_string()];
            (program.beside, program.install) = (false, format!("{} is not there", path.display()));
        }
        definition
    }

    /// Whether its program has this file name.
    pub fn has_program(&self, file: &str) -> bool {
        self.program.iter().flat_map(|program| &program.names).any(|name| name == file)
    }

    /// Gives it another name.
    pub(crate) fn rename(&mut self, name: &str) {
        name.clone_into(&mut self.name);
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
        self.role == Role::Terminator && self.behind.is_some()
    }

    /// The programs that connections pass, the first first: one, or two of a chain.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |part| part.behind.as_deref())
    }

    /// What this part is called on its own: folders and messages have this name.
    pub(crate) fn own_name(&self) -> &str {
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
    fn a_file_says_what_differs_from_another_target() {
        let text = "like = 'haproxy'\nname = 'other'\n[program]\nnames = ['./sbin/haproxy']\nlibraries = 'lib'\n\
                    [environment]\nTZ = 'UTC'\n";
        let folder = courser_testkit::Folder::new();
        folder.write("other.toml", text);
        let other = Definition::read(&folder.join("other.toml")).unwrap();
        let haproxy = catalogue().iter().find(|one| one.name == "haproxy").unwrap();
        let (program, usual) = (other.program.as_ref().unwrap(), haproxy.program.as_ref().unwrap());
        assert_eq!((&program.version, &other.files), (&usual.version, &haproxy.files));
        assert_eq!(program.names, [folder.join("./sbin/haproxy").display().to_string()]);
        assert_eq!(program.libraries.as_ref(), Some(&folder.join("lib").display().to_string()));
        assert_eq!((other.title.as_str(), other.environment.len()), ("other", 2));
        folder.write("other.toml", "like = 'haproxi'\nname = 'other'\n");
        assert!(Definition::read(&folder.join("other.toml")).unwrap_err().contains("no such target"));
        folder.write("other.toml", "like = 'haproxy'\n");
        assert!(Definition::read(&folder.join("other.toml")).unwrap_err().contains("needs a name"));
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
