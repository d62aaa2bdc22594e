//! Certificates of backends: good ones, and each wrong one with its reason.

use std::io::Read;
use std::process::Command;

use courser_testkit::{Folder, Issued, KeyType, Leaf, OriginServer, Process, TestCa, require};

use super::{Site, client, get};
use crate::stage::{assert_closed, content, courser, only_line, run, run_courser};

/// Asserts that the page of `openssl s_server -www` comes through.
#[track_caller]
fn is_served(site: &Site, issued: &Issued, tls: &str) {
    let Some((_server, port)) = site.openssl(issued, &["-www"]) else { return };
    let courser = site.serve(&format!("127.0.0.1:{port}"), tls);
    let answer = get(&courser);
    assert!(answer.contains("s_server"), "{answer}");
    let line = only_line(&courser);
    assert_closed(&line, "done", "none");
    let tls = ["backend_version", "backend_suite", "backend_session"].map(|name| line[name].as_str());
    assert_eq!(tls, [Some("TLSv1.3"), Some("TLS_AES_256_GCM_SHA384"), Some("full")], "{line}");
}

#[test]
fn a_backend_is_verified_by_a_file_of_authorities() {
    let site = Site::new();
    is_served(&site, &site.issue(), "{ verify = ['CA'] }");
}

#[test]
fn a_backend_is_verified_by_the_fixed_name() {
    let site = Site::new();
    let issued = site.ca.issue(&Leaf::new(KeyType::EcdsaP256).names(["app.internal"]));
    is_served(&site, &issued, "{ verify = 'CA', server_name = 'app.internal' }");
}

#[test]
fn a_backend_is_verified_by_the_name_that_the_client_asks_for() {
    let site = Site::new();
    let issued = site.ca.issue(&Leaf::new(KeyType::EcdsaP256).names(["localhost"]));
    is_served(&site, &issued, "{ verify = 'CA', server_name = 'from-client' }");
}

/// The pin is made by the command that the error message recommends.
#[test]
fn a_backend_is_verified_by_its_key() {
    let (site, Some(_)) = (Site::new(), require("openssl")) else { return };
    let issued = TestCa::new().issue(&Leaf::new(KeyType::EcdsaP256).expired());
    let leaf = issued.write_pair(&site.folder, "pinned").chain;
    let pipeline = format!(
        "openssl x509 -in {} -noout -pubkey | openssl pkey -pubin -outform der | \
         openssl dgst -sha256 -binary | base64",
        leaf.display()
    );
    let pin = content(run(Command::new("sh").args(["-c", &pipeline])));
    is_served(&site, &issued, &format!("{{ verify = {{ pin = 'sha256/{}' }} }}", pin.trim()));
}

#[test]
fn a_backend_that_is_not_verified_is_warned_of_at_every_start() {
    let site = Site::new();
    is_served(&site, &TestCa::new().issue(&Leaf::new(KeyType::EcdsaP256).expired()), "{ verify = 'off' }");
    let courser = site.serve("127.0.0.1:9", "{ verify = 'off' }");
    courser.wait_stderr_line("BACKENDS ARE NOT VERIFIED");
}

#[test]
fn a_backend_is_verified_by_what_the_system_trusts() {
    let site = Site::new();
    let Some((_server, port)) = site.openssl(&site.issue(), &["-www"]) else { return };
    let ca = site.ca.write_root(&site.folder);
    let config = site.config(&format!("'127.0.0.1:{port}'"), "true", "");
    let courser = courser().config(&config).env("SSL_CERT_FILE", ca.to_str().unwrap()).start();
    assert!(get(&courser).contains("s_server"));
}

