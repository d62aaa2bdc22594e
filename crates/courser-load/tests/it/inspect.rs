//! What `inspect` says of servers whose settings are known.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use courser_load::inspect::{
    HandshakeBytes, InspectError, InspectedEndpoint, Inspection, Options, inspect, inspect_all,
};
use courser_testkit::{
    Courser, Fault, FaultyServer, Folder, KeyType, OriginServer, PATIENCE, Process, TestCa, free_port,
    require, skip,
};

#[test]
fn s_server_is_reported_exactly() {
    let Some(program) = require("openssl") else { return };
    let (ca, folder) = (TestCa::new(), Folder::new());
    let certificate = ca.localhost(KeyType::Rsa2048, &folder, "rsa").display().to_string();
    let server = SServer::start(
        &program,
        &certificate,
        &[
            "-www",
            "-tls1_2",
            "-serverpref",
            "-num_tickets",
            "1",
            "-groups",
            "P-384:X25519",
            "-alpn",
            "http/1.1",
            "-cipher",
            "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-SHA:DHE-RSA-AES128-GCM-SHA256:AES128-SHA",
        ],
    );
    let rows = rows(&inspected(server.address));
    assert_eq!(rows["versions"], "TLSv1.2");
    assert_eq!(
        rows["TLSv1.2 suites"],
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, \
         TLS_DHE_RSA_WITH_AES_128_GCM_SHA256, TLS_RSA_WITH_AES_128_CBC_SHA"
    );
    assert_eq!(rows["TLSv1.2 order"], "the server's");
    assert_eq!(rows["TLSv1.2 groups"], "P-384, X25519");
    assert_eq!(rows["TLSv1.2 finite field"], "2048 bits");
    assert_eq!(rows["client certificate"], "not asked for");
    assert_eq!(rows["application protocols"], "http/1.1");
    assert_eq!(rows["TLSv1.2 resumption by session ID"], "3 of 3");
    assert_eq!(rows["TLSv1.2 resumption by ticket"], "3 of 3");
    assert!(
        rows["certificate for RSA clients"].starts_with("CN=localhost, RSA2048, 3 names, 1 in the chain")
    );
    assert!(rows["certificate for RSA clients"].ends_with("until 2099-01-01"));
    assert!(!rows.contains_key("certificate for ECDSA clients"));
}

#[test]
#[cfg(feature = "openssl")]
fn the_old_world_is_reported_too() {
    let Some(program) = require("openssl") else { return };
    let (ca, folder) = (TestCa::new(), Folder::new());
    let certificate = ca.localhost(KeyType::Rsa2048, &folder, "rsa").display().to_string();
    let cipher = "AES128-SHA:DHE-RSA-AES256-SHA:@SECLEVEL=0";
    let words = ["-www", "-no_tls1_3", "-no_tls1_2", "-no_ticket", "-Verify", "1", "-cipher", cipher];
    let server = SServer::start(&program, &certificate, &words);
    let rows = rows(&inspected(server.address));
    assert_eq!(rows["versions"], "TLSv1.1, TLSv1.0");
    for version in ["TLSv1.1", "TLSv1.0"] {
        // The list of names is in ascending order, and the client's order counts.
        assert_eq!(
            rows[&*format!("{version} suites")],
            "TLS_RSA_WITH_AES_128_CBC_SHA, TLS_DHE_RSA_WITH_AES_256_CBC_SHA"
        );
        assert_eq!(rows[&*format!("{version} order")], "the client's");
    }
    assert_eq!(rows["client certificate"], "asked for");
    assert!(!rows.contains_key("TLSv1.1 groups"), "there is no elliptic curve to be had");
}

#[test]
#[cfg(feature = "openssl")]
fn sessions_of_the_old_world_are_resumed_by_id() {
    let Some(program) = require("openssl") else { return };
    let (ca, folder) = (TestCa::new(), Folder::new());
    let certificate = ca.localhost(KeyType::Rsa2048, &folder, "rsa").display().to_string();
    let words = ["-www", "-tls1", "-no_ticket", "-cipher", "AES128-SHA:@SECLEVEL=0"];
    let server = SServer::start(&program, &certificate, &words);
    let rows = rows(&inspected(server.address));
    assert_eq!(rows["TLSv1.0 resumption by session ID"], "3 of 3");
    assert_eq!(rows["TLSv1.0 resumption by ticket"], "nothing given to resume with");
}

