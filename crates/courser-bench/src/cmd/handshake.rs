//! `handshake`: connect, handshake, close; or go away in the middle.

use courser_load::plan::{Model, Workload};
use courser_record::LoadKind;

use crate::cli::HandshakeArgs;
use crate::exit::{Ended, Failure};
use crate::experiment::Asked;
use crate::session::Session;
use crate::setup::{self, Intent};

pub(crate) fn handshake(args: &HandshakeArgs) -> Result<Ended, Failure> {
    if !args.url.is_secure() {
        return Err(Failure::usage("a handshake needs TLS: write host:port or https://"));
    }
    let model = match args.rate {
        Some(rate) => Model::Connections(setup::steady(rate, &args.common.run)),
        None => Model::Closed(args.connections),
    };
    let (exchange, kind) = match args.abandon {
        Some(after) => (Workload::Abandon { after }, LoadKind::Abandon),
        None => (Workload::Handshake, LoadKind::Handshake),
    };
    let reuse = args.reuse.reuse;
    let plan = setup::plan(&args.url, Intent { model, reuse, exchange }, &args.common)?;
    let session = Session::open(&args.url, &args.common, reuse, &plan)?;
    let asked = Asked { command: "handshake", kind, reuse, rate_to: None, rules: Vec::new(), request: None };
    session.once("handshake", &plan, asked)
}
