//! ARCHITECTURE.md, held to what the manifests and the sources say: the edges that it allows, the absences that it
//! promises, the files that it names. Who needs an edge more changes the page, with the reason in the commit. Beside it
//! `fuzz/README.md`, held to the targets that are there.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

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
fn only_two_crates_ship_the_tls_library() {
    let is_tls =
        |name: &str| name.starts_with("rustls") || name.contains("webpki") || name.starts_with("openssl");
    let ships = |edge: &&Edge| edge.shipped && is_tls(&edge.to);
    let ships: BTreeSet<String> = dependencies().iter().filter(ships).map(|edge| edge.from.clone()).collect();
    // The test support is part of no program, as the edges say.
    let expected = ["courser-testkit", "courser-tls", "courser-tls-client"];
    assert_eq!(ships, expected.map(str::to_owned).into());
}

#[test]
fn the_terminator_reaches_no_part_of_the_instrument() {
    let edges: Vec<_> = dependencies().into_iter().filter(|edge| edge.shipped).collect();
    let mut reached = BTreeSet::from(["courser"]);
    while let Some(edge) =
        edges.iter().find(|edge| reached.contains(&*edge.from) && !reached.contains(&*edge.to))
    {
        reached.insert(&edge.to);
    }
    assert!(reached.contains("courser-tls"), "the edges are followed: {reached:?}");
    for part in
        ["courser-tls-client", "courser-load", "courser-lab", "courser-record", "courser-bench", "openssl"]
    {
        assert!(!reached.contains(part), "courser reaches {part}");
    }
}

#[test]
fn suites_reach_no_command_line_and_no_terminal() {
    let programs_own = ["clap", "indicatif", "signal-hook"];
    let users = |from: &str| {
        dependencies().iter().any(|edge| edge.from == from && programs_own.contains(&edge.to.as_str()))
    };
    assert!(!users("courser-lab") && users("courser-bench"));
}

#[test]
fn only_courser_tls_client_uses_the_internals_of_courser_tls() {
    let files = sources(&root().join("crates")).into_iter().chain(sources(&root().join("fuzz/fuzz_targets")));
    let users = files_that_say(&files.collect::<Vec<_>>(), &["internals"]);
    let mut crates = BTreeSet::new();
    for (path, _) in users {
        let path = path.strip_prefix(root()).unwrap().to_owned();
        crates.insert(path.components().nth(1).unwrap().as_os_str().to_string_lossy().into_owned());
    }
    assert_eq!(crates, ["courser-tls", "courser-tls-client"].map(str::to_owned).into());
}

#[test]
fn only_courser_net_contains_unsafe_but_for_one_call() {
    let unsafe_files = files_that_say(&sources(&root().join("crates")), &["unsafe"]);
    let (net, others): (Vec<_>, Vec<_>) = unsafe_files
        .into_iter()
        .map(|(path, _)| path)
        .partition(|path| path.starts_with(root().join("crates/courser-net/src")));
    // rust-openssl has no safe way to offer a session.
    assert_eq!(others, [root().join("crates/courser-tls-client/src/openssl/sessions.rs")]);
    assert!(!net.is_empty(), "nothing was found even where it is known to be");
}

#[test]
fn wire_session_fleet_stats_and_record_have_no_clock_no_socket_and_no_runtime() {
    for name in [
        "courser-wire",
        "courser-session",
        "courser-fleet",
        "courser-balance",
        "courser-overload",
        "courser-stats",
        "courser-record",
    ] {
        let found = files_that_say(&sources(&root().join("crates").join(name).join("src")), &WORLD);
        assert!(found.is_empty(), "{found:#?}");
    }
}

#[test]
fn the_load_engine_reads_no_file() {
    let files = sources(&root().join("crates/courser-load/src"));
    let found = files_that_say(&files, &["fs", "File", "OpenOptions"]);
    assert!(found.is_empty(), "{found:#?}");
    assert!(!files_that_say(&sources(&root().join("crates/courser-machine/src")), &["fs"]).is_empty());
}

