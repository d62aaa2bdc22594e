//! The control of the client: each case once more with clients of the engine `real`, which do all the work and verify every
//! signature. A server that does less for lean clients spends more here.
//!
//! Its blocks are apart from those that are compared, and count in no figure.

use courser_record::lab::{Block, Cell, CellState, ControlRatio, Measure, WindowResult};
use courser_record::{Finding, Severity};

use crate::block::{BlockResult, BlockRun};
use crate::error::Error;
use crate::primitives::median;
use crate::start::{Bench, PreparedTarget};
use crate::state::State;
use crate::suite::{CaseSpec, Transport};
use crate::target::KeyKind;

/// The client that measures, and the one that controls it, as `--engine` names them.
const LEAN: &str = "lean";
const REAL: &str = "real";

/// Blocks of a cell from which a further one costs no more than a tenth: in the quick variant there is none with fewer.
const QUICK: u32 = 10;

/// Names of the findings.
const DIFFERS: &str = "client-engine";
const NONE: &str = "no-control";

/// Whether a case has control blocks: one with a lean client, and with keys that the real one takes.
pub(crate) fn is_due(spec: &CaseSpec, quick: bool) -> bool {
    let is_small = |key: &String| matches!(key.parse(), Ok(KeyKind::Rsa(bits)) if bits < 2048);
    let blocks = if spec.measure == Measure::Staircase { spec.rounds * spec.steps } else { spec.rounds };
    spec.engine == LEAN
        // Half of the clients leave without an answer there: what others did says nothing.
        && spec.patience.is_none()
        && matches!(spec.transport, Transport::Tls(_))
        && !spec.keys.iter().any(is_small)
        && (!quick || blocks >= QUICK)
}

/// The control block of a target; none where the cell has one, or nothing to compare with it.
pub(crate) fn block(spec: &CaseSpec, target: &mut PreparedTarget, bench: &Bench<'_>, state: &mut State) {
    // The way without a terminator is in clear; of a server that is not ours no processor time is known.
    let is_apart = target.spec.transport == Transport::Clear || target.address.pid.is_none();
    let cell = state.cell(&spec.id, &target.name);
    let is_measured = cell.state == CellState::Pending && !cell.blocks.is_empty();
    if is_apart || !is_measured || cell.control.is_some() {
        return;
    }
    let real = CaseSpec { engine: REAL.to_owned(), ..target.spec.clone() };
    let lean = target.run(bench, spec.rounds);
    let result = measure(&lean, &real);
    let ended = target.ended();
    cell.findings.retain(|finding| finding.id != NONE);
    match result {
        Ok(result) if result.cut => {}
        Ok(result)
            if ended.is_none() && result.block.windows.iter().any(|one| one.served().connections > 0) =>
        {
            cell.control = Some(result.block);
        }
        other => {
            let why = ended.or(other.err().map(|why| why.to_string()));
            let why = why.unwrap_or_else(|| "no connection of it succeeded".to_owned());
            let text = format!(
                "whether the lean client is what was measured is not known: with the real one, {why}"
            );
            cell.findings.push(Finding::new(NONE, Severity::Note, text, ""));
        }
    }
    state.keep();
}

fn measure(lean: &BlockRun<'_>, real: &CaseSpec) -> Result<BlockResult, Error> {
    // What a closed loop reaches is found with the client of the other blocks, so that the load is theirs.
    let reached = if lean.needs_reach() { Some(lean.reach()?) } else { None };
    BlockRun { spec: real, reached, ..*lean }.take_one_step()
}

/// Lays the control blocks of a case beside its others, and notes what they say: once for the case, and of each target for
/// which the client makes a difference.
pub(crate) fn compare(spec: &CaseSpec, state: &mut State) {
    let mut all = Vec::new();
    for cell in state.lab.cells.iter_mut().filter(|cell| cell.case == spec.id) {
        cell.findings.retain(|finding| finding.id != DIFFERS);
        let Some(seen) = Seen::of(cell, spec.measure) else { continue };
        cell.findings.extend(seen.finding());
        all.push(seen);
    }
    if let Some(case) = state.lab.cases.iter_mut().find(|case| case.id == spec.id) {
        case.control = joined(&all);
    }
    state.keep();
}

