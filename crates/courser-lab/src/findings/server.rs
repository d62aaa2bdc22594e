//! What the server did that the figures alone would hide: named by what it is.

use std::time::Duration;

use courser_load::failure::{Class, Step};
use courser_load::offered::Session;
use courser_load::plan::{Model, Workload};
use courser_load::tally::PeerClose;
use courser_record::CloseMode;
use courser_record::{Finding, Severity};
use courser_stats::modes::{self, Mode, Shift, Timer};

use super::{Evidence, percent, share};
use crate::to_record::counts;

/// Less than this share of the resumptions that were offered is worth a word.
const MOST_RESUMED: f64 = 0.99;

/// Up to this share of the clients that come back may do so before they have a session.
const FEWEST_EMPTY: f64 = 0.02;

/// Up to this share of what is offered may be under way when the window ends (RFC 9411, section 7: a rate within 5 %).
const LEFT_OVER: f64 = 0.05;

/// Servers of one weight may differ by this part of their share.
const EVEN: f64 = 0.05;

/// Name of the finding that no attempt succeeded: no verdict on figures, and yet a rule that is broken.
pub(super) const NOTHING_SUCCEEDED: &str = "nothing-succeeded";

/// Up to this share of connections may linger: the processor was elsewhere for a moment.
const FEW_LINGER: f64 = 0.05;

/// Up to this share of the connections that stay may be made anew in a window.
const FEW_OPENED: f64 = 0.01;

pub(super) fn findings(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(failures(evidence));
    found.extend(not_served(evidence));
    found.extend(nothing_succeeded(evidence));
    found.extend(false_resumption(evidence));
    found.extend(resets(evidence));
    found.extend(no_tickets(evidence));
    found.extend(not_resumed(evidence));
    found.extend(retried(evidence));
    found.extend(delays(evidence));
    found.extend(endings(evidence));
    found.extend(lingering(evidence));
    found.extend(closed_loop(evidence));
    found.extend(still_opening(evidence));
    found.extend(loopback(evidence));
    found.extend(limited(evidence));
    found.extend(uneven(evidence));
    found
}

/// Of several servers with a page each, one that had far more or less than its share: all weigh the same.
fn uneven(evidence: &Evidence<'_>) -> Option<Finding> {
    let pages = &evidence.counted.tally.pages;
    let (all, servers) = (pages.total() as f64, pages.iter().count() as f64);
    let expected = all / servers;
    // Three standard deviations of a draw at random, and a twentieth of the share.
    let most = 3.0 * expected.sqrt() + EVEN * expected;
    let is_uneven = pages.iter().any(|(_, count)| (*count as f64 - expected).abs() > most);
    is_uneven.then(|| {
        let of = |(page, count): (&u8, &u64)| {
            format!("{} {}", char::from(*page), percent(share(*count, pages.total())))
        };
        let shares: Vec<String> = pages.iter().map(of).collect();
        let text = format!("distribution: servers had uneven shares of the answers ({})", shares.join(", "));
        Finding::new(
            "uneven",
            Severity::Warning,
            text,
            "all servers have the same weight: see the balancer's policy",
        )
    })
}

/// Every class of failure that is the server's, with its share.
fn failures(evidence: &Evidence<'_>) -> Option<Finding> {
    let tally = &evidence.counted.tally;
    let theirs = tally.failures.iter().filter(|(class, _)| !class.is_ours());
    let named: Vec<String> = theirs.clone().map(|(class, count)| format!("{class} {count}")).collect();
    let count: u64 = theirs.map(|(_, count)| count).sum();
    (count > 0).then(|| {
        let lost = percent(share(count, tally.attempted));
        let text = format!("loss: {lost} of {} attempts failed ({})", tally.attempted, named.join(", "));
        Finding::new("loss", Severity::Warning, text, "a rule with loss<… says how much is allowed")
    })
}

/// What was to start in the window and was neither served in it nor failed: it was waited for afterwards.
fn not_served(evidence: &Evidence<'_>) -> Option<Finding> {
    let tally = &evidence.counted.tally;
    let served = tally.completed.transactions.saturating_add(tally.failed());
    let late = tally.attempted.saturating_sub(served);
    let most = LEFT_OVER * tally.attempted as f64 + 3.0 * (tally.attempted as f64).sqrt();
    (evidence.counted.window.rate.is_some() && late as f64 > most).then(|| {
        let text = format!(
            "overload: {} of {} attempts were not served in the window",
            percent(share(late, tally.attempted)),
            tally.attempted
        );
        let advice = "more was offered than is served, and a queue grows: the rate is that of the completions, and response \
                      times say how long the window was";
        Finding::new("not-served", Severity::Warning, text, advice)
    })
}

