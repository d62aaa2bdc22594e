//! Clients by others, beside the load: what they say of their connections.

use std::process::Command;

use courser_testkit::{Process, require};

use super::BYTES;
use super::service::Service;

/// One of them.
pub(crate) struct Judge {
    pub(crate) name: &'static str,
    arguments: Vec<String>,
    /// What its output has.
    expected: String,
}

impl Judge {
    /// Those that are installed, after printing which are not.
    pub(crate) fn installed(service: &Service) -> impl Iterator<Item = Self> {
        let (port, root) = (service.address.port().to_string(), service.root.display().to_string());
        let address = format!("localhost:{port}");
        let url = format!("https://{address}/?s={BYTES}");
        let curl = [
            "--silent",
            "--show-error",
            "--max-time",
            "30",
            "--output",
            "/dev/null",
            "--write-out",
            "%{size_download}",
        ];
        let curl = curl.map(str::to_owned).into_iter().chain([
            "--ipv4".into(),
            "--cacert".into(),
            root.clone(),
            url,
        ]);
        let openssl = [
            "s_client",
            "-4",
            "-quiet",
            "-verify_return_error",
            "-servername",
            "localhost",
            "-connect",
            &address,
            "-CAfile",
            &root,
        ];
        let gnutls = ["--x509cafile", &root, "--port", &port, "localhost"];
        let owned = |arguments: &[&str]| arguments.iter().map(|&argument| argument.to_owned()).collect();
        let status = || "200 OK".to_owned();
        [
            Self { name: "curl", arguments: curl.collect(), expected: BYTES.to_string() },
            Self { name: "openssl", arguments: owned(&openssl), expected: status() },
            Self { name: "gnutls-cli", arguments: owned(&gnutls), expected: status() },
        ]
        .into_iter()
        .filter(|judge| require(judge.name).is_some())
    }

    /// Connects once.
    pub(crate) fn connect(&self) -> Result<(), String> {
        let mut command = Command::new(self.name);
        let request = format!("GET /?s={BYTES} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        let process = Process::start_with_input(command.args(&self.arguments), request);
        let finished = process.finish();
        if finished.status.success() && finished.stdout.contains(&self.expected) {
            return Ok(());
        }
        Err(format!("{}: {}", finished.status, finished.stderr.trim_end()))
    }
}