/// What the control block of a cell says.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seen {
    /// Processor time per connection, real over lean.
    ratio: f64,
    /// Connections a second, real over lean.
    load: f64,
    /// Whether more than a quarter of the lean blocks are as far out.
    is_usual: bool,
}

impl Seen {
    fn of(cell: &Cell, measure: Measure) -> Option<Self> {
        let control = cell.control.as_ref()?;
        let pairs: Vec<Self> =
            control.windows.iter().filter_map(|window| Self::window(window, &cell.blocks, measure)).collect();
        if pairs.is_empty() {
            return None;
        }
        Some(Self {
            ratio: mean(pairs.iter().map(|seen| seen.ratio)),
            load: mean(pairs.iter().map(|seen| seen.load)),
            is_usual: pairs.iter().all(|seen| seen.is_usual),
        })
    }

    /// Beside the windows of the same load: the same kind of clients, or the nearest step of a staircase.
    fn window(control: &WindowResult, blocks: &[Block], measure: Measure) -> Option<Self> {
        let same = blocks.iter().filter_map(|block| counterpart(control, block));
        let lean: Vec<[f64; 2]> = same.filter_map(|window| spent(window, measure)).collect();
        let [us, rate] = spent(control, measure)?;
        if lean.is_empty() {
            return None;
        }
        let of = |index: usize| lean.iter().map(|values| values[index]).collect::<Vec<f64>>();
        let (lean_us, lean_rate) = (of(0), of(1));
        let ratio = us / median(&lean_us);
        let is_as_far = |lean: &&f64| if ratio > 1.0 { **lean >= us } else { **lean <= us };
        let is_usual = lean_us.iter().filter(is_as_far).count() * 4 > lean_us.len();
        Some(Self { ratio, load: rate / median(&lean_rate), is_usual })
    }

    /// A caution where the ratio is none that the noise of the machine makes.
    fn finding(&self) -> Option<Finding> {
        if ControlRatio::EXPECTED.contains(&self.ratio) || self.is_usual {
            return None;
        }
        let load = self.load * 100.0;
        let text = format!(
            "it takes {:.2} times the processor time per connection when the client does all the work and verifies (engine \
             real, {load:.0} % of the connections a second): its figures are for the lean client",
            self.ratio
        );
        let advice = "a server with less to do takes more for each connection; at the same load it treats lean clients \
                      differently: run the case with engine = \"real\"";
        Some(Finding::new(DIFFERS, Severity::Warning, text, advice))
    }
}

fn counterpart<'a>(control: &WindowResult, block: &'a Block) -> Option<&'a WindowResult> {
    let Some(rate) = control.offered_tps else {
        return block.windows.iter().find(|window| window.label == control.label);
    };
    let distance = |window: &&WindowResult| (window.offered_tps.unwrap_or(f64::INFINITY) - rate).abs();
    block.windows.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

/// Processor time of the server for each connection, microseconds, and connections a second; of connections that stay open,
/// for each request.
fn spent(window: &WindowResult, measure: Measure) -> Option<[f64; 2]> {
    let served = window.served();
    let count = if measure == Measure::KeepAlive { served.transactions } else { served.connections };
    let cpu = window.user_us? + window.system_us?;
    (count > 0 && cpu > 0)
        .then(|| [cpu as f64 / count as f64, count as f64 * 1e6 / window.window_us.max(1) as f64])
}

/// All targets of a case.
fn joined(all: &[Seen]) -> Option<ControlRatio> {
    let targets = u32::try_from(all.len()).ok().filter(|count| *count > 0)?;
    let ratios = || all.iter().map(|seen| seen.ratio);
    Some(ControlRatio {
        ratio: mean(ratios()),
        low: ratios().fold(f64::INFINITY, f64::min),
        high: ratios().fold(0.0, f64::max),
        targets,
        load: mean(all.iter().map(|seen| seen.load)),
    })
}

