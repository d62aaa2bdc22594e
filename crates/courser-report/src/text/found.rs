//! What the whole was for, before anything else: the rates of a search, the memory of idle connections.

use courser_record::{Found, IdleMemory, Record};

use crate::figure;
use crate::layout::{Page, Tone};

pub(super) fn show(page: &mut Page, record: &Record) {
    let idle = record
        .runs
        .iter()
        .filter_map(|run| Some(held(&run.label, run.server.as_ref()?.idle_memory.as_ref()?)));
    let lines: Vec<String> = record.found.iter().map(line).chain(idle).collect();
    if lines.is_empty() {
        return;
    }
    page.heading("found");
    lines.iter().for_each(|line| page.paragraph(Tone::Plain, "  ", line));
}

fn line(found: &Found) -> String {
    let note = found.note.as_ref().map(|note| format!("; {note}")).unwrap_or_default();
    let shown = |rate: f64| figure::rate(Some(rate));
    let answer = match (found.rate, found.rate_low, found.rate_high) {
        (Some(rate), Some(low), Some(high)) => {
            format!("{} (95 % interval {} to {})", shown(rate), shown(low), shown(high))
        }
        (Some(rate), ..) => shown(rate),
        (None, Some(low), Some(high)) => format!("between {} and {}", shown(low), shown(high)),
        (None, Some(low), None) => format!("at least {}", shown(low)),
        (None, None, Some(high)) => format!("below {}", shown(high)),
        (None, None, None) => "no rate".to_owned(),
    };
    format!("{}: {answer}{note}", found.rule)
}

fn held(label: &str, idle: &IdleMemory) -> String {
    let each = figure::bytes(idle.bytes_per_connection());
    format!(
        "{label}: {each} of the server's memory per idle connection ({})",
        figure::count(idle.connections)
    )
}
