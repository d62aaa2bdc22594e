//! Targets as the command line and suites name them: built in, from a file, with a program by its path, or a server
//! that runs already.

use std::path::{Path, PathBuf};

use courser_load::url::Url;

use crate::error::Error;
use crate::target::{self, Definition, Preset, Role};

/// How targets are written, for messages.
pub const SYNTAX: &str =
    "write TARGET, TARGET:stock, TARGET@LABEL=PROGRAM, a target file (mine.toml), or LABEL=https://host:port";

/// Folders whose names say nothing about the program in them.
const COMMON_FOLDERS: [&str; 7] = ["bin", "sbin", "usr", "release", "debug", "target", "."];

/// A target that was asked for.
#[derive(Clone, Debug)]
pub struct TargetSelector {
    /// The target's name in the record: its definition's, then preset and label.
    pub name: String,
    /// Which of its configurations.
    pub preset: Preset,
    /// What tells it from others of the same definition; none where nothing was written.
    pub label: Option<String>,
    /// What it is.
    pub source: TargetSource,
}

/// What a selector stands for.
#[derive(Clone, Debug)]
pub enum TargetSource {
    /// A program to start.
    Definition(Box<Definition>),
    /// A server that runs already.
    Url(String),
}

impl TargetSelector {
    /// Reads one: `haproxy`, `haproxy:stock`, `haproxy@again`, `courser=./old`, `nginx@new=/opt/nginx/sbin/nginx`,
    /// `mine.toml`, `mine=./mine.toml`, `external=https://…`.
    ///
    /// # Errors
    /// What is wrong with it, and which target is the nearest.
    pub fn parse(text: &str) -> Result<Self, Error> {
        match text.split_once('=') {
            None if is_file(text) => Self::of_file(None, text),
            None => Self::of_name(text),
            Some(("", _)) => Err(Error::input(format!("{text}: no name before `=`; {SYNTAX}"))),
            Some((name, url)) if url.contains("://") => {
                let _: Url = url.parse().map_err(|why| Error::input(format!("{text}: {why}")))?;
                let source = TargetSource::Url(url.to_owned());
                Ok(Self { name: name.to_owned(), preset: Preset::Tuned, label: None, source })
            }
            Some((name, path)) if Path::new(path).extension().is_some_and(|end| end == "toml") => {
                Self::of_file(Some(name), path)
            }
            Some((name, path)) => Self::of_program(name, path),
        }
    }

    /// A target that is built in.
    fn of_name(text: &str) -> Result<Self, Error> {
        let definition = find(definition_of(text)).map_err(Error::input)?;
        Self::named(text, definition.clone())
    }

    /// A target file. `name` replaces the file's own.
    fn of_file(name: Option<&str>, path: &str) -> Result<Self, Error> {
        // A preset and a label may stand behind the file's name: `mine.toml:stock`.
        let (path, rest) = match path.find([':', '@']).filter(|_| name.is_none()) {
            Some(at) => path.split_at(at),
            None => (path, ""),
        };
        let mut definition = Definition::read(Path::new(path)).map_err(Error::input)?;
        if let Some(name) = name {
            definition.rename(definition_of(name));
        }
        let text = name.map_or_else(|| format!("{}{rest}", definition.name), str::to_owned);
        Self::named(&text, definition)
    }

    /// A built-in target whose program is this file: `courser=./old`, `nginx@new=/opt/nginx/sbin/nginx`, and
    /// `new=/opt/nginx/sbin/nginx` where the file's name says which target it is.
    fn of_program(text: &str, path: &str) -> Result<Self, Error> {
        let program = executable(path).map_err(|why| Error::input(format!("{text}={path}: {why}")))?;
        let asked = definition_of(text);
        let file = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (definition, name) = match find(asked) {
            Ok(found) if text.contains('@') => (found, text.to_owned()),
            Ok(found) => (found, format!("{text}@{}", label(found, &program))),
            Err(why) => match target::catalogue().iter().find(|one| one.has_program(&file)) {
                Some(found) => (found, text.replacen(asked, &format!("{}@{asked}", found.name), 1)),
                None => {
                    let why = format!("{why}; a program of your own is given as TARGET@{asked}={path}");
                    return Err(Error::input(why));
                }
            },
        };
        Self::named(&name, definition.with_program(&program))
    }

