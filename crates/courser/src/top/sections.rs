//! The ten sections, in the order and with the names of the live page.

use std::collections::{BTreeMap, VecDeque};

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

use super::table::{bar, soft, sparkline, table, wrap};
use super::{Point, bad};
use crate::status::backends::ServerRow;
use crate::status::recent::{FindingLevel, Recent};
use crate::status::{NegotiatedRow, Status, millis, span};

/// Columns of a bar, and those of a screen at which it begins to be shorter: of tables, and of one with long names.
const BAR: usize = 20;
const NARROW: usize = 80;
const NARROW_NAMES: usize = 95;

/// Servers that are shown; those that are not up come first.
const SERVERS: usize = 200;

pub(super) fn all(status: &Status, past: &VecDeque<Point>, width: usize, lines: &mut Vec<Line<'static>>) {
    let (none, mark) = (Recent::default(), if status.state == "ready" { "✓" } else { "⚠" });
    let recent = status.recent.as_ref().unwrap_or(&none);
    lines.push(Line::styled(format!("{}  {mark} {}", status.name, status.state), bold()));
    findings(status, width, lines);
    let sections: [(&str, String, Vec<Line<'static>>); 10] = [
        ("1 State", String::new(), state(status, recent, width)),
        ("2 Handshakes", resumed(recent), handshakes(recent, past, width)),
        ("3 Failures", "connections, by who caused them".to_owned(), failures(status, past, width)),
        ("4 Times", "of the last seconds".to_owned(), times(recent)),
        ("5 Workers", String::new(), workers(status, recent, width)),
        ("6 Waiting and refused", String::new(), waiting(status)),
        ("7 Backends", states(status), backends(status)),
        ("8 Certificates", ending(status), certificates(status, width)),
        (
            "9 Negotiated",
            "since the start; what breaks if it is switched off".to_owned(),
            negotiated(status, width),
        ),
        ("10 Fleet and sessions", String::new(), fleet(status, recent)),
    ];
    for (title, remark, body) in sections {
        lines.push(Line::default());
        lines.push(Line::from(vec![
            ratatui::text::Span::styled(title, bold()),
            ratatui::text::Span::styled(format!("  {remark}"), soft()),
        ]));
        lines.extend(body);
    }
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn say(text: impl Into<String>) -> Vec<Line<'static>> {
    vec![Line::raw(format!("  {}", text.into()))]
}

fn findings(status: &Status, width: usize, lines: &mut Vec<Line<'static>>) {
    if status.findings.is_empty() {
        lines.push(Line::raw("✓ Nothing is wrong."));
    }
    for finding in &status.findings {
        let style = match finding.level {
            FindingLevel::Problem => bad(),
            FindingLevel::Warning => bold().fg(Color::Yellow),
        };
        let cause = match finding.cause.as_str() {
            "none" => String::new(),
            cause => format!(" (cause: {cause})"),
        };
        let what = format!("{}{cause}: {}", finding.level.name(), finding.what);
        lines.extend(wrap(&what, width).into_iter().map(|line| Line::styled(line, style)));
        let remedy = wrap(&format!("→ {}", finding.remedy), width.saturating_sub(2));
        lines.extend(remedy.into_iter().map(|line| Line::raw(format!("  {line}"))));
    }
}

fn state(status: &Status, recent: &Recent, width: usize) -> Vec<Line<'static>> {
    let mut facts = Vec::new();
    let generation = status.generation.as_ref();
    if let Some(generation) = generation {
        facts.push(format!("generation {}, for {}", generation.number, span(generation.age_s)));
        facts.push(match &generation.last_reload {
            None => "no reload since the start".to_owned(),
            Some(last) if last.refused.is_some() => format!("✗ last reload refused {} ago", span(last.age_s)),
            Some(last) => format!("✓ last reload {} ago", span(last.age_s)),
        });
    }
    facts.push(format!("courser {}, up {}", status.version, span(status.up_s)));
    let (open, limit) = (status.connections.open.values().sum::<u64>(), status.connections.limit);
    facts.push(format!("{open} of {limit} connections open, {} end/s", rate(recent.closed)));
    facts.push(format!("plaintext {}/s in, {}/s out", bytes(recent.bytes_in), bytes(recent.bytes_out)));
    facts.push(format!("{} log lines lost", status.log_lines_lost + status.event_lines_lost));
    for listener in generation.iter().flat_map(|generation| &generation.listeners) {
        facts.push(format!("listener {} {}", listener.name, listener.listen.join(" ")));
    }
    for waiting in
        generation.iter().flat_map(|generation| &generation.last_reload).flat_map(|last| &last.needs_restart)
    {
        facts.push(format!("at the next start: {waiting}"));
    }
    let lines = wrap(&facts.join(" · "), width.saturating_sub(2));
    lines.into_iter().flat_map(say).collect()
}

