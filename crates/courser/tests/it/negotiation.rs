//! What is agreed on: versions, suites, groups, application protocols; and what is refused, with which alert.

use courser_testkit::client::Client;
use courser_testkit::{Courser, KeyType};
use rustls::NamedGroup;

use crate::support::{Said, Site, assert_line, line, openssl};

const BOTH: &[KeyType] = &[KeyType::EcdsaP256, KeyType::Rsa2048];

/// TLS 1.2 suites by the names of OpenSSL and of IANA.
const TLS12_SUITES: [(&str, &str); 6] = [
    ("ECDHE-ECDSA-AES128-GCM-SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
    ("ECDHE-ECDSA-AES256-GCM-SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
    ("ECDHE-RSA-AES128-GCM-SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
    ("ECDHE-RSA-AES256-GCM-SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
    ("ECDHE-RSA-CHACHA20-POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
];

const TLS13_SUITES: [&str; 3] =
    ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];

/// Parameters so weak that only the server can object.
const OLD: &str = "-cipher ALL:@SECLEVEL=0";

/// Asserts that OpenSSL got the page, and that the log says the same of the connection, the courser's `number`th.
#[track_caller]
fn agrees(courser: &Courser, number: usize, arguments: &str, fields: &[(&str, &str)]) -> Option<()> {
    let said = openssl(courser.address(), arguments)?;
    said.has_page();
    let line = line(courser, number);
    assert_line(&line, fields);
    assert_line(&line, &[("close_reason", "done"), ("cause", "none")]);
    Some(())
}

/// Asserts that OpenSSL was refused with this alert, and why the connection ended.
#[track_caller]
fn refuses(courser: &Courser, number: usize, arguments: &str, alert: u8, reason: &str) -> Option<Said> {
    let said = openssl(courser.address(), arguments)?;
    said.has(&format!("SSL alert number {alert}")).lacks("HTTP/1.1 200");
    assert_line(&line(courser, number), &[("close_reason", reason), ("cause", "client")]);
    Some(said)
}

#[test]
fn tls_1_2_and_tls_1_3_are_served() {
    let site = Site::new();
    let courser = site.serve(BOTH).start();
    for (number, (flag, version)) in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")].into_iter().enumerate()
    {
        let Some(said) = openssl(courser.address(), flag) else { return };
        said.has_page().has(&format!("New, {version}, Cipher is"));
        assert_line(
            &line(&courser, number + 1),
            &[("version", version), ("session", "full"), ("close_reason", "done")],
        );
    }
}

#[test]
fn a_client_of_both_versions_gets_tls_1_3() {
    let site = Site::new();
    agrees(&site.serve(BOTH).start(), 1, "", &[("version", "TLSv1.3")]);
}

#[test]
fn tls_1_1_and_older_are_refused_with_protocol_version() {
    let site = Site::new();
    let courser = site.serve(BOTH).start();
    for (number, version) in ["-tls1", "-tls1_1"].into_iter().enumerate() {
        refuses(&courser, number + 1, &format!("{version} {OLD}"), 70, "no_common_version");
    }
}

#[test]
fn the_modern_profile_is_tls_1_3_alone() {
    let site = Site::new();
    let courser = site.serve(BOTH).args(["--profile", "modern"]).start();
    refuses(&courser, 1, "-tls1_2", 70, "no_common_version");
    agrees(&courser, 2, "", &[("version", "TLSv1.3")]);
}

#[test]
fn the_intermediate_profile_has_no_suites_without_aead_or_forward_secrecy() {
    let site = Site::new();
    let courser = site.serve(BOTH).args(["--profile", "intermediate"]).start();
    let weak = [
        "ECDHE-ECDSA-AES128-SHA256",
        "ECDHE-RSA-AES256-SHA",
        "AES128-GCM-SHA256",
        "DHE-RSA-AES128-GCM-SHA256",
    ];
    for (number, suite) in weak.into_iter().enumerate() {
        refuses(&courser, number + 1, &format!("-tls1_2 -cipher {suite}:@SECLEVEL=0"), 40, "no_common_suite");
    }
}

#[test]
fn with_tls_1_2_alone_newer_clients_come_down_to_it_and_tls_1_3_alone_is_refused() {
    let site = Site::new();
    let courser = site.serve(BOTH).args(["--tls-versions", "1.2"]).start();
    agrees(&courser, 1, "", &[("version", "TLSv1.2")]);
    refuses(&courser, 2, "-tls1_3", 70, "no_common_version");
}

#[test]
fn every_suite_is_taken_when_it_is_the_only_one_in_common() {
    let site = Site::new();
    let courser = site.serve(BOTH).start();
    for (number, (openssl, iana)) in TLS12_SUITES.into_iter().enumerate() {
        agrees(&courser, number + 1, &format!("-tls1_2 -cipher {openssl}"), &[("suite", iana)]);
    }
    for (number, suite) in TLS13_SUITES.into_iter().enumerate() {
        let arguments = format!("-tls1_3 -ciphersuites {suite}");
        agrees(&courser, TLS12_SUITES.len() + number + 1, &arguments, &[("suite", suite)]);
    }
}

#[test]
fn aes_128_gcm_is_chosen_though_the_client_puts_it_last() {
    let site = Site::new();
    let courser = site.serve(BOTH).start();
    let tls13 =
        "-tls1_3 -ciphersuites TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
    agrees(&courser, 1, tls13, &[("suite", "TLS_AES_128_GCM_SHA256")]);
    let tls12 = "-tls1_2 -cipher ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-GCM-SHA256";
    agrees(&courser, 2, tls12, &[("suite", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256")]);
}

#[test]
fn chacha20_is_chosen_where_the_client_puts_it_first() {
    let site = Site::new();
    let courser = site.serve(BOTH).start();
    let tls13 = "-tls1_3 -ciphersuites TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
    agrees(&courser, 1, tls13, &[("suite", "TLS_CHACHA20_POLY1305_SHA256")]);
    for (number, key) in ["ECDSA", "RSA"].into_iter().enumerate() {
        let arguments =
            format!("-tls1_2 -cipher ECDHE-{key}-CHACHA20-POLY1305:ECDHE-{key}-AES128-GCM-SHA256");
        let suite = format!("TLS_ECDHE_{key}_WITH_CHACHA20_POLY1305_SHA256");
        agrees(&courser, number + 2, &arguments, &[("suite", &suite)]);
    }
}

#[test]
fn configured_suites_are_chosen_in_their_order_and_no_other() {
    let site = Site::new();
    let suites = "TLS_AES_256_GCM_SHA384,TLS_AES_128_GCM_SHA256,ECDHE-RSA-AES256-GCM-SHA384";
    let courser = site.serve(BOTH).args(["--suites", suites]).start();
    agrees(&courser, 1, "-tls1_3", &[("suite", "TLS_AES_256_GCM_SHA384")]);
    agrees(&courser, 2, "-tls1_2", &[("suite", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"), ("key", "RSA2048")]);
    refuses(&courser, 3, "-tls1_2 -cipher ECDHE-RSA-AES128-GCM-SHA256", 40, "no_common_suite");
}

#[test]
fn x25519_p_256_and_p_384_are_taken_in_both_versions() {
    let site = Site::new();
    let courser = site.serve(&[KeyType::Rsa2048]).start();
    let cases = ["X25519", "P-256", "P-384"].map(|group| [("-tls1_2", group), ("-tls1_3", group)]).concat();
    for (number, (version, group)) in cases.into_iter().enumerate() {
        agrees(&courser, number + 1, &format!("{version} -groups {group}"), &[("group", group)]);
    }
}

#[test]
fn the_post_quantum_hybrid_is_preferred_when_a_share_for_it_was_sent() {
    use NamedGroup::{X25519, X25519MLKEM768};
    let site = Site::new();
    let courser = site.serve(BOTH).start();
    let client = Client::with_share(courser.address(), &[X25519, X25519MLKEM768], X25519MLKEM768);
    let mut connection = client.connect().expect("the handshake succeeds");
    assert_eq!(
        (connection.handshake_info().group, connection.handshake_info().retried),
        (Some(X25519MLKEM768), false)
    );
    connection.get(1024, true).expect("the page comes");
    assert_line(&line(&courser, 1), &[("group", "X25519MLKEM768"), ("close_reason", "done")]);
}

#[test]
fn a_share_that_will_do_is_taken_though_both_sides_prefer_another_group() {
    use NamedGroup::{X25519, X25519MLKEM768, secp256r1, secp384r1};
    let site = Site::new();
    let courser = site.serve(BOTH).start();
    for share in [X25519, secp256r1, secp384r1] {
        let groups = [X25519MLKEM768, X25519, secp256r1, secp384r1];
        let client = Client::with_share(courser.address(), &groups, share);
        let agreed = client.connect().expect("the handshake succeeds").handshake_info();
        assert_eq!((agreed.group, agreed.retried), (Some(share), false));
    }
}

#[test]
fn another_share_is_asked_for_once_when_none_will_do() {
    let site = Site::new();
    let courser = site.serve(BOTH).start();
    let hellos = |said: &Said| said.text.matches(", ClientHello").count();
    let Some(said) = openssl(courser.address(), "-tls1_3 -msg -groups P-521:P-256:X25519") else { return };
    said.has_page();
    assert_eq!(hellos(&said), 2, "{}", said.text);
    assert_line(&line(&courser, 1), &[("group", "X25519"), ("close_reason", "done")]);
    let Some(said) = openssl(courser.address(), "-tls1_3 -msg -groups P-256:X25519") else { return };
    assert_eq!(hellos(said.has_page()), 1, "{}", said.text);
}

#[test]
fn configured_groups_are_the_only_ones() {
    let site = Site::new();
    let courser = site.serve(BOTH).args(["--groups", "P-384,P-256"]).start();
    agrees(&courser, 1, "-tls1_3 -groups X25519:P-256:P-384", &[("group", "P-384")]);
    refuses(&courser, 2, "-tls1_3 -groups X25519", 40, "no_common_group");
}

#[test]
fn a_client_without_a_group_in_common_gets_handshake_failure() {
    let site = Site::new();
    let courser = site.serve(BOTH).start();
    for (number, version) in ["-tls1_2", "-tls1_3"].into_iter().enumerate() {
        refuses(&courser, number + 1, &format!("{version} -groups P-521"), 40, "no_common_group");
    }
}

#[test]
fn the_application_protocol_is_ours_to_order() {
    let site = Site::new();
    let courser = site.serve(BOTH).args(["--alpn", "http/1.1,h2"]).start();
    for (number, version) in ["-tls1_2", "-tls1_3"].into_iter().enumerate() {
        let Some(said) = openssl(courser.address(), &format!("{version} -alpn h2,http/1.1")) else { return };
        said.has_page().has("ALPN protocol: http/1.1");
        assert_line(&line(&courser, number + 1), &[("alpn", "http/1.1"), ("close_reason", "done")]);
    }
}

#[test]
fn a_client_without_an_application_protocol_in_common_is_refused() {
    let site = Site::new();
    let courser = site.serve(BOTH).args(["--alpn", "h2"]).start();
    let said = refuses(&courser, 1, "-alpn imap", 120, "handshake_failed");
    said.inspect(|said| assert!(!said.success));
}

#[test]
fn an_offer_of_application_protocols_is_left_alone_where_none_is_configured() {
    let site = Site::new();
    let courser = site.serve(BOTH).start();
    let Some(said) = openssl(courser.address(), "-alpn h2") else { return };
    said.has_page().has("No ALPN negotiated");
    assert!(line(&courser, 1)["alpn"].is_null());
}

#[test]
fn a_client_that_names_no_application_protocol_is_served_all_the_same() {
    let site = Site::new();
    agrees(&site.serve(BOTH).args(["--alpn", "h2"]).start(), 1, "", &[("version", "TLSv1.3")]);
}
