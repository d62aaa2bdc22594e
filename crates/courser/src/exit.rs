//! Exit codes, and the report of a failure. The codes are documented in `courser --help`.

use std::fmt;
use std::io::IsTerminal;
use std::process::ExitCode;

use courser_config::{Problem, Problems};
use courser_telemetry::event;

/// Connections were still open when the drain's time was over, or at the second signal, and were cut off.
pub(crate) const CUT_OFF: u8 = 3;

#[derive(Debug)]
pub(crate) enum Failure {
    /// Exit code 2: the command line, the configuration or a file that it names is invalid.
    Configuration(Problems),
    /// Exit code 1: the system refused an operation, or a part of the program failed.
    Runtime(String),
}

impl Failure {
    /// A failure of the system, with the operation.
    pub(crate) fn runtime(operation: impl fmt::Display, error: impl fmt::Display) -> Self {
        Self::Runtime(format!("{operation}: {error}"))
    }

    /// Prints the failure on standard error and returns its exit code.
    pub(crate) fn report(self) -> ExitCode {
        event::print(self.text(colour()));
        ExitCode::from(self.exit_code())
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Configuration(_) => 2,
            Self::Runtime(_) => 1,
        }
    }

    /// For people, in whole lines.
    pub(crate) fn text(&self, colour: bool) -> String {
        match self {
            Self::Configuration(problems) => problems.render(colour),
            Self::Runtime(message) => format!("error: {message}\n"),
        }
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Self::Configuration(problems)
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Configuration(problem.into())
    }
}

/// Colour only on terminals (and not where NO_COLOR is set, see no-color.org).
pub(crate) fn colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}
