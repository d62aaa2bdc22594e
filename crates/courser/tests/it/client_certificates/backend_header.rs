//! What a backend is told of a client's certificate, in the words of an independent parser.

use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::Leaf;
use courser_testkit::client::{Client, Resume, Version};
use serde_json::{Value, json};

use super::Club;
use crate::proxy_header::parse;
use crate::support::line;

/// `required` and `optional` read alike: the client has one or has none.
#[test]
fn a_backend_learns_whether_a_certificate_was_verified_and_whose_it_is() {
    let club = Club::announced();
    let origin = &club.site.origin;
    let courser = club.serve("optional").args(["--send-proxy", "v2"]).start();
    let ways = [
        (Version::Tls12, Resume::Ticket),
        (Version::Tls12, Resume::SessionId),
        (Version::Tls13, Resume::Ticket),
    ];
    let mut number = 0;
    for (version, resume) in ways {
        let client = Client::new(courser.address(), version, EcdsaP256, resume);
        let (alice, nobody) = (client.with_certificate(&club.member("alice")), client);
        // Section 2.2.6: verify is 0 where a certificate was shown and verified. A resumed session stands for one that
        // was shown on an earlier connection.
        let visits = [
            (&nobody, json!([false, false, false, null])),
            (&alice, json!([true, true, true, "alice"])),
            (&alice, json!([false, true, true, "alice"])),
        ];
        for (index, (client, expected)) in visits.into_iter().enumerate() {
            number += 1;
            let mut connection = client.connect().expect("everybody is let in");
            connection.get(1, true).expect("the page comes");
            assert_eq!(connection.is_resumed(), index == 2);
            assert_eq!(line(&courser, number)["client_cert"], expected[3]);
            let Some(told) = parse(&club.site.folder, &origin.headers()[number - 1]) else { return };
            let told = ["on_connection", "in_session", "verified", "common_name"].map(|name| &told[name]);
            assert_eq!(json!(told), expected, "{version:?} {resume:?}");
        }
    }
}

#[test]
fn a_backend_gets_the_certificate_itself_also_of_a_resumed_session() {
    let club = Club::announced();
    let origin = &club.site.origin;
    let courser = club.serve("optional").args(["--send-proxy", "v2-client-cert"]).start();
    let client = Client::new(courser.address(), Version::Tls13, EcdsaP256, Resume::Ticket);
    let alice = club.member("alice");
    let der = club.site.folder.write("alice.der", &alice.certificate);
    let Some(digest) = crate::support::client("sha256sum", &[der.to_str().expect("a text")], "") else {
        return;
    };
    let digest = digest.text.split(' ').next().map(str::to_owned);
    let with = client.with_certificate(&alice);
    for (number, (client, expected)) in
        [(&client, None), (&with, digest.clone()), (&with, digest)].into_iter().enumerate()
    {
        client.connect().and_then(|mut connection| connection.get(1, true)).expect("everybody is let in");
        let Some(header) = parse(&club.site.folder, &origin.headers()[number]) else { return };
        assert_eq!(header["client_certificate"], json!(expected), "{number}");
    }
}

/// A name with a zero byte reads as another one in a program that takes it for the end.
#[test]
fn a_common_name_with_control_characters_is_kept_back() {
    let club = Club::announced();
    let origin = &club.site.origin;
    let courser = club.serve("required").args(["--send-proxy", "v2"]).start();
    let mallory =
        club.clients.issue(&Leaf::new(EcdsaP256).of_client("mallory").with_common_name("admin\0.mallory"));
    let client =
        Client::new(courser.address(), Version::Tls13, EcdsaP256, Resume::Never).with_certificate(&mallory);
    client.connect().and_then(|mut connection| connection.get(1, true)).expect("the authority is believed");
    assert_eq!(line(&courser, 1)["client_cert"], "");
    let Some(told) = parse(&club.site.folder, &origin.headers()[0]) else { return };
    assert_eq!((&told["verified"], &told["common_name"]), (&json!(true), &Value::Null));
}
