//! `ramp`: a staircase of rates, each step counted apart.

use courser_record::LoadKind;

use crate::cli::RampArgs;
use crate::exit::{Ended, Failure};
use crate::experiment::Asked;
use crate::session::{self, Session};

pub(crate) fn ramp(args: &RampArgs) -> Result<Ended, Failure> {
    let spec = args.spec();
    if spec.reuse == 0 {
        return Err(Failure::usage(
            "a staircase of sessions needs --reuse 1 or more: no session would ever end",
        ));
    }
    let plan = session::plan(&spec)?;
    let session = Session::open(&spec, &args.common.output, &plan)?;
    let (kind, rate_to) = (LoadKind::Staircase, Some(args.to));
    session.once("ramp", &plan, Asked { command: "ramp", kind, rate_to, rules: Vec::new() })
}
