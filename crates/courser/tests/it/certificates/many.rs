//! Many certificates on one address: each name finds its own. How fast and how large with 100,000 of them is measured
//! by the example `many_certificates`.

use courser_testkit::{KeyType, Leaf};

use crate::support::{Site, openssl};

const MANY: usize = 2000;

#[test]
fn each_of_two_thousand_names_finds_its_own_certificate() {
    let site = Site::new();
    let write = |number: usize| {
        let leaf = Leaf::new(KeyType::EcdsaP256).names([format!("site-{number}.example")]);
        format!("{:?}", site.ca.issue(&leaf).write_combined(&site.folder, &number.to_string()))
    };
    let certs: Vec<String> = (0..MANY).map(write).collect();
    let listener = "[[listener]]\nlisten = \"127.0.0.1:0\"\nbackend = \"BACKEND\"\n";
    let courser = site.configured(&format!("{listener}cert = [\n{}\n]", certs.join(",\n"))).start();
    courser.wait_stderr_line(&format!("names: {MANY}"));
    let trust = format!("-CAfile {} -verify_return_error", site.root().display());
    for number in [0, 1, 777, MANY - 1] {
        let name = format!("site-{number}.example");
        let arguments = format!("{trust} -servername {name} -verify_hostname {name}");
        let Some(said) = openssl(courser.address(), &arguments) else { return };
        said.has_page().has("Verify return code: 0 (ok)");
    }
}