fn resumed(recent: &Recent) -> String {
    let all: f64 = recent.handshakes.values().sum();
    if all == 0.0 {
        return "none of late".to_owned();
    }
    let full = recent.handshakes.get("full").copied().unwrap_or_default();
    format!("{}/s, {} resumed", rate(all), percent(1.0 - full / all))
}

fn handshakes(recent: &Recent, past: &VecDeque<Point>, width: usize) -> Vec<Line<'static>> {
    let mut lines = line(past, width, |point| point.handshakes);
    let of =
        |kind: &str| format!("{kind} {}/s", rate(recent.handshakes.get(kind).copied().unwrap_or_default()));
    lines.extend(say(["full", "session_id", "ticket", "psk"].map(of).join("  ")));
    lines
}

/// The last five minutes of a rate; nothing where there is none.
fn line(past: &VecDeque<Point>, width: usize, value: impl Fn(&Point) -> f64) -> Vec<Line<'static>> {
    let values: Vec<f64> = past.iter().map(value).collect();
    let most = values.iter().copied().fold(0.0, f64::max);
    let room = width.saturating_sub(24).min(super::PAST);
    if most == 0.0 {
        Vec::new()
    } else {
        say(format!("{}  up to {}/s", sparkline(&values, room), rate(most)))
    }
}

fn failures(status: &Status, past: &VecDeque<Point>, width: usize) -> Vec<Line<'static>> {
    if status.failures.is_empty() {
        return say("None since the start.");
    }
    let rows = status.failures.iter();
    let rows: Vec<_> = rows
        .map(|row| vec![row.reason.clone(), row.cause.clone(), rate(row.rate), row.count.to_string()])
        .collect();
    let mut lines = line(past, width, |point| point.failures);
    let columns = [("reason", false), ("cause", false), ("per second", true), ("in all", true)];
    lines.extend(table(&columns, &rows));
    lines
}

fn times(recent: &Recent) -> Vec<Line<'static>> {
    let row = |name: &str| match recent.steps.get(name) {
        Some(step) => vec![name.to_owned(), time(step.p50_us), time(step.p99_us)],
        None => vec![name.to_owned(), "–".to_owned(), "–".to_owned()],
    };
    let rows = ["queue", "hello", "handshake", "connect", "first_byte"].map(row);
    table(&[("step", false), ("p50", true), ("p99", true)], &rows)
}

fn workers(status: &Status, recent: &Recent, width: usize) -> Vec<Line<'static>> {
    let row = |(index, worker): (usize, &crate::status::WorkerRow)| {
        let busy = recent.busy.get(index).copied().unwrap_or_default();
        let (connections, queue) = (worker.connections.to_string(), worker.queue_length.to_string());
        vec![index.to_string(), bar(busy, bar_width(width, NARROW)), percent(busy), connections, queue]
    };
    let rows: Vec<_> = status.workers.iter().enumerate().map(row).collect();
    table(&[("worker", true), ("busy", false), ("", true), ("connections", true), ("queue", true)], &rows)
}

