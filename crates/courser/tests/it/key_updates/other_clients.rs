//! Other people's clients that update their keys: OpenSSL and GnuTLS when they are told to, JSSE by itself.

use std::io::Write;
use std::path::Path;
use std::process::{ChildStdin, Command};

use courser_testkit::{Courser, OriginServer, Process, body, require};

use super::SIZES;
use crate::stage::{Stage, assert_closed, content, only_line, run};

/// A client in conversation.
struct Talk {
    client: Process,
    input: ChildStdin,
}

impl Talk {
    fn start(command: &mut Command) -> Self {
        let (client, input) = Process::start_with_stdin(command);
        Self { client, input }
    }

    fn openssl(courser: &Courser) -> Option<Self> {
        let mut command = Command::new(require("openssl")?);
        Some(Self::start(command.args(["s_client", "-tls1_3", "-connect", &courser.address().to_string()])))
    }

    fn say(&mut self, line: &str) {
        // In one write: a line end that is read with the next line hides the command that begins it.
        self.input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Says a line and waits for it to come back.
    fn echo(&mut self, line: &str) {
        self.say(line);
        self.client.wait_stdout(line, |lines| lines.iter().any(|said| said == line).then_some(()));
    }

    /// Gives OpenSSL a command and waits until it has been carried out for the `count`th time: the letter counts only
    /// where a read begins with it.
    fn update(&mut self, command: &str, count: usize) {
        self.say(command);
        let told = |lines: &[String]| lines.iter().filter(|line| line.contains("KEYUPDATE")).count();
        self.client.wait_stderr("KEYUPDATE", |lines| (told(lines) >= count).then_some(()));
    }
}

/// `K` asks for an update in return, `k` does not.
#[test]
fn openssl_updates_keys_between_lines() {
    let (stage, origin) = (Stage::new(), OriginServer::echo());
    let courser = stage.serve(origin.backend());
    let Some(mut talk) = Talk::openssl(&courser) else { return };
    for (index, line) in ["one", "two", "three", "four"].into_iter().enumerate() {
        talk.echo(line);
        for (count, command) in ["K", "K", "k"].into_iter().enumerate() {
            talk.update(command, 3 * index + count + 1);
        }
    }
    talk.say("Q");
    content(talk.client.finish());
    assert_closed(&only_line(&courser), "done", "none");
}

#[test]
fn openssl_updates_keys_and_gets_every_size() {
    for size in SIZES {
        let (stage, origin) = (Stage::new(), OriginServer::http());
        let courser = stage.serve(origin.backend());
        let Some(mut talk) = Talk::openssl(&courser) else { return };
        talk.update("K", 1);
        talk.say(&format!("GET /?s={size} HTTP/1.0\r\n\r"));
        let said = content(talk.client.finish());
        let page = String::from_utf8(body(size)).unwrap();
        assert!(said.contains(&page), "{size} bytes");
        assert_closed(&only_line(&courser), "done", "none");
    }
}

#[test]
fn gnutls_updates_keys_between_lines() {
    let (stage, origin) = (Stage::new(), OriginServer::echo());
    let courser = stage.serve(origin.backend());
    let Some(gnutls) = require("gnutls-cli") else { return };
    let port = courser.address().port().to_string();
    let mut command = Command::new(gnutls);
    command.args(["--inline-commands", "--priority=NORMAL:-VERS-ALL:+VERS-TLS1.3", "--x509cafile"]);
    let mut talk = Talk::start(command.arg(&stage.root).args(["--port", &port, "localhost"]));
    for (index, line) in ["one", "two", "three", "four"].into_iter().enumerate() {
        talk.echo(line);
        talk.say("^rekey^");
        let told =
            |lines: &[String]| lines.iter().filter(|line| line.contains("Rekey was completed")).count();
        talk.client.wait_stdout("Rekey", |lines| (told(lines) > index).then_some(()));
    }
    talk.echo("the last");
    drop(talk.input);
    content(talk.client.finish());
    assert_closed(&only_line(&courser), "done", "none");
}

/// JSSE asks for new keys when it has written or read so many bytes under the old ones: by default after 128 GiB. Until
/// the answer comes, which may be far behind what is under way, it asks again with each record that it reads; the
/// library takes 32 such requests between two records of the client's data. So the longest has far fewer records.
#[test]
fn jsse_updates_its_keys_after_12_000_bytes() {
    let sizes = [1, 1 << 14, (1 << 14) + 1, 60_000];
    for (mode, origin) in [("get", OriginServer::http()), ("echo", OriginServer::echo())] {
        let stage = Stage::new();
        let courser = stage.serve(origin.backend());
        let Some(java) = java() else { return };
        let limits = "jdk.tls.keyLimits=AES/GCM/NoPadding KeyUpdate 12000\n";
        let limits = stage.folder.write("java.security", limits);
        let mut command = Command::new(java);
        command.arg(format!("-Djava.security.properties={}", limits.display()));
        command.arg("-Djavax.net.debug=ssl:handshake");
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/judges/UpdateKeys.java"));
        command.arg(courser.address().port().to_string()).arg(stage.folder.path()).arg(mode);
        let finished = run(command.args(sizes.map(|size| size.to_string())));
        let debug = finished.stderr.clone();
        content(finished);
        assert!(debug.contains("Produced KeyUpdate post-handshake message"), "it has not updated its keys");
        for size in sizes {
            let got = std::fs::read(stage.folder.join(&size.to_string())).unwrap();
            assert!(got == body(size), "{mode}, {size}: {} bytes came", got.len());
        }
        for line in courser.connections_json(sizes.len()) {
            assert_closed(&line, "done", "none");
        }
    }
}

/// Java, where it can compile what it runs.
fn java() -> Option<std::path::PathBuf> {
    require("javac").and_then(|_| require("java"))
}
