//! What is shown of a load that is more than a target can serve, beside rates and response times: whom it served, what the
//! others cost it, and how soon all is as before.

use courser_record::lab::{Figure, WindowResult};

use crate::suite::{CaseSpec, Crowd};

/// What a closed loop reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// Sessions a second.
    pub(crate) rate: f64,
    /// Processor time of the target for each connection, microseconds; none of one that is not ours to watch.
    pub(crate) cost: Option<f64>,
}

/// A second in which more of those who came were not served is not as before.
const AS_BEFORE: f64 = 0.02;

/// Where more clients got nothing than this part of those served, their cost can be told from noise.
const MANY: f64 = 0.5;

/// The figures of a window.
pub(crate) fn figures(
    spec: &CaseSpec,
    window: &WindowResult,
    reached: Reach,
) -> impl Iterator<Item = Figure> + use<> {
    let refusal = spec.beside.is_none().then(|| of_refusal(window, reached)).flatten();
    let recovery = (spec.beside == Some(Crowd::Passing)).then(|| recovery(window)).flatten();
    let goodput = spec.beside.is_none().then(|| goodput(window, reached));
    [served(window), goodput, refusal, recovery].into_iter().flatten()
}

fn figure(name: &str, unit: &str, value: f64) -> Figure {
    Figure { name: name.into(), unit: unit.into(), value, low: None, high: None }
}

/// The share of clients that were served before they left.
fn served(window: &WindowResult) -> Option<Figure> {
    let share = 100.0 * window.succeeded as f64 / window.attempted as f64;
    (window.attempted > 0).then(|| figure("clients served", "%", share))
}

/// Clients served a second, of what a closed loop reached: those whose answer came in the window.
fn goodput(window: &WindowResult, reached: Reach) -> Figure {
    let rate = window.served().connections as f64 * 1e6 / window.window_us as f64;
    figure("goodput of capacity", "%", 100.0 * rate / reached.rate)
}

/// Processor time for each client that was not served: what was spent, less what a closed loop spends for those who were.
fn of_refusal(window: &WindowResult, reached: Reach) -> Option<Figure> {
    let (served, all) = (window.succeeded as f64, window.attempted as f64);
    let left = busy(window)? - window.served().connections as f64 * reached.cost?;
    (all > served * (1.0 + MANY))
        .then(|| figure("CPU per client not served", "us", left.max(0.0) / (all - served)))
}

/// Seconds from the end of a crowd, which comes for the first half, until everyone is served.
fn recovery(window: &WindowResult) -> Option<Figure> {
    let half = window.seconds.len() / 2;
    let is_lossy =
        |second: &&courser_record::Second<_>| second.failed as f64 > AS_BEFORE * second.attempted as f64;
    let lossy = window.seconds.iter().rev().position(|second| is_lossy(&second));
    let lasted = window.seconds.len() - lossy.unwrap_or(window.seconds.len());
    (half > 0)
        .then(|| figure("seconds until all are served again", "seconds", lasted.saturating_sub(half) as f64))
}

/// Processor time of the target in a window, microseconds.
pub(crate) fn busy(window: &WindowResult) -> Option<f64> {
    Some((window.user_us? + window.system_us?) as f64)
}
