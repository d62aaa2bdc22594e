//! Somebody else's proxy that makes faults: Toxiproxy (Shopify), between the program and its backends.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;

use serde_json::{Value, json};

use crate::{Process, find, free_port, leave_out};

/// A running Toxiproxy.
#[derive(Debug)]
pub struct FaultProxy {
    _process: Process,
    api: SocketAddr,
}

/// The way to one server through it.
#[derive(Debug)]
pub struct FaultLink<'a> {
    proxy: &'a FaultProxy,
    name: String,
    address: String,
}

impl FaultProxy {
    /// Starts it; `None`, after saying so, where it is not installed.
    #[must_use]
    #[track_caller]
    pub fn start() -> Option<Self> {
        // In no distribution: where its module cannot be had, a test cannot help it.
        let Some(program) = find("toxiproxy-server") else {
            leave_out("toxiproxy-server is not installed, and scripts/install.sh could not build it");
            return None;
        };
        let mut command = Command::new(program);
        let api = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let process = Process::start(command.args(["-host", "127.0.0.1", "-port", &api.port().to_string()]));
        let is_up =
            |lines: &[String]| lines.iter().any(|line| line.contains("Starting HTTP server")).then_some(());
        process.wait_stdout("its start", is_up);
        Some(Self { _process: process, api })
    }

    /// A way to `server`, without a fault as yet.
    pub fn link(&self, server: &str) -> FaultLink<'_> {
        // Not port 0: the port is given back while the link is down.
        let (name, address) = (server.to_owned(), format!("127.0.0.1:{}", free_port()));
        self.request("POST", "/proxies", &json!({ "name": name, "listen": address, "upstream": server }));
        FaultLink { proxy: self, name, address }
    }

    /// # Panics
    /// When it is refused.
    fn request(&self, method: &str, path: &str, body: &Value) {
        let body = body.to_string();
        let mut socket = self.connect();
        write!(
            socket,
            "{method} {path} HTTP/1.1\r\nHost: toxiproxy\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("it takes requests");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("it answers in text");
        assert!(answer.starts_with("HTTP/1.1 2"), "{method} {path} {body}: {answer}");
    }

    /// It says that it starts to listen, and listens a moment later.
    fn connect(&self) -> TcpStream {
        let patience = std::time::Instant::now() + crate::PATIENCE;
        loop {
            match TcpStream::connect(self.api) {
                Ok(socket) => return socket,
                Err(error) => assert!(std::time::Instant::now() < patience, "{error}"),
            }
            std::thread::yield_now();
        }
    }
}

impl FaultLink<'_> {
    /// Where the program connects to.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Refuses connections, or takes them again. Those that are open are cut.
    pub fn set_up(&self, is_up: bool) {
        self.proxy.request("POST", &format!("/proxies/{}", self.name), &json!({ "enabled": is_up }));
    }

    /// Adds a fault to what the server sends, by its name in Toxiproxy: `latency`, `reset_peer`, `slow_close`, `timeout`.
    pub fn add(&self, fault: &str, attributes: &Value) {
        let path = format!("/proxies/{}/toxics", self.name);
        self.proxy.request("POST", &path, &json!({ "name": fault, "type": fault, "attributes": attributes }));
    }

    /// Takes a fault away.
    pub fn remove(&self, fault: &str) {
        self.proxy.request("DELETE", &format!("/proxies/{}/toxics/{fault}", self.name), &json!({}));
    }
}
