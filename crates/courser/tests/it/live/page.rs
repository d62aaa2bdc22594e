//! The live page in a browser without a network.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use courser_telemetry::CloseReason;
use courser_testkit::client::{Resume, Version};
use courser_testkit::{OriginServer, Process, free_port, require};
use serde_json::json;

use super::browser::Browser;
use super::watched;
use crate::admin::url;
use crate::stage::{Stage, run, run_courser};
use crate::upgrade::{Service, text};

/// The most that the page may have, in bytes.
const LARGEST: u64 = 60_000;

/// Whether the page knows of a handshake of each kind, and draws it.
const FILLED: &str =
    "byId('state').textContent === '✓ ready' && byId('handshakes').querySelector('svg.chart') !== null
    && status.handshakes.full > 0 && byId('negotiated').innerText.includes('TLSv1.3')
    && document.querySelectorAll('section').length === 10
    && [...document.querySelectorAll('section')].every(one => one.innerText.split('\\n').length > 1)";

#[test]
fn the_page_fills_on_a_phone_and_on_a_screen_light_and_dark() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/admin/page.html");
    assert!(fs::metadata(file).unwrap().len() < LARGEST);
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let courser = watched(stage.courser().backend(origin.backend())).start();
    let url = url(&courser);
    let Some(mut browser) = Browser::start() else { return };
    for (width, scheme, ground) in [
        (360, "light", "rgb(246, 247, 248)"),
        (1400, "dark", "rgb(20, 23, 26)"),
        (1400, "light", "rgb(246, 247, 248)"),
    ] {
        browser.resize(width, scheme);
        browser.open(&url);
        stage.client(&courser, Version::Tls13).connect().unwrap().get(1000, true).unwrap();
        browser.wait(FILLED);
        assert_eq!(browser.value("document.documentElement.scrollWidth"), width, "it scrolls sideways");
        assert_eq!(browser.value("getComputedStyle(document.body).backgroundColor"), ground);
    }
    assert!(browser.console().is_empty(), "{:#?}", browser.console());
    let own = |address: &&str| address.starts_with(&url);
    assert!(browser.requested().iter().all(own), "{:?}", browser.requested());
}

#[test]
fn it_outlives_a_reload_and_a_restart() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let control = stage.folder.join("control.sock").display().to_string();
    let admin = format!("127.0.0.1:{}", free_port());
    let setup = || stage.courser().backend(origin.backend()).args(["--admin", &admin, "--control", &control]);
    let mut courser = setup().start();
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&format!("http://{admin}/"));
    browser.wait("byId('facts').innerText.includes('1, for')");
    let reloaded = run_courser(&["reload", "--control", &control]);
    assert!(reloaded.status.success(), "{}", reloaded.stderr);
    browser.wait("byId('facts').innerText.includes('2, for')");
    assert!(browser.console().is_empty(), "{:#?}", browser.console());
    courser.stop();
    browser.wait("byId('state').textContent.includes('not connected') && byId('gone').className === 'shown'");
    let _courser = setup().start();
    browser.wait("byId('state').textContent === '✓ ready' && byId('gone').className === ''");
    browser.wait("byId('facts').innerText.includes('1, for')");
    assert_eq!(browser.value("past.length > 0"), true, "what was seen before is kept");
}

/// What the successor serves is shown, although the old process has an open connection and drains.
#[test]
fn after_an_upgrade_it_shows_the_new_process() {
    let (origin, port) = (OriginServer::http(), free_port());
    let text = text(&origin).replace("drain_timeout = '5s'", "drain_timeout = '60s'");
    let service = Service::start(&format!("{text}[admin]\nlisten = ['127.0.0.1:{port}']\n"));
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&format!("http://127.0.0.1:{port}/"));
    browser.wait("byId('state').textContent === '✓ ready'");
    let before = service.pid();
    assert_eq!(browser.value("status.pid"), before);
    let open = service.client(Version::Tls13, Resume::Never).connect().unwrap();
    service.upgraded();
    browser.wait(&format!("status.pid !== {before} && byId('state').textContent === '✓ ready'"));
    drop(open);
}

