//! One real exchange before a case is measured: version, suite, group, certificate, answer and resumption are what was
//! asked, else the case is not measured on that target.

use std::time::Duration;

use courser_load::inspect::leaf;
use courser_load::offered::Session;
use courser_load::plan::{Model, Offered, Phases, Plan, Reuse, Workload};
use courser_load::run::Run;
use courser_load::schedule::{Arrivals, Piece, Share};
use courser_load::tally::{Negotiated, Tally};
use courser_record::lab::Verified;
use courser_record::{Finding, Severity};

use crate::command::SERVER_NAME;
use crate::suite::{CaseSpec, Transport};

/// Makes one session of two connections (one, where sessions are not to come back).
///
/// # Errors
/// What is not as it was asked, in a sentence.
pub fn verify(plan: &Plan, spec: &CaseSpec) -> Result<(Verified, Vec<Finding>), String> {
    let (verified, findings) = within(MOMENT, plan, spec)?;
    if findings.is_empty() {
        return Ok((verified, findings));
    }
    // On a busy machine the second connection may have begun too late to count.
    within(LONG_MOMENT, plan, spec)
}

/// How long a session has for its second connection to begin.
const MOMENT: Duration = Duration::from_millis(249);
const LONG_MOMENT: Duration = Duration::from_millis(1999);

fn within(moment: Duration, plan: &Plan, spec: &CaseSpec) -> Result<(Verified, Vec<Finding>), String> {
    let run = Run::start(exchange(plan, moment), None, || ()).map_err(|why| format!("a thread: {why}"))?;
    let outcome = run.finish().map_err(|why| format!("the exchange: {why}"))?;
    let tally =
        outcome.windows.first().map(|counted| &counted.tally).ok_or("the exchange did not take place")?;
    if let Some((class, count)) = tally.failures.iter().next() {
        let detail = tally.failure_samples.first().cloned().unwrap_or_else(|| class.to_string());
        return Err(format!("{count} of {} connections failed: {detail}", tally.connections));
    }
    let body_bytes = spec.object.map(|bytes| bytes as u64);
    let Transport::Tls(version) = &spec.transport else {
        return Ok((Verified { version: "clear".into(), body_bytes, ..Verified::default() }, Vec::new()));
    };
    let full = first(tally, |kind| kind.resumed == Session::None).ok_or("there was no full handshake")?;
    let again = first(tally, |kind| kind.resumed != Session::None);
    let version_name = full.version_name();
    equal("version", version, version_name.trim_start_matches("TLSv"))?;
    let suite = full.suite_name();
    if !spec.suites.is_empty() && !spec.suites.contains(&suite) {
        return Err(format!("cipher suite: {} was asked for, and {suite} came", spec.suites.join(" or ")));
    }
    if let (Some(expected), Some(group)) = (&spec.exchange, full.group_name()) {
        equal("group", &plain(expected), &plain(&group))?;
    }
    let alpn = full.alpn.as_deref().map(|name| String::from_utf8_lossy(name).into_owned());
    if let Some(expected) = &spec.alpn {
        equal("application protocol (ALPN)", expected, alpn.as_deref().unwrap_or("none"))?;
    }
    if !spec.cache && again.is_some() {
        return Err("sessions were not to be remembered, and it resumed one".into());
    }
    let key = found_key(plan);
    certificate(spec, full, key.as_deref())?;
    let verified = Verified {
        version: format!("TLS {version}"),
        suite,
        group: full.group_name(),
        scheme: full.scheme_name(),
        alpn,
        key,
        // A resumption is followed by fewer, if any.
        tickets: tally.tickets.iter().map(|(count, _)| *count).max(),
        again: (spec.reuse != 1).then(|| resumption_name(again)),
        body_bytes,
    };
    let refused = spec.reuse != 1 && again.is_none();
    Ok((verified, if refused { vec![not_resumed(spec)] } else { Vec::new() }))
}

