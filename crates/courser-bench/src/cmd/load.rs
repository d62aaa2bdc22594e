//! `load`: sessions or connections at a rate, or a closed loop.

use courser_load::plan::Model;
use courser_record::LoadKind;

use crate::cli::LoadArgs;
use crate::exit::{Ended, Failure};
use crate::experiment::Asked;
use crate::session::Session;
use crate::setup::{self, Intent};

pub(crate) fn load(args: &LoadArgs) -> Result<Ended, Failure> {
    let run = &args.common.run;
    let (model, kind) = match (args.rate, args.connection_rate, args.connections) {
        // Clients of one session each, for ever: they have to be the same ones throughout.
        (Some(rate), ..) if args.reuse.reuse == 0 => {
            (Model::Connections(setup::steady(rate, run)), LoadKind::ConstantRate)
        }
        (Some(rate), ..) => (Model::Sessions(setup::steady(rate, run)), LoadKind::Sessions),
        (_, Some(rate), _) => (Model::Connections(setup::steady(rate, run)), LoadKind::ConstantRate),
        (.., clients) => (Model::Closed(clients.unwrap_or(1)), LoadKind::Closed),
    };
    let reuse = args.reuse.reuse;
    let exchange = setup::exchange(&args.url, &args.request)?;
    let plan = setup::plan(&args.url, Intent { model, reuse, exchange }, &args.common)?;
    let session = Session::open(&args.url, &args.common, reuse, &plan)?;
    let request = Some(&args.request);
    let asked = Asked { command: "load", kind, reuse, rate_to: None, rules: Vec::new(), request };
    session.once("load", &plan, asked)
}
