//! Why a command ended badly.

use std::fmt;

/// Why a command ended badly, and with which exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The command line was not understood.
    Usage(String),
    /// Something that was checked does not hold, or could not be checked.
    Check(String),
}

impl Failure {
    /// The command line was not understood.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    /// Something that was checked does not hold, or could not be checked.
    pub fn check(message: impl Into<String>) -> Self {
        Self::Check(message.into())
    }

    /// The exit code of the program.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Check(_) => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) | Self::Check(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Failure {}
