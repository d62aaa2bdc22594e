//! Cipher strings, judged by OpenSSL: the suites that courser has, in OpenSSL's order.

use std::process::Command;

use crate::memory::{Memory, body, ok};

/// What `openssl ciphers` makes of a string, of courser's TLS 1.2 suites.
fn openssl(string: &str) -> Vec<String> {
    // Level 1, since our six are in every level, and the level of the system's file is no part of the string.
    let string = format!("{string}:@SECLEVEL=1");
    let output = Command::new("openssl").args(["ciphers", "-s", "-tls1_2", "-stdname", &string]).output();
    let output = output.expect("openssl runs");
    let text = String::from_utf8(output.stdout).expect("names");
    let name = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    let is_ours = |name: &String| {
        name.starts_with("TLS_ECDHE_")
            && (name.contains("_GCM_") || name.contains("POLY1305"))
            && !name.contains("ARIA")
            && !name.contains("CAMELLIA")
            && !name.contains("PSK")
    };
    text.lines().map(name).filter(is_ours).collect()
}

#[test]
fn cipher_strings_mean_what_openssl_takes_them_for() {
    let strings = [
        "ALL",
        "DEFAULT",
        "HIGH:!aNULL",
        "HIGH:!aNULL:!SSLv2:!DH:!kDHEPSK",
        "EECDH+AESGCM:EDH+AESGCM:AES256+EECDH:AES256+EDH",
        "ECDHE+CHACHA20:ECDHE+AESGCM:!aECDSA",
        "HIGH:+ECDSA",
        "ALL:-AES128:ECDHE-RSA-AES128-GCM-SHA256",
        "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305",
        "AES128:AES256:@STRENGTH",
        "!AES:ALL",
        "kEECDH+aRSA",
        "AES128-SHA",
        "TLSv1.2+AESGCM:!AES256",
        "SHA384:SHA256",
        "AESGCM:!SHA384",
    ];
    for string in strings {
        let text = format!("ciphers = \"{string}\"\ntls-protos = TLSv1.2 TLSv1.3");
        let import = ok(courser_import::hitch(&text, &Memory::default()));
        let suites = body(&import).lines().find(|line| line.starts_with("suites")).map(str::to_owned);
        let listed = suites.unwrap_or_default();
        let ours: Vec<&str> = listed.split('"').filter(|name| name.starts_with("TLS_ECDHE")).collect();
        assert_eq!(ours, openssl(string), "{string}");
    }
}
