//! What a target spends on each part of a mix: fitted to runs whose mixes differ.
//!
//! A connection has a full handshake or a resumed one; what it costs by itself (TCP, the way to the backend) is in
//! either and cannot be told apart. To that come its requests and its bytes, and wake-ups: of all that arrives, the share
//! that finds a core idle is 1 - utilisation (of any queue with one server), and has to wake it; what comes while it is
//! busy is taken along. So a connection costs less on a busy core:
//! `CPU = full(key, version) + resumed(version) + requests + megabytes + (1 - utilisation) (connections + requests)`, each
//! times its count and its cost.
//!
//! A model file holds the runs, not the coefficients: those follow from them.

use std::fmt;
use std::path::Path;

use courser_record::{Handshake, Machine, Tool};
use courser_stats::{Fit, Prediction, coefficients, fit};
use serde::{Deserialize, Serialize};

use courser_lab::target::KeyKind;

/// What [`Model::format`] says.
pub(crate) const FORMAT: &str = "courser-plan";
/// The version that this program writes, and the newest that it reads.
pub(crate) const VERSION: u32 = 1;

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Version {
    #[serde(rename = "1.2")]
    Tls12,
    #[serde(rename = "1.3")]
    Tls13,
}

impl Version {
    /// As `--tls` takes it.
    pub(crate) fn flag(self) -> &'static str {
        match self {
            Self::Tls12 => "1.2",
            Self::Tls13 => "1.3",
        }
    }

    pub(crate) fn other(self) -> Self {
        match self {
            Self::Tls12 => Self::Tls13,
            Self::Tls13 => Self::Tls12,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TLS {}", self.flag())
    }
}

/// Everything that a plan rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Model {
    /// Always `courser-plan`.
    pub(crate) format: String,
    /// Version of this format: 1.
    pub(crate) version: u32,
    pub(crate) tool: Tool,
    /// When it was measured, RFC 3339, UTC.
    pub(crate) created: String,
    pub(crate) machine: Machine,
    /// Name and version of the target.
    pub(crate) target: String,
    /// Seed of all randomness.
    pub(crate) seed: u64,
    /// What the core map means.
    pub(crate) cores_note: String,
    /// In the order of time.
    pub(crate) runs: Vec<Mixed>,
}

/// A run: what was served, and what it took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Mixed {
    /// What was asked, in words.
    pub(crate) asked: String,
    /// Whether the fit must not see it: it is there to be predicted.
    pub(crate) unseen: bool,
    pub(crate) mix: Mix,
    /// Length of the window.
    pub(crate) window_us: u64,
    /// Processor time of the target in user mode, over the window.
    pub(crate) user_us: u64,
    /// The same in the kernel.
    pub(crate) system_us: u64,
    /// Connections that failed.
    pub(crate) failed: u64,
    /// How long responses took; none in models of earlier programs.
    #[serde(default)]
    pub(crate) response: Option<Response>,
}

/// Response times of a run, from the intended start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Response {
    pub(crate) count: u64,
    pub(crate) mean_us: f64,
    /// The 99th percentile; none of fewer than a thousand.
    pub(crate) p99_us: Option<f64>,
}

impl Mixed {
    pub(super) fn cpu_us(&self) -> f64 {
        float(self.user_us + self.system_us)
    }

    /// Processor time over the window, for one core: 1 is all of it.
    pub(crate) fn utilisation(&self) -> f64 {
        self.cpu_us() / float(self.window_us.max(1))
    }
}

/// What is served, in counts: of a run, or of a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Mix {
    /// The server's key: `RSA-2048`.
    pub(crate) key: String,
    pub(crate) tls: Version,
    /// Connections with a full handshake.
    pub(crate) full: f64,
    /// Connections that resumed a session.
    pub(crate) resumed: f64,
    pub(crate) requests: f64,
    /// Millions of bytes of answers.
    pub(crate) megabytes: f64,
}

