//! Words that were given up, and what is said instead: names of types and modules in the sources, published names and
//! phrases in the documents and in `--help`. `docs/glossary.md` has the words in use. A name that another library has too is
//! retired for the crates where it was ours.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};

use crate::architecture::{root, sources, words};

/// Retired for these crates (none: for all), the name, the one in use.
type Retired = (&'static [&'static str], &'static str, &'static str);

/// Identifiers.
const IDENTIFIERS: &[Retired] = &[
    (&[], "announce", "proxy_header"),
    (&[], "Announce", "SendProxy, ProxyHeader or AcceptProxy"),
    (&[], "Announced", "HeaderSent"),
    (&["courser"], "Answered", "RequestOutcome"),
    (&["courser"], "Answers", "ControlHandler"),
    (&["courser-stats"], "Belief", "Posterior"),
    (&["courser-load"], "Books", "ThreadStats"),
    (&["courser-fleet", "courser-session"], "Boot", "Incarnation"),
    (&["courser-bench", "courser-lab"], "Both", "PairRun"),
    (&["courser-load"], "Came", "ReadOutcome"),
    (&["courser-load", "courser-proxy"], "Choice", "Selection or ClientTlsOptions"),
    (&[], "Chosen", "Selected or TargetSelector"),
    (&["courser-telemetry"], "End", "Close"),
    (&[], "Ending", "EarlyClose"),
    (&[], "EndReason", "CloseReason"),
    (&[], "Errand", "CallContext"),
    (
        &["courser-load", "courser-proxy", "courser-testkit", "courser-tls"],
        "Exchange",
        "Workload, HandshakeIo or RemoteSessions",
    ),
    (&["courser-tls"], "Facts", "HandshakeInfo"),
    (&["courser-proxy"], "farewell", "final_bytes"),
    (&["courser-fleet", "courser-session"], "Heard", "Recovered"),
    (&["courser"], "House", "Maintenance"),
    (&["courser-load", "courser-record", "courser-stats"], "Interval", "Second or ConfidenceInterval"),
    (&[], "Kept", "PersistentKeys, SupervisedChild, LimitCheck, CapturedTicket or StoredSession"),
    (&[], "Lane", "Era, Preset, InProcessPair or Terminator"),
    (&[], "lane", "era"),
    (&[], "loot", "captured"),
    (&[], "Loot", "CapturedSession"),
    (&[], "Miss", "ResumptionFailure"),
    (&[], "nobody", "none, not_found or no_peer"),
    (&["courser-proxy", "courser-tls"], "Offer", "ClientTlsConfig or ClientOffer"),
    (
        &["courser-config", "courser-load", "courser-session", "courser-testkit"],
        "Origin",
        "SourceSpan, Provenance or OriginServer",
    ),
    (&["courser"], "Parts", "StatusSource"),
    (&["courser-proxy"], "Place", "InFlightPermit"),
    (&[], "Pouch", "OpensslSessions"),
    (&[], "Primed", "Planned"),
    (&[], "primed", "planned"),
    (&[], "Purse", "ClientSessions"),
    (&[], "purse", "sessions"),
    (&[], "Quest", "KneeSearch"),
    (&["courser-proxy", "courser-sharing"], "Ration", "LookupLimiter"),
    (&["courser-bench", "courser-lab"], "Ready", "PreparedTarget"),
    (&[], "Shaken", "HandshakeTimes"),
    (&[], "Shelf", "RemoteStore"),
    (&["courser-telemetry"], "Side", "Cause"),
    (&[], "smallest_visible", "min_detectable"),
    (&["courser-fleet", "courser-report", "courser-session"], "Standing", "KeyStatus or CellValue"),
    (&[], "Stretch", "MeasurementWindow or WindowResult"),
    (&[], "stretch", "window"),
    (&["courser-store"], "Target", "StoreEndpoint"),
    (&[], "TargetLane", "Preset"),
    (&["courser-tls"], "Terms", "ServerTlsConfig"),
    (&[], "Told", "DriverStatus, LastReported or CellValue"),
    (&[], "told", "what was done: printed, reported, counted"),
    (&[], "Turn", "HandshakeBudget, BlockRun or Permit"),
    (&[], "Turned", "BlockResult"),
    (&["courser-load"], "Visit", "Attempt"),
    (&[], "Wanted", "TargetSpec or FigureSpec"),
    (&["courser-fleet", "courser-proxy", "courser-session", "courser-sharing"], "WarmUp", "StateTransfer"),
    (&[], "Whom", "TargetAddress"),
    (&[], "whom", "the object: target, peer, recipient"),
    (&["courser-fleet", "courser-load", "courser-session"], "Window", "MeasurementWindow or ReplayWindow"),
];

