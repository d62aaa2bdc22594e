//! From a model to an answer: how many cores, or what so many carry, and what other choices would change.

use courser_lab::target::KeyKind;
use courser_stats::Prediction;
use serde::Serialize;

use super::model::{Fitted, Mix, Model};
use super::sentence::Question;

/// Connections of a session that is called longer: so many times those that were asked for.
const LONGER: f64 = 5.0;

/// How often clients come back, where the question has none that do.
const RETURNING: f64 = 4.0;

/// Cores for a mix.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Cores {
    /// What was asked, or what is different from it.
    pub(crate) what: String,
    /// Cores, busy as far as was asked.
    pub(crate) cores: f64,
    /// Ends of the 95 % interval: the wider one of the fit's and of the errors of mixes not seen.
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Processor time per connection, microseconds.
    pub(crate) us_per_connection: f64,
    /// What they carry, where their number was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) carried: Option<Carried>,
}

/// What a number of cores carries, connections a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Carried {
    /// With a full handshake.
    pub(crate) new: Rate,
    /// Of clients that come back.
    pub(crate) resumed: Rate,
}

/// A rate a second, with the ends of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Rate {
    pub(crate) rate: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// What predictions rest on: a fit, and how many times more or less than predicted a mix may cost.
#[derive(Clone, Copy)]
pub(crate) struct Basis<'m> {
    pub(crate) fitted: &'m Fitted,
    pub(crate) misfit: f64,
}

/// The answer, and after it what other choices would change.
///
/// # Errors
/// When the model knows nothing of the key.
pub(crate) fn answer(
    question: &Question,
    model: &Model,
    basis: Basis<'_>,
) -> Result<(Cores, Vec<Cores>), String> {
    let asked = cores(question, words(question), basis).ok_or_else(|| {
        format!(
            "the model has {}, not {}: measure again without --model",
            model.keys().join(", "),
            question.key
        )
    })?;
    let others = alternatives(question);
    let others = others.into_iter().filter_map(|(what, other)| cores(&other, what, basis)).collect();
    Ok((asked, others))
}

fn cores(question: &Question, what: String, basis: Basis<'_>) -> Option<Cores> {
    let Prediction { value, interval } = basis.fitted.predict(&mix(question), question.utilisation)?;
    // Microseconds of processor time a second, over those that a core may spend.
    let cores = |us: f64| us / 1e6 / question.utilisation;
    let needed = cores(value);
    let [low, high] =
        [interval.low.min(value / basis.misfit), interval.high.max(value * basis.misfit)].map(cores);
    let us_per_connection = value / question.connections();
    let Some(given) = question.cores else {
        return Some(Cores { what, cores: needed, low, high, us_per_connection, carried: None });
    };
    let rate = |share: f64| Rate {
        rate: share * given / needed,
        low: share * given / high,
        high: share * given / low,
    };
    let carried = Some(Carried { new: rate(question.new), resumed: rate(question.resumed) });
    Some(Cores { what, cores: given, low: given, high: given, us_per_connection, carried })
}

/// What a second brings.
fn mix(question: &Question) -> Mix {
    let requests = question.connections() * question.requests;
    Mix {
        key: question.key.to_string(),
        tls: question.version,
        full: question.new,
        resumed: question.resumed,
        requests,
        megabytes: requests * question.object / 1e6,
    }
}

/// The question as it was understood.
pub(crate) fn words(question: &Question) -> String {
    let Question { new, resumed, requests, object, key, version, utilisation, cores } = question;
    let load = match cores {
        None => format!("{new} new and {resumed} resumed connections a second"),
        Some(cores) => format!("what {cores} cores carry, {new} new connections for {resumed} resumed ones"),
    };
    format!(
        "{load}, {requests} requests each, answers of {object} bytes, {version}, {key}, cores at most {} % busy",
        utilisation * 100.0
    )
}

/// The same question with one thing different.
fn alternatives(question: &Question) -> Vec<(String, Question)> {
    let with = |change: &dyn Fn(&mut Question)| {
        let mut other = question.clone();
        change(&mut other);
        other
    };
    let all = question.connections();
    let other_key = if question.key == KeyKind::P256 { KeyKind::Rsa(2048) } else { KeyKind::P256 };
    let mut others = vec![
        (format!("{other_key} instead of {}", question.key), with(&|other| other.key = other_key)),
        (
            format!("{} instead of {}", question.version.other(), question.version),
            with(&|other| other.version = question.version.other()),
        ),
    ];
    if question.new > 0.0 {
        let now = all / question.new;
        let then = if question.resumed > 0.0 { now * LONGER } else { RETURNING };
        let longer = with(&|other| (other.new, other.resumed) = (all / then, all - all / then));
        others.push((format!("sessions of {then:.0} connections instead of {now:.0}"), longer));
    }
    if question.resumed > 0.0 {
        let none = with(&|other| (other.new, other.resumed) = (all, 0.0));
        others.push(("no resumption: tickets off".to_owned(), none));
    }
    others
}