impl Mix {
    /// What a run served.
    pub(crate) fn of(key: KeyKind, tls: Version, object: usize, totals: &courser_record::Totals) -> Self {
        let count = |full: bool| {
            let ours = totals.negotiated.iter().filter(|kind| (kind.handshake == Handshake::Full) == full);
            float(ours.map(|kind| kind.count).sum())
        };
        // What was served while the processor time was spent; by intended start where that is not known.
        let (full, resumed, requests) = match totals.completed {
            Some(served) => (float(served.full), float(served.resumed), served.transactions),
            None => (count(true), count(false), totals.requests.succeeded),
        };
        let megabytes = float(requests.saturating_mul(object as u64)) / 1e6;
        Self { key: key.to_string(), tls, full, resumed, requests: float(requests), megabytes }
    }
}

/// A model that was fitted.
pub(crate) struct Fitted {
    pub(super) kinds: Kinds,
    fit: Fit,
}

/// Kinds of full handshakes that were measured.
pub(super) type Kinds = Vec<(String, Version)>;

impl Model {
    /// Fits the runs that may be seen.
    ///
    /// # Errors
    /// When they are too few.
    pub(crate) fn fitted(&self) -> Result<Fitted, String> {
        let runs: Vec<&Mixed> = self.seen().collect();
        let mut kinds = Kinds::new();
        for run in runs.iter().filter(|run| run.mix.full > 0.0) {
            let kind = (run.mix.key.clone(), run.mix.tls);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        let (rows, totals) = problem(&kinds, runs.iter().copied());
        let columns = kinds.len() + COSTS.len();
        fit(&rows, &totals, self.seed)
            .map(|fit| Fitted { kinds, fit })
            .ok_or_else(|| format!("{} runs are too few for {columns} costs", runs.len()))
    }

    /// Runs that the fit may see.
    pub(super) fn seen(&self) -> impl Iterator<Item = &Mixed> {
        self.runs.iter().filter(|run| !run.unseen)
    }

    /// Keys that were measured.
    pub(crate) fn keys(&self) -> Vec<&str> {
        let mut keys: Vec<&str> = self.runs.iter().map(|run| run.mix.key.as_str()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Reads one that was kept.
    ///
    /// # Errors
    /// When it cannot be read, or is no model that this program knows.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let wrong = |why: &dyn fmt::Display| format!("{}: {why}", path.display());
        let text = std::fs::read_to_string(path).map_err(|why| wrong(&why))?;
        let value: serde_json::Value = serde_json::from_str(&text).map_err(|why| wrong(&why))?;
        if value["format"] != FORMAT {
            return Err(wrong(&"it is no model of `plan`: make one with `plan … --record FILE`"));
        }
        if value["version"].as_u64().is_none_or(|version| version > u64::from(VERSION)) {
            return Err(wrong(&"it was written by a newer program: use that one"));
        }
        serde_json::from_value(value).map_err(|why| wrong(&why))
    }

    /// Keeps it: whole, or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<(), String> {
        let text = serde_json::to_string_pretty(self).expect("a document of plain values");
        let mut beside = path.as_os_str().to_owned();
        beside.push(".part");
        let wrong = |why: std::io::Error| format!("{}: {why}", path.display());
        std::fs::write(&beside, text + "\n").map_err(wrong)?;
        std::fs::rename(&beside, path).map_err(wrong)
    }
}

/// Costs beside full handshakes, in the order of the columns after those.
const COSTS: [&str; 6] = [
    "resumed, TLS 1.2",
    "resumed, TLS 1.3",
    "request",
    "MB",
    "more per connection on an idle core",
    "more per request on an idle core",
];

/// Counts and processor times of runs, as a fit takes them. How busy the core was is what the costs explain, found in turns
/// with them: what was measured has the run's own noise in it, by which a run that took longer for any reason would seem to
/// have found the core less idle, and waking up to cost little.
pub(super) fn problem<'m>(kinds: &Kinds, runs: impl Iterator<Item = &'m Mixed>) -> (Vec<Vec<f64>>, Vec<f64>) {
    /// After these the costs change by less than 1 in 1000.
    const TURNS: usize = 3;

    let runs: Vec<&Mixed> = runs.collect();
    let totals: Vec<f64> = runs.iter().map(|run| run.cpu_us()).collect();
    let mut rows: Vec<Vec<f64>> = runs.iter().map(|run| row(kinds, &run.mix, run.utilisation())).collect();
    for _ in 0..TURNS {
        let Some(costs) = coefficients(&rows, &totals) else { break };
        let explained = |run: &Mixed| in_window(kinds, &costs, run) / float(run.window_us.max(1));
        rows = runs.iter().map(|run| row(kinds, &run.mix, explained(run))).collect();
    }
    (rows, totals)
}

