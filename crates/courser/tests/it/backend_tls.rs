//! TLS with backends: programs that are not ours answer, and what is wrong with their certificates ends a connection with
//! its reason.

mod bytes;
mod resumption;
mod verification;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{ChildStdin, Command};

use courser_testkit::client::{Client, Resume, Version};
use courser_testkit::{Courser, Folder, Issued, KeyType, Leaf, Process, TestCa, free_port, require};

use crate::stage::{courser, eventually};

/// A terminator's side and its backends': each with an authority.
struct Site {
    folder: Folder,
    ca: TestCa,
}

impl Site {
    fn new() -> Self {
        Self { folder: Folder::new(), ca: TestCa::named("authority of backends") }
    }

    /// A certificate for `localhost` and its addresses.
    fn issue(&self) -> Issued {
        self.ca.issue(&Leaf::new(KeyType::EcdsaP256))
    }

    /// The terminator before one server, with this `tls`; `CA` in it is the authority's file.
    fn serve(&self, server: &str, tls: &str) -> Courser {
        self.serve_all(&format!("'{server}'"), tls, "")
    }

    /// As [`Self::serve`], before several servers, with more lines of the listener.
    fn serve_all(&self, servers: &str, tls: &str, more: &str) -> Courser {
        courser().config(&self.config(servers, tls, more)).start()
    }

    fn config(&self, servers: &str, tls: &str, more: &str) -> PathBuf {
        let certificate = TestCa::new().localhost(KeyType::EcdsaP256, &self.folder, "front");
        let ca = self.ca.write_root(&self.folder);
        let tls = tls.replace("CA", ca.to_str().expect("paths of tests are text"));
        let toml = format!(
            "workers = 1\nlog = 'json'\n[pool.app]\nservers = [{servers}]\ntls = {tls}\n[[listener]]\n\
             listen = '127.0.0.1:0'\ncert = '{}'\npool = 'app'\n{more}\n",
            certificate.display()
        );
        self.folder.write("courser.toml", toml)
    }

    /// `openssl s_server` with this certificate, and its port; `None` where it is not installed.
    fn openssl(&self, issued: &Issued, arguments: &[&str]) -> Option<(Process, u16)> {
        let (process, _, port) = self.openssl_with_input(issued, arguments)?;
        Some((process, port))
    }

    /// As [`Self::openssl`], with what it reads commands from.
    fn openssl_with_input(&self, issued: &Issued, arguments: &[&str]) -> Option<(Process, ChildStdin, u16)> {
        let program = require("openssl")?;
        let port = free_port();
        let pair = issued.write_combined(&self.folder, &format!("backend-{port}"));
        let mut command = Command::new(program);
        command.args(["s_server", "-accept", &port.to_string(), "-cert"]).arg(&pair);
        let (process, input) =
            Process::start_with_stdin(command.arg("-cert_chain").arg(&pair).args(arguments));
        process.wait_stdout("openssl to listen", |lines| {
            lines.iter().any(|line| line.starts_with("ACCEPT")).then_some(())
        });
        Some((process, input, port))
    }

    /// nginx with these blocks `server`, in which `CERT` stands for its certificate; `None` where it is not installed.
    fn nginx(&self, servers: &str) -> Option<Process> {
        let program = require("nginx")?;
        let pair = self.issue().write_pair(&self.folder, "nginx");
        let certificate =
            format!("ssl_certificate {}; ssl_certificate_key {};", pair.chain.display(), pair.key.display());
        let folder = self.folder.path().display();
        let config = format!(
            "daemon off; pid {folder}/nginx.pid; error_log stderr; events {{}}\nhttp {{ access_log off; \
             client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; \
             uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; ssl_protocols TLSv1.2 TLSv1.3;\n{}}}",
            servers.replace("CERT", &certificate)
        );
        let config = self.folder.write("nginx.conf", config);
        let mut command = Command::new(program);
        Some(Process::start(command.arg("-p").arg(self.folder.path()).arg("-c").arg(config)))
    }
}

/// A client of our own, with full handshakes.
fn client(courser: &Courser) -> Client {
    Client::new(courser.address(), Version::Tls13, KeyType::EcdsaP256, Resume::Never)
}

/// The answer to a request for a page.
fn get(courser: &Courser) -> String {
    let mut connection = client(courser).connect().unwrap();
    connection.stream().write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    connection.stream().read_to_end(&mut answer).unwrap();
    let _ = connection.close();
    String::from_utf8_lossy(&answer).into_owned()
}

/// Waits until somebody accepts there.
fn wait_for_port(port: u16) {
    eventually("the backend listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
}
