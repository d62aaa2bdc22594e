//! Client certificates: who is let in, what the others are told, and what the backend and the log learn.

mod admission;
mod backend_header;
mod chains;
mod ending;
mod files;
mod revocation;
mod tickets;

use std::path::PathBuf;
use std::time::SystemTime;

use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::courser::Setup;
use courser_testkit::{Behaviour, Issued, Leaf, OriginServer, TestCa};

use crate::support::Site;

/// A site with an authority for its clients.
struct Club {
    site: Site,
    clients: TestCa,
}

impl Club {
    fn new() -> Self {
        Self::with(TestCa::named("clients of the club"))
    }

    fn with(clients: TestCa) -> Self {
        Self { site: Site::new(), clients }
    }

    /// One whose origin takes PROXY headers.
    fn announced() -> Self {
        let mut club = Self::new();
        club.site.origin = OriginServer::setup(Behaviour::Http).proxy().start();
        club
    }

    /// The program that asks for certificates: `optional` or `required`.
    fn serve(&self, mode: &str) -> Setup {
        let ca = self.site.folder.write("clients.pem", self.clients.root_pem());
        self.site.serve(&[EcdsaP256]).args(["--client-auth", mode, "--client-ca"]).arg(ca)
    }

    /// A certificate of the right authority.
    fn member(&self, name: &str) -> Issued {
        self.clients.issue(&Leaf::new(EcdsaP256).of_client(name))
    }

    /// As [`Club::member`], until this time.
    fn member_until(&self, name: &str, end: SystemTime) -> Issued {
        self.clients.issue(&Leaf::new(EcdsaP256).of_client(name).with_expiry(end))
    }

    /// A file with certificate and key.
    fn file(&self, certificate: &Issued, name: &str) -> PathBuf {
        certificate.write_combined(&self.site.folder, name)
    }
}