/// Processor time of a run's mix within its window, from the costs alone. How busy that makes the core follows from the
/// time, and the time from how busy it is: `time = least + waking (1 - time / window)`.
pub(super) fn in_window(kinds: &Kinds, costs: &[f64], run: &Mixed) -> f64 {
    let at = |utilisation: f64| {
        row(kinds, &run.mix, utilisation).iter().zip(costs).map(|(count, cost)| count * cost).sum::<f64>()
    };
    let (least, most) = (at(1.0), at(0.0));
    let time = most / (1.0 + (most - least) / float(run.window_us.max(1)));
    time.max(least)
}

/// The counts of a mix on a core that is busy for this share of the time.
pub(super) fn row(kinds: &Kinds, mix: &Mix, utilisation: f64) -> Vec<f64> {
    let is = |kind: &(String, Version)| kind.0 == mix.key && kind.1 == mix.tls;
    let full = kinds.iter().map(|kind| if is(kind) { mix.full } else { 0.0 });
    let resumed = |version: Version| if mix.tls == version { mix.resumed } else { 0.0 };
    let idle = (1.0 - utilisation).clamp(0.0, 1.0);
    let parts = [resumed(Version::Tls12), resumed(Version::Tls13), mix.requests, mix.megabytes];
    let waking = [idle * (mix.full + mix.resumed), idle * mix.requests];
    full.chain(parts).chain(waking).collect()
}

impl Fitted {
    /// Processor time of a mix on cores that are busy for this share of the time, microseconds; none for a key that was
    /// not measured.
    pub(crate) fn predict(&self, mix: &Mix, utilisation: f64) -> Option<Prediction> {
        self.knows(mix).then(|| self.fit.predict(&row(&self.kinds, mix, utilisation)))
    }

    /// Whether its key and version were measured.
    pub(super) fn knows(&self, mix: &Mix) -> bool {
        mix.full == 0.0 || self.kinds.contains(&(mix.key.clone(), mix.tls))
    }

    pub(super) fn coefficients(&self) -> &[f64] {
        self.fit.coefficients()
    }

    /// What each part costs, microseconds.
    pub(crate) fn costs(&self) -> Vec<(String, Prediction)> {
        let full = self.kinds.iter().map(|(key, version)| format!("full, {version}, {key}"));
        let names: Vec<String> = full.chain(COSTS.map(str::to_owned)).collect();
        let count = names.len();
        let single = |at: usize| -> Vec<f64> {
            (0..count).map(|column| if column == at { 1.0 } else { 0.0 }).collect()
        };
        let cost = |(at, name)| (name, self.fit.predict(&single(at)));
        names.into_iter().enumerate().map(cost).collect()
    }

    /// How far off it is for the runs that it has seen.
    pub(crate) fn error(&self) -> f64 {
        self.fit.error()
    }
}

pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use courser_record::{Completions, Negotiated, Totals};

    use super::super::paper::{Paper, model};
    use super::*;

    #[test]
    fn the_parts_are_told_apart_and_unseen_mixes_predicted() {
        let model = model();
        let fitted = model.fitted().unwrap();
        let cost = |name: &str| {
            let costs = fitted.costs();
            costs.into_iter().find(|(known, _)| known == name).unwrap().1.value
        };
        assert!((cost("full, TLS 1.3, RSA-2048") / 1000.0 - 1.0).abs() < 0.1, "{:?}", fitted.costs());
        assert!((cost("resumed, TLS 1.2") / 100.0 - 1.0).abs() < 0.1, "{:?}", fitted.costs());
    }

    /// A server that serves 90 a second, was offered 400, and was waited for until it had served all of them.
    #[test]
    fn a_run_served_what_was_completed_in_its_window() {
        let negotiated = Negotiated {
            handshake: Handshake::Full,
            version: "TLS 1.3".into(),
            suite: "TLS_AES_128_GCM_SHA256".into(),
            group: Some("X25519".into()),
            scheme: None,
            retried: false,
            count: 800,
        };
        let completed = Completions { transactions: 180, connections: 180, full: 45, resumed: 135 };
        let mut totals =
            Totals { negotiated: vec![negotiated], completed: Some(completed), ..Totals::default() };
        (totals.requests.attempted, totals.requests.succeeded) = (800, 800);
        let mix = Mix::of(KeyKind::P256, Version::Tls13, 1_000_000, &totals);
        assert_eq!([mix.full, mix.resumed, mix.requests, mix.megabytes], [45.0, 135.0, 180.0, 180.0]);
    }

    #[test]
    fn what_a_busy_core_saves_is_found() {
        let model = Paper { waking: 300.0, ..Paper::plain(3) }.model();
        let fitted = model.fitted().unwrap();
        let mix = Mix { full: 100.0, resumed: 300.0, requests: 400.0, ..model.runs[0].mix.clone() };
        let at = |utilisation| fitted.predict(&mix, utilisation).unwrap().value / 400.0;
        // 300 us per connection times what it is less idle.
        assert!((at(0.3) - at(0.8) - 150.0).abs() < 20.0, "{} {}", at(0.3), at(0.8));
    }

    /// On a machine whose speed varies, what a connection costs more on an idle core was lost in the noise of utilisation.
    #[test]
    fn what_a_busy_core_saves_is_found_through_noise() {
        let saves = |seed| {
            let model = Paper { waking: 150.0, noise: 0.1, ..Paper::plain(seed) }.model();
            let fitted = model.fitted().unwrap();
            let mix = Mix { full: 100.0, resumed: 300.0, requests: 400.0, ..model.runs[0].mix.clone() };
            let at = |utilisation| fitted.predict(&mix, utilisation).unwrap().value / 400.0;
            at(0.3) - at(0.75)
        };
        let mean = (0..40).map(saves).sum::<f64>() / 40.0;
        // 150 us times what the core is less idle.
        assert!((mean - 67.5).abs() < 10.0, "{mean}");
    }

    #[test]
    fn a_key_that_was_not_measured_has_no_prediction() {
        let fitted = model().fitted().unwrap();
        let mut mix = model().runs[0].mix.clone();
        mix.key = "RSA-4096".into();
        assert_eq!(fitted.predict(&mix, 0.7), None);
        mix.full = 0.0;
        assert!(fitted.predict(&mix, 0.7).is_some(), "resumed connections need no key");
    }

    #[test]
    fn a_model_is_read_as_it_was_written_and_others_are_refused() {
        let folder = courser_testkit::Folder::new();
        let path = folder.path().join("model.json");
        model().write(&path).unwrap();
        assert_eq!(Model::read(&path).unwrap(), model());
        let newer = std::fs::read_to_string(&path).unwrap().replacen("\"version\": 1", "\"version\": 2", 1);
        std::fs::write(&path, newer).unwrap();
        assert!(Model::read(&path).unwrap_err().contains("newer program"));
        std::fs::write(&path, "{}").unwrap();
        assert!(Model::read(&path).unwrap_err().contains("no model"));
    }

    #[test]
    fn two_runs_fit_nothing() {
        let mut model = model();
        model.runs.truncate(2);
        assert!(model.fitted().is_err_and(|why| why.contains("too few")));
    }
}