fn waiting(status: &Status) -> Vec<Line<'static>> {
    let rows = status.listeners.iter().map(|row| {
        let queue = format!("{} of {}", row.queue_length, row.queue_limit);
        vec![row.name.clone(), queue, row.syn_dropped.to_string(), row.open.to_string()]
    });
    let columns = [("listener", false), ("accept queue", true), ("SYNs dropped", true), ("open", true)];
    let mut lines = table(&columns, &rows.collect::<Vec<_>>());
    if status.shed.is_empty() {
        lines.extend(say("Nothing was refused under overload."));
        return lines;
    }
    let rows =
        status.shed.iter().map(|row| vec![row.stage.clone(), row.reason.clone(), row.count.to_string()]);
    lines.extend(table(&[("gate", false), ("reason", false), ("refused", true)], &rows.collect::<Vec<_>>()));
    lines
}

fn states(status: &Status) -> String {
    let some = status.backends.states.iter().filter(|(_, count)| **count > 0);
    some.map(|(state, count)| format!("{count} {state}")).collect::<Vec<_>>().join(", ")
}

fn backends(status: &Status) -> Vec<Line<'static>> {
    let mut servers: Vec<&ServerRow> = status.backends.servers.iter().collect();
    servers.sort_by_key(|server| server.state == "up");
    let row = |server: &&ServerRow| {
        let limit = server.max_connections.map(|limit| format!(" of {limit}")).unwrap_or_default();
        let mark = if server.gets_connections() { "✓" } else { "✗" };
        vec![
            format!("{}/{}", server.pool, server.server),
            format!("{mark} {}", server.state()),
            format!("{}{limit}", server.connections),
            server.waiting.to_string(),
            if server.connect_us == 0 { "–".to_owned() } else { time(server.connect_us) },
            server.failures.to_string(),
            server.last_checks(),
        ]
    };
    let rows: Vec<_> = servers.iter().take(SERVERS).map(row).collect();
    let columns = [
        ("server", false),
        ("state", false),
        ("open", true),
        ("queue", true),
        ("connect", true),
        ("failed", true),
        ("last check", false),
    ];
    if rows.is_empty() { say("No servers.") } else { table(&columns, &rows) }
}

fn ending(status: &Status) -> String {
    let Some(generation) = &status.generation else { return String::new() };
    format!("the first {} to end of {}", generation.ending.len(), generation.certificates)
}

fn certificates(status: &Status, width: usize) -> Vec<Line<'static>> {
    let row = |row: &crate::status::EndingCertificate| {
        let share = ratio(row.days_left * 86_400, row.lifetime_s);
        let left =
            if row.days_left < 0 { "✗ expired".to_owned() } else { format!("{} days", row.days_left) };
        vec![row.name.clone(), row.key.clone(), bar(share, bar_width(width, NARROW)), left]
    };
    let rows: Vec<_> = status.generation.iter().flat_map(|generation| &generation.ending).map(row).collect();
    let columns = [("first name", false), ("key", false), ("left", false), ("", true)];
    if rows.is_empty() { say("None.") } else { table(&columns, &rows) }
}

fn negotiated(status: &Status, width: usize) -> Vec<Line<'static>> {
    type Of = fn(&NegotiatedRow) -> &str;
    let none = "none (resumed)";
    let kinds: [(&str, Of); 4] = [
        ("version", |row| &row.version),
        ("cipher suite", |row| &row.suite),
        ("group", |row| row.group.as_deref().unwrap_or("none (resumed)")),
        ("signature scheme", |row| row.scheme.as_deref().unwrap_or("none (resumed)")),
    ];
    let total: u64 = status.negotiated.iter().map(|row| row.count).sum();
    if total == 0 {
        return say("None yet.");
    }
    let mut rows = Vec::new();
    for (title, of) in kinds {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        status.negotiated.iter().for_each(|row| *counts.entry(of(row)).or_default() += row.count);
        let mut counts: Vec<_> = counts.into_iter().collect();
        // What was resumed has none, which is no choice: last.
        counts.sort_by_key(|(name, count)| (*name == none, std::cmp::Reverse(*count)));
        for (index, (name, count)) in counts.into_iter().enumerate() {
            let title = if index == 0 { title } else { "" };
            let share =
                ratio(i64::try_from(count).unwrap_or(i64::MAX), i64::try_from(total).unwrap_or(i64::MAX));
            rows.push(vec![
                title.to_owned(),
                name.to_owned(),
                bar(share, bar_width(width, NARROW_NAMES)),
                percent(share),
                count.to_string(),
            ]);
        }
    }
    table(&[("", false), ("", false), ("", false), ("share", true), ("count", true)], &rows)
}

