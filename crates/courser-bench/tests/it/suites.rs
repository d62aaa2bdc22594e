//! `run`: a suite on terminators of this machine, and what it says of those that cannot, do not start, or die.

use std::fs;
use std::path::Path;
use std::process::Command;

use courser_record::lab::{CellState, Lab, WindowResult};
use courser_testkit::{Courser, Folder, KeyType, Leaf, Process, TestCa, skip};

use crate::mini::{A_SECOND, Mini, SUITE, cell, ended, fake, outcome};
use crate::support::bench;
use crate::targets::{find_process, is_installed, kill, of_folder};

/// Blocks were measured, however many connections a busy machine had time for.
fn is_measured(lab: &Lab, target: &str) {
    let cell = cell(lab, target);
    assert_eq!((cell.state, cell.reason.as_deref()), (CellState::Done, None), "{target}");
    assert!(!cell.blocks.is_empty(), "{target}");
}

/// The only window of a target, in which there was something.
fn window<'a>(lab: &'a Lab, target: &str) -> &'a WindowResult {
    is_measured(lab, target);
    let window = &cell(lab, target).blocks[0].windows[0];
    assert!(window.succeeded > 0 && window.failed == 0, "{target}: {window:?}");
    window
}

#[test]
fn a_rate_can_be_a_part_of_the_capacity_that_was_found() {
    if !is_installed("nginx") {
        skip("nginx is not installed");
        return;
    }
    let rate = SUITE.replace("saturation", "rate").replace("[\"nginx\", \"haproxy\"]", "[\"nginx\"]");
    let mini = Mini::with(&rate.replace("clients = 8", "clients = 8\ncapacity = [5, 95]"));
    mini.measured(&A_SECOND);
    let lab = mini.record();
    let ids: Vec<&str> = lab.cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids, ["full-5", "full-95"]);
    let offered = |index: usize| lab.cells[index].blocks[0].windows[0].offered_tps.unwrap();
    // Each found the capacity by itself, on a machine that may be busy.
    assert!(offered(1) > 2.0 * offered(0), "{} {}", offered(0), offered(1));
    let asked = lab.cases[1].asked.join("\n");
    assert!(asked.contains("at 95 % of the rate that a closed loop of 8 connections reached"), "{asked}");
}

