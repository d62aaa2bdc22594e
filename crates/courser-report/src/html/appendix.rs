//! What a sceptic wants to check: machine, tuning, cores, targets, configuration files, commands, seed, raw data.

use std::collections::BTreeMap;

use courser_record::Lab;
use courser_record::lab::{Cell, ClientVerified, Tuning, Verified};
use courser_stats::number::float;
use maud::{Markup, html};

use super::table::plain;
use crate::figure::{self, UNKNOWN};
use crate::labels;

/// The parts and their names.
pub(super) const PARTS: [(&str, &str); 6] = [
    ("machine", "The machine"),
    ("tuning", "How it is tuned"),
    ("cores", "Who runs on which core"),
    ("targets", "The targets"),
    ("files", "Configuration files and commands"),
    ("data", "Raw data"),
];

/// The parts but for files and data, which take the room that there is.
pub(super) struct Appendix {
    facts: [Markup; 4],
}

impl Appendix {
    pub(super) fn new(labs: &[Lab]) -> Self {
        Self { facts: [each(labs, machine), each(labs, tuning), each(labs, cores), each(labs, targets)] }
    }

    /// All parts; `room`: bytes of configuration files of each suite, `data`: the links to the raw data.
    pub(super) fn show(&self, labs: &[Lab], room: usize, data: &Markup) -> Markup {
        let last = [files(labs, room), data.clone()];
        html! {
            @for ((id, name), body) in PARTS.iter().zip(self.facts.iter().chain(&last)) {
                details id=(id) { summary { (name) } (body) }
            }
        }
    }
}

/// Of each suite, once where several say the same.
fn each(labs: &[Lab], part: fn(&Lab) -> Markup) -> Markup {
    let mut analyses: Vec<(String, Vec<&str>)> = Vec::new();
    for lab in labs {
        let text = part(lab).into_string();
        match analyses.iter_mut().find(|(known, _)| *known == text) {
            Some((_, suites)) => suites.push(&lab.suite.name),
            None => analyses.push((text, vec![&lab.suite.name])),
        }
    }
    let several = analyses.len() > 1;
    html! {
        @for (text, suites) in &analyses {
            @if several { p.faint { "For " (suites.join(", ")) ":" } }
            (maud::PreEscaped(text))
        }
    }
}

fn machine(lab: &Lab) -> Markup {
    let machine = &lab.envelope.machine;
    let mut rows = vec![
        ("name", machine.name.clone()),
        ("processor", format!("{}, {} logical", machine.cpu_model, machine.cores)),
        ("memory", figure::bytes(Some(float(machine.memory_bytes)))),
        ("kernel", machine.kernel.clone()),
        ("hypervisor or container", machine.virtualisation.clone().unwrap_or_else(|| "unknown".to_owned())),
        ("open files", figure::count(machine.open_files)),
    ];
    rows.extend(machine.crypto.iter().map(|(name, version)| (name.as_str(), version.clone())));
    rows.extend(machine.facts.iter().map(|(name, fact)| (name.as_str(), fact.clone())));
    html! {
        dl { @for (name, value) in &rows { dt { (name) } dd { (value) } } }
        @if !machine.sysctls.is_empty() {
            details {
                summary { "Kernel settings" }
                dl { @for (name, value) in &machine.sysctls { dt { code { (name) } } dd { code { (value) } } } }
            }
        }
    }
}

fn tuning(lab: &Lab) -> Markup {
    html! {
        @if lab.tuning.is_empty() { p { "Nothing is recorded." } } @else {
            div.scroll tabindex="0" role="region" aria-label="How the machine is tuned" {
                table.plain {
                    thead { tr { @for column in ["setting", "here", "published", "differs", "what it does", "who, and how"] { th scope="col" { (column) } } } }
                    tbody { @for setting in &lab.tuning { (tuned(setting)) } }
                }
            }
        }
    }
}

fn tuned(setting: &Tuning) -> Markup {
    html! {
        tr.differs[setting.differs] {
            th scope="row" { code { (setting.name) } }
            td.text { (setting.here.as_deref().unwrap_or("cannot be read")) }
            td.text { (setting.published.as_deref().unwrap_or(UNKNOWN)) }
            td.text { @if setting.differs { strong { "differs" } } @else { "no" } }
            td.text { (setting.why) }
            td.text {
                (setting.source.as_deref().unwrap_or_default())
                @if let Some(command) = &setting.command { " " code { (command) } }
            }
        }
    }
}

