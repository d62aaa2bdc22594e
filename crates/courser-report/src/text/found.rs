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
    if found.rate.is_none()
        && let (Some(low), Some(high)) = (found.rate_low, found.rate_high)
    {
        let (low, high) = (figure::rate(Some(low)), figure::rate(Some(high)));
        return format!("{}: between {low} and {high}{note}", found.rule);
    }
    let interval = found.rate_low.zip(found.rate_high).map(|(low, high)| {
        format!(" (95 % interval {} to {})", figure::rate(Some(low)), figure::rate(Some(high)))
    });
    let rate = found.rate.map_or_else(|| "no rate".to_owned(), |rate| figure::rate(Some(rate)));
    format!("{}: {rate}{}{}", found.rule, interval.unwrap_or_default(), note)
}

fn held(label: &str, idle: &IdleMemory) -> String {
    let each = figure::bytes(idle.bytes_per_connection());
    format!(
        "{label}: {each} of the server's memory per idle connection ({})",
        figure::count(idle.connections)
    )
}