    fn named(text: &str, definition: Definition) -> Result<Self, Error> {
        let (words, label) = text.split_once('@').map_or((text, None), |(words, label)| (words, Some(label)));
        let preset = match words.split_once(':').map_or("tuned", |(_, preset)| preset) {
            "tuned" => Preset::Tuned,
            "stock" => Preset::Stock,
            other => {
                return Err(Error::input(format!("{text}: a preset is `stock` or `tuned`, not {other:?}")));
            }
        };
        let (name, label) = (text.to_owned(), label.map(str::to_owned));
        Ok(Self { name, preset, label, source: TargetSource::Definition(Box::new(definition)) })
    }

    /// Whether it is the way without a terminator.
    pub fn is_direct(&self) -> bool {
        matches!(&self.source, TargetSource::Definition(definition) if definition.role == Role::Direct)
    }

    /// What it negotiates otherwise than others, and has no setting for.
    pub(crate) fn exceptions(&self) -> Vec<String> {
        match &self.source {
            TargetSource::Definition(definition) => definition.differs.clone(),
            TargetSource::Url(_) => vec![target::TICKETS.to_owned()],
        }
    }

    /// What a report calls it; none of a server that runs already.
    pub fn title(&self) -> Option<String> {
        let TargetSource::Definition(definition) = &self.source else { return None };
        let label = self.label.as_ref().map(|label| format!(", {label}")).unwrap_or_default();
        let preset = if self.preset == Preset::Stock { ", stock" } else { "" };
        Some(format!("{}{preset}{label}", definition.title))
    }
}

/// Reads several. The same target written twice is compared with itself: the second is called `@again`.
///
/// # Errors
/// What is wrong with one of them, or two that have one name.
pub fn parse_all<T: AsRef<str>>(texts: &[T]) -> Result<Vec<TargetSelector>, Error> {
    let mut all: Vec<TargetSelector> = Vec::new();
    for text in texts {
        let mut one = TargetSelector::parse(text.as_ref())?;
        if all.iter().any(|other| other.name == one.name) {
            one.name = format!("{}{}again", one.name, if one.label.is_some() { "-" } else { "@" });
            one.label = one.name.split_once('@').map(|(_, label)| label.to_owned());
        }
        if all.iter().any(|other| other.name == one.name) {
            let why = format!("{} is there more than twice: give labels, TARGET@LABEL", text.as_ref());
            return Err(Error::input(why));
        }
        all.push(one);
    }
    Ok(all)
}

/// Whether a word without `=` names a target file.
fn is_file(text: &str) -> bool {
    let path = text.split([':', '@']).next().unwrap_or(text);
    path.contains('/') || Path::new(path).extension().is_some_and(|end| end == "toml")
}

/// The absolute path of a file that can be started.
fn executable(path: &str) -> Result<PathBuf, String> {
    use std::os::unix::fs::PermissionsExt;

    let file = std::fs::metadata(path).map_err(|why| format!("{path}: {why}"))?;
    if !file.is_file() || file.permissions().mode() & 0o111 == 0 {
        return Err(format!("{path} is no program: give the path of an executable file or of a target file"));
    }
    std::path::absolute(path).map_err(|why| format!("{path}: {why}"))
}

/// What tells this program from others of its target: the last part of its path that is neither the program's name nor
/// a folder that every program is in; the whole path without one.
fn label(definition: &Definition, program: &Path) -> String {
    let parts: Vec<_> = program.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    let says = |part: &&std::borrow::Cow<'_, str>| {
        part.as_ref() != "/" && !COMMON_FOLDERS.contains(&part.as_ref()) && !definition.has_program(part)
    };
    parts.iter().rev().find(says).map_or_else(|| program.display().to_string(), ToString::to_string)
}

/// The name of a target's definition, without preset and label.
pub fn definition_of(name: &str) -> &str {
    name.split([':', '@']).next().unwrap_or(name)
}

/// Whether there is such a target and preset.
///
/// # Errors
/// What is wrong with the name, and which is the nearest.
pub fn check(name: &str) -> Result<(), String> {
    TargetSelector::parse(name).map(drop).map_err(|why| why.to_string())
}

