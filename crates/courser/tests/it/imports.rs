//! `courser import`, judged by the programs whose configurations it reads: each configuration is loaded by its own program and
//! by courser, and clients must not be able to tell the two apart, nor must the backend.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use courser_testkit::{
    Behaviour, Courser, Folder, KeyType, OriginServer, PATIENCE, Process, TestCa, ca::Leaf, free_port,
    require, skip,
};

use crate::stage::{courser, run, run_courser};

/// A program, what it is started with, and a configuration with `PORT`, `BACKEND` and `DIR` where they differ.
struct Original<'a> {
    program: &'static str,
    /// As `courser import` calls it.
    language: &'static str,
    text: &'a str,
    /// The backend gets a PROXY header.
    proxy: bool,
}

const HITCH: [&str; 5] = [
    "frontend = \"[127.0.0.1]:PORT\"
backend = \"[127.0.0.1]:BACKEND\"
pem-file = \"DIR/a.pem\"
pem-file = \"DIR/b.pem\"
",
    "frontend = { host = \"127.0.0.1\" port = \"PORT\" }
backend = \"[127.0.0.1]:BACKEND\"
pem-file = { cert = \"DIR/a.crt\" private-key = \"DIR/a.key\" }
tls-protos = TLSv1.2
ciphers = \"EECDH+AESGCM:!AES256\"
",
    "frontend = \"[127.0.0.1]:PORT\"
backend = \"[127.0.0.1]:BACKEND\"
pem-dir = \"DIR/pairs\"
pem-dir-glob = \"*.pem\"
tls-protos = TLSv1.3
ciphersuites = \"TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256\"
write-proxy-v1 = on
",
    "frontend = \"[127.0.0.1]:PORT\"
backend = \"[127.0.0.1]:BACKEND\"
pem-file = \"DIR/rsa.pem\"
ecdh-curve = \"prime256v1:secp384r1\"
write-proxy-v2 = on
",
    "frontend = \"[127.0.0.1]:PORT\"
backend = \"[127.0.0.1]:BACKEND\"
pem-file = \"DIR/a.pem\"
proxy-proxy = on
",
];

const STUNNEL: [&str; 5] = [
    "foreground = yes
[s]
accept = 127.0.0.1:PORT
connect = 127.0.0.1:BACKEND
cert = DIR/a.pem
",
    "foreground = yes
sslVersion = TLSv1.2
ciphers = ECDHE+CHACHA20:ECDHE+AES256
[s]
accept = 127.0.0.1:PORT
connect = 127.0.0.1:BACKEND
cert = DIR/rsa.pem
protocol = proxy
",
    "foreground = yes
cert = DIR/a.crt
key = DIR/a.key
[s]
accept = 127.0.0.1:PORT
connect = 127.0.0.1:BACKEND
sslVersionMin = TLSv1.3
curves = X25519:P-384
[b]
sni = s:b.example
connect = 127.0.0.1:BACKEND
cert = DIR/b.crt
key = DIR/b.key
",
    "foreground = yes
[s]
accept = 127.0.0.1:PORT
connect = 127.0.0.1:BACKEND
cert = DIR/a.pem
verifyChain = yes
CAfile = DIR/ca.pem
",
    "foreground = yes
[s]
accept = 127.0.0.1:PORT
connect = 127.0.0.1:BACKEND
cert = DIR/a.pem
verify = 2
CAfile = DIR/ca.pem
CRLfile = DIR/revoked.pem
",
];

const HAPROXY: [&str; 6] = [
    "defaults
  mode tcp
  timeout connect 5s
  timeout client 1m
  timeout server 1m
listen s
  bind 127.0.0.1:PORT ssl crt DIR/a.pem crt DIR/b.pem
  server o 127.0.0.1:BACKEND
",
    "global
  ssl-default-bind-options ssl-min-ver TLSv1.2
  ssl-default-bind-ciphers ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-CHACHA20-POLY1305
  ssl-default-bind-ciphersuites TLS_AES_128_GCM_SHA256
defaults
  mode tcp
  timeout connect 5s
  timeout client 1m
  timeout server 1m
frontend f
  bind 127.0.0.1:PORT ssl crt DIR/bundle.pem curves X25519:P-256 strict-sni
  default_backend b
backend b
  balance leastconn
  server o 127.0.0.1:BACKEND weight 5 send-proxy-v2
",
    "defaults
  mode tcp
  timeout connect 5s
  timeout client 1m
  timeout server 1m
frontend f
  bind 127.0.0.1:PORT ssl crt DIR/pairs/ ssl-max-ver TLSv1.2
  use_backend b if { ssl_fc_sni b.example }
  default_backend a
backend a
  server o 127.0.0.1:BACKEND send-proxy
backend b
  server o 127.0.0.1:BACKEND send-proxy
",
    "defaults
  mode tcp
  timeout connect 5s
  timeout client 1m
  timeout server 1m
listen s
  bind 127.0.0.1:PORT ssl crt DIR/a.pem verify required ca-file DIR/ca.pem
  server o 127.0.0.1:BACKEND
",
    "defaults
  mode tcp
  timeout connect 5s
  timeout client 1m
  timeout server 1m
listen s
  bind 127.0.0.1:PORT ssl crt DIR/a.pem verify optional ca-file DIR/ca.pem crl-file DIR/revoked.pem
  server o 127.0.0.1:BACKEND send-proxy-v2-ssl-cn
",
    "defaults
  mode tcp
  timeout connect 5s
  timeout client 1m
  timeout server 1m
listen s
  bind 127.0.0.1:PORT accept-proxy ssl crt DIR/a.pem
  server o 127.0.0.1:BACKEND send-proxy-v2-ssl
",
];

#[test]
fn what_hitch_does_courser_does_after_the_import() {
    for (index, text) in HITCH.into_iter().enumerate() {
        alike(&Original { program: "hitch", language: "hitch", text, proxy: index >= 2 });
    }
}

#[test]
fn what_stunnel_does_courser_does_after_the_import() {
    for (index, text) in STUNNEL.into_iter().enumerate() {
        alike(&Original { program: "stunnel4", language: "stunnel", text, proxy: index == 1 });
    }
}

#[test]
fn what_haproxy_does_courser_does_after_the_import() {
    for (index, text) in HAPROXY.into_iter().enumerate() {
        alike(&Original {
            program: "haproxy",
            language: "haproxy",
            text,
            proxy: [1, 2, 4, 5].contains(&index),
        });
    }
}

/// The sample configurations of Debian's packages: the language, the package and the file.
const SAMPLES: [(&str, &str, &str); 3] = [
    ("hitch", "hitch", "usr/share/doc/hitch/examples/hitch.conf.example"),
    ("stunnel", "stunnel4", "usr/share/doc/stunnel4/examples/stunnel.conf-sample"),
    ("haproxy", "haproxy", "etc/haproxy/haproxy.cfg"),
];

#[test]
fn the_samples_of_the_packages_are_read_and_what_they_cannot_be_is_said() {
    let folder = Folder::new();
    for sample @ (language, _, path) in SAMPLES {
        let Some(text) = text_of(sample) else { continue };
        let file = folder.write(language, text);
        let import = run_courser(&["import", language, &file.display().to_string()]);
        assert!(!import.stderr.contains("would not take it"), "{path}: {}", import.stderr);
        // Of stunnel's all are clients, and HAProxy's has no front end: what is not there, nothing is made of.
        assert_eq!(import.stdout.contains("[[listener]]"), language == "hitch", "{path}: {}", import.stdout);
    }
}

/// A sample names what a machine has not got yet: each is completed as its comments say, and runs in the foreground, as the
/// user that it is started by. All else is as the package has it.
#[test]
fn what_a_completed_sample_of_a_package_does_courser_does_after_the_import() {
    let [hitch, stunnel, haproxy] = SAMPLES.map(text_of);
    if let Some(sample) = hitch {
        let text = edited(
            sample + "pem-file = \"DIR/a.pem\"\n",
            &[
                ("host = \"*\"", "host = \"127.0.0.1\""),
                ("port = \"443\"", "port = \"PORT\""),
                ("[127.0.0.1]:6086", "[127.0.0.1]:BACKEND"),
                ("daemon = on", "daemon = off"),
                ("user = \"hitch\"\ngroup = \"hitch\"\n", ""),
            ],
        );
        alike(&Original { program: "hitch", language: "hitch", text: &text, proxy: true });
    }
    if let Some(sample) = stunnel {
        let (_, clients) = sample.split_once("\n[gmail-pop3]").unwrap();
        let clients = format!("\n[gmail-pop3]{}", clients.split_once("\n;").unwrap().0);
        let text = edited(
            sample,
            &[
                (&clients, ""),
                (";foreground = yes", "foreground = yes"),
                (
                    ";[https]\n;accept  = 443\n;connect = 80\n;cert = /etc/stunnel/stunnel.pem",
                    "[https]\naccept  = 127.0.0.1:PORT\nconnect = 127.0.0.1:BACKEND\ncert = DIR/a.pem",
                ),
                (";TIMEOUTclose = 0", "TIMEOUTclose = 0"),
            ],
        );
        alike(&Original { program: "stunnel4", language: "stunnel", text: &text, proxy: false });
    }
    if let Some(sample) = haproxy {
        let front =
            "listen s\n  mode tcp\n  bind 127.0.0.1:PORT ssl crt DIR/a.pem\n  server o 127.0.0.1:BACKEND\n";
        let text = edited(
            sample + front,
            &[
                ("\tstats socket /run/haproxy/admin.sock mode 660 level admin\n", ""),
                ("\tuser haproxy\n\tgroup haproxy\n\tdaemon\n", ""),
            ],
        );
        alike(&Original { program: "haproxy", language: "haproxy", text: &text, proxy: false });
    }
}

fn edited(text: String, edits: &[(&str, &str)]) -> String {
    edits.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "the package has another sample than expected, without {from}:\n{text}");
        text.replace(from, to)
    })
}

