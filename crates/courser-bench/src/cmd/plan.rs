//! `plan`: how many cores a load needs, or what so many carry.

use courser_lab::to_record;
use courser_report::figure::{percent, time};
use courser_report::layout::{Page, Style, Tone};
use serde_json::{Value, json};

use crate::cli::PlanArgs;
use crate::deliver::{print, style};
use crate::exit::{Ended, Failure};
use crate::planner::{self, Carried, Check, CorePlan, Cores, Rate, Validation, Waits, waits, words};

/// Answers, and prints a page or JSON. A model that predicts badly has its answer marked, and exit code 3.
pub(crate) fn plan(args: &PlanArgs) -> Result<Ended, Failure> {
    let Some(planned) = planner::plan(args)? else { return Ok(Ended::Cut) };
    if args.json {
        print(&format!("{:#}\n", document(&planned)));
    } else {
        print(&page(&planned, style()));
    }
    if let Some(path) = &args.record {
        notice!("model: {}", path.display());
    }
    Ok(if planned.validation.is_reliable() { Ended::Well } else { Ended::Inconclusive })
}

fn page(planned: &CorePlan, style: Style) -> String {
    let CorePlan { model, cores, others, validation, .. } = planned;
    let mut page = Page::new(style);
    let (tone, mark) = match validation.is_reliable() {
        true => (Tone::Heading, String::new()),
        false => (Tone::Bad, format!("; {UNRELIABLE} {} wrong", percent(Some(validation.worst())))),
    };
    page.line(tone, &format!("{}{mark}", answer(cores)));
    page.paragraph(Tone::Plain, "", &format!("for {}", cores.what));
    page.heading("What other choices would change");
    page.table(&table(cores, others));
    let waits = waits(&planned.question, model);
    if !waits.is_empty() {
        page.heading("How long responses take");
        page.table(&waited(&waits));
        page.paragraph(Tone::Plain, "  ", WAITS);
    }
    page.heading("How far the model can be relied on");
    page.table(&judged(validation));
    page.paragraph(Tone::Plain, "  ", &relied(planned));
    page.heading("What each part costs");
    page.table(&costs(planned));
    page.heading("What it holds for");
    page.paragraph(Tone::Plain, "  ", &holds_for(planned));
    page.paragraph(Tone::Plain, "  ", &model.cores_note);
    page.finish()
}

const UNRELIABLE: &str = "UNRELIABLE: mixes that the model had not seen were predicted up to";

const WAITS: &str = "as measured with this key and version on one core, from the intended start, with what generator and \
                     origin take; > marks the band that the answer plans for. Where cores share a queue, several wait less";

/// The answer in a line.
fn answer(cores: &Cores) -> String {
    let Some(carried) = &cores.carried else {
        return format!("{} cores ({} to {})", shown(cores.cores), shown(cores.low), shown(cores.high));
    };
    let rate = |rate: &Rate| format!("{:.0}/s ({:.0} to {:.0})", rate.rate, rate.low, rate.high);
    format!(
        "{} cores carry {} new and {} resumed connections",
        shown(cores.cores),
        rate(&carried.new),
        rate(&carried.resumed)
    )
}

/// What the interval of the answer is made of.
fn relied(planned: &CorePlan) -> String {
    let validation = &planned.validation;
    let either_way = |misfit: f64| percent(Some(misfit - 1.0));
    let foreseen = validation.unseen.iter().filter(|check| validation.foresees(check)).count();
    format!(
        "predicted and measured processor time of mixes that the fit has not seen. Each of the other {} was left out in \
         turn: by these, 19 of 20 mixes are within {} of what is predicted, and {foreseen} of {} not seen are. With both \
         it is {}: the interval of the answer is at least as wide. Runs that the fit has seen are {} off; \
         those of one mix are {} off each other, which is the machine's doing.{}",
        validation.held_out.len(),
        either_way(validation.held_out_misfit()),
        validation.unseen.len(),
        either_way(validation.misfit()),
        percent(Some(planned.fitted.error())),
        percent(validation.spread),
        if validation.is_reliable() { "" } else { " Measure again on a quiet machine, with more --rounds" }
    )
}