/// Modules: names of files and folders.
const MODULES: &[Retired] = &[
    (&["courser-report"], "against", "diff"),
    (&["courser-load"], "choice", "tls_options"),
    (&["courser-telemetry"], "end", "close"),
    (&[], "foreign", "openssl"),
    (&["courser-record"], "interval", "second"),
    (&["courser-stats"], "interval", "confidence"),
    (&["courser-bench", "courser-lab"], "keep", "to_record"),
    (&[], "liar", "faulty_server"),
    (&["courser-session"], "miss", "resumption_failure"),
    (&["courser-proxy", "courser-sharing"], "ration", "lookup_limiter"),
    (&["courser-proxy"], "relay", "pipe"),
    (&["courser-load"], "relay", "delay"),
    (&["courser-testkit"], "rival", "competitor"),
    (&["courser-proxy", "courser-sharing"], "shelf", "remote_store"),
    (&["courser-report"], "standing", "ranking"),
    (&["courser-bench", "courser-lab"], "stretch", "window"),
    (&["courser-store"], "target", "endpoint"),
    (&["courser-bench", "courser-lab"], "telling", "progress"),
    (&["courser-tls"], "terms", "server_config"),
    (&["courser-proxy"], "turn", "handshake_budget"),
    (&["courser-fleet", "courser-session"], "warm_up", "state_transfer"),
    (&["courser-report"], "words", "labels"),
];

/// Words and phrases of documents and help texts, in lower case; `_`, `-` and `=` belong to a word.
const PHRASES: &[(&str, &str)] = &[
    ("asks_too_much", "quota_exceeded"),
    ("buried", "tombstoned"),
    ("cloned_name", "duplicate_name"),
    ("end reason", "close reason"),
    ("end reasons", "close reasons"),
    ("end=done", "close_reason=done"),
    ("end=internal", "close_reason=internal"),
    ("engine foreign", "engine openssl"),
    ("--engine foreign", "--engine openssl"),
    ("features foreign", "features openssl"),
    ("foreign engine", "OpenSSL engine"),
    ("from_other_hosts", "remote_sessions"),
    ("heard", "seen, received"),
    ("how it goes", "Status"),
    ("is_left_alone", "breaker_open"),
    ("known_missing", "negative_cached"),
    ("left_out", "dropped"),
    ("left alone", "not used"),
    ("looked_up", "remote_lookups"),
    ("miss=-", "not_resumed=-"),
    ("modern lane", "modern era"),
    ("modern lanes", "modern eras"),
    ("no_room", "send_buffer_full"),
    ("nobody", "none, not_found, no_peer, no one"),
    ("nobody_to_ask", "no_peer"),
    ("not_alive", "not_valid"),
    ("not_asked", "suppressed, not_sent"),
    ("not_shared", "not_found_remotely"),
    ("not_wanted", "disabled"),
    ("older_boot", "stale_incarnation"),
    ("open_ms", "breaker_open_ms"),
    ("open_now", "breaker_open_now"),
    ("rival", "competitor, or the names"),
    ("rivals", "competitors, or the names"),
    ("sessions by id", "session-ID resumption"),
    ("side=nobody", "cause=none"),
    ("silent_ms", "last_seen_ms"),
    ("smallest visible", "minimum detectable"),
    ("stretches", "windows"),
    ("the turn's budget", "the handshake budget"),
    ("told", "reported, logged, sent, replicated"),
    ("told to other hosts", "replicated"),
    ("too_long", "datagram_too_large"),
    ("too_many", "rate_limited"),
    ("too_old", "no_common_suite, no_common_group, no_usable_certificate"),
    ("tune --show", "system-check"),
    ("unasked", "unsolicited"),
    ("unproven", "unverified_peer"),
    ("warmed_up", "transferred"),
    ("what it refuses to say", "When a run is inconclusive"),
    ("what came of", "the outcome of"),
    ("what it is asked", "requests"),
    ("who called", "the client's address"),
    ("whose doing", "the cause"),
    ("withheld", "inconclusive"),
    ("withholds", "gives no verdict"),
    ("wrong_proof", "stale_challenge"),
    ("mind:", "Caution:"),
    ("how it is asked", "requests"),
];