/// Of the package as it is installed, or else as the distribution has it: documentation is often left out, as in containers.
/// `None`, with the reason printed, where it cannot be fetched.
fn text_of((_, package, path): (&str, &str, &str)) -> Option<String> {
    let fetched = Path::new(env!("CARGO_TARGET_TMPDIR")).join("samples").join(package);
    let read = |root: &Path| fs::read_to_string(root.join(path)).ok();
    if let Some(text) = read(Path::new("/")).or_else(|| read(&fetched)) {
        return Some(text);
    }
    let (Some(_), Some(_)) = (require("apt-get"), require("dpkg-deb")) else { return None };
    let done = run(Command::new("sh").args(["-ec", FETCH, "fetch", package]).arg(&fetched));
    let text = read(&fetched);
    if text.is_none() {
        skip(format!("{path} of {package} cannot be fetched: {}", done.stderr.trim()));
    }
    text
}

const FETCH: &str = "\
work=$(mktemp -d)
trap 'rm -rf \"$work\"' EXIT
cd \"$work\"
apt-get -qq -o APT::Sandbox::User=root download \"$1\"
mkdir -p \"$2\"
dpkg-deb -x ./*.deb \"$2\"
";

/// The files that configurations name: certificates for a.example and b.example, by themselves and in a folder, ECDSA and
/// RSA of one name as a bundle.
fn files() -> Folder {
    let (folder, ca) = (Folder::new(), TestCa::new());
    let leaf = |key, name: &str| ca.issue(&Leaf::new(key).names([name]).with_common_name(name));
    for name in ["a", "b"] {
        let issued = leaf(KeyType::EcdsaP256, &format!("{name}.example"));
        issued.write_combined(&folder, name);
        issued.write_pair(&folder, name);
        fs::create_dir_all(folder.join("pairs")).unwrap();
        issued.write_combined(&folder, &format!("pairs/{name}"));
    }
    leaf(KeyType::Rsa2048, "a.example").write_combined(&folder, "rsa");
    for (key, kind) in [(KeyType::EcdsaP256, "ecdsa"), (KeyType::Rsa2048, "rsa")] {
        let issued = leaf(key, "a.example");
        folder.write(&format!("bundle.pem.{kind}"), format!("{}{}", issued.chain_pem, issued.key_pem));
    }
    ca.write_root(&folder);
    let [_, revoked] = ["client", "revoked-client"].map(|name| {
        let issued = ca.issue(&Leaf::new(KeyType::EcdsaP256).of_client(name));
        issued.write_combined(&folder, name);
        issued
    });
    folder.write("revoked.pem", ca.revocation_list(&[&revoked]));
    folder
}

#[track_caller]
fn alike(original: &Original<'_>) {
    let (Some(program), Some(_)) = (require(original.program), require("openssl")) else { return };
    let (folder, origin) = (files(), OriginServer::setup(Behaviour::Http));
    let origin = if original.proxy { origin.proxy().start() } else { origin.start() };
    let write = |name: &str, port: u16| {
        let text = original.text.replace("PORT", &port.to_string());
        let text = text.replace("BACKEND", &origin.address().port().to_string());
        folder.write(name, text.replace("DIR", &folder.path().display().to_string()))
    };
    let (theirs, ours) = (free_port(), free_port());
    let (file, other) = (write("theirs.conf", theirs), write("ours.conf", ours));
    let mut command = Command::new(program);
    match original.program {
        // As root it insists on another user for its workers; it has read the keys by then.
        "hitch" => {
            command.args(["--user=nobody", "--group=nogroup"]).arg(format!("--config={}", file.display()))
        }
        // Without `-db` it would go on in the background where a file says so.
        "haproxy" => command.arg("-db").arg("-f").arg(&file),
        _ => command.arg(&file),
    };
    let mut process = Process::start(&mut command);
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect(("127.0.0.1", theirs)).is_err() {
        let why = || [process.stdout(), process.stderr()].concat().join("\n");
        assert!(Instant::now() < deadline, "{} does not listen: {}", original.program, why());
        thread::sleep(Duration::from_millis(5));
    }
    assert!(process.is_running());
    let imported = run_courser(&["import", original.language, &other.display().to_string()]);
    assert!(imported.status.success(), "{}{}", imported.stderr, original.text);
    let config = folder.write("courser.toml", &imported.stdout);
    let courser: Courser = courser().config(&config).arg("--workers").arg("1").start();
    let in_front = ["accept-proxy", "proxy-proxy"].iter().any(|word| original.text.contains(word));
    let balancers = [theirs, courser.address().port()].map(|port| in_front.then(|| balancer(&folder, port)));
    let to = |number: usize, port| balancers[number].as_ref().map_or(port, |one| one.address().port());
    let (theirs, ours) = (to(0, theirs), to(1, courser.address().port()));
    for probe in probes(original.text) {
        let (theirs, ours) = (probe.outcome(theirs, &folder), probe.outcome(ours, &folder));
        assert_eq!(ours, theirs, "{probe:?} of\n{}\n{}", original.text, imported.stdout);
    }
    if original.proxy {
        let headers: Vec<_> =
            origin.headers().iter().map(|header| header.starts_with(b"PROXY TCP4 127.0.0.1")).collect();
        assert!(
            headers.windows(2).all(|pair| pair[0] == pair[1]),
            "either version 1 from both, or 2: {headers:?}"
        );
    }
}

/// What stands in front of a terminator that accepts PROXY headers: it relays TLS as it comes, behind one of version 1.
fn balancer(folder: &Folder, port: u16) -> Courser {
    let text = format!(
        "workers = 1\n[[listener]]\nlisten = '127.0.0.1:0'\nsend_proxy = 'v1'\nroute = {{ relay = 'behind' }}\n\
         [pool.behind]\nservers = '127.0.0.1:{port}'\n"
    );
    courser().config(&folder.write(&format!("balancer-{port}.toml"), text)).start()
}

/// A client of one kind.
#[derive(Debug)]
struct Probe {
    arguments: Vec<&'static str>,
    name: Option<&'static str>,
    /// Its certificate.
    shows: Option<&'static str>,
}

fn probes(text: &str) -> Vec<Probe> {
    let suites12 = [
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        "ECDHE-RSA-AES128-GCM-SHA256",
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ECDHE-RSA-AES256-GCM-SHA384",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        "ECDHE-RSA-CHACHA20-POLY1305",
    ];
    let suites13 = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];
    let probe = |arguments: Vec<&'static str>, name, shows| Probe { arguments, name, shows };
    let client = Some("client");
    let mut clients = vec![client];
    clients.extend(text.contains("ca.pem").then_some(None));
    clients.extend(text.contains("revoked.pem").then_some(Some("revoked-client")));
    let mut probes = Vec::new();
    for shows in clients {
        for version in ["-tls1_2", "-tls1_3"] {
            for name in [Some("a.example"), Some("b.example"), Some("c.example"), None] {
                probes.push(probe(vec![version], name, shows));
            }
        }
    }
    probes.extend(suites12.map(|suite| probe(vec!["-tls1_2", "-cipher", suite], Some("a.example"), client)));
    probes.extend(
        suites13.map(|suite| probe(vec!["-tls1_3", "-ciphersuites", suite], Some("a.example"), client)),
    );
    for group in ["X25519", "P-256", "P-384"] {
        probes.push(probe(vec!["-tls1_3", "-groups", group], Some("a.example"), client));
    }
    probes
}

impl Probe {
    /// The subject of the certificate, and whether the request was answered.
    fn outcome(&self, port: u16, folder: &Folder) -> (Option<String>, bool) {
        let mut command = Command::new("openssl");
        command
            .args(["s_client", "-ign_eof", "-connect", &format!("127.0.0.1:{port}")])
            .args(&self.arguments);
        match self.name {
            Some(name) => command.args(["-servername", name]),
            None => command.arg("-noservername"),
        };
        if let Some(certificate) = self.shows {
            let file = folder.join(&format!("{certificate}.pem"));
            command.arg("-cert").arg(&file).arg("-key").arg(&file);
        }
        let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        let done = Process::start_with_input(&mut command, request).finish();
        let subject = done.stdout.lines().find_map(|line| line.strip_prefix("subject="));
        (subject.map(str::to_owned), done.stdout.contains("HTTP/1.1 200"))
    }
}
