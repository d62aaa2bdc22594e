//! How the program ends: exit codes, and how a failure is told. The codes are documented in `--help`.

use std::fmt;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use courser_lab::error::Error;
use courser_lab::measure::Interrupt;
use courser_lab::progress;
use courser_lab::record_file::WriteError;
use courser_load::spec::SpecError;

/// Ends with something to tell the caller beyond success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// All is well.
    Well = 0,
    /// The verdict is inconclusive.
    Inconclusive = 3,
    /// Ctrl-C.
    Cut = 6,
    /// No rate satisfies a rule.
    NoRate = 7,
    /// Something got worse by more than was allowed.
    Worse = 8,
    /// A threshold was crossed.
    Crossed = 9,
}

impl From<Ended> for ExitCode {
    fn from(ended: Ended) -> Self {
        Self::from(ended as u8)
    }
}

/// Why nothing could be done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The system refused something: exit code 1.
    System(String),
    /// The command line asks for what cannot be had: exit code 2.
    Usage(String),
    /// The target cannot be reached: exit code 4.
    Unreachable(String),
    /// No TLS with the target: exit code 5.
    NoTls(String),
}

impl From<SpecError> for Failure {
    fn from(why: SpecError) -> Self {
        Error::from(why).into()
    }
}

impl From<progress::Ended> for Ended {
    fn from(ended: progress::Ended) -> Self {
        match ended {
            progress::Ended::Complete => Self::Well,
            progress::Ended::Failed | progress::Ended::Inconclusive => Self::Inconclusive,
            progress::Ended::Cut => Self::Cut,
        }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        Self::System(error.to_string())
    }
}

impl From<Error> for Failure {
    fn from(why: Error) -> Self {
        match why {
            Error::System(why) => Self::System(why),
            Error::Input(why) => Self::Usage(why),
            Error::Unreachable(why) => Self::Unreachable(why),
            Error::NoTls(why) => Self::NoTls(why),
        }
    }
}

impl Failure {
    /// A refusal of the system, with what was being done.
    pub(crate) fn system(doing: impl fmt::Display, error: impl fmt::Display) -> Self {
        Self::System(format!("{doing}: {error}"))
    }

    pub(crate) fn usage(why: impl fmt::Display) -> Self {
        Self::Usage(why.to_string())
    }

    /// Prints the failure on standard error and gives its exit code.
    pub(crate) fn report(self) -> ExitCode {
        let (code, message) = match self {
            Self::System(message) => (1, message),
            Self::Usage(message) => (2, message),
            Self::Unreachable(message) => (4, message),
            Self::NoTls(message) => (5, message),
        };
        notice!("error: {message}");
        ExitCode::from(code)
    }
}

/// Takes SIGINT and SIGTERM over. A second one ends the process at once.
pub(crate) fn interrupt() -> Result<Interrupt, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let again = signal_hook::flag::register_conditional_shutdown(signal, 6, Arc::clone(&flag));
        let first = signal_hook::flag::register(signal, Arc::clone(&flag));
        again.and(first).map_err(|why| Failure::system("taking over Ctrl-C", why))?;
    }
    Ok(Interrupt::new(flag))
}

/// Prints a line to standard error.
pub(crate) fn notice(line: &str) {
    notice!("{line}");
}

/// Colour only on terminals, and not where NO_COLOR is set (no-color.org).
pub(crate) fn colour(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