fn cores(lab: &Lab) -> Markup {
    let rows: Vec<Vec<String>> =
        lab.cores.iter().map(|core| vec![format!("core {}", core.cpu), core.roles.join(", ")]).collect();
    html! {
        @if !rows.is_empty() { (plain(&["core", "who"], &rows)) }
        p { (lab.cores_note) }
        @if let Some(rtt) = lab.rtt_us {
            p { "Between generator and target was a round-trip time of " (figure::duration(rtt)) "." }
        }
    }
}

fn targets(lab: &Lab) -> Markup {
    let row = |target: &courser_record::lab::TargetNotes| {
        let or_dash = |text: &str| if text.is_empty() { UNKNOWN.to_owned() } else { text.to_owned() };
        vec![
            if target.title.is_empty() { target.name.clone() } else { target.title.clone() },
            or_dash(&target.version),
            or_dash(target.tls_library.as_deref().unwrap_or_default()),
            or_dash(&target.preset),
            or_dash(&target.program),
            or_dash(target.sha256.as_deref().unwrap_or_default()),
            target.note.clone(),
        ]
    };
    let rows: Vec<_> = lab.targets.iter().map(row).collect();
    plain(&["target", "version", "TLS library", "preset", "program", "SHA-256", "how it works"], &rows)
}

/// Every file once, with all cells that it was written for; those of a suite may take `room` bytes.
fn files(labs: &[Lab], room: usize) -> Markup {
    html! {
        @for lab in labs {
            @let sets = by_target(lab);
            @let each = room / sets.len().max(1);
            @for (target, sets) in &sets {
                details {
                    summary { (labels::target(lab, target)) @if labs.len() > 1 { " (" (lab.suite.name) ")" } ": "
                        (labels::counted(sets.len(), "different set")) }
                    (shown_sets(sets, each))
                }
            }
            p { "This record comes from: " code { (lab.envelope.command_line.join(" ")) } ", seed " code { (lab.seed) } "." }
        }
    }
}

fn shown_sets(sets: &[(Set, Vec<String>)], room: usize) -> Markup {
    let mut left = room;
    let mut fits = |set: &Set| {
        let size = set.files.iter().map(|(_, text)| text.len()).sum();
        let rest = left.checked_sub(size);
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    html! {
        @for (set, cases) in sets {
            p.faint { "For " (cases.join(", ")) }
            @if !set.command.is_empty() { pre { (set.command) } }
            @if let Some(verified) = &set.verified { p { "A real exchange before the first block: " (verified) } }
            @let is_shown = fits(set);
            @for (name, text) in &set.files {
                @if is_shown { p { code { (name) } } pre { (text) } }
                @else { p { code { (name) } ": no room in this page; it is in the record" } }
            }
        }
    }
}

/// What a target was started with, and what it then did.
#[derive(PartialEq, Eq)]
struct Set {
    command: String,
    files: Vec<(String, String)>,
    verified: Option<String>,
}

fn by_target(lab: &Lab) -> BTreeMap<&str, Vec<(Set, Vec<String>)>> {
    let mut sets: BTreeMap<&str, Vec<(Set, Vec<String>)>> = BTreeMap::new();
    for cell in &lab.cells {
        let set = Set {
            command: cell.command.join(" "),
            files: cell.files.iter().map(|file| (file.name.clone(), file.text.clone())).collect(),
            verified: verified_text(cell),
        };
        if set.command.is_empty() && set.files.is_empty() && set.verified.is_none() {
            continue;
        }
        let (known, case) = (sets.entry(&cell.target).or_default(), labels::case(lab, &cell.case));
        match known.iter_mut().find(|(other, _)| *other == set) {
            Some((_, cases)) => cases.push(case),
            None => known.push((set, vec![case])),
        }
    }
    sets
}

/// What the exchange showed, of each kind of client where a case tells them apart.
fn verified_text(cell: &Cell) -> Option<String> {
    let client = |one: &ClientVerified| {
        let got = one.verified.as_ref().map(verified).or_else(|| one.reason.clone());
        format!("a client that {}: {}", one.client, got.unwrap_or_default())
    };
    let clients: Vec<String> = cell.clients.iter().map(client).collect();
    if clients.is_empty() { cell.verified.as_ref().map(verified) } else { Some(clients.join("; ")) }
}

fn verified(seen: &Verified) -> String {
    let mut parts = vec![seen.version.clone(), seen.suite.clone()];
    parts.extend([&seen.group, &seen.scheme, &seen.key].into_iter().flatten().cloned());
    parts.extend(seen.alpn.as_ref().map(|alpn| format!("ALPN {alpn}")));
    parts.extend(seen.tickets.map(|count| format!("{count} tickets")));
    parts.extend(seen.again.as_ref().map(|again| format!("second connection {again}")));
    parts.extend(seen.body_bytes.map(|bytes| format!("answer of {}", figure::bytes(Some(float(bytes))))));
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}
