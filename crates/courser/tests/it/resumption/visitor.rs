//! OpenSSL as a client that keeps its session in a file.

use std::path::PathBuf;

use courser_testkit::Courser;
use courser_testkit::client::Version;

use crate::support::{Said, Site, Way, openssl};

/// A client with one session file.
pub(crate) struct Visitor {
    pub(crate) way: Way,
    pub(crate) session: PathBuf,
}

impl Visitor {
    pub(crate) fn new(site: &Site, way: Way) -> Self {
        Self { way, session: site.folder.join(&format!("{}.session", way.session)) }
    }

    /// Gets the page in a full handshake and saves the session, where one is given.
    #[track_caller]
    pub(crate) fn come(&self, courser: &Courser, more: &str) -> Option<Said> {
        self.visit(courser, &format!("-sess_out {} {more}", self.session.display()), "New")
    }

    /// Gets the page with the saved session, which has to be resumed.
    #[track_caller]
    pub(crate) fn is_resumed(&self, courser: &Courser, more: &str) -> Option<Said> {
        self.visit(courser, &format!("-sess_in {} {more}", self.session.display()), "Reused")
    }

    /// Gets the page with the saved session, which may not be resumed.
    #[track_caller]
    pub(crate) fn is_not_resumed(&self, courser: &Courser, more: &str) -> Option<Said> {
        self.visit(courser, &format!("-sess_in {} {more}", self.session.display()), "New")
    }

    /// Gets the page with the saved session, resumed or not.
    #[track_caller]
    pub(crate) fn comes_back(&self, courser: &Courser) -> Option<Said> {
        let session = self.session.display();
        let said = openssl(courser.address(), &format!("{} -sess_in {session}", self.way.flags))?;
        said.has_page();
        Some(said)
    }

    #[track_caller]
    fn visit(&self, courser: &Courser, arguments: &str, how: &str) -> Option<Said> {
        let said = openssl(courser.address(), &format!("{} {arguments}", self.way.flags))?;
        let version = if self.way.version == Version::Tls12 { "TLSv1.2" } else { "TLSv1.3" };
        said.has_page().has(&format!("{how}, {version}, Cipher is"));
        Some(said)
    }
}
