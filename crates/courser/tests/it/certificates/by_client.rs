//! Several kinds of certificate on one address, chosen by what the ClientHello says.

use courser_testkit::{Courser, KeyType};

use super::hello::{Hello, chosen_suite};
use crate::support::{Site, assert_line, line, openssl};

const ALL: &[KeyType] = &[KeyType::Rsa2048, KeyType::Ed25519, KeyType::EcdsaP256];

/// Asserts that OpenSSL, told to verify, got the page with a certificate of this key.
#[track_caller]
fn gets(courser: &Courser, site: &Site, number: usize, arguments: &str, key: &str) {
    let verify = format!("-CAfile {} -verify_return_error {arguments}", site.root().display());
    let Some(said) = openssl(courser.address(), &verify) else { return };
    said.has_page().has("Verify return code: 0 (ok)");
    assert_line(&line(courser, number), &[("key", key), ("close_reason", "done")]);
}

/// Runs each case on one terminator with certificates of `keys`.
#[track_caller]
fn get(keys: &[KeyType], cases: &[(&str, &str)]) {
    let site = Site::new();
    let courser = site.serve(keys).start();
    for (number, (arguments, key)) in cases.iter().enumerate() {
        gets(&courser, &site, number + 1, arguments, key);
    }
}

#[test]
fn ecdsa_is_preferred_whatever_the_order_of_the_files() {
    get(ALL, &[("-tls1_3", "EC256"), ("-tls1_2", "EC256")]);
}

#[test]
fn signature_schemes_choose_in_tls_1_3() {
    get(
        ALL,
        &[
            ("-tls1_3 -sigalgs ECDSA+SHA256", "EC256"),
            ("-tls1_3 -sigalgs RSA-PSS+SHA256", "RSA2048"),
            ("-tls1_3 -sigalgs ed25519:ECDSA+SHA256", "EC256"),
            ("-tls1_3 -sigalgs ed25519:RSA-PSS+SHA256:ECDSA+SHA384", "ED25519"),
        ],
    );
}

#[test]
fn signature_schemes_choose_in_tls_1_2() {
    get(
        ALL,
        &[
            ("-tls1_2 -sigalgs ECDSA+SHA256", "EC256"),
            ("-tls1_2 -sigalgs RSA+SHA256", "RSA2048"),
            ("-tls1_2 -sigalgs RSA-PSS+SHA512", "RSA2048"),
            ("-tls1_2 -sigalgs ed25519:ECDSA+SHA512", "ED25519"),
        ],
    );
}

#[test]
fn the_suite_chooses_in_tls_1_2() {
    get(
        ALL,
        &[
            ("-tls1_2 -cipher ECDHE-RSA-AES128-GCM-SHA256", "RSA2048"),
            ("-tls1_2 -cipher ECDHE-ECDSA-AES256-GCM-SHA384", "EC256"),
            ("-tls1_2 -cipher ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256", "EC256"),
        ],
    );
}

#[test]
fn in_tls_1_2_a_curve_that_the_client_does_not_know_rules_its_certificate_out() {
    let keys = &[KeyType::EcdsaP384, KeyType::Rsa2048];
    get(keys, &[("-tls1_2 -groups X25519:P-256", "RSA2048"), ("-tls1_2 -groups X25519:P-384", "EC384")]);
}

#[test]
fn in_tls_1_3_groups_say_nothing_about_certificates() {
    get(&[KeyType::EcdsaP384, KeyType::Rsa2048], &[("-tls1_3 -groups X25519", "EC384")]);
}

#[test]
fn both_curves_of_ecdsa_stand_side_by_side() {
    let keys = &[KeyType::EcdsaP384, KeyType::EcdsaP256];
    get(keys, &[("-sigalgs ECDSA+SHA384", "EC384"), ("-sigalgs ECDSA+SHA256", "EC256"), ("", "EC256")]);
}

#[test]
fn a_tls_1_3_suite_in_common_does_not_mislead_the_choice_for_tls_1_2() {
    let site = Site::new();
    let courser = site.serve(ALL).start();
    let schemes = &[0x0403, 0x0804, 0x0401];
    let groups = &[0x001d, 0x0017];
    let rsa = Hello { suites: &[0x1301, 0xc02f], groups, schemes };
    assert_eq!(chosen_suite(&rsa.send(courser.address())), 0xc02f);
    assert_line(&line(&courser, 1), &[("key", "RSA2048")]);
    let ecdsa = Hello { suites: &[0x1301, 0xc02b], groups, schemes };
    assert_eq!(chosen_suite(&ecdsa.send(courser.address())), 0xc02b);
    assert_line(&line(&courser, 2), &[("key", "EC256")]);
}

#[test]
fn a_client_that_can_use_no_certificate_here_is_refused() {
    let site = Site::new();
    let courser = site.serve(&[KeyType::EcdsaP256]).start();
    for (number, arguments) in [
        "-tls1_2 -cipher ECDHE-RSA-AES128-GCM-SHA256",
        "-tls1_3 -sigalgs RSA-PSS+SHA256",
        "-tls1_2 -groups X25519",
    ]
    .into_iter()
    .enumerate()
    {
        let Some(said) = openssl(courser.address(), arguments) else { return };
        said.has("SSL alert number 40").lacks("HTTP/1.1 200");
        assert_line(
            &line(&courser, number + 1),
            &[("close_reason", "no_usable_certificate"), ("cause", "client")],
        );
    }
}

#[test]
fn a_client_of_rsa_key_exchange_alone_has_no_suite_in_common() {
    let site = Site::new();
    let courser = site.serve(ALL).start();
    let Some(said) = openssl(courser.address(), "-tls1_2 -cipher AES128-SHA:AES256-SHA256:AES128-GCM-SHA256")
    else {
        return;
    };
    said.has("SSL alert number 40");
    assert_line(&line(&courser, 1), &[("close_reason", "no_common_suite"), ("cause", "client")]);
}

#[test]
fn a_client_that_names_no_signature_schemes_is_refused() {
    let site = Site::new();
    let courser = site.serve(ALL).start();
    let hello = Hello { suites: &[0xc02b, 0xc02f, 0x002f], groups: &[0x001d, 0x0017], schemes: &[] };
    let answer = hello.send(courser.address());
    assert_eq!((answer[0], &answer[5..]), (21, &[2, 40][..]), "{answer:02x?}");
    let detail = "no signature_algorithms extension";
    assert_line(
        &line(&courser, 1),
        &[("close_reason", "no_usable_certificate"), ("cause", "client"), ("detail", detail)],
    );
}
