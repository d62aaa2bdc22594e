//! `load`: sessions or connections at a rate, or a closed loop.

use courser_lab::files;
use courser_load::spec::Load;
use courser_record::LoadKind;

use crate::cli::LoadArgs;
use crate::exit::{Ended, Failure};
use crate::experiment::Asked;
use crate::session::Session;

pub(crate) fn load(args: &LoadArgs) -> Result<Ended, Failure> {
    let spec = args.spec();
    let kind = match spec.load {
        Load::Sessions(_) if spec.reuse > 0 => LoadKind::Sessions,
        Load::Closed(_) => LoadKind::Closed,
        _ => LoadKind::ConstantRate,
    };
    let plan = spec.plan(files::READ)?;
    let session = Session::open(&spec, &args.common.output, &plan)?;
    session.once("load", &plan, Asked { command: "load", kind, rate_to: None, rules: Vec::new() })
}
