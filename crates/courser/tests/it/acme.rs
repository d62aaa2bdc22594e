//! Certificates that are ordered, by Pebble, which rejects nonces, looks at challenges as Let's Encrypt does, and keeps count.

mod fleet;
mod gate;
mod orders;
mod pages;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use courser_testkit::{Offer, OpenLoad, Pebble, Process, free_port, require};
use serde_json::json;

use crate::stage::{content, eventually};
use gate::{Gate, Withheld};
use orders::Orders;

#[test]
fn a_name_gets_a_certificate_although_the_directory_is_away_at_first() {
    let (port, directory) = (free_port(), free_port());
    let orders = Orders::at("shop.example", port, &format!("https://localhost:{directory}/dir"));
    let Some(openssl) = require("openssl") else { return };
    // The authority is there before the CA is: its file is read at the start.
    let Some(pebble) =
        Pebble::setup(port).port(directory).rejected_nonces(20).profile("short", 86_400).start()
    else {
        return;
    };
    let authority = fs::read(pebble.authority()).unwrap();
    drop(pebble);
    fs::write(orders.authority(), &authority).unwrap();
    let courser = orders.start("");
    let unreachable = courser.wait_stderr_line("not ordered");
    assert!(unreachable.contains("cannot connect"), "{unreachable}");
    assert_eq!(
        orders.status()["state"],
        "ready",
        "a certificate that is awaited keeps nobody from being ready"
    );
    let awaited = orders.shown(&openssl, "shop.example", &[]);
    assert!(awaited.contains("courser self-signed"), "{awaited}");
    drop(courser);

    let Some(pebble) =
        Pebble::setup(port).port(directory).rejected_nonces(20).profile("short", 86_400).start()
    else {
        return;
    };
    fs::copy(pebble.authority(), orders.authority()).unwrap();
    let courser = orders.start("profile = 'short'\ncontact = 'ops@shop.example'");
    orders.eventually_valid();
    let root = pebble.root();
    eventually("the certificate is served", || orders.is_verified(&openssl, "shop.example", &root));
    let set = &orders.acme_status()[0];
    let left = set["not_after"].as_i64().unwrap() - now();
    assert!((80_000..=86_400).contains(&left), "the profile's lifetime: {left} s");
    assert_eq!((set["challenge"].as_str(), set["failures"].as_u64()), (Some("tls-alpn-01"), Some(0)));
    let text = content(orders.run(&["acme", "status"]));
    assert!(text.starts_with("shop.example: valid for ") && text.contains("next order in"), "{text}");
    assert!(content(orders.run(&["status"])).contains("1 of 1 certificates are there"));
    // Not ended while it asks for it: an answer that is cut off is asked for again much later.
    eventually("the window is known", || orders.state()["window"].is_object());
    let lines = courser.connections_json(1);
    assert!(lines.iter().any(|line| line["close_reason"] == "acme_challenge"), "{lines:?}");
    for secret in ["account.pem", "pair.pem", "state.json"] {
        let file = orders.find(secret);
        let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.display());
    }
    drop(courser);

    // A second start has everything, and asks for nothing but the window.
    let courser = orders.start("");
    assert!(orders.is_verified(&openssl, "shop.example", &root), "from its files, before any reload");
    eventually("the window is known", || orders.state()["window"].is_object());
    assert_eq!((pebble.orders(), pebble.issued(), pebble.accounts()), (1, 1, 1));
    drop(courser);

    // The CA's wish to have it renewed is heard at the next start, or within its pause.
    let before = fs::read_to_string(orders.find("pair.pem")).unwrap();
    pebble.ask_for_renewal(&before);
    let mut asked = orders.state();
    (asked["ask_at"], asked["not_before"]) = (json!(0), json!(null));
    fs::write(orders.find("state.json"), asked.to_string()).unwrap();
    let courser = orders.start("");
    courser.wait_stderr_line("it is renewed, the CA asks for it then");
    eventually("there is another one", || fs::read_to_string(orders.find("pair.pem")).unwrap() != before);
    eventually("it is served", || orders.is_verified(&openssl, "shop.example", &root));
    assert_eq!((pebble.orders(), pebble.issued()), (2, 2));
}

