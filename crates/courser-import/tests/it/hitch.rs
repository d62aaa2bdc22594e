//! hitch's files and stud's command lines.

use courser_import::hitch;

use crate::memory::{Memory, body, ok, unsupported};

/// Where nothing is said of them.
const ALL_SUITES: &str = "suites = [\"TLS_AES_128_GCM_SHA256\", \"TLS_AES_256_GCM_SHA384\", \"TLS_CHACHA20_POLY1305_SHA256\", \
                          \"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384\", \"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384\", \"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256\", \"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256\"]";

#[test]
fn the_defaults_are_hitchs() {
    let import = ok(hitch("pem-file = \"/etc/hitch/site.pem\"\n", &Memory::default()));
    let expected = "[[listener]]\nlisten = [\"*:8443\"]\ncert = [\"/etc/hitch/site.pem\"]\n\
                    backend = [\"127.0.0.1:8000\"]\nidle_timeout = \"1d\"\n";
    let expected = format!("{expected}{ALL_SUITES}\n");
    assert_eq!(body(&import), expected);
    assert!(!import.is_incomplete());
}

#[test]
fn the_certificate_that_hitch_lists_last_comes_first() {
    let text = "pem-file = \"a.pem\"\npem-file = { cert = \"b.crt\" private-key = \"b.key\" }";
    let import = ok(hitch(text, &Memory::default()));
    let expected = r#"cert = [{ chain = "b.crt", key = "b.key" }, "a.pem"]"#;
    assert!(body(&import).contains(expected), "{}", import.toml);
}

#[test]
fn staples_are_carried_over() {
    let block = "pem-file = {\n cert = \"a.pem\"\n private-key = \"a.key\"\n ocsp-resp-file = \"a.ocsp\"\n}";
    let import = ok(hitch(block, &Memory::of([])));
    assert!(body(&import).contains(r#"staple = ["a.ocsp"]"#), "{}", import.toml);
}

#[test]
fn a_folder_of_certificates_is_listed_by_its_pattern() {
    let files = Memory::of([("/c/a.pem", ""), ("/c/b.pem", ""), ("/c/b.ocsp", "")]);
    let alone = ok(hitch("pem-dir = \"/c\"\npem-dir-glob = \"*.pem\"", &files));
    assert!(body(&alone).contains(r#"cert = ["/c/a.pem", "/c/b.pem"]"#), "the first serves: {}", alone.toml);
    let beside = ok(hitch("pem-dir = \"/c\"\npem-dir-glob = \"*.pem\"\npem-file = \"d.pem\"", &files));
    assert!(body(&beside).contains(r#"cert = ["d.pem", "/c/b.pem", "/c/a.pem"]"#), "{}", beside.toml);
}

#[test]
fn front_ends_have_what_is_theirs_and_what_is_set_above_or_below_them() {
    let text = "\
frontend = {
    host = \"127.0.0.1\"
    port = \"8444\"
    pem-file = \"own.pem\"
    tls-protos = TLSv1.3
    sni-nomatch-abort = on
}
frontend = \"[::1]:8445+other.pem\"
frontend = \"[*]:8446\"
pem-file = \"all.pem\"
backend = \"/run/app.sock\"
write-proxy-v2 = on
alpn-protos = \"h2, http/1.1\"
tls-protos = TLSv1.1 TLSv1.2
workers = 4
user = \"hitch\"
";
    let import = ok(hitch(text, &Memory::default()));
    let expected = r#"workers = 4
user = "hitch"

[[listener]]
listen = ["127.0.0.1:8444"]
cert = ["own.pem"]
backend = ["unix:/run/app.sock"]
idle_timeout = "1d"
send_proxy = "v2"
alpn = ["h2", "http/1.1"]
unknown_name = "refuse"
versions = ["1.3"]
suites = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"]

[[listener]]
listen = ["[::1]:8445"]
cert = ["other.pem"]
backend = ["unix:/run/app.sock"]
idle_timeout = "1d"
send_proxy = "v2"
alpn = ["h2", "http/1.1"]
versions = ["1.2"]
suites = ["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]

[[listener]]
listen = ["*:8446"]
cert = ["all.pem"]
backend = ["unix:/run/app.sock"]
idle_timeout = "1d"
send_proxy = "v2"
alpn = ["h2", "http/1.1"]
versions = ["1.2"]
suites = ["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]
"#;
    assert_eq!(body(&import), expected);
    let said = import.toml.lines().filter(|line| line.starts_with("# line")).collect::<Vec<_>>();
    assert!(
        said.iter().any(|line| line.contains("line 6") && line.contains("clients that name no server")),
        "{said:?}"
    );
    assert!(said.iter().any(|line| line.contains("TLSv1.1") && line.contains("RFC 8996")), "{said:?}");
}

#[test]
fn what_the_backend_would_misread_is_unsupported() {
    for setting in ["write-ip = on", "client = on"] {
        let import = ok(hitch(&format!("pem-file = \"a.pem\"\n{setting}\n"), &Memory::default()));
        assert!(import.is_incomplete());
        assert!(!body(&import).contains("[[listener]]"), "{}", import.toml);
        assert!(unsupported(&import)[0].starts_with("line 2: UNSUPPORTED"), "{:?}", unsupported(&import));
    }
}

#[test]
fn text_that_hitch_refuses_is_refused_with_its_line() {
    let cases = [
        ("frontend = \"[*]:443", 1),
        ("\nbackend", 2),
        ("workers = 2\nfrontend = {\nport = \"1\"", 2),
        ("no-such-thing = on", 1),
        ("}", 1),
        ("client-verify = perhaps", 1),
        ("frontend = \"nowhere\"", 1),
    ];
    for (text, line) in cases {
        assert_eq!(hitch(text, &Memory::default()).unwrap_err().line, line, "{text}");
    }
}

#[test]
fn a_command_line_of_stud_is_read_in_all_its_forms() {
    let line = [
        "--tls",
        "-b",
        "127.0.0.1,8080",
        "-f*,8443",
        "-n",
        "2",
        "--write-proxy",
        "--keepalive=60",
        "-q",
        "site.pem",
    ];
    let arguments = line.map(str::to_owned);
    let import = ok(courser_import::stud(&arguments, &Memory::default()));
    let expected = "workers = 2\n\n[[listener]]\nlisten = [\"*:8443\"]\ncert = [\"site.pem\"]\n\
                    backend = [\"127.0.0.1:8080\"]\nidle_timeout = \"1d\"\nsend_proxy = \"v2\"\ntcp_keepalive = \"60s\"\n";
    let expected = format!("{expected}{ALL_SUITES}\n");
    assert_eq!(body(&import), expected);
    for wrong in [vec!["-Z"], vec!["--backend"], vec!["-n"]] {
        let arguments: Vec<String> = wrong.iter().map(|word| (*word).to_owned()).collect();
        assert!(courser_import::stud(&arguments, &Memory::default()).is_err(), "{wrong:?}");
    }
}
