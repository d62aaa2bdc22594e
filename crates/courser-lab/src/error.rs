//! Why nothing could be measured.

use std::fmt;

use courser_load::spec::SpecError;

/// What is wrong, by whose part it is to put right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The system refused something.
    System(String),
    /// What was asked for cannot be had.
    Input(String),
    /// The target cannot be reached.
    Unreachable(String),
    /// The target answers, but not with TLS that was offered.
    NoTls(String),
}

impl Error {
    /// A refusal of the system, with what was being done.
    pub fn system(doing: impl fmt::Display, error: impl fmt::Display) -> Self {
        Self::System(format!("{doing}: {error}"))
    }

    /// An error of what was asked for.
    pub fn input(why: impl fmt::Display) -> Self {
        Self::Input(why.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::System(message)
        | Self::Input(message)
        | Self::Unreachable(message)
        | Self::NoTls(message)) = self;
        f.write_str(message)
    }
}

impl std::error::Error for Error {}

impl From<SpecError> for Error {
    fn from(why: SpecError) -> Self {
        match why {
            SpecError::Unreachable(why) => Self::Unreachable(why),
            SpecError::Invalid(why) => Self::Input(why),
        }
    }
}