/// The definition of a target that is built in.
///
/// # Errors
/// Which is the nearest, when there is none of this name.
pub fn find(name: &str) -> Result<&'static Definition, String> {
    let known = || target::catalogue().iter();
    known().find(|definition| definition.name == name).ok_or_else(|| {
        let nearest = known().min_by_key(|definition| strsim::damerau_levenshtein(&definition.name, name));
        let nearest = nearest.map(|definition| definition.name.as_str()).unwrap_or_default();
        format!("no target is called {name:?}: did you mean {nearest}? `courser-bench targets` lists them; one that is \
                 not ours to start is given as {name}=https://host:port")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with programs that cannot do anything.
    fn folder(files: &[&str]) -> courser_testkit::Folder {
        use std::os::unix::fs::PermissionsExt;

        let folder = courser_testkit::Folder::new();
        for file in files {
            let path = folder.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        folder
    }

    fn names(texts: &[String]) -> Result<Vec<String>, String> {
        let all = parse_all(texts).map_err(|why| why.to_string())?;
        Ok(all.into_iter().map(|one| one.name).collect())
    }

    #[test]
    fn programs_by_path_have_a_label_from_it() {
        let folder = folder(&["old", "a/bin/courser", "b/target/release/courser", "opt/sbin/nginx", "x"]);
        let at = |name: &str| folder.join(name).display().to_string();
        for (text, name) in [
            (format!("courser={}", at("old")), "courser@old"),
            (format!("courser={}", at("a/bin/courser")), "courser@a"),
            (format!("courser={}", at("b/target/release/courser")), "courser@b"),
            (format!("courser:stock@x={}", at("old")), "courser:stock@x"),
            (format!("nginx-stream@new={}", at("opt/sbin/nginx")), "nginx-stream@new"),
            (format!("hitch+haproxy@h={}", at("x")), "hitch+haproxy@h"),
            (format!("new={}", at("opt/sbin/nginx")), "nginx@new"),
        ] {
            assert_eq!(names(std::slice::from_ref(&text)), Ok(vec![name.to_owned()]), "{text}");
        }
        let one = TargetSelector::parse(&format!("courser={}", at("old"))).unwrap();
        assert_eq!(one.title().as_deref(), Some("courser, old"));
        let TargetSource::Definition(definition) = one.source else { panic!("{:?}", one.source) };
        assert_eq!(definition.installed().unwrap().program, folder.join("old"));
    }

    #[test]
    fn the_same_twice_is_compared_with_itself() {
        let [one, again] = ["courser", "courser"].map(str::to_owned);
        assert_eq!(names(&[one.clone(), again.clone()]).unwrap(), ["courser", "courser@again"]);
        assert!(names(&[one.clone(), again, one]).unwrap_err().contains("give labels"));
    }

    #[test]
    fn a_target_file_can_be_named_as_a_target_is() {
        let folder = courser_testkit::Folder::new();
        folder.write("mine.toml", "name = \"own\"\ntitle = \"Mine\"\nnote = \"n\"\nrole = \"direct\"\n");
        let path = folder.join("mine.toml").display().to_string();
        for (text, name, preset) in [
            (path.clone(), "own", Preset::Tuned),
            (format!("{path}:stock"), "own:stock", Preset::Stock),
            (format!("{path}@a"), "own@a", Preset::Tuned),
            (format!("b={path}"), "b", Preset::Tuned),
            (format!("b:stock={path}"), "b:stock", Preset::Stock),
        ] {
            let one = TargetSelector::parse(&text).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!((one.name.as_str(), one.preset), (name, preset), "{text}");
        }
    }

    #[test]
    fn mistakes_say_what_to_write() {
        let folder = folder(&["x"]);
        folder.write("text", "no program");
        let at = |name: &str| folder.join(name).display().to_string();
        for (text, said) in [
            ("haproxi".to_owned(), "did you mean haproxy?"),
            ("=./x".to_owned(), "no name before `=`"),
            (format!("courser={}", at("text")), "is no program"),
            (format!("courser={}", at("nowhere")), "No such file"),
            (format!("mine={}", at("x")), "TARGET@mine="),
            (at("nowhere.toml"), "No such file"),
            ("far=ftp://a/".to_owned(), "far=ftp://a/"),
        ] {
            let why = check(&text).unwrap_err();
            assert!(why.contains(said), "{text}: {why}");
        }
    }
}
