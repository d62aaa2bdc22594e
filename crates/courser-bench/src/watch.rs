//! A run as it is watched: a line a second, a bar with the time left, or a line of JSON a second.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use courser_lab::measure;
use courser_load::plan::Plan;
use courser_record::Second;
use courser_report::text;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::OutputArgs;

/// Shows seconds as they pass.
pub(crate) struct Watch {
    quiet: bool,
    ndjson: bool,
    label: String,
    /// Of all trials, the next one included.
    left: Option<Duration>,
    bar: ProgressBar,
}

impl Watch {
    /// As the flags say. The bar and the lines go to standard error; lines of JSON to standard output.
    pub(crate) fn new(output: &OutputArgs) -> Self {
        Self {
            quiet: output.quiet || output.ndjson,
            ndjson: output.ndjson,
            label: String::new(),
            left: None,
            bar: ProgressBar::hidden(),
        }
    }

    /// Shows the number of the next trial, of about how many, its rate per second, and the time of all that are left.
    pub(crate) fn trial(&mut self, (number, about): (usize, usize), rate: f64, left: Duration) {
        self.left = Some(left);
        if !self.quiet {
            notice!("trial {number} of about {about}: {rate:.0}/s, about {} s left", left.as_secs().max(1));
        }
    }

    fn print(&self, line: &str) {
        if self.bar.is_hidden() {
            notice!("{line}");
        } else {
            self.bar.println(line);
        }
    }
}

impl measure::Watch for Watch {
    fn label(&mut self, label: &str) {
        self.label = label.into();
    }

    fn begin(&mut self, plan: &Plan) {
        let whole = plan.steady_end() + plan.phases.drain;
        let show = !self.quiet && std::io::stderr().is_terminal();
        let target = if show { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        self.bar = ProgressBar::with_draw_target(Some(whole.as_secs().max(1)), target);
        let style = ProgressStyle::with_template("{bar:40} {pos} of at most {len} s, {eta} left {msg}");
        self.bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let left = self.left.map(|left| format!(", all trials about {} s", left.as_secs()));
        self.bar.set_message(format!("({}{})", self.label, left.unwrap_or_default()));
    }

    fn second(&mut self, second: &Second) {
        self.bar.set_position(second.second + 1);
        if self.ndjson {
            // Whoever has closed the pipe wants no more of it.
            let _ = writeln!(std::io::stdout(), "{}", second.to_ndjson(&self.label));
        } else if !self.quiet {
            self.print(&text::line(second));
        }
    }

    fn end(&mut self) {
        self.bar.finish_and_clear();
    }
}
