//! The record of a suite while it runs: on disk after every block, so that nothing that was measured is lost, and a
//! suite that was cut goes on where it stopped.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use courser_record::lab::{Case, Cell, CellState, LAB_FORMAT, LAB_VERSION, Lab};

use crate::error::Error;
use crate::record_file;
use crate::suite::{CaseSpec, Suite};
use crate::to_record;

/// Prints a line to whoever runs the suite.
pub type Notice = fn(&str);

/// A record, and where it is kept.
pub struct State {
    /// The record so far.
    pub lab: Lab,
    path: PathBuf,
    began: Instant,
    /// What earlier parts took.
    before: Duration,
    /// The last thing that could not be kept, told once.
    trouble: Option<String>,
    notice: Notice,
}

/// What a new record is about.
pub(crate) struct About<'a> {
    pub(crate) suite: &'a Suite,
    pub(crate) seed: u64,
    pub(crate) quick: bool,
    pub(crate) rtt: Option<Duration>,
    pub(crate) notice: Notice,
}

impl State {
    /// A new record in a file that is not there yet.
    pub(crate) fn new(path: PathBuf, about: &About<'_>) -> Result<Self, Error> {
        if path.is_file() {
            let why = format!(
                "{} is there already: --resume goes on with it, or name another file",
                path.display()
            );
            return Err(Error::input(why));
        }
        let state = Self::of(lab(about), path, Duration::ZERO, about.notice);
        // A folder that cannot be written to is told before an hour of measuring.
        record_file::write(&state.path, &state.lab.to_json())?;
        Ok(state)
    }

    /// Goes on with the record of a suite that was cut.
    pub(crate) fn resume(path: PathBuf, about: &About<'_>) -> Result<Self, Error> {
        let mut lab = record_file::read_lab(&path)?;
        let suite = &about.suite.notes.name;
        if lab.suite.name != *suite || lab.quick != about.quick {
            let variant = if lab.quick { "quick" } else { "full" };
            return Err(Error::input(format!(
                "{}: of the suite {} in its {variant} variant, not of this one",
                path.display(),
                lab.suite.name
            )));
        }
        if let Some(why) = otherwise(&lab, about) {
            return Err(Error::input(format!("{}: {why}; name another file", path.display())));
        }
        lab.envelope.cut = None;
        let before = Duration::from_micros(lab.elapsed_us);
        Ok(Self::of(lab, path, before, about.notice))
    }

    fn of(lab: Lab, path: PathBuf, before: Duration, notice: Notice) -> Self {
        Self { lab, path, began: Instant::now(), before, trouble: None, notice }
    }

    /// File of the record.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Names a case, in the order of the suite.
    pub(crate) fn case(&mut self, spec: &CaseSpec, asked: Vec<String>) {
        if self.lab.case(&spec.id).is_none() {
            self.lab.cases.push(Case {
                id: spec.id.clone(),
                title: spec.title.clone(),
                era: spec.era,
                dimensions: spec.dimensions.clone(),
                measure: spec.measure,
                asked,
                limit: None,
                control: None,
            });
        }
    }

    /// The cell of a case and a target, begun if it is not there.
    pub(crate) fn cell(&mut self, case: &str, target: &str) -> &mut Cell {
        let is = |cell: &Cell| cell.case == case && cell.target == target;
        let at = self.lab.cells.iter().position(is).unwrap_or_else(|| {
            self.lab.cells.push(Cell { case: case.into(), target: target.into(), ..Cell::default() });
            self.lab.cells.len() - 1
        });
        &mut self.lab.cells[at]
    }

    /// Whether nothing is left to do for a cell. One that failed is tried again.
    pub(crate) fn is_done(&self, case: &str, target: &str) -> bool {
        let state = self.lab.cell(case, target).map(|cell| cell.state);
        matches!(state, Some(CellState::Done | CellState::Cannot))
    }

    /// Writes the record. What cannot be written stays in memory, is told once, and is tried again after the next block.
    pub(crate) fn keep(&mut self) {
        self.lab.elapsed_us = to_record::micros(self.before + self.began.elapsed());
        let trouble = record_file::write(&self.path, &self.lab.to_json()).err().map(|why| why.to_string());
        if let Some(why) = trouble.as_ref().filter(|why| self.trouble.as_ref() != Some(*why)) {
            (self.notice)(&format!(
                "warning: {why}; measuring goes on, and it is tried again after the next block"
            ));
        }
        self.trouble = trouble;
    }

    /// Writes the record for the last time.
    pub(crate) fn finish(&mut self, cut: bool) {
        self.lab.envelope.cut = cut.then(|| "Ctrl-C".to_owned());
        self.keep();
    }

    /// Whether all of it is on disk: to be asked after it was printed, since that may be all that is left of it.
    ///
    /// # Errors
    /// Why it is not.
    pub fn kept(&self) -> Result<(), Error> {
        self.trouble.clone().map_or(Ok(()), |why| Err(Error::System(why)))
    }
}

/// Why further blocks would not be of the same experiment as those of a record.
fn otherwise(lab: &Lab, about: &About<'_>) -> Option<String> {
    let here = to_record::machine();
    if (&lab.envelope.machine.name, &lab.envelope.machine.cpu_model) != (&here.name, &here.cpu_model) {
        return Some(format!(
            "it was measured on {} ({})",
            lab.envelope.machine.name, lab.envelope.machine.cpu_model
        ));
    }
    if lab.rtt_us != about.rtt.map(to_record::micros) {
        let rtt = lab.rtt_us.map_or("none".into(), |us| format!("{us} us"));
        return Some(format!("it was measured with another --rtt: {rtt}"));
    }
    about.suite.cases.iter().find_map(|spec| {
        let case =
            lab.case(&spec.id).filter(|case| (&case.title, case.measure) != (&spec.title, spec.measure))?;
        Some(format!("its case {} was {:?}, and is {:?} now", case.id, case.title, spec.title))
    })
}

fn lab(about: &About<'_>) -> Lab {
    Lab {
        format: LAB_FORMAT.into(),
        version: LAB_VERSION,
        envelope: to_record::envelope(Some("not finished")),
        elapsed_us: 0,
        tuning: Vec::new(),
        cores: Vec::new(),
        cores_note: String::new(),
        suite: about.suite.notes.clone(),
        seed: about.seed,
        quick: about.quick,
        rtt_us: about.rtt.map(to_record::micros),
        targets: Vec::new(),
        cases: Vec::new(),
        cells: Vec::new(),
        findings: Vec::new(),
    }
}