#[cfg(test)]
mod tests {
    use super::super::paper::model;
    use super::*;

    fn asked(text: &str) -> (Cores, Vec<Cores>) {
        let model = model();
        let fitted = model.fitted().unwrap();
        answer(&text.parse().unwrap(), &model, Basis { fitted: &fitted, misfit: 1.05 }).unwrap()
    }

    #[test]
    fn cores_follow_from_the_costs() {
        // 1000 times 1000 us, 4000 times 200 us, 5000 requests of 20 us, 20.48 MB of 500 us: 1.91 s a second.
        let (cores, _) = asked("1000 new/s, 4000 resumed/s, 4 KB, RSA-2048, at 100 %");
        assert!((cores.cores / 1.91 - 1.0).abs() < 0.1, "{cores:?}");
        assert!(cores.low <= cores.cores && cores.cores <= cores.high);
        assert!((cores.us_per_connection / 382.0 - 1.0).abs() < 0.1, "{cores:?}");
        let (half, _) = asked("1000 new/s, 4000 resumed/s, 4 KB, RSA-2048, at 50 %");
        // Connections of this target cost the same on an idle core, but for noise.
        assert!((half.cores / cores.cores - 2.0).abs() < 0.1, "{half:?}");
    }

    #[test]
    fn an_interval_has_what_mixes_not_seen_were_off() {
        let (model, question) = (model(), "1000 new/s, 4000 resumed/s".parse().unwrap());
        let fitted = model.fitted().unwrap();
        let (cores, _) = answer(&question, &model, Basis { fitted: &fitted, misfit: 1.3 }).unwrap();
        assert!(cores.high >= 1.299 * cores.cores && cores.low <= cores.cores / 1.299, "{cores:?}");
    }

    #[test]
    fn cores_carry_what_would_need_them() {
        let (needed, _) = asked("1000 new/s, 4000 resumed/s, RSA-2048");
        let text = format!("what do {} cores carry: 1 new, 4 resumed, RSA-2048", needed.cores);
        let (carries, others) = asked(&text);
        let carried = carries.carried.unwrap();
        assert!(
            (carried.new.rate - 1000.0).abs() < 0.1 && (carried.resumed.rate - 4000.0).abs() < 0.1,
            "{carries:?}"
        );
        assert!(carried.new.low < carried.new.rate && carried.new.rate < carried.new.high, "{carries:?}");
        // What needs fewer cores is carried more often.
        let cheaper = others.iter().find(|other| other.what.starts_with("P-256 instead")).unwrap();
        assert!(cheaper.carried.unwrap().new.rate > carried.new.rate, "{cheaper:?}");
    }

    #[test]
    fn other_choices_change_what_they_should() {
        let (asked, others) = asked("1000 new/s, 3000 resumed/s, RSA-2048");
        let cores = |what: &str| others.iter().find(|other| other.what.starts_with(what)).unwrap().cores;
        assert!(cores("P-256 instead of RSA-2048") < asked.cores);
        assert!(cores("TLS 1.2 instead of TLS 1.3") < asked.cores, "resuming is cheaper in TLS 1.2");
        assert!(cores("sessions of 20 connections instead of 4") < asked.cores);
        assert!(cores("no resumption") > asked.cores);
    }

    #[test]
    fn where_nobody_comes_back_the_use_of_coming_back_is_shown() {
        let (asked, others) = asked("1000 new/s");
        let back = others.iter().find(|other| other.what.contains("instead of 1")).unwrap();
        assert!(
            back.what == "sessions of 4 connections instead of 1" && back.cores < asked.cores,
            "{back:?}"
        );
        assert!(others.iter().all(|other| !other.what.contains("no resumption")));
    }

    #[test]
    fn a_key_that_was_not_measured_is_refused_with_those_that_were() {
        let model = model();
        let (question, fitted) = ("1 new/s, RSA-4096".parse().unwrap(), model.fitted().unwrap());
        let why = answer(&question, &model, Basis { fitted: &fitted, misfit: 1.1 }).unwrap_err();
        assert!(why.starts_with("the model has P-256, RSA-2048, not RSA-4096"), "{why}");
    }
}