/// One session, as many connections as it takes to see it come back.
fn exchange(plan: &Plan, moment: Duration) -> Plan {
    let rate = 0.99 / moment.as_secs_f64();
    let once = Offered { steps: vec![Piece::even(rate, moment)], arrivals: Arrivals::Even };
    let count = |exchange: &Workload| match exchange {
        Workload::Http { request, expect, .. } => {
            Workload::Http { request: request.clone(), expect: expect.clone(), count: Some(1) }
        }
        other => other.clone(),
    };
    let (warm_up, ramp) = (Duration::ZERO, Duration::ZERO);
    let drain = plan.phases.timeout + plan.phases.connect_timeout;
    Plan {
        model: Model::Sessions(once),
        reuse: Reuse::Times(if plan.reuse == Reuse::Times(1) { 1 } else { 2 }),
        exchange: count(&plan.exchange),
        phases: Phases { warm_up, ramp, drain, ..plan.phases },
        threads: vec![None],
        share: Share::WHOLE,
        ..plan.clone()
    }
}

fn first(tally: &Tally, is: impl Fn(&Negotiated) -> bool) -> Option<&Negotiated> {
    tally.negotiated.iter().map(|(kind, _)| kind).find(|kind| is(kind))
}

fn equal(what: &str, expected: &str, got: &str) -> Result<(), String> {
    if expected == got { Ok(()) } else { Err(format!("{what}: {expected} was asked for, and {got} came")) }
}

/// Groups have several names: `P-256`, `secp256r1`.
fn plain(group: &str) -> String {
    match group {
        "P-256" => "secp256r1".into(),
        "P-384" => "secp384r1".into(),
        other => other.to_lowercase(),
    }
}

/// The key of the certificate, of one handshake more.
fn found_key(plan: &Plan) -> Option<String> {
    let (security, address) = (plan.target.security.as_ref()?, plan.target.addresses.first()?);
    leaf(*address, SERVER_NAME, &security.terms, plan.phases.timeout).map(|leaf| key_name(&leaf.key))
}

/// A certificate's key, as suites write it: `RSA-2048`, `P-256`.
fn key_name(key: &str) -> String {
    match key {
        "ED25519" => "Ed25519".to_owned(),
        _ => key.replacen("RSA", "RSA-", 1).replacen("EC", "P-", 1),
    }
}

/// The certificate itself says which key it has, and the signature which of two it was; a key exchange by RSA has none.
fn certificate(spec: &CaseSpec, full: &Negotiated, found: Option<&str>) -> Result<(), String> {
    if let Some(found) = found.filter(|found| !spec.keys.iter().any(|key| key == found)) {
        return Err(format!("a certificate with {} was asked for, and {found} came", spec.keys.join(" or ")));
    }
    let (Some(scheme), [key]) = (full.scheme_name(), spec.keys.as_slice()) else { return Ok(()) };
    let expected = if key.starts_with("RSA") { "rsa" } else { "ecdsa" };
    if scheme.starts_with(expected) {
        Ok(())
    } else {
        Err(format!("a certificate with {key} was asked for, and {scheme} signed"))
    }
}

fn resumption_name(again: Option<&Negotiated>) -> String {
    match again.map(|kind| kind.resumed) {
        None | Some(Session::None) => "full",
        Some(Session::Id) => "resumed by session ID",
        Some(Session::Ticket) => "resumed by ticket",
        Some(Session::Psk) => "resumed by PSK",
    }
    .to_owned()
}

fn not_resumed(spec: &CaseSpec) -> Finding {
    let text = match spec.hosts {
        1 => "the server did not resume the session that it was offered: each connection is a full handshake",
        _ => {
            "the other host did not resume the session that it was offered: each connection is a full handshake"
        }
    };
    if spec.cache {
        let advice = "it is a result, not a fault of the run: the configuration is in the record";
        Finding::new("not-resumed", Severity::Warning, text, advice)
    } else {
        Finding::new("not-resumed", Severity::Note, text, "as asked: cache and tickets are off")
    }
}