#[test]
fn tls13_with_early_data_and_another_group_is_reported_exactly() {
    let Some(program) = require("openssl") else { return };
    let (ca, folder) = (TestCa::new(), Folder::new());
    let certificate = ca.localhost(KeyType::EcdsaP384, &folder, "p384").display().to_string();
    let server = SServer::start(
        &program,
        &certificate,
        &[
            "-www",
            "-tls1_3",
            "-num_tickets",
            "3",
            "-groups",
            "P-521:X25519:P-256",
            "-serverpref",
            "-ciphersuites",
            "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_CCM_SHA256:TLS_AES_256_GCM_SHA384",
        ],
    );
    let rows = rows(&inspected(server.address));
    assert_eq!(rows["versions"], "TLSv1.3");
    assert_eq!(
        rows["TLSv1.3 suites"],
        "TLS_CHACHA20_POLY1305_SHA256, TLS_AES_128_CCM_SHA256, TLS_AES_256_GCM_SHA384"
    );
    assert_eq!(rows["TLSv1.3 order"], "the server's");
    assert_eq!(rows["TLSv1.3 groups"], "P-521, X25519, P-256");
    assert!(rows["certificate for ECDSA clients"].starts_with("CN=localhost, EC384"));
    assert!(!rows.contains_key("certificate for RSA clients"));
    assert_eq!(rows["TLSv1.3 resumption by PSK"], "3 of 3");
    assert_eq!(rows["TLSv1.3 tickets"], "3 after a full handshake");
    assert_eq!(rows["early data"], "not allowed by its tickets");
}

#[test]
fn nginx_is_reported_exactly() {
    let Some(program) = require("nginx") else { return };
    let (ca, folder) = (TestCa::with_intermediate(), Folder::new());
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let _process =
        nginx(&program, &ca, &folder, address, "ssl_session_cache shared:tls:1m; ssl_session_tickets off;");
    let found = inspected(address);
    let rows = rows(&found);
    assert_eq!(rows["versions"], "TLSv1.3, TLSv1.2");
    assert_eq!(
        rows["TLSv1.2 suites"],
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
    );
    assert_eq!(rows["TLSv1.2 order"], "the server's");
    assert_eq!(rows["TLSv1.2 groups"], "P-256, P-384");
    assert_eq!(rows["TLSv1.3 groups"], "P-256, P-384");
    assert_eq!(rows["certificate for ECDSA clients"].split(", ").nth(1), Some("EC256"));
    assert_eq!(rows["certificate for RSA clients"].split(", ").nth(1), Some("RSA2048"));
    assert!(found.certificates.iter().all(|served| served.length == 2), "{:?}", found.certificates);
    assert_eq!(rows["application protocols"], "h2, http/1.1, http/1.0");
    assert_eq!(rows["HTTP/2"], "spoken");
    assert_eq!(rows["TLSv1.2 resumption by session ID"], "3 of 3");
    assert_eq!(rows["TLSv1.2 resumption by ticket"], "nothing given to resume with");
    assert_eq!(
        rows["TLSv1.3 resumption by PSK"], "3 of 3",
        "by an ID in its cache, in the place of a ticket"
    );
    assert_eq!(rows["TLSv1.3 tickets"], "2 after a full handshake");
    assert_eq!(rows["early data"], "not allowed by its tickets");
}

#[test]
fn early_data_that_is_taken_is_reported() {
    let Some(program) = require("nginx") else { return };
    let (ca, folder) = (TestCa::new(), Folder::new());
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let _process = nginx(&program, &ca, &folder, address, "ssl_early_data on; ssl_session_cache none;");
    let rows = rows(&inspected(address));
    assert_eq!(rows["early data"], "taken");
    // What nginx documents of "none": it gives IDs, and resumes nothing.
    assert_eq!(rows["TLSv1.2 resumption by session ID"], "0 of 3");
    assert_eq!(rows["TLSv1.2 resumption by ticket"], "3 of 3");
}

#[test]
fn haproxy_is_reported_exactly() {
    let Some(program) = require("haproxy") else { return };
    let (ca, folder) = (TestCa::new(), Folder::new());
    let certificate = ca.localhost(KeyType::EcdsaP256, &folder, "ecdsa");
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let text = format!(
        "global\n  tune.ssl.cachesize 0\ndefaults\n  mode http\n  timeout connect 9s\n  timeout client 9s\n  \
         timeout server 9s\nfrontend tls\n  bind {address} ssl crt {} ssl-min-ver TLSv1.2 ssl-max-ver TLSv1.3 \
         ciphers ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305 ciphersuites TLS_AES_128_GCM_SHA256 \
         curves X25519:P-256 alpn http/1.1\n  http-request return status 200\n",
        certificate.display()
    );
    let file = folder.write("haproxy.cfg", text);
    let mut command = Command::new(program);
    let _process = Process::start(command.args(["-db", "-q", "-f"]).arg(file));
    wait_until_accepting(address);
    let rows = rows(&inspected(address));
    assert_eq!(rows["versions"], "TLSv1.3, TLSv1.2");
    assert_eq!(rows["TLSv1.3 suites"], "TLS_AES_128_GCM_SHA256");
    assert_eq!(
        rows["TLSv1.2 suites"],
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"
    );
    assert_eq!(rows["TLSv1.3 groups"], "X25519, P-256");
    assert_eq!(rows["application protocols"], "http/1.1");
    assert_eq!(rows["TLSv1.2 resumption by session ID"], "nothing given to resume with");
    assert_eq!(rows["TLSv1.2 resumption by ticket"], "3 of 3");
    assert_eq!(rows["TLSv1.3 resumption by PSK"], "3 of 3");
    assert_eq!(rows["early data"], "not allowed by its tickets");
}