#[test]
fn each_wrong_certificate_ends_the_connection_with_its_reason_and_in_order() {
    let (site, stranger) = (Site::new(), TestCa::named("stranger"));
    let leaf = || Leaf::new(KeyType::EcdsaP256);
    let path = "{ verify = ['CA'] }";
    let pin = "{ verify = { pin = 'sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=' } }";
    for (issued, tls, reason) in [
        (
            site.ca.issue(&leaf().names(["other.example"])),
            path,
            "wrong name: the certificate is for other.example, not for 127.0.0.1",
        ),
        (site.ca.issue(&leaf().expired()), path, "expired: "),
        (site.ca.issue(&leaf().not_yet_valid()), path, "not valid yet: "),
        (stranger.issue(&leaf()), path, "unknown authority: "),
        (site.issue(), pin, "wrong key: "),
    ] {
        let Some((_server, port)) = site.openssl(&issued, &["-www"]) else { return };
        let courser = site.serve(&format!("127.0.0.1:{port}"), tls);
        let mut connection = client(&courser).connect().unwrap();
        let mut answer = Vec::new();
        connection.stream().read_to_end(&mut answer).expect("the client gets a clean end");
        assert!(answer.is_empty());
        let line = only_line(&courser);
        assert_closed(&line, "bad_backend_certificate", "backend");
        assert!(line["detail"].as_str().unwrap().contains(reason), "{line}");
        assert!(line["backend_version"].is_null(), "{line}");
        courser.wait_stderr_line(reason);
    }
}

#[test]
fn a_revoked_backend_is_refused() {
    let site = Site::new();
    let [good, bad] = [site.issue(), site.issue()];
    let list = site.folder.write("backends.crl", site.ca.revocation_list(&[&bad]));
    let tls = format!("{{ verify = ['CA'], crl = '{}' }}", list.display());
    is_served(&site, &good, &tls);
    let Some((_server, port)) = site.openssl(&bad, &["-www"]) else { return };
    let courser = site.serve(&format!("127.0.0.1:{port}"), &tls);
    client(&courser).connect().unwrap().stream().read_to_end(&mut Vec::new()).expect("a clean end");
    let line = only_line(&courser);
    assert_closed(&line, "bad_backend_certificate", "backend");
    assert!(line["detail"].as_str().unwrap().contains("revoked: "), "{line}");
}

#[test]
fn a_server_with_a_wrong_certificate_is_passed_over_and_ejected() {
    let site = Site::new();
    let Some((_bad, bad)) = site.openssl(&site.ca.issue(&Leaf::new(KeyType::EcdsaP256).expired()), &["-www"])
    else {
        return;
    };
    let Some((_good, good)) = site.openssl(&site.issue(), &["-www"]) else { return };
    let servers = format!("'127.0.0.1:{bad}', '127.0.0.1:{good}'");
    let courser = site.serve_all(&servers, "{ verify = ['CA'] }", "");
    for _ in 0..10 {
        assert!(get(&courser).contains("s_server"));
    }
    let lines = courser.connections_json(10);
    assert!(lines.iter().all(|line| line["close_reason"] == "done"), "{lines:#?}");
    let retries: u64 = lines.iter().map(|line| line["retries"].as_u64().unwrap()).sum();
    assert_eq!(retries, 3);
    courser.wait_stderr_line("ejected for 5 s: expired: ");
}

/// HAProxy and nginx expect the PROXY header before TLS, and a certificate in it.
#[test]
fn haproxy_gets_the_proxy_header_and_a_certificate() {
    let (site, origin, Some(program)) = (Site::new(), OriginServer::http(), require("haproxy")) else {
        return;
    };
    let port = courser_testkit::free_port();
    let (issued, ca) =
        (site.issue().write_combined(&site.folder, "haproxy"), site.ca.write_root(&site.folder));
    let config = format!(
        "global\n  log stdout format raw local0\ndefaults\n  mode tcp\n  log global\n  timeout connect 5s\n  \
         timeout client 20s\n  timeout server 20s\nfrontend tls\n  \
         bind 127.0.0.1:{port} accept-proxy ssl crt {} ca-file {} verify required\n  \
         log-format 'client=%ci cert=%{{+Q}}[ssl_c_s_dn(cn)] sni=%[ssl_fc_sni]'\n  default_backend origin\n\
         backend origin\n  server origin {}\n",
        issued.display(),
        ca.display(),
        origin.backend()
    );
    let config = site.folder.write("haproxy.cfg", config);
    let haproxy = Process::start(Command::new(program).arg("-db").arg("-f").arg(config));
    super::wait_for_port(port);
    let courser = serve_with_certificate(&site, port, "v2");
    client(&courser).connect().unwrap().get(1000, true).unwrap();
    let seen = haproxy.wait_stdout("a connection in HAProxy's log", |lines| {
        lines.iter().find(|line| line.contains("cert=\"courser\"")).cloned()
    });
    assert!(seen.contains("client=127.0.0.1") && seen.contains("sni=localhost"), "{seen}");
    let last = courser.connections_json(1).pop().unwrap();
    assert_closed(&last, "done", "none");
}

