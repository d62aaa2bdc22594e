//! `plan`: how many cores a load needs.

use courser_lab::to_record;
use courser_report::figure::{percent, time};
use courser_report::layout::{Page, Style, Tone};
use serde_json::{Value, json};

use crate::cli::PlanArgs;
use crate::deliver::{print, style};
use crate::exit::{Ended, Failure};
use crate::planner::{self, Check, CorePlan, Cores, words};

/// Beyond this error of a prediction the model is not to be relied on.
const RELIABLE: f64 = 0.1;

/// Answers, and prints a page or JSON. A model that predicts badly gives its answer with a warning, and exit code 3.
pub(crate) fn plan(args: &PlanArgs) -> Result<Ended, Failure> {
    let Some(planned) = planner::plan(args)? else { return Ok(Ended::Cut) };
    let checks = planned.model.checks(&planned.fitted);
    if args.json {
        print(&format!("{:#}\n", document(&planned, &checks)));
    } else {
        print(&page(&planned, &checks, style()));
    }
    if let Some(path) = &args.record {
        notice!("model: {}", path.display());
    }
    Ok(if is_reliable(&checks) { Ended::Well } else { Ended::Inconclusive })
}

fn is_reliable(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.error().abs() <= RELIABLE)
}

fn page(planned: &CorePlan, checks: &[Check], style: Style) -> String {
    let CorePlan { model, cores, others, .. } = planned;
    let mut page = Page::new(style);
    page.line(
        Tone::Heading,
        &format!("{} cores ({} to {})", shown(cores.cores), shown(cores.low), shown(cores.high)),
    );
    page.paragraph(Tone::Plain, "", &format!("for {}", cores.what));
    page.heading("What other choices would change");
    page.table(&table(cores, others));
    page.heading("How far the model can be relied on");
    page.table(&judged(checks));
    page.paragraph(
        Tone::Plain,
        "  ",
        &format!(
            "predicted and measured processor time of mixes that the fit has not seen; those it has seen it misses by {}",
            percent(Some(planned.fitted.error()))
        ),
    );
    if !is_reliable(checks) {
        page.paragraph(Tone::Bad, "  ", UNRELIABLE);
    }
    page.heading("What each part costs");
    page.table(&costs(planned));
    page.heading("What it holds for");
    page.paragraph(Tone::Plain, "  ", &holds_for(planned));
    page.paragraph(Tone::Plain, "  ", &model.cores_note);
    page.finish()
}

const UNRELIABLE: &str = "a mix was predicted more than 10 % wrong: do not rely on the answer. Measure again on a quiet \
                          machine, with a longer --time";

fn table(asked: &Cores, others: &[Cores]) -> Vec<Vec<String>> {
    let mut rows = vec![["", "cores", "", "each connection", "change"].map(str::to_owned).to_vec()];
    let row = |what: &str, cores: &Cores, change: String| {
        let interval = format!("({} to {})", shown(cores.low), shown(cores.high));
        let each = time(Some(cores.us_per_connection));
        vec![what.to_owned(), shown(cores.cores), interval, each, change]
    };
    rows.push(row("as asked", asked, String::new()));
    for other in others {
        let change = 100.0 * (other.cores / asked.cores - 1.0);
        rows.push(row(&other.what, other, format!("{change:+.0} %")));
    }
    rows
}

fn judged(checks: &[Check]) -> Vec<Vec<String>> {
    let mut rows = vec![["", "predicted", "measured", "error"].map(str::to_owned).to_vec()];
    rows.extend(checks.iter().map(|check| {
        let error = format!("{:+.1} %", 100.0 * check.error());
        vec![check.asked.clone(), time(Some(check.predicted)), time(Some(check.measured)), error]
    }));
    rows
}

fn costs(planned: &CorePlan) -> Vec<Vec<String>> {
    let mut rows = vec![["", "processor time", ""].map(str::to_owned).to_vec()];
    rows.extend(planned.fitted.costs().into_iter().map(|(name, cost)| {
        let interval = format!("({} to {})", time(Some(cost.interval.low)), time(Some(cost.interval.high)));
        vec![name, time(Some(cost.value)), interval]
    }));
    rows
}

fn holds_for(planned: &CorePlan) -> String {
    let model = &planned.model;
    let cpu = if model.machine.cpu_model.is_empty() { "unknown processor" } else { &model.machine.cpu_model };
    let here = to_record::machine();
    let elsewhere = (&here.name, &here.cpu_model) != (&model.machine.name, &model.machine.cpu_model);
    let warning = if elsewhere { " That is not the machine that this runs on." } else { "" };
    format!(
        "{} on {cpu}, {}, measured {}.{warning} Costs per core are taken to stay the same with more cores; bursts, \
         memory and network cards are not in it.",
        model.target, model.machine.kernel, model.created
    )
}

/// Three digits are more than a plan is worth.
fn shown(cores: f64) -> String {
    if cores < 10.0 { format!("{cores:.2}") } else { format!("{cores:.1}") }
}

fn document(planned: &CorePlan, checks: &[Check]) -> Value {
    let check = |check: &Check| {
        json!({
            "asked": check.asked,
            "predicted_us": check.predicted,
            "measured_us": check.measured,
            "error": check.error(),
        })
    };
    let cost = |(name, cost): (String, courser_stats::Prediction)| json!({ "name": name, "us": cost.value, "us_low": cost.interval.low, "us_high": cost.interval.high });
    json!({
        "format": "courser-planned",
        "version": 1,
        "tool": to_record::tool(),
        "question": words(&planned.question),
        "answer": planned.cores,
        "others": planned.others,
        "reliable": is_reliable(checks),
        "checks": checks.iter().map(check).collect::<Vec<_>>(),
        "costs": planned.fitted.costs().into_iter().map(cost).collect::<Vec<_>>(),
        "target": planned.model.target,
        "machine": planned.model.machine,
        "measured": planned.model.created,
    })
}
