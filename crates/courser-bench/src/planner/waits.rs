//! How long responses took, by how busy the core was: as measured, not modelled.

use serde::Serialize;

use super::model::{Model, Response};
use super::sentence::Question;

/// Bands of utilisation: the upper end of each.
const BANDS: [f64; 4] = [0.35, 0.5, 0.7, 0.9];

/// Response times of runs that kept the core about equally busy, from the intended start, microseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Waits {
    /// How busy the core was, from and to.
    pub(crate) busy: [f64; 2],
    pub(crate) responses: u64,
    /// Mean over all responses.
    pub(crate) mean_us: f64,
    /// Least and most of the runs' means.
    pub(crate) means_us: [f64; 2],
    /// Most of the runs' 99th percentiles; none where no run has the samples.
    pub(crate) p99_us: Option<f64>,
    /// Whether it is as busy as the question wants cores to be.
    pub(crate) asked: bool,
}

/// Runs with the key and the version of the question; those of models of earlier programs have no times.
pub(crate) fn waits(question: &Question, model: &Model) -> Vec<Waits> {
    let key = question.key.to_string();
    let ends = BANDS.into_iter().chain([f64::INFINITY]);
    let band = |(from, to): (f64, f64)| {
        let is = |utilisation: f64| utilisation >= from && utilisation < to;
        let runs = model.runs.iter().filter(|run| run.mix.key == key && run.mix.tls == question.version);
        let responses = runs.filter(|run| is(run.utilisation())).filter_map(|run| run.response);
        of_band([from, to.min(1.0)], &responses.collect::<Vec<_>>(), is(question.utilisation))
    };
    let starts = [0.0].into_iter().chain(BANDS);
    starts.zip(ends).filter_map(band).collect()
}

fn of_band(busy: [f64; 2], runs: &[Response], asked: bool) -> Option<Waits> {
    let means = || runs.iter().map(|run| run.mean_us);
    let responses = runs.iter().map(|run| run.count).sum();
    let all: f64 = runs.iter().map(|run| run.count as f64 * run.mean_us).sum();
    Some(Waits {
        busy,
        responses,
        mean_us: all / responses as f64,
        means_us: [means().reduce(f64::min)?, means().reduce(f64::max)?],
        p99_us: runs.iter().filter_map(|run| run.p99_us).reduce(f64::max),
        asked,
    })
}

#[cfg(test)]
mod tests {
    use super::super::paper::model;
    use super::*;

    #[test]
    fn a_busier_core_lets_them_wait_longer_and_the_asked_band_is_marked() {
        let model = model();
        let waits = waits(&"100 new/s, at 40 %".parse().unwrap(), &model);
        assert_eq!(waits.len(), 2, "{waits:?}");
        assert!(waits[0].mean_us < waits[1].mean_us, "{waits:?}");
        assert_eq!(waits.iter().filter(|band| band.asked).count(), 0, "nothing was measured at 40 %");
        let waits = super::waits(&"100 new/s, at 75 %".parse().unwrap(), &model);
        assert!(waits[1].asked, "{waits:?}");
    }

    #[test]
    fn a_model_of_an_earlier_program_has_no_times() {
        let mut model = model();
        model.runs.iter_mut().for_each(|run| run.response = None);
        assert_eq!(waits(&"100 new/s".parse().unwrap(), &model), []);
    }
}