/// The test that writes the committed schema is compiled for tests alone.
#[test]
fn record_and_report_touch_no_file() {
    for name in ["courser-record", "courser-report"] {
        let mut files = sources(&root().join("crates").join(name).join("src"));
        files.retain(|path| !path.ends_with("courser-record/src/schema.rs"));
        let found = files_that_say(&files, &["fs"]);
        assert!(found.is_empty(), "{found:#?}");
    }
}

/// With `UPDATE_SNAPSHOTS=1` the lists of modules are written anew; the sentence about a crate is a person's.
#[test]
fn the_codemap_names_every_crate_and_its_modules() {
    let page = page();
    let up_to_date = with_modules(&page);
    if env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(root().join("ARCHITECTURE.md"), &up_to_date).unwrap();
    } else {
        let changed = up_to_date.lines().zip(page.lines()).filter(|(is, was)| is != was);
        let changed: Vec<_> = changed.map(|(is, _)| is).collect();
        assert!(changed.is_empty(), "UPDATE_SNAPSHOTS=1 writes these into ARCHITECTURE.md: {changed:#?}");
    }
    let named: BTreeSet<_> =
        section(&page, "Codemap").lines().filter_map(crate_of).map(String::from).collect();
    let real: BTreeSet<_> = children(&root().join("crates")).iter().map(|path| file_name(path)).collect();
    let odd: Vec<_> = named.symmetric_difference(&real).collect();
    assert!(odd.is_empty(), "crates named in ARCHITECTURE.md or there, but not both: {odd:#?}");
}

#[test]
fn the_page_stays_short() {
    assert!(page().lines().count() <= 160, "ARCHITECTURE.md is the way in, at most 160 lines");
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

/// The page with the line `  Modules: …` below each crate as the folder is.
fn with_modules(page: &str) -> String {
    let mut folder = None;
    let line = |line: &str| {
        folder = crate_of(line).map(|name| root().join("crates").join(name)).or_else(|| folder.take());
        match &folder {
            Some(folder) if line.starts_with("  Modules: ") && folder.exists() => modules(folder),
            _ => line.to_owned(),
        }
    };
    page.lines().map(line).map(|line| line + "\n").collect()
}

/// The crate that an item "* `crate/` …" is about.
fn crate_of(line: &str) -> Option<&str> {
    Some(line.strip_prefix("* `")?.split_once("/` ")?.0)
}

fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("\n## {heading}\n")).expect("the page has this heading");
    rest.split("\n## ").next().unwrap_or(rest)
}

/// Modules of a crate: the files and folders directly in its `src`. What lies deeper belongs to one of them.
fn modules(folder: &Path) -> String {
    let names = children(&folder.join("src")).into_iter().map(|path| file_name(&path).replace(".rs", ""));
    let names: BTreeSet<_> = names.filter(|name| name != "lib" && name != "main").collect();
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    format!("  Modules: {}.", quoted.join(", "))
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
pub(crate) fn words(code: &str) -> BTreeSet<String> {
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

/// The string literals of a program, as they are written, lines that go on joined.
pub(crate) fn string_literals(code: &str) -> Vec<String> {
    fn collect(tokens: TokenStream, texts: &mut Vec<String>) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => collect(group.stream(), texts),
                TokenTree::Literal(literal) => {
                    let text = literal.to_string();
                    texts.push(text.split("\\\n").map(str::trim_start).collect());
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
        }
    }
    let mut texts = Vec::new();
    collect(code.parse().expect("it compiles"), &mut texts);
    texts
}

pub(crate) fn sources(folder: &Path) -> Vec<PathBuf> {
    let (folders, files): (Vec<_>, Vec<_>) = children(folder).into_iter().partition(|path| path.is_dir());
    let deeper = folders.iter().flat_map(|folder| sources(folder));
    files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs")).chain(deeper).collect()
}

pub(crate) fn children(folder: &Path) -> Vec<PathBuf> {
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
