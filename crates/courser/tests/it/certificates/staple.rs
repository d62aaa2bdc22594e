//! Staples: `openssl ocsp` makes the answers, other people's clients say what was sent.

use std::path::{Path, PathBuf};
use std::process::Command;

use courser_testkit::process::Signal;
use courser_testkit::{Courser, Issued, KeyType, Leaf, require};
use serde_json::Value;

use crate::stage::{run, run_courser};
use crate::support::{Site, client, openssl, text};

/// An authority that answers about its certificates.
struct Responder {
    site: Site,
}

/// How an answer differs from a good one of a week.
#[derive(Default)]
struct Answer<'a> {
    /// Instead of the authority itself.
    signer: Option<&'a Issued>,
    is_revoked: bool,
    /// Made then.
    time: Option<&'a str>,
}

impl Responder {
    fn new() -> Self {
        let site = Site::new();
        site.root();
        site.folder.write("ca.key", site.ca.root_key_pem());
        Self { site }
    }

    /// A certificate for `localhost`, served with this staple once it is written.
    fn certificate(&self, leaf: &Leaf, name: &str) -> (Issued, PathBuf, PathBuf) {
        let issued = self.site.ca.issue(leaf);
        let file = issued.write_combined(&self.site.folder, name);
        (issued, file, self.site.folder.join(&format!("{name}.ocsp")))
    }

    /// Writes what `openssl ocsp` answers about a certificate, by rename. `None` where it is missing.
    fn answer(&self, about: &Issued, how: &Answer<'_>, file: &Path) -> Option<()> {
        require("openssl")?;
        let folder = &self.site.folder;
        let serial = format!("{:012X}", about.serial);
        let (state, since) = if how.is_revoked { ("R", "250101000000Z") } else { ("V", "") };
        folder.write("index", format!("{state}\t991231000000Z\t{since}\t{serial}\tunknown\t/CN=site\n"));
        let (certificate, key) = match how.signer {
            None => (folder.join("ca.pem"), folder.join("ca.key")),
            Some(signer) => {
                let pair = signer.write_pair(folder, "signer");
                (pair.chain, pair.key)
            }
        };
        let mut command = match how.time {
            None => Command::new("openssl"),
            Some(time) => {
                let mut command = Command::new(require("faketime")?);
                command.args([time, "openssl"]);
                command
            }
        };
        let made = folder.join("made.ocsp");
        command.args(["ocsp", "-index"]).arg(folder.join("index")).arg("-CA").arg(folder.join("ca.pem"));
        command
            .arg("-rsigner")
            .arg(certificate)
            .arg("-rkey")
            .arg(key)
            .arg("-issuer")
            .arg(folder.join("ca.pem"));
        command.args(["-serial", &format!("0x{serial}"), "-ndays", "7", "-noverify", "-respout"]).arg(&made);
        let done = run(&mut command);
        assert!(made.exists(), "openssl ocsp: {}\n{}", done.stdout, done.stderr);
        std::fs::rename(made, file).unwrap();
        Some(())
    }

    fn settings(&self, listener: &str) -> PathBuf {
        let toml =
            format!("[[listener]]\nlisten = '127.0.0.1:0'\nbackend = '{}'\n", self.site.origin.backend());
        self.site.folder.write("courser.toml", toml + listener)
    }

    fn start(&self, listener: &str) -> Courser {
        let toml = std::fs::read_to_string(self.settings(listener)).unwrap();
        let control = self.control();
        self.site.configured(&toml).args(["--control", text(&control)]).start()
    }

    fn control(&self) -> PathBuf {
        self.site.folder.join("control")
    }

    fn status(&self) -> Value {
        let done = run_courser(&["status", "--json", "--control", text(&self.control())]);
        serde_json::from_str(&done.stdout).expect("status is JSON")
    }
}

/// What openssl says of the staple that it gets, in both versions.
#[track_caller]
fn assert_staple(courser: &Courser, is_sent: bool) {
    for version in ["-tls1_2", "-tls1_3"] {
        let Some(said) = openssl(courser.address(), &format!("{version} -status")) else { return };
        match is_sent {
            true => said.has("OCSP Response Status: successful").has("Cert Status: good").has_page(),
            false => said.has("OCSP response: no response sent").has_page(),
        };
        openssl(courser.address(), version).unwrap().lacks("OCSP").has_page();
    }
}