fn fleet(status: &Status, recent: &Recent) -> Vec<Line<'static>> {
    let mut lines = match &status.messages {
        None => say("This host sends no messages to others."),
        Some(messages) if messages.peers.is_empty() => say("No peer was heard."),
        Some(messages) => {
            let row = |peer: &crate::status::Peer| {
                let ago = millis(peer.last_seen_ms);
                let heard =
                    if peer.is_silent { format!("✗ silent for {ago}") } else { format!("✓ {ago} ago") };
                let mark = if peer.is_clock_off { "✗ " } else { "" };
                let clock = format!("{mark}{} ms", peer.clock_ahead_ms);
                vec![peer.name.clone(), peer.address.clone(), heard, clock, peer.lost.to_string()]
            };
            let rows: Vec<_> = messages.peers.iter().map(row).collect();
            let columns = [
                ("peer", false),
                ("address", false),
                ("heard", false),
                ("clock ahead", true),
                ("lost", true),
            ];
            table(&columns, &rows)
        }
    };
    let mut misses: Vec<_> = status.handshakes.not_resumed.iter().collect();
    misses.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    if misses.is_empty() {
        lines.extend(say("No offered session was refused."));
        return lines;
    }
    let lately = |reason: &str| rate(recent.not_resumed.get(reason).copied().unwrap_or_default());
    let row = |(reason, count): (&String, &u64)| vec![reason.clone(), lately(reason), count.to_string()];
    let rows: Vec<_> = misses.into_iter().map(row).collect();
    lines.extend(table(&[("not resumed, since", false), ("per second", true), ("in all", true)], &rows));
    lines
}

fn bar_width(width: usize, narrow: usize) -> usize {
    BAR.saturating_sub(narrow.saturating_sub(width))
}

fn rate(number: f64) -> String {
    match number {
        _ if number >= 100.0 => format!("{number:.0}"),
        _ if number >= 10.0 => format!("{number:.1}"),
        0.0 => "0".to_owned(),
        _ => format!("{number:.2}"),
    }
}

fn percent(share: f64) -> String {
    if share < 0.1 { format!("{:.1} %", 100.0 * share) } else { format!("{:.0} %", 100.0 * share) }
}

fn time(micros: u64) -> String {
    match micros {
        0..1000 => format!("{micros} µs"),
        1000..10_000 => format!("{}.{} ms", micros / 1000, micros / 100 % 10),
        10_000..1_000_000 => format!("{} ms", micros / 1000),
        _ => format!("{}.{} s", micros / 1_000_000, micros / 100_000 % 10),
    }
}

fn bytes(number: f64) -> String {
    let units = ["B", "kB", "MB", "GB"];
    let (mut number, mut unit) = (number, 0);
    while number >= 1000.0 && unit + 1 < units.len() {
        (number, unit) = (number / 1000.0, unit + 1);
    }
    let digits = usize::from(number < 10.0 && unit > 0);
    format!("{number:.digits$} {}", units[unit])
}

#[expect(clippy::cast_precision_loss, reason = "a share is printed with three digits")]
fn ratio(part: i64, whole: i64) -> f64 {
    if whole <= 0 { 0.0 } else { part as f64 / whole as f64 }
}
