//! What it cost: the server, the generator, the wire.

use courser_record::{
    GeneratorUsage, HandshakeBytes, Outcomes, RequestBytes, Run, ServerUsage, WireCost, times,
};
use courser_stats::Histogram;
use courser_stats::number::float;

use crate::figure;
use crate::layout::{Page, Tone};

/// How many of the server's threads are shown.
const SHOWN: usize = 8;

pub(super) fn show(page: &mut Page, run: &Run) {
    if let Some(usage) = &run.server {
        server(page, run, usage);
    }
    if !run.generators.is_empty() {
        page.heading("generator");
        let lag = run.totals.times.get(times::SCHEDULE_LAG);
        run.generators.iter().for_each(|usage| generator(page, usage, lag));
    }
    if let Some(cost) = &run.wire {
        wire(page, cost);
    }
}

fn server(page: &mut Page, run: &Run, usage: &ServerUsage) {
    page.heading("server");
    if let Some(text) = memory(usage) {
        page.paragraph(Tone::Plain, "  ", &text);
    }
    page.paragraph(Tone::Plain, "  ", &processor(usage, &run.totals.connections));
    threads(page, usage);
}

/// Where nothing was served in the window there is nothing to divide by.
fn processor(usage: &ServerUsage, of: &Outcomes) -> String {
    let (user, system) = (usage.user_us_per_connection, usage.system_us_per_connection);
    let both = user.zip(system).map(|(user, system)| user + system);
    let kernel = figure::share(usage.system_us, usage.user_us.saturating_add(usage.system_us));
    let spent = match usage.connections {
        0 => format!(
            "{} of processor time, and no connection that was served",
            figure::duration(usage.user_us.saturating_add(usage.system_us))
        ),
        connections => format!(
            "{} of processor time per connection ({}): {} user, {} system",
            figure::time(both),
            figure::count(connections),
            figure::time(user),
            figure::time(system),
        ),
    };
    let failed = match of.failed > of.succeeded {
        true => format!(
            "; {} of the connections failed, and their processor time is in it",
            figure::percent(figure::share(of.failed, of.attempted))
        ),
        false => String::new(),
    };
    format!(
        "{spent}{failed}; the kernel's share {}; its cores idle {}; read within {} of the window",
        figure::percent(kernel),
        figure::percent(usage.idle),
        figure::duration(usage.alignment_error_us),
    )
}

fn memory(usage: &ServerUsage) -> Option<String> {
    let whole = |bytes: u64| figure::bytes(Some(float(bytes)));
    let Some(idle) = usage.idle_memory else {
        return usage.memory_bytes.map(|bytes| format!("{} of memory", whole(bytes)));
    };
    let each = figure::bytes(idle.bytes_per_connection());
    Some(format!(
        "{each} of memory per idle connection ({}): {} without them, {} with them",
        figure::count(idle.connections),
        whole(idle.before_bytes),
        whole(idle.with_bytes)
    ))
}

fn threads(page: &mut Page, usage: &ServerUsage) {
    let mut rows = vec![["thread", "user", "system"].map(str::to_owned).to_vec()];
    let (busy, idle): (Vec<_>, Vec<_>) =
        usage.threads.iter().partition(|thread| thread.user_us > 0 || thread.system_us > 0);
    rows.extend(busy.iter().take(SHOWN).map(|thread| {
        let name = format!("{} ({})", thread.name, thread.tid);
        vec![name, figure::duration(thread.user_us), figure::duration(thread.system_us)]
    }));
    if rows.len() > 1 {
        page.table(&rows);
    }
    if let more @ 1.. = busy.len().saturating_sub(SHOWN) {
        page.line(Tone::Plain, &further(more, "less busy"));
    }
    if !idle.is_empty() {
        page.line(Tone::Plain, &further(idle.len(), "idle"));
    }
}

fn further(threads: usize, how: &str) -> String {
    let noun = if threads == 1 { "thread" } else { "threads" };
    format!("  {threads} further {noun}, {how}")
}

fn generator(page: &mut Page, usage: &GeneratorUsage, lag: Option<&Histogram>) {
    let busiest = usage.cores.iter().filter_map(|core| Some((core.busy?, core.cpu)));
    let busiest = busiest.max_by(|left, right| left.0.total_cmp(&right.0));
    let own = usage.threads.iter().filter_map(|thread| thread.schedule_lag_p99_us).max_by(f64::total_cmp);
    // With too few starts for a p99, the percentile that the verdict goes by.
    let few = || lag.and_then(|lag| lag.estimable(0.99));
    let lag = match own {
        Some(us) => format!("p99 {}", figure::time(Some(us))),
        None => few().map_or(figure::UNKNOWN.to_owned(), |(fraction, lag)| {
            format!("p{:.0} {}", fraction * 100.0, figure::time(Some(lag.as_secs_f64() * 1e6)))
        }),
    };
    let waited = usage.threads.iter().fold(0_u64, |sum, thread| sum.saturating_add(thread.run_queue_wait_us));
    let busiest = busiest.map_or(figure::UNKNOWN.to_owned(), |(busy, cpu)| {
        format!("{} (core {cpu})", figure::percent(Some(busy)))
    });
    let text = format!(
        "busiest core {busiest}, schedule lag {lag}, waited {} for a core, {} of its own per handshake ({}), at most {} \
         open",
        figure::duration(waited),
        figure::time(usage.cpu_us_per_handshake()),
        figure::count(usage.handshakes),
        figure::count(usage.max_in_flight),
    );
    let label = usage.source.as_ref().map_or_else(|| "  ".to_owned(), |source| format!("  {source}: "));
    page.paragraph(Tone::Plain, &label, &text);
}

fn wire(page: &mut Page, cost: &WireCost) {
    page.heading("wire");
    for (name, bytes) in [("full handshake", &cost.full), ("resumed handshake", &cost.resumed)] {
        if bytes.handshakes > 0 {
            page.paragraph(Tone::Plain, &format!("  {name:<18}"), &handshake(bytes));
        }
    }
    if cost.requests.requests > 0 {
        page.paragraph(Tone::Plain, &format!("  {:<18}", "request"), &request(&cost.requests));
    }
}

fn handshake(bytes: &HandshakeBytes) -> String {
    let each = |sum: u64| figure::bytes(figure::share(sum, bytes.handshakes));
    let segments = |sum: u64| float(sum) / float(bytes.handshakes);
    format!(
        "{} out, {} back ({}); of the whole connection {:.1} segments out, {:.1} back",
        each(bytes.out_bytes),
        each(bytes.in_bytes),
        figure::count(bytes.handshakes),
        segments(bytes.out_segments),
        segments(bytes.in_segments),
    )
}

fn request(bytes: &RequestBytes) -> String {
    let each = |sum: u64| figure::bytes(figure::share(sum, bytes.requests));
    let more =
        |wire: u64, payload: u64| figure::percent(figure::share(wire.saturating_sub(payload), payload));
    format!(
        "{} out as {} (+{}), {} back as {} (+{}) ({})",
        each(bytes.out_payload_bytes),
        each(bytes.out_wire_bytes),
        more(bytes.out_wire_bytes, bytes.out_payload_bytes),
        each(bytes.in_payload_bytes),
        each(bytes.in_wire_bytes),
        more(bytes.in_wire_bytes, bytes.in_payload_bytes),
        figure::count(bytes.requests),
    )
}
