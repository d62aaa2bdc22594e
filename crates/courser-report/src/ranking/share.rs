//! Cases whose clients leave: of how many that came are served.

use courser_record::lab::{Case, Cell, WindowResult};
use courser_stats::number::float;

/// From this share on all are served: what is missing are single connections.
const ALL: f64 = 0.99;

/// Which share a case is compared by, as the lab names its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shares {
    /// What is served, of what the target can serve: beyond that, where each is offered a multiple of it.
    Goodput,
    /// Clients that are served, of those who came.
    Clients,
}

impl Shares {
    pub(super) fn of(case: &Case, cells: &[&Cell]) -> Self {
        let is_goodput =
            |window: &WindowResult| window.figures.iter().any(|figure| figure.name == Self::Goodput.name());
        let is_beyond = offered(case).is_some_and(|percent| percent > 100);
        if is_beyond && windows(cells).any(is_goodput) { Self::Goodput } else { Self::Clients }
    }

    /// The figure's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Goodput => "goodput of capacity",
            Self::Clients => "clients served",
        }
    }
}

/// Whether clients of a case leave when they are not served in time.
pub(crate) fn is_asked(case: &Case) -> bool {
    case.dimensions.contains_key("patience")
}

/// What a case offers, percent of what a target can serve.
pub(crate) fn offered(case: &Case) -> Option<u32> {
    case.dimensions.get("capacity")?.strip_suffix(" %")?.parse().ok()
}

/// Whether each target serves practically all who come.
pub(super) fn all_served(cells: &[&Cell]) -> bool {
    let is_served = |window: &WindowResult| float(window.succeeded) >= ALL * float(window.attempted);
    windows(cells).all(is_served)
}

fn windows<'a>(cells: &[&'a Cell]) -> impl Iterator<Item = &'a WindowResult> {
    cells.iter().flat_map(|cell| &cell.blocks).flat_map(|block| &block.windows)
}