/// Without a success there is no rate, no time and no cost to give.
fn nothing_succeeded(evidence: &Evidence<'_>) -> Option<Finding> {
    let tally = &evidence.counted.tally;
    (tally.attempted > 0 && tally.succeeded == 0 && !evidence.cut).then(|| {
        let classes: Vec<String> = tally.failures.iter().map(|(class, _)| class.to_string()).collect();
        let text = format!(
            "nothing succeeded: {} attempts, and each failed ({})",
            tally.attempted,
            classes.join(", ")
        );
        let advice =
            "the failures say what came instead; `courser-bench inspect` says what the server negotiates";
        Finding::new(NOTHING_SUCCEEDED, Severity::Invalid, text, advice)
    })
}

fn false_resumption(evidence: &Evidence<'_>) -> Option<Finding> {
    let count = evidence.counted.tally.failures.get(&Class::FalseResumption);
    (count > 0).then(|| {
        let text = format!(
            "false resumption: {count} times the server said that it resumes and did a full handshake"
        );
        Finding::new(
            "false-resumption",
            Severity::Warning,
            text,
            "the server breaks the protocol; report it there",
        )
    })
}

fn resets(evidence: &Evidence<'_>) -> Option<Finding> {
    let tally = &evidence.counted.tally;
    let count = tally.failures.get(&Class::Reset(Step::Confirmation))
        + tally.failures.get(&Class::Reset(Step::Answer));
    (count > 0).then(|| {
        let text = format!("{count} connections were reset after the client's Finished");
        let advice = "the handshake looked done to the client: the server gave up behind it (its backend, its limits, its \
                      own check of the Finished)";
        Finding::new("reset-after-finished", Severity::Warning, text, advice)
    })
}

/// The clients would have resumed, had they been given anything to resume with.
fn no_tickets(evidence: &Evidence<'_>) -> Option<Finding> {
    let tally = &evidence.counted.tally;
    let without = share(tally.returned_empty, tally.returned);
    (evidence.reuse != 1 && without > FEWEST_EMPTY).then(|| {
        let (id, what) = if tally.returned_empty == tally.returned {
            ("no-sessions", "the server gave no session or ticket: every handshake was full".to_owned())
        } else {
            let text = format!("{} of the clients that came back had no session or ticket", percent(without));
            ("few-sessions", text)
        };
        let advice =
            "look at the server's tickets and session cache; or ask with --reuse 1 for full handshakes";
        Finding::new(id, Severity::Warning, what, advice)
    })
}

/// Sessions were offered, and not taken.
fn not_resumed(evidence: &Evidence<'_>) -> Option<Finding> {
    let tally = &evidence.counted.tally;
    let offered = tally.offered.total() - tally.offered.get(&Session::None);
    let resumed = counts(tally, |negotiated| negotiated.resumed != Session::None);
    let taken = share(resumed, offered);
    (offered > 0 && taken < MOST_RESUMED).then(|| {
        let text = format!("resumption: {offered} sessions were offered, {} of them resumed", percent(taken));
        let id = if resumed == 0 { "resumption-refused" } else { "resumption-partial" };
        let advice = "the server's cache is too small or not shared between its workers, its ticket keys differ or change, \
                      or it takes each ticket once";
        Finding::new(id, Severity::Warning, text, advice)
    })
}

fn retried(evidence: &Evidence<'_>) -> Option<Finding> {
    let tally = &evidence.counted.tally;
    let retried = counts(tally, |negotiated| negotiated.retried);
    (retried > 0).then(|| {
        let text = format!(
            "HelloRetryRequest: {} of the handshakes took another round trip",
            percent(share(retried, tally.negotiated.total()))
        );
        let advice =
            "the server wants another group than the one with the key share: offer its first (--groups)";
        Finding::new("hello-retry-request", Severity::Warning, text, advice)
    })
}

/// Delays that are nobody's work, but a timer's: a hill apart from the rest, or the same for every answer.
fn delays(evidence: &Evidence<'_>) -> Vec<Finding> {
    let tally = &evidence.counted.tally;
    let mut found: Vec<Finding> = modes::modes(&tally.response_actual).iter().map(hill).collect();
    let times = if tally.full.last_byte.count() > 0 { &tally.full } else { &tally.resumed };
    found.extend(modes::shift(&times.last_byte, &times.handshake).as_ref().and_then(shift));
    found
}

fn hill(mode: &Mode) -> Finding {
    let (share, centre) = (percent(mode.share), mode.centre);
    let text =
        format!("delay: {share} of the answers took about {centre:.0?}, apart from the rest: {}", mode.timer);
    let advice = format!("{}; or a server that stops for that long", mode.timer.advice());
    Finding::new(delay_id(mode.timer), Severity::Warning, text, advice)
}

