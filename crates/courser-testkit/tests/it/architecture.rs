//! ARCHITECTURE.md, held to what the manifests and the sources say: the edges that it allows, the absences that it
//! promises, the files that it names. Who needs an edge more changes the page, with the reason in the commit. Beside it
//! `fuzz/README.md`, held to the targets that are there.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use proc_macro2::{TokenStream, TokenTree};
use serde_json::Value;

/// A clock, a socket or a runtime, by any path that leads to it. The address types of `std::net` are plain values.
const WORLD: [&str; 12] = [
    "Instant",
    "SystemTime",
    "TcpListener",
    "TcpStream",
    "ToSocketAddrs",
    "UdpSocket",
    "UnixDatagram",
    "UnixListener",
    "UnixStream",
    "mio",
    "socket2",
    "tokio",
];

#[test]
fn every_crate_keeps_to_the_allowed_edges() {
    let allowed = allowed_edges(&page());
    let forbidden: Vec<String> = dependencies()
        .into_iter()
        .filter(|edge| !edge.is_allowed(&allowed))
        .map(|edge| edge.to_string())
        .collect();
    assert!(forbidden.is_empty(), "not among the allowed edges of ARCHITECTURE.md: {forbidden:#?}");
}

#[test]
fn only_courser_tls_ships_the_tls_library() {
    let is_tls =
        |name: &str| name.starts_with("rustls") || name.contains("webpki") || name.starts_with("openssl");
    let ships = |edge: &&Edge| edge.shipped && is_tls(&edge.to);
    let ships: BTreeSet<String> = dependencies().iter().filter(ships).map(|edge| edge.from.clone()).collect();
    // The test support is shipped by nobody, as the edges say.
    assert_eq!(ships, BTreeSet::from(["courser-testkit".to_owned(), "courser-tls".to_owned()]));
}

#[test]
fn only_courser_net_contains_unsafe_but_for_one_call() {
    let unsafe_files = files_that_say(&sources(&root().join("crates")), &["unsafe"]);
    let (net, others): (Vec<_>, Vec<_>) = unsafe_files
        .into_iter()
        .map(|(path, _)| path)
        .partition(|path| path.starts_with(root().join("crates/courser-net/src")));
    // rust-openssl has no safe way to offer a session.
    assert_eq!(others, [root().join("crates/courser-tls/src/client/openssl/sessions.rs")]);
    assert!(!net.is_empty(), "nothing was found even where it is known to be");
}

#[test]
fn wire_session_fleet_and_stats_have_no_clock_no_socket_and_no_runtime() {
    for name in ["courser-wire", "courser-session", "courser-fleet", "courser-stats"] {
        let found = files_that_say(&sources(&root().join("crates").join(name).join("src")), &WORLD);
        assert!(found.is_empty(), "{found:#?}");
    }
}

#[test]
fn the_codemap_names_every_file() {
    let named = codemap(&page());
    let crates = children(&root().join("crates"));
    let real: BTreeSet<_> = crates.iter().flat_map(|folder| modules(folder)).collect();
    let odd: Vec<_> = named.symmetric_difference(&real).collect();
    assert!(odd.is_empty(), "named in ARCHITECTURE.md or there, but not both: {odd:#?}");
}

#[test]
fn the_page_on_fuzzing_names_every_target_and_where_its_properties_stand() {
    let page = fs::read_to_string(root().join("fuzz/README.md")).unwrap();
    let (table, rest) = page.split_once("\n```\n").unwrap();
    let (_, properties) = rest.split_once("What has to hold").unwrap();
    let row = |line: &str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned());
    let named: BTreeSet<_> = table.lines().filter_map(row).collect();
    let files = children(&root().join("fuzz/fuzz_targets"));
    let real: BTreeSet<_> = files.iter().map(|path| file_name(path).replace(".rs", "")).collect();
    assert_eq!(named, real);
    let silent: Vec<_> = real.iter().filter(|target| !properties.contains(&format!("`{target}`"))).collect();
    assert!(silent.is_empty(), "nothing is said of what has to hold for {silent:?}");
}

#[test]
fn comments_and_strings_are_no_code() {
    let code = r##"
        //! unsafe
        /* unsafe /* unsafe */ */
        /// unsafe
        fn text<'unsafe_>() -> char { let _ = ("unsafe", r#"unsafe "#, b"unsafe"); 'u' }
        #[allow(unsafe_code)] mod m {}
    "##;
    assert!(!words(code).contains("unsafe"));
    assert!(words("fn f() { g!({ unsafe { h() } }) }").contains("unsafe"));
}

