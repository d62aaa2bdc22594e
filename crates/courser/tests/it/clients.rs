//! Clients in use out there fetch a page over both versions, each restricted to ECDSA or to RSA where it can be, and
//! verify what they are shown.

use courser_testkit::KeyType::{EcdsaP256, Rsa2048};
use courser_testkit::{Courser, leave_out};

use crate::stage::go_program;
use crate::support::{REQUEST, Said, Site, assert_line, client, line, openssl, text};

/// What a TLS 1.2 client offers that is restricted to one kind of certificate.
const ECDSA: &str = "ECDHE-ECDSA-AES128-GCM-SHA256";
const RSA: &str = "ECDHE-RSA-AES128-GCM-SHA256";

/// A terminator with certificates of both kinds, and what its clients need to know.
struct Shop {
    courser: Courser,
    root: String,
    port: String,
    /// Whether its clients say close_notify, whoever closes first.
    polite: bool,
    _site: Site,
}

impl Shop {
    fn open() -> Self {
        let site = Site::new();
        let courser = site.serve(&[EcdsaP256, Rsa2048]).start();
        let (root, port) = (site.root().display().to_string(), courser.address().port().to_string());
        Self { courser, root, port, polite: true, _site: site }
    }

    /// Asserts that the `number`th client got the page, and with what.
    #[track_caller]
    fn served(&self, number: usize, said: &Said, version: &str, key: &str) {
        said.has_page();
        assert!(said.success, "{}", said.text);
        let line = line(&self.courser, number);
        assert_line(&line, &[("version", version), ("key", key)]);
        if self.polite {
            assert_line(&line, &[("close_reason", "done"), ("cause", "none")]);
        }
    }

    /// Lets a client make one visit for each case: what it is told, and what comes of it.
    #[track_caller]
    fn serves<const N: usize>(
        &self,
        cases: &[([&str; N], &str, &str)],
        visit: impl Fn(&[&str; N]) -> Option<Said>,
    ) {
        for (index, (told, version, key)) in cases.iter().enumerate() {
            let Some(said) = visit(told) else { return };
            self.served(index + 1, &said, version, key);
        }
    }
}

#[test]
fn openssl_fetches_a_page() {
    let shop = Shop::open();
    shop.serves(
        &[
            (["-tls1_2 -cipher ECDHE-ECDSA-AES128-GCM-SHA256"], "TLSv1.2", "EC256"),
            (["-tls1_2 -cipher ECDHE-RSA-AES128-GCM-SHA256"], "TLSv1.2", "RSA2048"),
            (["-tls1_3 -sigalgs ECDSA+SHA256"], "TLSv1.3", "EC256"),
            (["-tls1_3 -sigalgs RSA-PSS+SHA256"], "TLSv1.3", "RSA2048"),
        ],
        |[told]| {
            let trust = format!("-CAfile {} -verify_return_error -verify_hostname localhost", shop.root);
            openssl(shop.courser.address(), &format!("{trust} {told}"))
        },
    );
}

#[test]
fn curl_fetches_a_page() {
    let shop = Shop::open();
    let (url, resolve) =
        (format!("https://localhost:{}/", shop.port), format!("localhost:{}:127.0.0.1", shop.port));
    let always = ["-sS", "--max-time", "15", "--cacert", &shop.root, "--resolve", &resolve, &url];
    shop.serves(
        &[
            (["--tls-max", "1.2", "--ciphers", ECDSA], "TLSv1.2", "EC256"),
            (["--tls-max", "1.2", "--ciphers", RSA], "TLSv1.2", "RSA2048"),
            (["--tlsv1.3", "--http1.1", "--ipv4", "--no-keepalive"], "TLSv1.3", "EC256"),
        ],
        |told| client("curl", &[&always[..], told].concat(), ""),
    );
}

#[test]
fn gnutls_fetches_a_page() {
    // gnutls-cli says nothing more after the server has.
    let shop = Shop { polite: false, ..Shop::open() };
    let names = ["--verify-hostname", "localhost", "--sni-hostname", "localhost", "127.0.0.1"];
    let always = [&["--x509cafile", &shop.root, "-p", &shop.port][..], &names].concat();
    shop.serves(
        &[
            (["NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+ECDHE-ECDSA"], "TLSv1.2", "EC256"),
            (["NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+ECDHE-RSA"], "TLSv1.2", "RSA2048"),
            (["NORMAL:-VERS-ALL:+VERS-TLS1.3:-SIGN-ALL:+SIGN-ECDSA-SECP256R1-SHA256"], "TLSv1.3", "EC256"),
            (["NORMAL:-VERS-ALL:+VERS-TLS1.3:-SIGN-ALL:+SIGN-RSA-PSS-RSAE-SHA256"], "TLSv1.3", "RSA2048"),
        ],
        |[priority]| client("gnutls-cli", &[&["--priority", priority][..], &always].concat(), REQUEST),
    );
}

#[test]
fn python_fetches_a_page() {
    let shop = Shop::open();
    let always = ["-c", include_str!("judges/fetch.py"), &shop.root, &shop.port];
    shop.serves(
        &[
            (["TLSv1.2", ECDSA], "TLSv1.2", "EC256"),
            (["TLSv1.2", RSA], "TLSv1.2", "RSA2048"),
            (["TLSv1.3", ""], "TLSv1.3", "EC256"),
        ],
        |told| client("python3", &[&always[..], told].concat(), ""),
    );
}

#[test]
fn node_fetches_a_page() {
    let shop = Shop::open();
    let always = ["-e", include_str!("judges/fetch.js"), "--", &shop.root, &shop.port];
    shop.serves(
        &[
            (["TLSv1.2", ECDSA, ""], "TLSv1.2", "EC256"),
            (["TLSv1.2", RSA, ""], "TLSv1.2", "RSA2048"),
            (["TLSv1.3", "", "ecdsa_secp256r1_sha256"], "TLSv1.3", "EC256"),
            (["TLSv1.3", "", "rsa_pss_rsae_sha256"], "TLSv1.3", "RSA2048"),
        ],
        |told| client("node", &[&always[..], told].concat(), ""),
    );
}

#[test]
fn go_fetches_a_page_and_takes_the_post_quantum_hybrid() {
    let Some(fetch) = go_program("fetch", include_str!("judges/fetch.go")) else { return };
    let shop = Shop::open();
    let visit =
        |told: &[&str; 3]| client(text(&fetch), &[&[&*shop.root, &*shop.port][..], told].concat(), "");
    shop.serves(
        &[
            (["0x0303", "0xc02b", "0"], "TLSv1.2", "EC256"),
            (["0x0303", "0xc02f", "0"], "TLSv1.2", "RSA2048"),
            (["0x0304", "0", "0"], "TLSv1.3", "EC256"),
        ],
        visit,
    );
    let Some(hybrid) = visit(&["0x0304", "0", "0x11ec"]) else { return };
    if hybrid.text.contains(" curve") {
        return leave_out("this Go is older than 1.24 and has no X25519MLKEM768");
    }
    shop.served(4, &hybrid, "TLSv1.3", "EC256");
    assert_line(&line(&shop.courser, 4), &[("group", "X25519MLKEM768")]);
}
