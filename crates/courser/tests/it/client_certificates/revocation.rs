//! Revoked client certificates: nobody connects with one, and no session outlives it.

use std::process::Command;

use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::client::SessionThief;
use courser_testkit::process::Signal;
use courser_testkit::{TestCa, require};

use super::Club;
use crate::stage::{content, run, run_courser};
use crate::support::{WAYS, assert_line, line, openssl, text};

/// The listener's settings, with this `client_crl`; `FILE` in it stands for what `list` is written to.
fn settings(club: &Club, list: &str, client_crl: &str) -> String {
    let file = club.site.folder.write("clients.crl", list);
    let ca = club.site.folder.write("clients.pem", club.clients.root_pem());
    format!(
        "[[listener]]\nlisten = '127.0.0.1:0'\nbackend = 'BACKEND'\ncert = '{}'\nclient_auth = 'required'\n\
         client_ca = '{}'\nclient_crl = {}\n",
        club.site.cert(EcdsaP256).display(),
        ca.display(),
        client_crl.replace("FILE", &file.display().to_string())
    )
}

#[test]
fn a_revoked_client_neither_connects_nor_resumes_from_the_next_reload_on() {
    for way in WAYS {
        let club = Club::new();
        let [alice, bob] = [club.member("alice"), club.member("bob")];
        let toml = settings(&club, &club.clients.revocation_list(&[]), "['FILE']");
        let mut courser = club.site.configured(&toml).start();
        let visitor = |certificate| {
            let intruder = SessionThief::new(way.version, EcdsaP256, way.resume);
            intruder.set_certificate(Some(certificate));
            intruder.capture();
            let client = intruder.at(courser.address(), "localhost");
            client.connect().unwrap().get(1, true).expect("nobody is revoked yet");
            intruder.offer();
            (intruder, client)
        };
        let ((_sessions_of_alice, as_alice), (_sessions_of_bob, as_bob)) = (visitor(&alice), visitor(&bob));
        let _ = courser.connections(2);
        club.site.folder.write("clients.crl", club.clients.revocation_list(&[&alice]));
        courser.signal(Signal::SIGHUP);
        courser.wait_stderr_line("generation 2");
        let refused = as_alice.connect().and_then(|mut connection| connection.get(1, true)).unwrap_err();
        assert!(refused.to_string().contains("CertificateRevoked"), "{}: {refused}", way.session);
        let ended = line(&courser, 3);
        assert_line(&ended, &[("close_reason", "bad_client_certificate"), ("cause", "client")]);
        assert!(ended["detail"].as_str().unwrap().starts_with("revoked: "), "{ended}");
        let mut connection = as_bob.connect().unwrap();
        connection.get(1, true).unwrap();
        assert!(connection.is_resumed(), "{}: another client's session is resumed", way.session);
        let _ = line(&courser, 4);
        let anew = SessionThief::new(way.version, EcdsaP256, way.resume);
        anew.set_certificate(Some(&alice));
        let refused = anew.at(courser.address(), "localhost").connect().and_then(|mut it| it.get(1, true));
        assert!(refused.unwrap_err().to_string().contains("CertificateRevoked"));
        courser.stop();
    }
}