#[test]
fn courser_is_reported_exactly() {
    let Some(program) = courser() else { return };
    let (ca, folder) = (TestCa::with_intermediate(), Folder::new());
    let origin = OriginServer::http();
    let courser = Courser::setup(program)
        .cert(ca.localhost(KeyType::EcdsaP256, &folder, "ecdsa"))
        .cert(ca.localhost(KeyType::Rsa2048, &folder, "rsa"))
        .backend(origin.address().to_string())
        .args(["--groups", "X25519,P-256,X25519MLKEM768", "--alpn", "http/1.1", "--workers", "1"])
        .start();
    let rows = rows(&inspected(courser.address()));
    assert_eq!(rows["versions"], "TLSv1.3, TLSv1.2");
    assert_eq!(
        rows["TLSv1.3 suites"],
        "TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256"
    );
    assert_eq!(rows["TLSv1.3 order"], "the server's, but ChaCha20 for clients that put it first");
    assert_eq!(rows["TLSv1.3 groups"], "X25519, P-256, X25519MLKEM768");
    assert_eq!(rows["TLSv1.2 groups"], "X25519, P-256");
    assert_eq!(rows["key share of another group"], "taken");
    assert!(
        rows["certificate for ECDSA clients"].starts_with("CN=localhost, EC256, 3 names, 2 in the chain")
    );
    assert!(
        rows["certificate for RSA clients"].starts_with("CN=localhost, RSA2048, 3 names, 2 in the chain")
    );
    assert_eq!(rows["application protocols"], "http/1.1");
    for kind in
        ["TLSv1.2 resumption by session ID", "TLSv1.2 resumption by ticket", "TLSv1.3 resumption by PSK"]
    {
        assert_eq!(rows[kind], "3 of 3", "{kind}");
    }
    assert_eq!(rows["early data"], "not allowed by its tickets");
    let bytes = &rows["X25519MLKEM768, bytes"];
    assert!(bytes.contains(" % of the handshake's "), "{bytes}");
    assert!(rows["X25519MLKEM768, time"].contains(" ms, with X25519 "), "{}", rows["X25519MLKEM768, time"]);
}

#[test]
fn the_share_of_a_post_quantum_handshake_is_what_its_keys_are_long() {
    let Some(program) = courser() else { return };
    let (ca, folder) = (TestCa::new(), Folder::new());
    let origin = OriginServer::http();
    let courser = Courser::setup(program)
        .cert(ca.localhost(KeyType::EcdsaP256, &folder, "ecdsa"))
        .backend(origin.address().to_string())
        .args(["--workers", "1"])
        .start();
    let found = inspected(courser.address()).post_quantum.expect("courser has both groups by default");
    // An encapsulation key and a ciphertext of ML-KEM-768 (FIPS 203, table 3).
    assert_eq!(found.hybrid.client_hello - found.classical.client_hello, 1184, "{found:?}");
    assert_eq!(found.hybrid.server_hello - found.classical.server_hello, 1088, "{found:?}");
    assert_eq!(found.more_bytes(), 1184 + 1088);
    let rest = |bytes: HandshakeBytes| bytes.all - bytes.client_hello - bytes.server_hello;
    // A signature of ECDSA has up to two bytes more or less.
    assert!(rest(found.hybrid).abs_diff(rest(found.classical)) <= 4, "{found:?}");
    let time = found.time.expect("enough handshakes on a loopback");
    assert!(time.pairs >= 8 && time.interval.low <= time.interval.high && time.hybrid > 0.0, "{time:?}");
}

#[test]
fn a_server_without_the_post_quantum_group_is_told_so() {
    let Some(program) = require("openssl") else { return };
    let (ca, folder) = (TestCa::new(), Folder::new());
    let certificate = ca.localhost(KeyType::EcdsaP256, &folder, "ecdsa").display().to_string();
    let server = SServer::start(&program, &certificate, &["-www", "-tls1_3", "-groups", "X25519:P-256"]);
    let found = inspected(server.address);
    assert_eq!(found.post_quantum, None);
    let rows = rows(&found);
    assert_eq!(rows["X25519MLKEM768"], "not accepted");
    assert!(!rows.keys().any(|what| what.starts_with("X25519MLKEM768,")), "{rows:?}");
}