#[test]
fn openssl_curl_and_gnutls_agree_on_a_staple_of_the_authority_or_of_its_responder() {
    let here = Responder::new();
    let (issued, file, staple) = here.certificate(&Leaf::new(KeyType::EcdsaP256), "site");
    let appointed = here.site.ca.issue(&Leaf::new(KeyType::EcdsaP256).of_responder("responder"));
    // The issuer of an appointed responder has to come with the chain.
    std::fs::write(&file, format!("{}{}{}", issued.chain_pem, here.site.ca.root_pem(), issued.key_pem))
        .unwrap();
    for signer in [None, Some(&appointed)] {
        let Some(()) = here.answer(&issued, &Answer { signer, ..Answer::default() }, &staple) else { return };
        let courser = here.start(&format!("cert = '{}'\nstaple = '{}'\n", text(&file), text(&staple)));
        assert_staple(&courser, true);
        let root = here.site.folder.join("ca.pem");
        let url = format!("https://localhost:{}/", courser.address().port());
        let resolve = format!("localhost:{}:127.0.0.1", courser.address().port());
        let flags = ["-sS", "--cert-status", "--cacert", text(&root), "--resolve", &resolve, &url];
        for version in [&["--tls-max", "1.2"][..], &["--tlsv1.3"]] {
            let Some(said) = client("curl", &[version, &flags].concat(), "") else { break };
            assert!(said.success, "{}", said.text);
            said.has_page();
        }
        for priority in ["NORMAL:-VERS-ALL:+VERS-TLS1.2", "NORMAL:-VERS-ALL:+VERS-TLS1.3"] {
            let saved = here.site.folder.join("saved.ocsp");
            let port = courser.address().port().to_string();
            let flags = ["--x509cafile", text(&root), "--save-ocsp", text(&saved), "--priority", priority];
            let flags = [&flags[..], &["--port", &port, "localhost"]].concat();
            let Some(said) = client("gnutls-cli", &flags, "GET / HTTP/1.0\r\n\r\n") else { break };
            assert!(said.success, "{}", said.text);
            let saved = std::fs::read(saved).unwrap();
            assert!(saved == std::fs::read(&staple).unwrap(), "gnutls-cli got what the file has");
        }
        let status = here.status();
        assert_eq!(status["generation"]["staples"][0]["state"], "sent", "{status}");
        assert_eq!(status["generation"]["refused_staples"], Value::Array(Vec::new()));
    }
}

#[test]
fn what_clients_would_not_take_is_not_sent_and_said_so() {
    let here = Responder::new();
    let (issued, file, staple) = here.certificate(&Leaf::new(KeyType::EcdsaP256), "site");
    std::fs::write(&file, format!("{}{}{}", issued.chain_pem, here.site.ca.root_pem(), issued.key_pem))
        .unwrap();
    let other = here.site.ca.issue(&Leaf::new(KeyType::EcdsaP256));
    let listener = format!("cert = '{}'\nstaple = '{}'\n", text(&file), text(&staple));
    let good = Answer::default;
    let cases = [
        (&issued, Answer { is_revoked: true, ..good() }, "it says that the certificate is revoked"),
        (&issued, Answer { time: Some("2025-01-10 00:00:00"), ..good() }, "it has expired, "),
        (&other, good(), "it is about another certificate"),
        (&issued, Answer { signer: Some(&other), ..good() }, "neither the issuer nor a responder"),
    ];
    for (about, how, why) in &cases {
        let Some(()) = here.answer(about, how, &staple) else { return };
        let warning = format!("{}: the staple is not sent: {why}", text(&staple));
        let check = run_courser(&["check", "--strict", "--config", text(&here.settings(&listener))]);
        assert_eq!(check.status.code(), Some(0), "{}", check.stderr);
        assert!(check.stderr.contains(&warning), "no {warning:?} in\n{}", check.stderr);
        let courser = here.start(&listener);
        assert!(courser.wait_stderr_line(&warning).starts_with("warning: "));
        assert_staple(&courser, false);
        let status = here.status();
        let findings = status["findings"].to_string();
        assert!(findings.contains("staple") && findings.contains("not sent"), "{why}: {findings}");
        let shown = run_courser(&["status", "--control", text(&here.control())]).stdout;
        assert!(shown.contains("NOT SENT") || shown.contains("EXPIRED"), "{shown}");
    }
    std::fs::write(&staple, "<html>tomorrow</html>").unwrap();
    let check = run_courser(&["check", "--config", text(&here.settings(&listener))]);
    assert!(check.stderr.contains("it is no OCSP response in DER"), "{}", check.stderr);
    std::fs::remove_file(&staple).unwrap();
    let check = run_courser(&["check", "--config", text(&here.settings(&listener))]);
    assert_eq!(check.status.code(), Some(2), "a file that is not there is a mistake: {}", check.stderr);
}