/// Geometric.
fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    (values.map(f64::ln).sum::<f64>() / count).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second in which a server spent so much on each of 1000 connections.
    fn window(us: u64) -> WindowResult {
        WindowResult {
            window_us: 1_000_000,
            connections: 1000,
            user_us: Some(us * 900),
            system_us: Some(us * 100),
            ..WindowResult::default()
        }
    }

    fn cell(lean: &[u64], real: u64) -> Cell {
        let block = |us| Block { windows: vec![window(us)], ..Block::default() };
        Cell {
            blocks: lean.iter().copied().map(block).collect(),
            control: Some(block(real)),
            ..Cell::default()
        }
    }

    fn seen(lean: &[u64], real: u64) -> Seen {
        Seen::of(&cell(lean, real), Measure::Saturation).unwrap()
    }

    #[test]
    fn a_server_that_does_less_for_lean_clients_is_named() {
        let liar = seen(&[98, 100, 103], 150);
        assert!((liar.ratio - 1.5).abs() < 1e-9 && (liar.load - 1.0).abs() < 1e-9, "{liar:?}");
        let finding = liar.finding().unwrap();
        assert_eq!((finding.id.as_str(), finding.severity), (DIFFERS, Severity::Warning));
        assert!(
            finding.text.starts_with("it takes 1.50 times the processor time per connection"),
            "{finding:?}"
        );
        assert!(seen(&[98, 100, 103], 80).finding().is_some(), "or more");
    }

    #[test]
    fn what_lean_blocks_differ_by_among_themselves_is_not_the_clients_doing() {
        assert_eq!(seen(&[98, 100, 103], 108).finding(), None);
        assert_eq!(seen(&[70, 100, 160], 150).finding(), None);
        assert!(seen(&[98, 100, 103, 160], 150).finding().is_some(), "one burst hides nothing");
    }

    #[test]
    fn one_figure_stands_for_all_targets() {
        let all = [seen(&[100], 80), seen(&[100], 125), seen(&[100], 100)];
        let joined = joined(&all).unwrap();
        assert!((joined.ratio - 1.0).abs() < 1e-9, "{joined:?}");
        assert_eq!((joined.low, joined.high, joined.targets), (0.8, 1.25, 3));
        assert_eq!(super::joined(&[]), None);
    }

    #[test]
    fn a_step_is_compared_with_the_nearest_and_a_kind_of_client_with_its_own() {
        let step = |rate, us| WindowResult { offered_tps: Some(rate), ..window(us) };
        let kind = |name: &str, us| WindowResult { label: name.into(), ..window(us) };
        let of = |lean: Vec<WindowResult>, real: Vec<WindowResult>| Cell {
            blocks: vec![Block { windows: lean, ..Block::default() }],
            control: Some(Block { windows: real, ..Block::default() }),
            ..Cell::default()
        };
        let stairs = of(vec![step(300.0, 200), step(600.0, 100), step(900.0, 50)], vec![step(630.0, 150)]);
        assert!((Seen::of(&stairs, Measure::Staircase).unwrap().ratio - 1.5).abs() < 1e-9);
        let kinds = of(vec![kind("a", 100), kind("b", 400)], vec![kind("b", 400), kind("a", 400)]);
        assert!((Seen::of(&kinds, Measure::Clients).unwrap().ratio - 2.0).abs() < 1e-9);
        let nothing = of(vec![WindowResult::default()], vec![window(100)]);
        assert_eq!(Seen::of(&nothing, Measure::Saturation), None);
    }

    #[test]
    fn a_case_has_a_control_where_its_client_is_lean_and_it_costs_little() {
        let text = "name = 'x'\n[[group]]\nid = 'a'\nmeasure = 'saturation'\nrounds = 3\n[group.case]\n";
        let due = |case: &str, quick| {
            is_due(&crate::suite::Suite::read(&format!("{text}{case}"), quick).unwrap().cases[0], quick)
        };
        assert!(due("", false));
        assert!(!due("", true), "three blocks are not ten");
        for without in ["engine = 'real'", "version = 'clear'", "key = 'RSA-1024'"] {
            assert!(!due(without, false), "{without}");
        }
    }
}