fn table(asked: &Cores, others: &[Cores]) -> Vec<Vec<String>> {
    let of = if asked.carried.is_some() { "connections a second" } else { "cores" };
    let mut rows = vec![["", of, "", "each connection", "change"].map(str::to_owned).to_vec()];
    let row = |what: &str, cores: &Cores, change: String| {
        let (value, low, high) = figures(cores);
        let interval = format!("({} to {})", shown(low), shown(high));
        let each = time(Some(cores.us_per_connection));
        vec![what.to_owned(), shown(value), interval, each, change]
    };
    rows.push(row("as asked", asked, String::new()));
    for other in others {
        let change = 100.0 * (figures(other).0 / figures(asked).0 - 1.0);
        rows.push(row(&other.what, other, format!("{change:+.0} %")));
    }
    rows
}

/// Cores, or all connections a second that a given number carries; with the ends of the interval.
fn figures(cores: &Cores) -> (f64, f64, f64) {
    match &cores.carried {
        None => (cores.cores, cores.low, cores.high),
        Some(Carried { new, resumed }) => {
            (new.rate + resumed.rate, new.low + resumed.low, new.high + resumed.high)
        }
    }
}

fn waited(waits: &[Waits]) -> Vec<Vec<String>> {
    let mut rows = vec![
        ["", "core busy", "mean", "means of runs", "99th percentile, at most", "responses"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(waits.iter().map(|band| {
        let [from, to] = band.busy.map(|share| 100.0 * share);
        let [least, most] = band.means_us.map(|mean| time(Some(mean)));
        let mark = if band.asked { ">" } else { "" };
        vec![
            mark.to_owned(),
            format!("{from:.0} to {to:.0} %"),
            time(Some(band.mean_us)),
            format!("{least} to {most}"),
            time(band.p99_us),
            band.responses.to_string(),
        ]
    }));
    rows
}

fn judged(validation: &Validation) -> Vec<Vec<String>> {
    let mut rows = vec![["", "predicted", "measured", "error", "foreseen"].map(str::to_owned).to_vec()];
    rows.extend(validation.unseen.iter().map(|check| {
        let error = format!("{:+.1} %", 100.0 * check.error());
        let foreseen = if validation.foresees(check) { "yes" } else { "no" };
        let [predicted, measured] = [check.predicted, check.measured].map(|us| time(Some(us)));
        vec![check.asked.clone(), predicted, measured, error, foreseen.to_owned()]
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
fn shown(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

fn document(planned: &CorePlan) -> Value {
    let validation = &planned.validation;
    let check = |check: &Check| {
        json!({
            "asked": check.asked,
            "predicted_us": check.predicted,
            "measured_us": check.measured,
            "error": check.error(),
        })
    };
    let judged = |judged: &Check| {
        let mut document = check(judged);
        document["foreseen"] = validation.foresees(judged).into();
        document
    };
    let cost = |(name, cost): (String, courser_stats::Prediction)| json!({ "name": name, "us": cost.value, "us_low": cost.interval.low, "us_high": cost.interval.high });
    json!({
        "format": "courser-planned",
        "version": 1,
        "tool": to_record::tool(),
        "question": words(&planned.question),
        "answer": planned.cores,
        "others": planned.others,
        "reliable": validation.is_reliable(),
        "unseen_error": validation.worst(),
        "misfit": validation.misfit(),
        "held_out_misfit": validation.held_out_misfit(),
        "spread": validation.spread,
        "checks": validation.unseen.iter().map(judged).collect::<Vec<_>>(),
        "held_out": validation.held_out.iter().map(check).collect::<Vec<_>>(),
        "waits": waits(&planned.question, &planned.model),
        "costs": planned.fitted.costs().into_iter().map(cost).collect::<Vec<_>>(),
        "target": planned.model.target,
        "machine": planned.model.machine,
        "measured": planned.model.created,
    })
}