/// The authority, the certificates and the list are openssl's.
#[test]
fn a_list_that_openssl_has_made_is_understood() {
    let Some(_) = require("openssl") else { return };
    let club = Club::new();
    let folder = club.site.folder.path().display().to_string();
    let script = format!(
        "set -e; cd {folder}; mkdir ca; : > ca/index; echo 01 > ca/serial; echo 01 > ca/number\n\
         cat > ca.cnf <<END\n[ca]\ndefault_ca = it\n[it]\ndatabase = ca/index\nserial = ca/serial\ncrlnumber = ca/number\n\
         new_certs_dir = ca\nprivate_key = ca.key\ncertificate = clients.pem\ndefault_md = sha256\npolicy = any\n\
         default_days = 30\ndefault_crl_days = 7\ncrl_extensions = v2\n[any]\ncommonName = supplied\n[v2]\n\
         authorityKeyIdentifier = keyid\n[client]\nextendedKeyUsage = clientAuth\nEND\n\
         openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=theirs -days 30 \
           -addext keyUsage=keyCertSign,cRLSign -keyout ca.key -out clients.pem\n\
         for name in alice bob; do\n\
           openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=$name -keyout $name.key -out $name.csr\n\
           openssl ca -batch -notext -config ca.cnf -extensions client -in $name.csr -out $name.crt\n\
           cat $name.crt $name.key > $name.pem\n\
         done\n\
         openssl ca -config ca.cnf -revoke alice.crt\n\
         openssl ca -config ca.cnf -gencrl -out list.pem\n\
         openssl crl -in list.pem -outform der -out list.der"
    );
    content(run(Command::new("sh").args(["-c", &script])));
    for list in ["list.pem", "list.der"] {
        let toml = format!(
            "[[listener]]\nlisten = '127.0.0.1:0'\nbackend = 'BACKEND'\ncert = '{}'\nclient_auth = 'required'\n\
             client_ca = 'clients.pem'\nclient_crl = '{list}'\n",
            club.site.cert(EcdsaP256).display(),
        );
        let courser = club.site.configured(&toml).start();
        let visit = |name: &str| {
            openssl(courser.address(), &format!("-cert {folder}/{name}.pem -key {folder}/{name}.pem"))
                .unwrap()
        };
        visit("bob").has_page();
        visit("alice").has("certificate revoked");
    }
}

#[test]
fn a_list_that_is_overdue_or_missing_shuts_out_unless_said_otherwise() {
    let club = Club::new();
    let alice = club.member("alice");
    let file = club.file(&alice, "alice");
    let last_year = std::time::SystemTime::now() - std::time::Duration::from_secs(365 * 86_400);
    let overdue = club.clients.revocation_list_until(&[], last_year);
    let other = TestCa::named("somebody else").revocation_list(&[]);
    for (list, client_crl, is_let_in) in [
        (&overdue, "['FILE']", false),
        (&overdue, "{ files = 'FILE', expired = 'allow' }", true),
        (&other, "['FILE']", false),
        (&other, "{ files = 'FILE', unknown = 'allow' }", true),
    ] {
        let courser = club.site.configured(&settings(&club, list, client_crl)).start();
        let Some(said) = openssl(courser.address(), &format!("-cert {0} -key {0}", text(&file))) else {
            return;
        };
        if is_let_in {
            said.has_page();
        } else {
            let ended = line(&courser, 1);
            assert_line(&ended, &[("close_reason", "bad_client_certificate")]);
            assert!(ended["detail"].as_str().unwrap().starts_with("revocation unknown: "), "{ended}");
        }
        if list == &overdue {
            courser.wait_stderr_line("expired 8");
        }
    }
}

#[test]
fn files_that_hold_no_list_of_their_authority_are_told() {
    let club = Club::new();
    let check = |list: &str| {
        let toml = settings(&club, list, "['FILE']").replace("BACKEND", "127.0.0.1:9");
        let file = club.site.folder.write("courser.toml", toml);
        run_courser(&["check", "--config", text(&file)]).stderr
    };
    let forged = TestCa::named("clients of the club").revocation_list(&[]);
    let soon = std::time::SystemTime::now() + std::time::Duration::from_secs(5400);
    let v1 = "-----BEGIN X509 CRL-----\nMAA=\n-----END X509 CRL-----\n";
    for (list, part) in [
        (forged.as_str(), "the list is not signed by its authority, `CN=clients of the club`"),
        ("", "holds no list of revoked certificates"),
        (v1, "no list of revoked certificates, or a part of one"),
        (&club.clients.root_pem(), "holds no list"),
        (&club.clients.revocation_list_until(&[], soon), "expires in 1 h"),
    ] {
        let told = check(list);
        assert!(told.contains(part), "no {part:?} in:\n{told}");
    }
}
