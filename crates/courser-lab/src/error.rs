//! Why nothing could be measured.

use std::fmt;

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