/// One line of a manifest.
#[derive(Debug)]
struct Edge {
    from: String,
    to: String,
    /// Not only for tests.
    shipped: bool,
}

impl Edge {
    /// Test support may stand beside what is allowed anyway, but for tests only; it may itself use anything.
    fn is_allowed(&self, allowed: &BTreeMap<String, BTreeSet<String>>) -> bool {
        let ours = self.to == "courser" || self.to.starts_with("courser-");
        let listed = || allowed.get(&self.from).is_some_and(|to| to.contains(&self.to));
        let support = || self.to == "courser-testkit" && !self.shipped;
        !ours || self.from == "courser-testkit" || support() || listed()
    }
}

impl std::fmt::Display for Edge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let section = if self.shipped { "[dependencies]" } else { "[dev-dependencies]" };
        write!(f, "{} -> {} in {section}", self.from, self.to)
    }
}

/// What all manifests of the workspace depend on, as cargo reads them.
fn dependencies() -> Vec<Edge> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["metadata", "--no-deps", "--offline", "--format-version=1"];
    let output = Command::new(cargo).args(arguments).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .flat_map(|package| package["dependencies"].as_array().unwrap().iter().map(|to| edge(package, to)))
        .collect()
}

fn edge(package: &Value, dependency: &Value) -> Edge {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let shipped = dependency["kind"].as_str() != Some("dev");
    Edge { from: text(&package["name"]), to: text(&dependency["name"]), shipped }
}

/// The rows `| who, who | whom, whom |` under "Allowed edges"; short names, as the page has them.
fn allowed_edges(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let full = |name: &str| if name == "courser" { name.to_owned() } else { format!("courser-{name}") };
    let names = |cell: &str| cell.split(',').map(|name| full(name.trim())).collect::<BTreeSet<_>>();
    let rows = section(page, "Allowed edges").lines().filter_map(|line| line.strip_prefix("| "));
    rows.filter_map(|row| row.strip_suffix(" |")?.split_once(" | "))
        .flat_map(|(who, whom)| names(who).into_iter().map(move |who| (who, names(whom))))
        .collect()
}

/// The files in backquotes of each item "* `crate/` …" under "Codemap", as `crate/file.rs`.
fn codemap(page: &str) -> BTreeSet<String> {
    let named = |item: &str| {
        let (name, text) = item.split_once("/`").expect("an item begins with its folder");
        let quoted = text.split('`').skip(1).step_by(2).filter(|word| word.ends_with(".rs"));
        quoted.map(|file| format!("{name}/{file}")).collect::<Vec<_>>()
    };
    section(page, "Codemap").split("\n* `").skip(1).flat_map(named).collect()
}

fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("\n## {heading}\n")).expect("the page has this heading");
    rest.split("\n## ").next().unwrap_or(rest)
}

/// Modules of a crate: those that lie directly in its folder. What lies deeper belongs to one of them.
fn modules(folder: &Path) -> Vec<String> {
    let files = children(&folder.join("src")).into_iter().filter(|path| path.is_file());
    let names = files.map(|path| file_name(&path)).filter(|name| name != "lib.rs");
    names.map(|name| format!("{}/{name}", file_name(folder))).collect()
}

/// Those of `files` whose code has one of `forbidden` as a word, with the words.
fn files_that_say(files: &[PathBuf], forbidden: &[&str]) -> Vec<(PathBuf, BTreeSet<String>)> {
    let said = |path: &PathBuf| {
        let words = words(&fs::read_to_string(path).unwrap());
        words.into_iter().filter(|word| forbidden.contains(&word.as_str())).collect::<BTreeSet<_>>()
    };
    files.iter().map(|path| (path.clone(), said(path))).filter(|(_, said)| !said.is_empty()).collect()
}

/// Identifiers and keywords of a program.
fn words(code: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    collect(code.parse().expect("it compiles"), &mut words);
    words
}

fn collect(tokens: TokenStream, words: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => collect(group.stream(), words),
            TokenTree::Ident(ident) => drop(words.insert(ident.to_string())),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

pub(crate) fn sources(folder: &Path) -> Vec<PathBuf> {
    let (folders, files): (Vec<_>, Vec<_>) = children(folder).into_iter().partition(|path| path.is_dir());
    let deeper = folders.iter().flat_map(|folder| sources(folder));
    files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs")).chain(deeper).collect()
}

fn children(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn page() -> String {
    fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap()
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
