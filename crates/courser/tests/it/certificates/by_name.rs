//! Certificates by server name: exact, wildcard, default, and names that nobody knows.

use courser_testkit::courser::Setup;
use courser_testkit::{Courser, KeyType, Leaf};

use crate::support::{Said, Site, assert_line, client, line, openssl, text};

/// The common name of the certificate that OpenSSL was shown; versions of it differ in blanks.
#[track_caller]
fn subject(said: &Said) -> String {
    let line = said.text.lines().find_map(|line| line.strip_prefix("subject="));
    let subject = line.unwrap_or_else(|| panic!("no certificate in:\n{}", said.text)).replace(' ', "");
    subject.trim_start_matches("CN=").to_owned()
}

/// Asserts which certificate each name is shown.
#[track_caller]
fn shows(courser: &Courser, cases: &[(&str, &str)]) {
    for (name, wanted) in cases {
        let Some(said) = openssl(courser.address(), &format!("-servername {name}")) else { return };
        said.has_page();
        assert_eq!(subject(&said), *wanted, "for {name}");
    }
}

/// A terminator with one certificate for each of the names, the first the default.
fn serving(site: &Site, names: &[&str]) -> Setup {
    let cert = |(index, name): (usize, &&str)| {
        let leaf = Leaf::new(KeyType::EcdsaP256).names([*name]);
        site.ca.issue(&leaf).write_combined(&site.folder, &index.to_string())
    };
    names.iter().enumerate().map(cert).fold(site.setup(), Setup::cert)
}

#[test]
fn an_exact_name_goes_before_a_wildcard_and_a_wildcard_before_the_default() {
    let site = Site::new();
    let courser = serving(&site, &["default.example", "*.a.example", "www.a.example"]).start();
    shows(
        &courser,
        &[
            ("www.a.example", "www.a.example"),
            ("other.a.example", "*.a.example"),
            ("default.example", "default.example"),
            ("elsewhere.example", "default.example"),
        ],
    );
}

#[test]
fn a_wildcard_stands_for_exactly_one_label() {
    let site = Site::new();
    let courser = serving(&site, &["default.example", "*.a.example"]).start();
    shows(&courser, &[("a.example", "default.example"), ("x.y.a.example", "default.example")]);
}

#[test]
fn names_are_compared_without_regard_to_case() {
    let site = Site::new();
    let courser = serving(&site, &["default.example", "WWW.a.example"]).start();
    shows(&courser, &[("wwW.A.exAmple", "WWW.a.example")]);
    assert_line(&line(&courser, 1), &[("sni", "www.a.example")]);
}

#[test]
fn a_client_without_a_name_gets_the_default() {
    let site = Site::new();
    let courser = serving(&site, &["default.example", "a.example"]).start();
    let Some(said) = openssl(courser.address(), "-noservername") else { return };
    assert_eq!(subject(said.has_page()), "default.example");
    assert!(line(&courser, 1)["sni"].is_null());
}

#[test]
fn each_name_has_its_own_choice_of_keys() {
    let site = Site::new();
    let both = |name: &str, key| {
        let leaf = Leaf::new(key).names([name]);
        site.ca.issue(&leaf).write_combined(&site.folder, &format!("{name}-{key:?}"))
    };
    let courser = site
        .setup()
        .cert(both("a.example", KeyType::EcdsaP256))
        .cert(both("b.example", KeyType::Rsa2048))
        .cert(both("b.example", KeyType::EcdsaP256))
        .start();
    let Some(said) = openssl(courser.address(), "-servername b.example -sigalgs RSA-PSS+SHA256") else {
        return;
    };
    assert_eq!(subject(said.has_page()), "b.example");
    assert_line(&line(&courser, 1), &[("key", "RSA2048")]);
    shows(&courser, &[("b.example", "b.example"), ("a.example", "a.example")]);
    assert_line(&line(&courser, 2), &[("key", "EC256")]);
}

#[test]
fn an_unknown_name_is_refused_with_unrecognized_name_where_so_set() {
    let site = Site::new();
    let courser = serving(&site, &["a.example", "*.b.example"]).args(["--unknown-name", "refuse"]).start();
    shows(&courser, &[("a.example", "a.example"), ("x.b.example", "*.b.example")]);
    for (number, arguments) in
        ["-servername c.example", "-noservername", "-servername b.example -tls1_2"].into_iter().enumerate()
    {
        let Some(said) = openssl(courser.address(), arguments) else { return };
        said.has("SSL alert number 112").lacks("HTTP/1.1 200");
        assert_line(&line(&courser, number + 3), &[("close_reason", "unknown_name"), ("cause", "client")]);
    }
}

#[test]
fn curl_names_the_refusal() {
    let site = Site::new();
    let courser = serving(&site, &["a.example"]).args(["--unknown-name", "refuse"]).start();
    let port = courser.address().port();
    let resolve = format!("c.example:{port}:127.0.0.1");
    let url = format!("https://c.example:{port}/");
    let Some(said) = client("curl", &["-sSk", "--resolve", &resolve, &url], "") else { return };
    assert!(!said.success);
    said.has("unrecognized name");
}

#[test]
fn virtual_hosts_have_their_own_certificates() {
    let site = Site::new();
    let write = |name: &str| {
        let leaf = Leaf::new(KeyType::EcdsaP256).names([name]);
        site.ca.issue(&leaf).write_combined(&site.folder, name.trim_start_matches("*."))
    };
    let [default, a, b] = ["default.example", "a.example", "*.b.example"].map(write);
    let toml = format!(
        r#"
        [[listener]]
        listen = "127.0.0.1:0"
        backend = "BACKEND"
        cert = "{}"
        [[listener.host]]
        name = "a"
        cert = "{}"
        [[listener.host]]
        name = "b"
        names = ["*.b.example"]
        cert = "{}"
        "#,
        text(&default),
        text(&a),
        text(&b)
    );
    let courser = site.configured(&toml).start();
    shows(
        &courser,
        &[("a.example", "a.example"), ("x.b.example", "*.b.example"), ("c.example", "default.example")],
    );
    assert_line(&line(&courser, 1), &[("host", "a")]);
    assert_line(&line(&courser, 2), &[("host", "b")]);
}