#[test]
fn each_certificate_has_its_own_staple_and_a_reload_takes_a_new_one_over() {
    let here = Responder::new();
    let (ecdsa, ecdsa_file, ecdsa_staple) = here.certificate(&Leaf::new(KeyType::EcdsaP256), "ecdsa");
    let (rsa, rsa_file, rsa_staple) = here.certificate(&Leaf::new(KeyType::Rsa2048), "rsa");
    let revoked = Answer { is_revoked: true, ..Answer::default() };
    let Some(()) = here.answer(&ecdsa, &Answer::default(), &ecdsa_staple) else { return };
    let Some(()) = here.answer(&rsa, &revoked, &rsa_staple) else { return };
    let files = [&ecdsa_file, &rsa_file, &rsa_staple, &ecdsa_staple].map(|path| text(path).to_owned());
    let [one, other, first, second] = &files;
    let courser = here.start(&format!(
        "cert = ['{one}', '{other}']\nstaple = ['{first}', '{second}']\n[[listener.host]]\nnames = 'other.example'\ncert = '{one}'\n"
    ));
    let said = |key: &str| openssl(courser.address(), &format!("-tls1_2 -status -cipher {key}"));
    said("ECDHE-ECDSA-AES128-GCM-SHA256").unwrap().has("Cert Status: good");
    said("ECDHE-RSA-AES128-GCM-SHA256").unwrap().has("no response sent");
    here.answer(&rsa, &Answer::default(), &rsa_staple).unwrap();
    courser.signal(Signal::SIGHUP);
    courser.wait_stderr_line("generation 2");
    said("ECDHE-ECDSA-AES128-GCM-SHA256").unwrap().has("Cert Status: good");
    said("ECDHE-RSA-AES128-GCM-SHA256").unwrap().has("Cert Status: good");
    here.answer(&ecdsa, &revoked, &ecdsa_staple).unwrap();
    courser.signal(Signal::SIGHUP);
    courser.wait_stderr_line("generation 3");
    courser.wait_stderr_line("the staple is not sent: it says that the certificate is revoked");
    said("ECDHE-ECDSA-AES128-GCM-SHA256").unwrap().has("no response sent");
    said("ECDHE-RSA-AES128-GCM-SHA256").unwrap().has("Cert Status: good");
}

#[test]
fn a_certificate_that_demands_a_staple_is_warned_of_until_one_is_sent() {
    let here = Responder::new();
    let leaf = Leaf::new(KeyType::EcdsaP256).with_must_staple();
    let (issued, file, staple) = here.certificate(&leaf, "site");
    let without = format!("cert = '{}'\n", text(&file));
    let warning =
        format!("{}: the certificate demands a staple (must-staple), and none is sent", text(&file));
    let check = run_courser(&["check", "--config", text(&here.settings(&without))]);
    assert!(check.stderr.contains(&warning) && check.status.success(), "{}", check.stderr);
    let courser = here.start(&without);
    courser.wait_stderr_line(&warning);
    // On a busy machine there may be others.
    let is_found = |status: &Value| {
        let mut all = status["findings"].as_array().unwrap().iter();
        all.any(|finding| finding["what"].as_str().unwrap().contains("demands a staple"))
    };
    let status = here.status();
    assert!(is_found(&status), "{status}");
    let (port, root) = (courser.address().port().to_string(), here.site.folder.join("ca.pem"));
    let gnutls =
        |port: &str| client("gnutls-cli", &["--x509cafile", text(&root), "--port", port, "localhost"], "");
    if let Some(said) = gnutls(&port) {
        assert!(!said.success, "gnutls refuses it without: {}", said.text);
    }
    let Some(()) = here.answer(&issued, &Answer::default(), &staple) else { return };
    here.settings(&format!("{without}staple = '{}'\n", text(&staple)));
    courser.signal(Signal::SIGHUP);
    courser.wait_stderr_line("generation 2");
    if let Some(said) = gnutls(&port) {
        assert!(said.success, "gnutls takes it with: {}", said.text);
    }
    let status = here.status();
    assert!(!is_found(&status), "{status}");
    let warnings = courser.stderr().iter().filter(|line| line.contains(&warning)).count();
    assert_eq!(warnings, 1, "the reload did not warn again");
}