fn shift(shift: &Shift) -> Option<Finding> {
    let timer = shift.timer?;
    let text = format!("delay: every answer comes {:.0?} after its handshake: {timer}", shift.by);
    let advice = format!("{}; or a server that sleeps", timer.advice());
    Some(Finding::new(delay_id(timer), Severity::Warning, text, advice))
}

fn delay_id(timer: Timer) -> &'static str {
    match timer {
        Timer::DelayedAck => "delay-40ms",
        Timer::Retransmission => "delay-200ms",
        Timer::Syn => "stall-1s",
        Timer::SecondSyn => "stall-3s",
    }
}

fn endings(evidence: &Evidence<'_>) -> Vec<Finding> {
    let endings = &evidence.counted.tally.endings;
    let rude = |ending, id: &str, what: &str, advice: &str| {
        let count = endings.get(&ending);
        let tls = evidence.plan.target.security.is_some();
        (count > 0 && tls).then(|| {
            let text = format!("{} of the connections ended {what}", percent(share(count, endings.total())));
            Finding::new(id, Severity::Note, text, advice)
        })
    };
    let reset = rude(
        PeerClose::Reset,
        "reset-at-end",
        "in a reset after the answer",
        "RFC 9411 counts that as a failure",
    );
    let bare = rude(
        PeerClose::Fin,
        "no-close-notify",
        "without close_notify",
        "a client cannot tell the end from a cut (RFC 8446, section 6.1)",
    );
    reset.into_iter().chain(bare.filter(|_| evidence.plan.close == CloseMode::CloseNotify)).collect()
}

/// Connections that the server left open after the last answer: as much longer its memory and its sockets are taken.
fn lingering(evidence: &Evidence<'_>) -> Option<Finding> {
    let tally = &evidence.counted.tally;
    let lingered = share(tally.endings.get(&PeerClose::Lingered), tally.endings.total());
    (lingered > FEW_LINGER).then(|| {
        let (shown, median) = (percent(lingered), tally.lingering.quantile(0.5).unwrap_or_default());
        let text = format!(
            "lingering: {shown} of the connections were still open when the client closed them after their answer (median \
             {median:.1?})"
        );
        let advice = "the client has asked for the close, answers close_notify, and waits no longer: look at the server's and \
                      its backend's keep-alive, or at a server beyond its capacity";
        Finding::new("lingering", Severity::Warning, text, advice)
    })
}

fn closed_loop(evidence: &Evidence<'_>) -> Option<Finding> {
    matches!(evidence.plan.model, Model::Closed(_)).then(|| {
        let held = matches!(evidence.plan.exchange, Workload::Hold { .. });
        let text = "closed loop: the rate is the server's answer to this many clients, and response times are those of a \
                    saturated server";
        let advice = "use --rate for what users would wait";
        (!held).then(|| Finding::new("closed-loop", Severity::Note, text, advice))
    })?
}

/// Handshakes of connections that were to be open before their requests are counted.
fn still_opening(evidence: &Evidence<'_>) -> Option<Finding> {
    let Model::Closed(clients) = evidence.plan.model else { return None };
    let stay = matches!(evidence.plan.exchange, Workload::Http { count: None, .. });
    let completed = &evidence.counted.tally.completed;
    let made = completed.full.saturating_add(completed.resumed);
    (stay && share(made, clients) > FEW_OPENED).then(|| {
        let text = format!(
            "opening: {made} connections were made in the window: their handshakes are in the figures"
        );
        let advice = "give it more --warm-up; where connections fail, clients make new ones";
        Finding::new("still-opening", Severity::Warning, text, advice)
    })
}

/// A limit on its processor time, of a container, a service or `--server-share`: it is not the program that stops there.
fn limited(evidence: &Evidence<'_>) -> Option<Finding> {
    let limit = evidence.run.server.as_ref()?.cpu_limit?;
    let (quota, period) = (Duration::from_micros(limit.quota_us), Duration::from_micros(limit.period_us));
    let text = format!(
        "the server is held to {:.2} of a core by its control group ({quota:?} in each {period:?}); it waited for the next \
         period in {} of them",
        quota.as_secs_f64() / period.as_secs_f64(),
        percent(share(limit.throttled_periods, limit.periods))
    );
    let advice =
        "rates are for that share, and response times have its waits in them: use rates and processor time";
    Some(Finding::new("cpu-limit", Severity::Note, text, advice))
}

fn loopback(evidence: &Evidence<'_>) -> Option<Finding> {
    let local = evidence.plan.target.addresses.iter().all(|address| address.ip().is_loopback());
    local.then(|| {
        let text = "loopback: a sender pays for the receiver's network stack";
        let advice = "compare with the direct path (http:// to the origin), and programs with each other, not with networks";
        Finding::new("loopback", Severity::Note, text, advice)
    })
}