#[test]
fn no_source_has_a_retired_name() {
    let mut found = Vec::new();
    for folder in fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path()) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        for path in sources(&folder.join("src")) {
            let words = words(&fs::read_to_string(&path).unwrap());
            let file = path.strip_prefix(folder.join("src")).unwrap().with_extension("");
            let modules: Vec<_> = file.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            let identifiers = retired(IDENTIFIERS, &name, |old| words.contains(old));
            let modules = retired(MODULES, &name, |old| modules.iter().any(|module| module == old));
            found.extend(identifiers.chain(modules).map(|hit| format!("{}: {hit}", short(&path))));
        }
    }
    found.sort();
    assert!(found.is_empty(), "retired names: {found:#?}");
}

/// What of a list is there in a crate, with the name in use.
fn retired(list: &[Retired], name: &str, is_there: impl Fn(&str) -> bool) -> impl Iterator<Item = String> {
    let of_crate = list.iter().filter(move |(crates, ..)| crates.is_empty() || crates.contains(&name));
    of_crate.filter(move |(_, old, _)| is_there(old)).map(|(_, old, new)| format!("{old}, now {new}"))
}

#[test]
fn no_document_and_no_help_text_has_a_retired_word() {
    let pages = documents().into_iter().map(|path| (fs::read_to_string(&path).unwrap(), path));
    let help = help_sources().into_iter().map(|path| (literals(&fs::read_to_string(&path).unwrap()), path));
    let mut found = Vec::new();
    for (text, path) in pages.chain(help) {
        for (number, line) in text.lines().enumerate() {
            let line = normal(line);
            let hits = PHRASES.iter().filter(|(old, _)| line.contains(&format!(" {old} ")));
            found.extend(hits.map(|(old, new)| format!("{}:{}: {old}, now {new}", short(&path), number + 1)));
        }
    }
    assert!(found.is_empty(), "retired words: {found:#?}");
}

#[test]
fn a_retired_word_is_seen_whatever_stands_around_it() {
    assert!(normal("> **Mind:** it is `told`.").contains(" told "));
    assert!(normal("> **Mind:** more").contains(" mind: "));
    assert!(normal("`side=nobody`, of course").contains(" side=nobody "));
    assert!(!normal("remind me; untold").contains(" told "));
    assert!(literals("/// Say it.\n#[arg(help = \"Tell it\")] struct A;").contains("Tell it"));
}

/// README, the other pages in the root, and `docs/`. CHANGELOG may name what was renamed; `docs/report` is made by the program.
pub(crate) fn documents() -> Vec<PathBuf> {
    let folders = ["", "docs", "docs/report", "packaging", "record"];
    let files = folders.iter().flat_map(|folder| fs::read_dir(root().join(folder)).unwrap());
    let mut pages: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    pages.retain(|path| path.extension().is_some_and(|end| end == "md") && !path.ends_with("CHANGELOG.md"));
    pages.sort();
    pages
}

/// Files whose literals and documentation clap prints.
fn help_sources() -> Vec<PathBuf> {
    let crates = ["courser", "courser-bench", "courser-config"]
        .map(|name| root().join("crates").join(name).join("src"));
    let is_help = |path: &PathBuf| {
        let path = path.to_string_lossy();
        ["/cli.rs", "/cli/", "/settings.rs", "/settings/", "/flags.rs"].iter().any(|part| path.contains(part))
    };
    crates.iter().flat_map(|folder| sources(folder)).filter(is_help).collect()
}

/// All literals of a program, documentation included, one a line.
fn literals(code: &str) -> String {
    let mut found = String::new();
    collect(code.parse().expect("it compiles"), &mut found);
    found
}

fn collect(tokens: TokenStream, found: &mut String) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => collect(group.stream(), found),
            TokenTree::Literal(literal) => {
                found.push_str(&literal.to_string().replace("\\n", " "));
                found.push('\n');
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// A line as words in lower case, with one space before and after each.
fn normal(line: &str) -> String {
    let is_part = |letter: char| letter.is_alphanumeric() || "_-=:'".contains(letter);
    let words = line.split(|letter| !is_part(letter)).filter(|word| !word.is_empty());
    // A colon ends a word, unless the word is known with it.
    let word = |word: &str| match word.to_lowercase() {
        word if word == "mind:" => word,
        word => word.trim_matches([':', '\'']).to_owned(),
    };
    format!(" {} ", words.map(word).collect::<Vec<_>>().join(" "))
}

fn short(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
