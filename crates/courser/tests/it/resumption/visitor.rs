//! OpenSSL as a client that keeps its session in a file.

use std::path::PathBuf;

use courser_testkit::Courser;

use crate::support::{Said, Site, openssl};

/// A way of resumption.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// What makes OpenSSL use it.
    pub(crate) flags: &'static str,
    /// Its name in the log.
    pub(crate) session: &'static str,
    /// Its version, as OpenSSL spells it.
    pub(crate) version: &'static str,
}

pub(crate) const TICKET: Kind = Kind { flags: "-tls1_2", session: "ticket", version: "TLSv1.2" };
pub(crate) const SESSION_ID: Kind =
    Kind { flags: "-tls1_2 -no_ticket", session: "session_id", version: "TLSv1.2" };
pub(crate) const PSK: Kind = Kind { flags: "-tls1_3", session: "psk", version: "TLSv1.3" };
pub(crate) const KINDS: [Kind; 3] = [TICKET, SESSION_ID, PSK];

/// A client with one session file.
pub(crate) struct Visitor {
    pub(crate) kind: Kind,
    pub(crate) session: PathBuf,
}

impl Visitor {
    pub(crate) fn new(site: &Site, kind: Kind) -> Self {
        Self { kind, session: site.folder.join(&format!("{}.session", kind.session)) }
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
        let said = openssl(courser.address(), &format!("{} -sess_in {session}", self.kind.flags))?;
        said.has_page();
        Some(said)
    }

    #[track_caller]
    fn visit(&self, courser: &Courser, arguments: &str, how: &str) -> Option<Said> {
        let said = openssl(courser.address(), &format!("{} {arguments}", self.kind.flags))?;
        said.has_page().has(&format!("{how}, {}, Cipher is", self.kind.version));
        Some(said)
    }
}
