//! A target of paper, for the tests of this folder: what it spends is known, and how the model is wrong about it too.

use courser_lab::target::KeyKind;
use courser_record::Machine;
use fastrand::Rng;

use super::design::{Point, points};
use super::model::{FORMAT, Mix, Mixed, Model, Response, VERSION, Version};

pub(super) const KEYS: [KeyKind; 2] = [KeyKind::P256, KeyKind::Rsa(2048)];

/// How busy the core is at the higher rate.
const BUSY: f64 = 0.75;

/// How a target spends its processor time, and how it is disturbed.
#[derive(Clone, Copy)]
pub(super) struct Paper {
    /// What a connection costs more on an idle core, microseconds.
    pub(super) waking: f64,
    /// How that falls with utilisation: `(1 - utilisation)` to this power; 1 is as the model has it.
    pub(super) bend: f64,
    /// How far a mix is off what its parts make, as a standard deviation.
    pub(super) misfit: f64,
    /// How far a run is off its mix, as a standard deviation.
    pub(super) noise: f64,
    pub(super) seed: u64,
}

/// A model of a target that costs the same on an idle core, with 1 % of noise.
pub(super) fn model() -> Model {
    Paper::plain(3).model()
}

impl Paper {
    pub(super) fn plain(seed: u64) -> Self {
        Self { waking: 0.0, bend: 1.0, misfit: 0.0, noise: 0.01, seed }
    }

    /// Microseconds of a full handshake by key and version, of a resumed one by version, of a request and of a megabyte;
    /// and of waking up.
    pub(super) fn cost(&self, mix: &Mix, utilisation: f64) -> f64 {
        let full = match (mix.key.as_str(), mix.tls) {
            ("P-256", Version::Tls12) => 300.0,
            ("P-256", Version::Tls13) => 280.0,
            (_, Version::Tls12) => 1100.0,
            (_, Version::Tls13) => 1000.0,
        };
        let resumed = if mix.tls == Version::Tls12 { 100.0 } else { 200.0 };
        let waking = self.waking * (1.0 - utilisation).powf(self.bend) * (mix.full + mix.resumed);
        full * mix.full + resumed * mix.resumed + 20.0 * mix.requests + 500.0 * mix.megabytes + waking
    }

    /// What a mix is off by: every mix is, and one that is asked for is too.
    pub(super) fn off(&self, rng: &mut Rng) -> f64 {
        (self.misfit * normal(rng)).exp()
    }

    /// What a plan would measure of it, in two rounds.
    pub(super) fn model(&self) -> Model {
        let mut rng = Rng::with_seed(5 + self.seed);
        let points = points(&KEYS, self.seed);
        let off: Vec<f64> = points.iter().map(|_| self.off(&mut rng)).collect();
        let levels = [0.4, 1.0, 0.4, 1.0].into_iter();
        let runs =
            levels.flat_map(|level| points.iter().zip(&off).map(move |(point, off)| (point, *off, level)));
        let runs = runs.map(|(point, off, level)| {
            let mix = mix(point, 600.0 * level);
            // So long that the core is busy for three quarters of it at the higher rate.
            let busy = BUSY * level;
            let cost = off * self.cost(&mix, busy);
            self.run(point, mix, [cost * (self.noise * normal(&mut rng)).exp(), cost / busy])
        });
        Model {
            format: FORMAT.into(),
            version: VERSION,
            tool: courser_lab::to_record::tool(),
            created: "2026-01-31T12:00:00Z".into(),
            machine: Machine { cpu_model: "Example CPU 3000".into(), cores: 2, ..Machine::default() },
            target: "courser 0.1.0".into(),
            seed: 3,
            cores_note: String::new(),
            runs: runs.collect(),
        }
    }

    fn run(&self, point: &Point, mix: Mix, times: [f64; 2]) -> Mixed {
        #[expect(clippy::cast_possible_truncation, reason = "positive, of seconds")]
        let [cpu_us, window_us] = times.map(|time| time as u64);
        let idle = 1.0 - times[0] / times[1];
        Mixed {
            asked: point.to_string(),
            unseen: point.unseen,
            mix,
            window_us,
            user_us: cpu_us / 2,
            system_us: cpu_us - cpu_us / 2,
            failed: 0,
            response: Some(Response { count: 2000, mean_us: 900.0 / idle, p99_us: Some(9000.0) }),
        }
    }
}

/// What so many sessions of a point make.
pub(super) fn mix(point: &Point, sessions: f64) -> Mix {
    let connections = sessions * f64::from(point.reuse);
    let requests = connections * f64::from(point.requests);
    Mix {
        key: point.key.to_string(),
        tls: point.tls,
        full: sessions,
        resumed: connections - sessions,
        requests,
        megabytes: requests * point.object as f64 / 1e6,
    }
}

/// About normal: the sum of twelve uniform numbers has variance 1.
fn normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0
}
