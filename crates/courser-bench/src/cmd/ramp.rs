//! `ramp`: a staircase of rates, each step counted apart.

use courser_load::plan::Model;
use courser_record::LoadKind;

use crate::cli::RampArgs;
use crate::exit::{Ended, Failure};
use crate::experiment::Asked;
use crate::session::Session;
use crate::setup::{self, Intent};

pub(crate) fn ramp(args: &RampArgs) -> Result<Ended, Failure> {
    let model = Model::Sessions(setup::staircase(args.from, args.to, args.steps, &args.common.run));
    let reuse = args.reuse.reuse;
    if reuse == 0 {
        return Err(Failure::usage(
            "a staircase of sessions needs --reuse 1 or more: no session would ever end",
        ));
    }
    let exchange = setup::exchange(&args.url, &args.request)?;
    let plan = setup::plan(&args.url, Intent { model, reuse, exchange }, &args.common)?;
    let session = Session::open(&args.url, &args.common, reuse, &plan)?;
    let request = Some(&args.request);
    let (kind, rate_to) = (LoadKind::Staircase, Some(args.to));
    session.once("ramp", &plan, Asked { command: "ramp", kind, reuse, rate_to, rules: Vec::new(), request })
}