#[test]
fn nginx_gets_the_proxy_header_and_a_certificate() {
    let (site, port) = (Site::new(), courser_testkit::free_port());
    let server = format!(
        "server {{ listen 127.0.0.1:{port} ssl proxy_protocol; CERT ssl_client_certificate {}; ssl_verify_client on; \
         return 200 \"from $proxy_protocol_addr, $ssl_client_s_dn, $ssl_protocol\"; }}",
        site.ca.write_root(&site.folder).display()
    );
    let Some(_nginx) = site.nginx(&server) else { return };
    super::wait_for_port(port);
    // This nginx has no room for what version 2 tells of TLS.
    let answer = get(&serve_with_certificate(&site, port, "v1"));
    assert!(answer.ends_with("from 127.0.0.1, CN=courser, TLSv1.3"), "{answer}");
}

fn serve_with_certificate(site: &Site, port: u16, header: &str) -> courser_testkit::Courser {
    let ours = site.ca.issue(&Leaf::new(KeyType::EcdsaP256).of_client("courser"));
    let ours = ours.write_combined(&site.folder, "ours");
    let tls = format!("{{ verify = ['CA'], server_name = 'localhost', cert = '{}' }}", ours.display());
    site.serve_all(&format!("'127.0.0.1:{port}'"), &tls, &format!("send_proxy = '{header}'"))
}

/// With TLS 1.3 the refusal comes after the handshake, in place of an answer.
#[test]
fn a_backend_that_misses_our_certificate_is_the_one_that_ends_the_connection() {
    let site = Site::new();
    let ca = site.ca.write_root(&site.folder);
    let arguments = ["-www", "-Verify", "1", "-CAfile", ca.to_str().unwrap()];
    let Some((_server, port)) = site.openssl(&site.issue(), &arguments) else { return };
    let courser = site.serve(&format!("127.0.0.1:{port}"), "{ verify = ['CA'] }");
    let mut connection = client(&courser).connect().unwrap();
    let _ = std::io::Write::write_all(&mut connection.stream(), b"GET / HTTP/1.0\r\n\r\n");
    let cut = connection.stream().read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(cut.kind(), std::io::ErrorKind::UnexpectedEof, "the client can tell");
    let line = only_line(&courser);
    assert_closed(&line, "backend_alert", "backend");
    assert_eq!(line["detail"], "CertificateRequired", "{line}");
}

#[test]
fn wrong_files_are_told_before_anything_is_served() {
    let folder = Folder::new();
    let pair = TestCa::new().issue(&Leaf::new(KeyType::EcdsaP256)).write_pair(&folder, "leaf");
    let exposed = TestCa::new().issue(&Leaf::new(KeyType::EcdsaP256)).write_combined(&folder, "exposed");
    std::fs::set_permissions(&exposed, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let toml = format!(
        "[pool.missing]\nservers = '127.0.0.1:1'\ntls = {{ verify = 'missing.pem' }}\n\
         [pool.leaf]\nservers = '127.0.0.1:1'\ntls = {{ verify = '{}' }}\n\
         [pool.exposed]\nservers = '127.0.0.1:1'\ntls = {{ verify = 'off', cert = '{}' }}\n\
         [[listener]]\nlisten = '127.0.0.1:0'\npool = 'missing'\n",
        pair.chain.display(),
        exposed.display()
    );
    let file = folder.write("courser.toml", toml);
    let told = run_courser(&["check", "--config", file.to_str().unwrap()]).stderr;
    for part in
        ["missing.pem: the file cannot be read", "is not a certificate authority", "others can read it"]
    {
        assert!(told.contains(part), "no {part:?} in:\n{told}");
    }
}