#[test]
fn a_wildcard_is_proved_by_a_record_that_courser_prints() {
    let port = free_port();
    let (Some(openssl), Some(pebble)) = (require("openssl"), Pebble::setup(port).start()) else { return };
    let orders = Orders::of("shop.example", port, &pebble);
    fs::write(
        orders.config(),
        orders.text("").replace("['shop.example']", "['shop.example', '*.shop.example']"),
    )
    .unwrap();
    let checked = content(orders.check());
    assert!(
        checked.contains("ordered from") && checked.contains("shop.example, *.shop.example"),
        "{checked}"
    );
    let courser = orders.launch();
    let said = courser.wait_stderr_line("not ordered");
    assert!(said.contains("courser acme record shop.example"), "{said}");
    assert_eq!(pebble.orders(), 0, "nobody can have the record of an account that is new");
    let line = content(orders.run(&["acme", "record", "shop.example"]));
    let record: Vec<&str> = line.trim_end().splitn(2, " IN TXT ").collect();
    let (name, value) = (record[0].trim_end_matches('.'), record[1].trim_matches('"'));
    assert!(value.ends_with("; policy=wildcard") && value.contains("accounturi=https://"), "{line}");
    let wrong = orders.run(&["acme", "record", "other.example"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", wrong.stderr);
    // Without it the CA refuses, and is asked again in a while.
    let refused = orders.run(&["acme", "order"]);
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stdout);
    assert!(refused.stdout.contains("DNS-PERSIST-01"), "{}", refused.stdout);
    let set = &orders.acme_status()[0];
    let pause = set["next"].as_i64().unwrap() - now();
    assert!((590..=680).contains(&pause), "ten minutes behind the second failure: {set}");
    pebble.set_txt(name, value);
    let tried = content(orders.run(&["acme", "order", "--dry-run"]));
    assert!(tried.starts_with("ok: shop.example, *.shop.example"), "{tried}");
    assert!(orders.acme_status()[0]["not_after"].is_null(), "nothing is kept of a trial");
    let ordered = content(orders.run(&["acme", "order"]));
    assert!(ordered.contains("valid for"), "{ordered}");
    let root = pebble.root();
    for name in ["shop.example", "www.shop.example"] {
        eventually("it is served", || orders.is_verified(&openssl, name, &root));
    }
}

#[test]
fn killed_at_any_request_it_orders_once() {
    for withheld in [Withheld::Request, Withheld::Answer] {
        let port = free_port();
        let Some(pebble) = Pebble::setup(port).start() else { return };
        let gate = Gate::new(pebble.port());
        let orders = Orders::at("shop.example", port, &gate.directory());
        fs::copy(pebble.authority(), orders.authority()).unwrap();
        // Each life is ended one request later than the one before. Once its order is on the disk a life begins with it, and
        // they are counted anew: the steps behind the order are soon done.
        let (mut request, mut kills, mut last_order) = (1, 0, None);
        loop {
            assert!(kills < 40, "{withheld:?}: it never ends");
            gate.withhold(request, withheld);
            let mut courser = orders.start("");
            let mut is_over = || gate.is_reached() || orders.is_valid();
            eventually("a request is withheld, or all are over", &mut is_over);
            let is_done = !gate.is_reached();
            // SIGKILL: nobody has a chance to write anything.
            courser.signal(courser_testkit::Signal::SIGKILL);
            let _ = courser.wait();
            let state = fs::read_to_string(orders.place("state.json")).unwrap_or_default();
            request = if last_order.is_none() && state.contains("https://") { 2 } else { request + 1 };
            last_order = state.contains("https://").then_some(state).or(last_order);
            if is_done {
                break;
            }
            kills += 1;
        }
        gate.withhold(usize::MAX, withheld);
        println!("{withheld:?}: {kills} lives were ended");
        assert!(kills >= 8, "{withheld:?}: an order has more steps than {kills}");
        assert_eq!((pebble.issued(), pebble.accounts()), (1, 1), "{withheld:?}");
        // The order whose answer nobody has read was found among those of the account.
        assert_eq!(pebble.orders(), 1, "{withheld:?}");
        // The moment between the pair and the end of the order: it is fetched again, not ordered.
        let pair = fs::read_to_string(orders.find("pair.pem")).unwrap();
        fs::write(orders.find("state.json"), last_order.expect("an order was under way")).unwrap();
        let (had, _courser) = (pebble.orders(), orders.start(""));
        orders.eventually("the order is over", |set| set["order"].is_null());
        assert_eq!((pebble.orders(), pebble.issued()), (had, 1), "{withheld:?}");
        assert_eq!(fs::read_to_string(orders.find("pair.pem")).unwrap(), pair, "{withheld:?}");
    }
}

#[test]
fn killed_at_any_request_it_makes_one_bound_account() {
    for withheld in [Withheld::Request, Withheld::Answer] {
        let port = free_port();
        let Some(pebble) = Pebble::setup(port).binding("kid-1", BINDING_KEY).start() else { return };
        let gate = Gate::new(pebble.port());
        let orders = Orders::at("shop.example", port, &gate.directory());
        fs::copy(pebble.authority(), orders.authority()).unwrap();
        orders.write("acme.eab", &format!("kid-1\n{BINDING_KEY}\n"));
        let is_made =
            || fs::read_to_string(orders.place("account.json")).is_ok_and(|text| text.contains("https://"));
        // Each life is ended one request later than the one before.
        let mut kills = 0;
        while !is_made() {
            assert!(kills < 20, "{withheld:?}: it never ends");
            gate.withhold(kills + 1, withheld);
            let mut courser = orders.start("eab = 'acme.eab'");
            eventually("a request is withheld, or the account is known", || gate.is_reached() || is_made());
            courser.signal(courser_testkit::Signal::SIGKILL);
            let _ = courser.wait();
            kills += 1;
        }
        println!("{withheld:?}: {kills} lives were ended");
        assert!(kills > 3, "{withheld:?}: to make an account takes more requests than {kills}");
        eventually("the CA has logged the account", || pebble.accounts() > 0);
        assert_eq!(pebble.accounts(), 1, "{withheld:?}");
    }
}

/// As Pebble is told it, and the program.
const BINDING_KEY: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";

#[test]
fn a_limit_is_waited_for_and_an_account_is_bound() {
    let port = free_port();
    let (Some(nginx), Some(_)) = (require("nginx"), require("curl")) else { return };
    let Some(pebble) = Pebble::setup(port).binding("kid-1", BINDING_KEY).start() else { return };
    // Pebble has no limits: nginx answers orders in its place, as Let's Encrypt does.
    let front = free_port();
    let orders = Orders::at("shop.example", port, &format!("https://localhost:{front}/dir"));
    fs::copy(pebble.authority(), orders.authority()).unwrap();
    let _limited = limiting_proxy(&nginx, &orders, &pebble, front);
    orders.write("acme.eab", &format!("kid-1\n{BINDING_KEY}\n"));
    let courser = orders.start("contact = 'ops@shop.example'\neab = 'acme.eab'");
    let limited = courser.wait_stderr_line("not ordered");
    assert!(limited.contains("too many certificates already issued"), "{limited}");
    orders.eventually("the failure is known", |set| set["failures"] == 1);
    let set = &orders.acme_status()[0];
    let pause = set["next"].as_i64().unwrap() - now();
    assert!((7100..=8200).contains(&pause), "as long as the CA says: {pause} s");
    let text = content(orders.run(&["acme", "status"]));
    assert!(text.contains("a limit of the CA is reached, which ends in"), "{text}");
    assert_eq!((pebble.accounts(), pebble.orders()), (1, 0));
    drop(courser);
    let courser = orders.start("eab = 'acme.eab'");
    eventually("it has looked", || !orders.acme_status().is_empty());
    let again = orders.acme_status()[0]["next"].as_i64().unwrap() - now();
    assert!((7000..=8200).contains(&again), "a restart forgets no limit: {again} s");
    drop(courser);
    // A key that others can read is refused.
    fs::set_permissions(orders.place("acme.eab"), fs::Permissions::from_mode(0o644)).unwrap();
    let refused = orders.check();
    assert_eq!(refused.status.code(), Some(2));
    assert!(refused.stderr.contains("acme.eab"), "{}", refused.stderr);
}

/// nginx in front of the CA, which answers every order as one too many, and lets no account be changed: it is told everything when
/// it is made.
fn limiting_proxy(nginx: &Path, orders: &Orders, pebble: &Pebble, port: u16) -> Process {
    let folder = pebble.authority().parent().unwrap().display().to_string();
    let problem = r#"{"type":"urn:ietf:params:acme:error:rateLimited","status":429,"detail":"too many certificates already issued"}"#;
    let text = format!(
        "daemon off; pid {folder}/nginx.pid; error_log stderr; events {{}}
http {{ access_log off; server {{ listen 127.0.0.1:{port} ssl;
  ssl_certificate {folder}/directory.crt; ssl_certificate_key {folder}/directory.key;
  location /order-plz {{ default_type application/problem+json; add_header Retry-After 7200 always;
    return 429 '{problem}'; }}
  location /my-account/ {{ return 500; }}
  location / {{ proxy_pass https://127.0.0.1:{}; proxy_set_header Host $http_host; }} }} }}",
        pebble.port()
    );
    let file = orders.write("nginx.conf", &text);
    let process = Process::start(Command::new(nginx).arg("-c").arg(file).args(["-e", "stderr"]));
    eventually("nginx listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    process
}

#[test]
fn a_ca_gets_the_challenge_and_no_session_and_nobody_else_does() {
    let (port, silent) = (free_port(), std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    // The CA looks at a port where nobody answers, so that the challenge stays pending.
    let looked_at = silent.local_addr().unwrap().port();
    let (Some(openssl), Some(pebble)) = (require("openssl"), Pebble::setup(looked_at).start()) else {
        return;
    };
    let orders = Orders::of("shop.example", port, &pebble);
    let courser = orders.start("");
    let (ca, _) = silent.accept().unwrap();
    for version in ["-tls1_3", "-tls1_2"] {
        let seen =
            orders.shown(&openssl, "shop.example", &["-alpn", "acme-tls/1", version, "-msg", "-showcerts"]);
        assert!(seen.contains("ALPN protocol: acme-tls/1"), "{version}: {seen}");
        assert!(!seen.contains("NewSessionTicket"), "{version}: {seen}");
        assert!(
            !seen.lines().any(|line| line.trim().starts_with("Session-ID: ") && line.trim().len() > 12),
            "{seen}"
        );
        let certificate = orders.certificate_text(&openssl, &seen);
        assert!(certificate.contains("1.3.6.1.5.5.7.1.31: critical"), "{certificate}");
        assert!(certificate.contains("DNS:shop.example"), "{certificate}");
    }
    let lines = courser.connections_json(2);
    assert!(
        lines.iter().all(|line| line["close_reason"] == "acme_challenge" && line["cause"] == "none"),
        "{lines:?}"
    );
    for (name, offered) in
        [("shop.example", "acme-tls/1,h2"), ("shop.example", "h2"), ("other.example", "acme-tls/1")]
    {
        let seen = orders.shown(&openssl, name, &["-alpn", offered, "-showcerts"]);
        assert!(!seen.contains("ALPN protocol: acme-tls/1"), "{name} {offered}: {seen}");
        if name == "shop.example" {
            let certificate = orders.certificate_text(&openssl, &seen);
            assert!(!certificate.contains("1.3.6.1.5.5.7.1.31"), "{name} {offered}: {certificate}");
        }
    }
    drop((ca, courser));
}

#[test]
fn renewals_under_load_fail_no_handshake() {
    let port = free_port();
    let Some(pebble) = Pebble::setup(port).profile("seconds", 4).start() else { return };
    let orders = Orders::of("localhost", port, &pebble);
    let _courser = orders.start("profile = 'seconds'");
    orders.eventually_valid();
    let (address, duration) = (format!("localhost:{port}"), Duration::from_secs(12));
    let loads = [Offer::Nothing, Offer::Psk]
        .map(|offer| OpenLoad::start(&address, offer, 20.0, 100, duration).unwrap());
    let before = pebble.issued();
    for load in loads {
        let account = load.finish().unwrap();
        assert_eq!((account.failed, &account.failures), (0, &Vec::new()));
        assert!(account.resumed * 100 >= account.offered * 99, "{account:?}");
    }
    let renewed = pebble.issued() - before;
    println!("{renewed} renewals in 12 s");
    assert!(renewed >= 2, "{renewed} renewals");
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap()
}
