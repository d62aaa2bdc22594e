//! `handshake`: connect, handshake, close; or abandon the handshake.

use courser_lab::files;
use courser_load::spec::Work;
use courser_record::LoadKind;

use crate::cli::HandshakeArgs;
use crate::exit::{Ended, Failure};
use crate::experiment::Asked;
use crate::session::Session;

pub(crate) fn handshake(args: &HandshakeArgs) -> Result<Ended, Failure> {
    let spec = args.spec();
    if !spec.url.is_secure() {
        return Err(Failure::usage("a handshake needs TLS: write host:port or https://"));
    }
    let abandoned = matches!(spec.work, Work::Abandon(_));
    let kind = if abandoned { LoadKind::Abandon } else { LoadKind::Handshake };
    let plan = spec.plan(files::READ)?;
    let session = Session::open(&spec, &args.common.output, &plan)?;
    session.once("handshake", &plan, Asked { command: "handshake", kind, rate_to: None, rules: Vec::new() })
}