#[test]
fn a_suite_ends_with_a_record_and_a_page_that_can_be_drawn_again() {
    let Some(mini) = Mini::of(&["nginx", "haproxy"]) else { return };
    let run = mini.run(&[&A_SECOND[..], &["-o", "page.html"]].concat());
    ended(&run, 0, &["record: record.json", "page: page.html"]);
    assert!(run.stdout.contains("A mini suite") && run.stdout.contains("HAProxy"), "{run:?}");
    let lab = mini.record();
    assert_eq!((lab.envelope.cut.as_deref(), lab.cells.len(), lab.targets.len()), (None, 2, 2));
    for (target, file) in [("nginx", "nginx.conf"), ("haproxy", "haproxy.cfg")] {
        assert!(window(&lab, target).user_us > Some(0), "{target}");
        let cell = cell(&lab, target);
        let verified = cell.verified.as_ref().unwrap();
        assert_eq!((verified.version.as_str(), verified.body_bytes), ("TLS 1.3", Some(1024)), "{target}");
        let written = cell.files.iter().find(|written| written.name.ends_with(file));
        assert!(
            written.is_some_and(|written| written.text.contains("TLSv1.3")),
            "{target}: {:?}",
            cell.files
        );
        assert!(!cell.files.iter().any(|file| file.text.contains("PRIVATE KEY")), "{target}");
        assert!(cell.command.iter().any(|word| word.ends_with(file)), "{target}: {:?}", cell.command);
    }
    ended(&mini.finished(&["report", "record.json", "-o", "again.html"]), 0, &[]);
    let page = |name| fs::read_to_string(mini.join(name)).unwrap();
    assert!(
        page("page.html") == page("again.html"),
        "the page of the run is another than that of its record"
    );
    assert_eq!(of_folder(mini.path()), Vec::<String>::new());
    let left = fs::read_dir(mini.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with("courser-bench-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn two_hosts_are_loaded_in_turn_and_their_record_has_no_secret() {
    if !["courser", "hitch"].into_iter().all(is_installed) {
        skip("courser or hitch is not installed");
        return;
    }
    let asked = "version = \"1.2\"\nresumption = \"id\"\nhosts = 2\nreuse = 10";
    let mini = Mini::with(&SUITE.replace("version = \"1.3\"", asked));
    ended(&mini.run(&[&A_SECOND[..], &["--targets", "courser,hitch"]].concat()), 0, &["cannot: "]);
    let lab = mini.record();
    let window = window(&lab, "courser");
    assert!(window.resumed > 0 && window.offered >= Some(window.resumed), "{window:?}");
    let wire = &window.figures[0];
    assert!(wire.name == "messages per session" && wire.value > 176.0, "{wire:?}");
    let cell = cell(&lab, "courser");
    let again = cell.verified.as_ref().and_then(|verified| verified.again.as_deref());
    assert_eq!(again, Some("resumed by session ID"));
    let names: Vec<&str> = cell.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["courser-1/courser.toml", "courser-2/courser.toml"]);
    assert!(outcome(&lab, "hitch").1.contains("no session cache that hosts share"));
}

#[test]
fn a_target_that_nobody_knows_is_told_with_the_nearest_and_leaves_no_record() {
    let mini = Mini::new();
    let run = mini.run(&["--targets", "nginx,haproxi"]);
    ended(&run, 2, &["error: ", "\"haproxi\"", "did you mean haproxy?", "haproxi=https://"]);
    ended(&mini.run(&["--targets", "nginx:fast"]), 2, &["`stock` or `tuned`"]);
    ended(&mini.run(&["--target", "far=ftp://a/"]), 2, &["far=ftp://a/", "write https://host:port/path"]);
    ended(&mini.run(&["--case", "nope"]), 2, &["no case like \"nope\"; it has full"]);
    ended(&mini.finished(&["run", "capacty"]), 2, &["did you mean capacity?"]);
    assert!(!mini.join("record.json").exists(), "a record of nothing is in the way of the next try");
}

/// A program under another name: a link would do, but a copy is what another build is.
fn copied(mini: &Mini, target: &str, to: &str) {
    let from = if target == "courser" {
        Path::new(env!("CARGO_BIN_EXE_courser-bench")).with_file_name("courser")
    } else {
        Path::new("/usr/sbin").join(target)
    };
    fs::create_dir_all(mini.join(to).parent().unwrap()).unwrap();
    fs::copy(from, mini.join(to)).unwrap();
}

#[test]
fn builds_of_ones_own_and_target_files_are_measured_beside_each_other() {
    if !["courser", "haproxy"].into_iter().all(is_installed) {
        skip("courser or haproxy is not installed");
        return;
    }
    let mini = Mini::new();
    copied(&mini, "courser", "old");
    copied(&mini, "courser", "new/courser");
    copied(&mini, "haproxy", "other/sbin/haproxy");
    mini.write("mine.toml", "like = 'haproxy'\nname = 'mine'\n[program]\nnames = ['./other/sbin/haproxy']\n");
    let targets = ["courser=./old", "courser=./new/courser", "mine.toml"];
    ended(&mini.run(&targets), 0, &[]);
    let lab = mini.record();
    let programs: Vec<(&str, &str)> =
        lab.targets.iter().map(|target| (target.name.as_str(), target.program.as_str())).collect();
    let at = |path: &str| mini.join(path).display().to_string();
    let (old, new, mine) = (at("old"), at("new/courser"), at("./other/sbin/haproxy"));
    assert_eq!(programs, [("courser@old", &*old), ("courser@new", &*new), ("mine", &*mine)]);
    for (target, _) in programs {
        is_measured(&lab, target);
    }
    assert_eq!(lab.targets[0].title, "courser, old");
    for target in &lab.targets {
        let said = Command::new("sha256sum").arg(&target.program).output().unwrap().stdout;
        let said = String::from_utf8(said).unwrap();
        assert_eq!(target.sha256.as_deref(), said.split_whitespace().next(), "{}", target.name);
    }
    assert!(lab.envelope.tool.sha256.is_some(), "{:?}", lab.envelope.tool);
    let wrong = mini.run(&["courser=./mini.toml"]);
    ended(&wrong, 2, &["mini.toml"]);
}

/// HAProxy prefers AES-256, and others what the client prefers; of the signature schemes for RSA too, each has its own.
#[test]
fn all_targets_of_a_modern_case_negotiate_the_same() {
    let targets = ["nginx", "haproxy", "courser"];
    let Some(_) = Mini::of(&targets) else { return };
    let mini = Mini::with(
        &SUITE.replace(r#"["nginx", "haproxy"]"#, &format!("{targets:?}")).replace("P-256", "RSA-2048"),
    );
    ended(&mini.run(&[]), 0, &[]);
    let lab = mini.record();
    for target in targets {
        let verified = cell(&lab, target).verified.as_ref().unwrap();
        let seen =
            (verified.suite.as_str(), verified.scheme.as_deref(), verified.key.as_deref(), verified.tickets);
        let same = ("TLS_AES_128_GCM_SHA256", Some("rsa_pss_rsae_sha256"), Some("RSA-2048"), Some(2));
        assert_eq!(seen, same, "{target}");
    }
}

/// A target that takes AES-256 whatever was asked for.
const AES_256: &str = r#"
like = "haproxy"
name = "aes256"
[files]
"haproxy.cfg" = """
global
  maxconn 100
defaults
  mode tcp
  timeout connect 5s
  timeout client 5s
  timeout server 5s
frontend clients
  bind {{ listen }} ssl crt {{ tls.certificates[0].combined }} ciphersuites TLS_AES_256_GCM_SHA384
  default_backend origin
backend origin
  server origin {{ backends[0] }}
"""
"#;

#[test]
fn a_target_that_takes_another_suite_is_not_measured_and_named() {
    let Some(mini) = Mini::of(&["nginx", "hitch", "haproxy"]) else { return };
    mini.write("aes256.toml", AES_256);
    let run = mini.run(&["nginx", "aes256.toml"]);
    ended(&run, 3, &["failed: it does not do what was asked: "]);
    assert_eq!(outcome(&mini.record(), "aes256").0, CellState::Failed);
    is_measured(&mini.record(), "nginx");
    // Where each program has its own suite, they are held against each other.
    let own = Mini::with(&SUITE.replace("clients = 8", "clients = 8\nsuite = \"default\""));
    own.write("aes256.toml", AES_256);
    ended(&own.run(&["nginx", "hitch", "aes256.toml"]), 3, &[]);
    let lab = own.record();
    let (state, reason) = outcome(&lab, "aes256");
    assert_eq!(state, CellState::Failed);
    assert!(
        reason.contains("cipher suite: aes256 TLS_AES_256_GCM_SHA384; nginx, hitch TLS_AES_128_GCM_SHA256"),
        "{reason}"
    );
    assert!(cell(&lab, "aes256").blocks.is_empty());
    is_measured(&lab, "hitch");
}

/// Whoever signs with another key than it was given has not done the work that is measured, or has done another's.
#[test]
fn a_target_with_a_certificate_of_its_own_is_not_measured() {
    let Some(mini) = Mini::of(&["nginx", "haproxy"]) else { return };
    let folder = Folder::new();
    let own = TestCa::new().issue(&Leaf::new(KeyType::EcdsaP256)).write_combined(&folder, "own");
    let target = AES_256
        .replace("aes256", "own")
        .replace("{{ tls.certificates[0].combined }}", own.to_str().unwrap())
        .replace(" ciphersuites TLS_AES_256_GCM_SHA384", " ciphersuites TLS_AES_128_GCM_SHA256");
    mini.write("own.toml", &target);
    ended(&mini.run(&["nginx", "own.toml"]), 3, &["failed: it does not do what was asked: "]);
    let lab = mini.record();
    let (state, reason) = outcome(&lab, "own");
    assert!(state == CellState::Failed && reason.contains("certificate"), "{reason}");
    is_measured(&lab, "nginx");
}

/// hitch's TLS library remembers sessions whatever its settings say.
#[test]
fn a_target_that_resumes_what_it_was_to_forget_is_not_measured() {
    let Some(_) = Mini::of(&["nginx", "hitch"]) else { return };
    let off = SUITE
        .replace("\"1.3\"", "\"1.2\"")
        .replace("clients = 8", "resumption = \"id\"\ncache = false\nreuse = 4\nclients = 8");
    let mini = Mini::with(&off);
    ended(&mini.run(&["nginx", "hitch"]), 3, &["sessions were not to be remembered"]);
    let lab = mini.record();
    assert_eq!(outcome(&lab, "hitch").0, CellState::Failed);
    is_measured(&lab, "nginx");
}

#[test]
fn each_kind_of_client_gets_its_certificate_or_the_reason_why_not() {
    let targets = ["nginx", "haproxy", "courser", "haproxy-relay"];
    let Some(_) = Mini::of(&targets) else { return };
    let two = SUITE.replace("saturation", "clients").replace("\"P-256\"", "\"P-256 + RSA-2048\"");
    for version in ["1.3", "1.2"] {
        let mini = Mini::with(&two.replace("\"1.3\"", &format!("{version:?}")));
        ended(&mini.run(&["--targets", &targets.join(",")]), 0, &[]);
        let lab = mini.record();
        for target in targets {
            let clients = &cell(&lab, target).clients;
            let got = |client: &str| {
                let found = clients.iter().find(|one| one.client == client).unwrap();
                found.verified.as_ref().map(|seen| (seen.key.clone().unwrap(), seen.scheme.clone().unwrap()))
            };
            let ecdsa = ("P-256".to_owned(), "ecdsa_secp256r1_sha256".to_owned());
            assert_eq!(got("can verify ECDSA alone"), Some(ecdsa), "{target}, TLS {version}: {clients:?}");
            let rsa = ("RSA-2048".to_owned(), "rsa_pss_rsae_sha256".to_owned());
            // The relay decides by an extension that this client sends too, as published.
            let expected = (target != "haproxy-relay").then_some(rsa);
            assert_eq!(got("can verify RSA alone"), expected, "{target}, TLS {version}: {clients:?}");
            let windows = &cell(&lab, target).blocks[0].windows;
            assert_eq!(windows.len(), if expected.is_some() { 2 } else { 1 }, "{target}");
        }
        let page = fs::read_to_string(mini.join("record.html")).unwrap();
        assert!(
            page.contains("gets the certificate with RSA-2048") && page.contains("is not served"),
            "TLS {version}"
        );
    }
}

#[test]
fn a_target_that_cannot_is_shown_with_its_reason_and_the_others_go_on() {
    if !is_installed("nginx") || !is_installed("courser") {
        skip("nginx or courser is not installed");
        return;
    }
    let mini = Mini::with(&SUITE.replace("P-256", "RSA-1024"));
    let run = mini.run(&["--targets", "courser,nginx"]);
    ended(&run, 0, &["cannot: "]);
    assert!(run.stdout.contains("no RSA key under 2048 bits"), "{run:?}");
    let lab = mini.record();
    let (state, reason) = outcome(&lab, "courser");
    assert!(
        state == CellState::Cannot && reason.contains("no RSA key under 2048 bits"),
        "{state:?}: {reason}"
    );
    is_measured(&lab, "nginx");
    assert!(fs::read_to_string(mini.join("record.html")).unwrap().contains("no RSA key under 2048 bits"));
    let nothing = mini.finished(&[
        "run",
        "mini.toml",
        "--targets",
        "courser,courser:stock",
        "--record",
        "nothing.json",
    ]);
    ended(&nothing, 3, &["cannot: "]);
}

#[test]
fn targets_that_do_not_start_are_told_and_tried_again() {
    let Some(mini) = Mini::of(&["hitch", "haproxy", "nginx"]) else { return };
    fake(mini.path(), "hitch", "echo 'no such setting'; exit 3");
    fake(mini.path(), "haproxy", "exec sleep 1000");
    let path = format!("{}:{}", mini.path().display(), std::env::var("PATH").unwrap());
    let run = Process::start(mini.suite(&[]).env("PATH", path)).finish();
    ended(&run, 3, &["failed: hitch ended by itself (exit code 3): no such setting"]);
    let lab = mini.record();
    let told = [outcome(&lab, "hitch"), outcome(&lab, "haproxy")];
    assert!(told.iter().all(|(state, _)| *state == CellState::Failed), "{told:?}");
    assert!(told[0].1.contains("no such setting"), "{told:?}");
    assert!(told[1].1.contains("nothing accepts connections at 127.0.0.1:"), "{told:?}");
    is_measured(&lab, "nginx");
    assert_eq!(of_folder(mini.path()), Vec::<String>::new());
    // What was the matter is gone now.
    ended(&mini.run(&["--resume"]), 0, &[]);
    let again = mini.record();
    for target in ["hitch", "haproxy"] {
        is_measured(&again, target);
    }
    assert_eq!(cell(&again, "nginx"), cell(&lab, "nginx"));
}

#[test]
fn a_target_that_dies_in_the_middle_is_told_and_the_others_go_on() {
    let Some(mini) = Mini::of(&["nginx", "haproxy"]) else { return };
    let process = Process::start(&mut mini.suite(&["--rounds", "2", "--seconds", "600ms"]));
    mini.first_block();
    // Whoever was first is last in the second round: a turn of each is left.
    let haproxy = find_process(mini.path(), "/haproxy -db").unwrap();
    kill(haproxy);
    let run = process.finish();
    ended(&run, 3, &["failed: it ended before its load did: haproxy ended by itself (signal 9"]);
    let lab = mini.record();
    let (state, reason) = outcome(&lab, "haproxy");
    assert!(state == CellState::Failed && reason.contains("signal 9"), "{state:?}: {reason}");
    assert!(cell(&lab, "haproxy").blocks.len() < 2);
    is_measured(&lab, "nginx");
    assert_eq!(cell(&lab, "nginx").blocks.len(), 2);
    assert!(run.stdout.contains("signal 9"), "{run:?}");
    assert_eq!(of_folder(mini.path()), Vec::<String>::new());
}

#[test]
fn a_typo_in_a_suite_is_told_with_line_and_column() {
    for (right, wrong, place, said) in [
        ("measure =", "mesure =", "line 11, column 1", "unknown field `mesure`, expected one of `id`"),
        ("clients = 8", "clientz = 8", "line 16, column 1", "unknown field `clientz`"),
        ("clients = 8", "clients = \"8\"", "line 16, column 11", "only text is in quotes"),
        ("clients = 8", "clients = 0", "line 16, column 11", "a number above 0"),
        ("saturation", "saturate", "line 11, column 11", "expected one of `saturation`"),
        ("\"1.3\"", "[\"1.3\", \"1.4\"]", "line 13, column 11", "\"1.4\" is no version: write one of 1.0,"),
        ("P-256", "P-257", "line 14, column 7", "P-257 is no kind of key; write RSA-2048"),
        ("1 KB", "1 XB", "line 15, column 10", "write `107 B`, `4 KB` or `1 MB`"),
        ("clients = 8", "engine = \"steam\"", "line 16, column 10", "write one of lean, real, openssl"),
        ("measure", "seconds = -1\nmeasure", "line 11, column 11", "a number above 0"),
        ("haproxy", "haproxi", "line 7, column 11", "did you mean haproxy?"),
        ("[group.case]", "[group.case", "line 12, column 12", "unclosed table"),
    ] {
        let mini = Mini::with(&SUITE.replacen(right, wrong, 1));
        let run = mini.run(&[]);
        ended(&run, 2, &["error: mini.toml: ", place, said]);
        assert!(!mini.join("record.json").exists(), "{wrong}");
    }
}

#[test]
fn one_that_is_not_ours_to_start_is_measured_too() {
    if !is_installed("courser") {
        skip("courser is not built");
        return;
    }
    let mini = Mini::new();
    let origin = bench(&["origin", "--listen", "127.0.0.1:0"]);
    let backend = origin.wait_stdout("where it listens", |lines| {
        lines.iter().find_map(|line| line.strip_prefix("listening on http://").map(str::to_owned))
    });
    let combined = TestCa::new().localhost(KeyType::EcdsaP256, &mini.folder, "own.pem");
    let program = Path::new(env!("CARGO_BIN_EXE_courser-bench")).with_file_name("courser");
    let courser = Courser::setup(program).cert(combined).backend(backend).start();
    let target = format!("mine=https://{}", courser.address());
    mini.measured(&[&A_SECOND[..], &["--target", &target]].concat());
    let lab = mini.record();
    assert!(lab.targets[0].note.contains(&courser.address().to_string()), "{:?}", lab.targets);
    assert_eq!(
        (window(&lab, "mine").user_us, cell(&lab, "mine").command.len()),
        (None, 0),
        "it is not ours to watch"
    );
}

#[test]
fn a_round_trip_between_generator_and_target_is_in_every_response() {
    let Some(mini) = Mini::of(&["nginx"]) else { return };
    mini.measured(&[&A_SECOND[..], &["--rtt", "20ms"]].concat());
    let lab = mini.record();
    assert_eq!(lab.rtt_us, Some(20_000));
    let window = window(&lab, "nginx");
    let handshake = window.full_handshake.mean_us.unwrap();
    let response = window.response.summary().mean_us.unwrap();
    // Connecting takes one round trip, and the handshake of TLS 1.3 another.
    assert!(handshake >= 40_000.0 && response >= 20_000.0, "{handshake} and {response}");
}
