//! `load`: sessions or connections at a rate, or a closed loop.

use courser_load::spec::Load;
use courser_record::LoadKind;

use crate::cli::LoadArgs;
use crate::deliver;
use crate::exit::{Ended, Failure};
use crate::experiment::Asked;
use crate::session::{self, Session};
use crate::thresholds::{self, Judged};

pub(crate) fn load(args: &LoadArgs) -> Result<Ended, Failure> {
    let thresholds = thresholds::read(&args.fail_if)?;
    let spec = args.spec();
    let kind = match spec.load {
        Load::Sessions(_) if spec.reuse > 0 => LoadKind::Sessions,
        Load::Closed(_) => LoadKind::Closed,
        _ => LoadKind::ConstantRate,
    };
    let plan = session::plan(&spec)?;
    let mut session = Session::open(&spec, &args.common.output, &plan)?;
    let (_, mut runs) = session.runner.run("load", &plan)?;
    let mut judged = Judged::default();
    for run in &mut runs {
        let one = thresholds::judge(&thresholds, run);
        (judged.crossed, judged.unknown) = (judged.crossed | one.crossed, judged.unknown | one.unknown);
    }
    let asked = Asked { command: "load", kind, rate_to: None, rules: Vec::new() };
    let ended = deliver::deliver(&session.record(&plan, asked, runs), &args.common.output)?;
    // What cannot be believed crosses no threshold.
    Ok(match ended {
        Ended::Well if judged.crossed => Ended::Crossed,
        Ended::Well if judged.unknown => Ended::Inconclusive,
        ended => ended,
    })
}