#[test]
fn what_is_no_tls_server_is_named_and_the_others_go_on() {
    let Some(program) = require("openssl") else { return };
    let (ca, folder) = (TestCa::new(), Folder::new());
    let certificate = ca.localhost(KeyType::EcdsaP256, &folder, "ecdsa").display().to_string();
    let server = SServer::start(&program, &certificate, &["-www"]);
    let (plain, silent) = (plain_http(), TcpListener::bind("127.0.0.1:0").unwrap());
    let nobody = format!("127.0.0.1:{}", free_port());
    let all = [plain.to_string(), nobody, server.address.to_string()];
    let targets: Vec<InspectedEndpoint> =
        all.iter().map(|text| InspectedEndpoint::parse(text).unwrap()).collect();
    let answers = inspect_all(&targets, &options());
    assert_eq!(answers[0].as_ref().unwrap_err(), &InspectError::NotTls);
    assert!(matches!(answers[1], Err(InspectError::Unreachable(_))), "{:?}", answers[1]);
    assert!(answers[2].is_ok(), "{:?}", answers[2]);
    let silent = InspectedEndpoint::parse(&silent.local_addr().unwrap().to_string()).unwrap();
    let impatient = Options { timeout: Duration::from_millis(20), ..options() };
    assert_eq!(inspect(&silent, &impatient).unwrap_err(), InspectError::Silent);
}

/// A server that answers anything as web servers answer what is no HTTP.
fn plain_http() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let _ = (&socket).write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            let _ = (&socket).read(&mut [0; 1024]);
        }
    });
    address
}

fn inspected(address: SocketAddr) -> Inspection {
    let target = InspectedEndpoint {
        name: Some("localhost".into()),
        ..InspectedEndpoint::parse(&address.to_string()).unwrap()
    };
    inspect(&target, &options()).unwrap()
}

fn options() -> Options {
    Options { attempts: 3, timeout: PATIENCE, ..Options::default() }
}

fn rows(found: &Inspection) -> BTreeMap<String, String> {
    found.rows().into_iter().map(|row| (row.what, row.found)).collect()
}

#[test]
fn http_2_that_is_agreed_on_and_not_spoken_is_told() {
    let rows = rows(&inspected(FaultyServer::start(Fault::Http2AsHttp1).address()));
    assert_eq!(rows["application protocols"], "h2");
    assert_eq!(rows["HTTP/2"], "agreed on, and not spoken");
}

/// `openssl s_server`, on a port of its choice.
struct SServer {
    address: SocketAddr,
    _process: Process,
}

impl SServer {
    fn start(program: &Path, certificate: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(["s_server", "-accept", "127.0.0.1:0", "-cert", certificate]).args(arguments);
        let process = Process::start(&mut command);
        let address = process.wait_stdout("ACCEPT and its port", |lines| {
            lines.iter().find_map(|line| line.strip_prefix("ACCEPT ")?.parse().ok())
        });
        Self { address, _process: process }
    }
}

/// nginx with two certificates and what else is `set`.
fn nginx(program: &Path, ca: &TestCa, folder: &Folder, address: SocketAddr, set: &str) -> Process {
    let certificate = |key, name| {
        let path = ca.localhost(key, folder, name);
        format!("ssl_certificate {0}; ssl_certificate_key {0};", path.display())
    };
    let text = format!(
        "daemon off; worker_processes 1; pid {folder}/pid; error_log stderr crit; events {{}}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{
    listen {address} ssl http2; {ecdsa} {rsa}
    ssl_protocols TLSv1.2 TLSv1.3; ssl_prefer_server_ciphers on; ssl_ecdh_curve P-256:P-384;
    ssl_ciphers ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-GCM-SHA256;
    {set}
    return 200;
  }}
}}
",
        folder = folder.path().display(),
        ecdsa = certificate(KeyType::EcdsaP256, "ecdsa"),
        rsa = certificate(KeyType::Rsa2048, "rsa"),
    );
    let configuration = folder.write("nginx.conf", text);
    let mut command = Command::new(program);
    let process = Process::start(command.arg("-p").arg(folder.path()).arg("-c").arg(configuration));
    wait_until_accepting(address);
    process
}

/// The program beside this test's, where a build of the workspace puts it.
fn courser() -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2)?.join("courser");
    if !program.is_file() {
        skip(format!("{} is not there (cargo build -p courser makes it)", program.display()));
        return None;
    }
    Some(program)
}

fn wait_until_accepting(address: SocketAddr) {
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect(address).is_err() {
        assert!(Instant::now() < deadline, "nobody listens on {address}");
        thread::sleep(Duration::from_millis(5));
    }
}
