//! What the control blocks say: whether a figure is the lean client's doing.

use courser_record::Lab;
use courser_record::lab::{Case, ControlRatio};

use super::{counted, factor, factor_range, whole_percent};

/// What the ratio is.
pub const CONTROL: &str = "Control of the client: one more block of each target has the engine real, a client that does all the \
    work and verifies every signature. The server's processor time per connection with it, over that with the lean client that \
    measures: the geometric mean of the targets and what they range over. These blocks are in no other figure. A server that \
    has less to do takes more for each connection, so the load that the real client brought is named where it is less.";

/// Heads of the columns of [`control_rows`].
pub const CONTROL_HEADS: [&str; 3] = ["case", "real / lean client", "range of targets"];

/// For each case with control blocks its title, the ratio, and the range.
pub fn control_rows(lab: &Lab) -> Vec<Vec<String>> {
    let row = |(case, control): (&Case, &ControlRatio)| {
        let range = match control.targets {
            1 => counted(1, "target"),
            many => {
                format!("{}, {}", factor_range(control.low, control.high), counted(many as usize, "target"))
            }
        };
        vec![super::case(lab, &case.id), format!("{}{}", factor(control.ratio), load(control)), range]
    };
    controls(lab).map(row).collect()
}

/// That a client does make a difference; `None` where none does.
pub fn control_caution(lab: &Lab) -> Option<String> {
    let differs: Vec<String> = controls(lab)
        .filter(|(_, control)| !ControlRatio::EXPECTED.contains(&control.ratio))
        .map(|(case, control)| {
            format!("{} ({}{})", super::case(lab, &case.id), factor(control.ratio), load(control))
        })
        .collect();
    (!differs.is_empty()).then(|| {
        format!(
            "With a client that does all the work and verifies, the servers' processor time per connection is another than with \
             the lean one that measures: {}. Figures of these cases are for the lean client.",
            super::list(&differs)
        )
    })
}

fn controls(lab: &Lab) -> impl Iterator<Item = (&Case, &ControlRatio)> {
    lab.cases.iter().filter_map(|case| case.control.as_ref().map(|control| (case, control)))
}

/// Where the real client brought less, how much.
fn load(control: &ControlRatio) -> String {
    if control.load < 0.9 {
        format!(" at {} of the rate", whole_percent(control.load))
    } else {
        String::new()
    }
}
