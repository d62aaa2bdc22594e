//! Pebble: Let's Encrypt's CA for tests, which speaks ACME and is strict about it, and the DNS that it asks.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::process::run;
use crate::{Folder, KeyType, Process, TestCa, ca::Leaf, free_port, require};

/// How a CA is to be; [`Setup::start`] starts it.
#[derive(Debug)]
pub struct Setup {
    validation_port: u16,
    profiles: Value,
    bindings: Value,
    rejected_nonces: u32,
    port: Option<u16>,
}

impl Setup {
    /// Seconds that certificates of this profile are valid.
    pub fn profile(mut self, name: &str, seconds: u64) -> Self {
        self.profiles[name] = json!({ "description": name, "validityPeriod": seconds });
        self
    }

    /// Accounts need a binding: this key identifier and key, in base64url.
    pub fn binding(mut self, id: &str, key: &str) -> Self {
        self.bindings[id] = json!(key);
        self
    }

    /// So many nonces of a hundred are rejected.
    pub fn rejected_nonces(mut self, percent: u32) -> Self {
        self.rejected_nonces = percent;
        self
    }

    /// Its directory is at this port.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Starts the CA and its DNS; `None` after a skip.
    ///
    /// # Panics
    /// When one of them does not come up.
    #[must_use]
    pub fn start(self) -> Option<Pebble> {
        let (pebble, dns) = (require("pebble")?, require("pebble-challtestsrv")?);
        let (folder, ca) = (Folder::new(), TestCa::new());
        let leaf = Leaf::new(KeyType::EcdsaP256);
        let pair = ca.issue(&leaf).write_pair(&folder, "directory");
        let [port, management] = [self.port.unwrap_or_else(free_port), free_port()];
        let [names, dns_management] = [free_port(), free_port()];
        let settings = json!({ "pebble": {
            "listenAddress": format!("127.0.0.1:{port}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": pair.chain,
            "privateKey": pair.key,
            "httpPort": free_port(),
            "tlsPort": self.validation_port,
            "externalAccountBindingRequired": self.bindings.as_object().is_some_and(|all| !all.is_empty()),
            "externalAccountMACKeys": self.bindings,
            "domainBlocklist": ["blocked.example"],
            "retryAfter": { "authz": 0, "order": 0 },
            "keyAlgorithm": "ecdsa",
            "profiles": self.profiles,
        }});
        let file = folder.write("pebble.json", settings.to_string());
        let bind = |port: u16| format!("127.0.0.1:{port}");
        let mut command = Command::new(dns);
        command.args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "", "-defaultIPv6", ""]);
        command.args(["-dnsserver", &bind(names), "-management", &bind(dns_management)]);
        let dns = Process::start(&mut command);
        let mut command = Command::new(pebble);
        command.arg("-config").arg(&file).args(["-strict", "-dnsserver", &bind(names)]);
        command.env("PEBBLE_VA_NOSLEEP", "1").env("PEBBLE_AUTHZREUSE", "0");
        command.env("PEBBLE_WFE_NONCEREJECT", self.rejected_nonces.to_string());
        let process = Process::start(&mut command);
        let address = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        for port in [port, management, dns_management] {
            let deadline = std::time::Instant::now() + crate::PATIENCE;
            while TcpStream::connect(address(port)).is_err() {
                assert!(std::time::Instant::now() < deadline, "nobody listens at {port}");
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        }
        let authority = ca.write_root(&folder);
        Some(Pebble {
            process,
            _dns: dns,
            folder,
            authority,
            port,
            management,
            dns_management: address(dns_management),
        })
    }
}

/// A CA that runs, with an account of everything in its memory.
#[derive(Debug)]
pub struct Pebble {
    process: Process,
    _dns: Process,
    folder: Folder,
    authority: PathBuf,
    port: u16,
    management: u16,
    dns_management: SocketAddr,
}

impl Pebble {
    /// A CA that looks for challenges at this port of 127.0.0.1, where all names are. It rejects no nonce and has the profile
    /// `default`, of 90 days.
    pub fn setup(validation_port: u16) -> Setup {
        let profiles = json!({ "default": { "description": "", "validityPeriod": 90 * 86_400 } });
        Setup { validation_port, profiles, bindings: json!({}), rejected_nonces: 0, port: None }
    }

    /// URL of the directory.
    pub fn directory(&self) -> String {
        format!("https://localhost:{}/dir", self.port)
    }

    /// Port of the directory.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// File with the authority of the directory's own certificate.
    pub fn authority(&self) -> &PathBuf {
        &self.authority
    }

    /// File with the root of what it issues.
    ///
    /// # Panics
    /// When it does not answer.
    pub fn root(&self) -> PathBuf {
        let root = self.manage("roots/0", None);
        self.folder.write("root.pem", root)
    }

    /// How many orders there have been.
    pub fn orders(&self) -> usize {
        self.process.stdout().iter().filter(|line| line.contains("orders in the db")).count()
    }

    /// How many certificates it has issued.
    pub fn issued(&self) -> usize {
        self.process.stdout().iter().filter(|line| line.contains("Issued certificate")).count()
    }

    /// How many accounts there are.
    pub fn accounts(&self) -> usize {
        self.process.stdout().iter().filter(|line| line.contains("accounts in memory")).count()
    }

    /// Has it ask for the renewal of this certificate, in PEM, in a window that is over.
    ///
    /// # Panics
    /// When it does not answer.
    pub fn ask_for_renewal(&self, certificate: &str) {
        let window =
            json!({ "suggestedWindow": { "start": "2020-01-01T00:00:00Z", "end": "2020-01-02T00:00:00Z" } });
        let request = json!({ "Certificate": certificate, "ARIResponse": window.to_string() });
        self.manage("set-renewal-info/", Some(&request.to_string()));
    }

    /// Sets a TXT record; `name` without the final dot.
    ///
    /// # Panics
    /// When its DNS does not answer.
    pub fn set_txt(&self, name: &str, value: &str) {
        let body = json!({ "host": format!("{name}."), "value": value }).to_string();
        let mut socket = TcpStream::connect(self.dns_management).expect("the DNS server runs");
        let request = format!(
            "POST /set-txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        socket.write_all(request.as_bytes()).expect("the DNS server reads");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("the DNS server answers");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    fn manage(&self, path: &str, body: Option<&str>) -> String {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--fail", "--cacert"]).arg(&self.authority);
        command.args(body.iter().flat_map(|body| ["--data-binary", body]));
        let done = run(command.arg(format!("https://localhost:{}/{path}", self.management)));
        assert!(done.status.success(), "{}", done.stderr);
        done.stdout
    }
}