/// Whoever names something in markup sees it as he wrote it.
#[test]
fn names_are_text_and_close_reasons_have_their_own() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let courser = watched(stage.courser().backend(origin.backend())).start();
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&url(&courser));
    browser.wait("byId('state').textContent === '✓ ready'");
    let evil = "<img src=x onerror=\"document.title='run'\"><b>name</b>";
    let rows: Vec<_> = CloseReason::ALL
        .iter()
        .map(|reason| json!({ "reason": reason.name(), "cause": reason.cause().name(), "count": 1, "rate": 0 }))
        .collect();
    let status = json!({
        "name": evil, "state": evil, "failures": rows, "version": evil, "up_s": 1,
        "findings": [{ "level": "problem", "cause": evil, "what": evil, "remedy": evil }],
        "generation": {
            "number": 1, "age_s": 1, "listeners": [{ "name": evil, "listen": [evil] }], "certificates": 1,
            "ending": [{ "name": evil, "key": evil, "days_left": 1, "lifetime_s": 1 }],
            "last_reload": { "age_s": 1, "refused": evil, "needs_restart": [evil] },
        },
        "listeners": [{ "name": evil, "queue_length": 0, "queue_limit": 0, "syn_dropped": 0, "open": 0 }],
        "negotiated": [{ "version": evil, "suite": evil, "group": evil, "scheme": evil, "count": 1 }],
        "backends": { "states": { "up": 1 }, "servers": [{ "pool": evil, "server": evil, "state": evil, "connections": 1, "waiting": 0,
            "failures": 0, "drained_by": [evil], "checks": [{ "kind": evil, "seen": evil, "passed": false, "ago_ms": 1 }] }] },
        "messages": { "peers": [{ "name": evil, "address": evil, "is_silent": true, "last_seen_ms": 1, "clock_ahead_ms": 0, "lost": 0 }] },
        "handshakes": { "not_resumed": { evil: 1 } },
    });
    // In one go: the next second shows what the server says.
    let script = format!(
        "render({status}); ({{markup: document.querySelectorAll('body img, body b b').length, title: document.title,
          shown: document.body.innerText.split({}).length,
          reasons: [...document.querySelectorAll('#failures tbody tr')].map(row => row.innerText.trim().split(/\\s+/).slice(0, 2).join(' '))}})",
        json!(evil)
    );
    let found = browser.value(&script);
    assert_eq!(found["markup"], 0, "{found}");
    assert!(found["shown"].as_u64().unwrap() > 15 && found["title"] != "run", "{found}");
    let names: Vec<_> = CloseReason::ALL
        .iter()
        .map(|reason| format!("{} {}", reason.name(), reason.cause().name()))
        .collect();
    assert_eq!(found["reasons"], json!(names));
}

#[test]
fn with_a_token_the_page_asks_for_it() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let token = stage.folder.write("admin.token", "a-token-of-some-length\n");
    fs::set_permissions(&token, Permissions::from_mode(0o600)).unwrap();
    let setup = watched(stage.courser().backend(origin.backend())).args(["--admin-token"]).arg(&token);
    let courser = setup.start();
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&url(&courser));
    browser.wait("byId('token').className === 'shown'");
    browser.value("byId('secret').value = 'a-token-of-some-length'; byId('token').requestSubmit()");
    browser.wait("byId('state').textContent === '✓ ready' && byId('token').className === ''");
}

/// The page's policy names its script and its style by hash, which openssl computes here.
#[test]
fn the_policy_lets_run_what_the_page_has_and_nothing_else() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let courser = watched(stage.courser().backend(origin.backend())).start();
    let (Some(curl), Some(openssl)) = (require("curl"), require("openssl")) else { return };
    let answer = run(Command::new(curl).args(["--silent", "--include", &url(&courser)])).stdout;
    let head: Vec<_> = answer.lines().take_while(|line| !line.trim().is_empty()).collect();
    let policy =
        head.iter().find_map(|line| line.strip_prefix("content-security-policy: ")).expect("a policy");
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/admin/page.html")).unwrap();
    for part in ["script", "style"] {
        let begin = page.find(&format!("<{part}>")).unwrap() + part.len() + 2;
        let text = &page[begin..page.find(&format!("</{part}>")).unwrap()];
        let mut command = Command::new("sh");
        let hash = "\"$0\" dgst -sha256 -binary | \"$0\" base64";
        let hash = Process::start_with_input(command.args(["-c", hash]).arg(&openssl), text).finish().stdout;
        let expected = format!("{part}-src 'sha256-{}'", hash.trim());
        assert!(policy.contains(&expected), "PAGE_POLICY needs {expected}");
    }
}
