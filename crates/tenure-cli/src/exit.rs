//! How the program ends when it could not do what was asked.

use std::path::PathBuf;

use tenure::Error;
use tenure_http::ServeError;

/// Answer to a command that would store plain text in an encrypted store.
const NO_KEYS: &str = "the store is encrypted, and no encryption keys are loaded; set --encryption-keys, \
                       TENURE_ENCRYPTION_KEYS or the setting database.encryption_keys, or pass --without-encryption to \
                       store new values as plain text";

/// Why the program could not do what was asked, in a sentence for a person.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The library said no.
    #[error(transparent)]
    Library(Error),
    /// The call was understood, but makes no sense.
    #[error("{0}")]
    Usage(String),
    /// One of two places cannot be used.
    #[error("{which}: {source}")]
    At {
        /// Which.
        which: &'static str,
        /// Why.
        source: Box<Error>,
    },
    /// There is nothing where something was to be.
    #[error("{0}")]
    NotThere(String),
    /// What there is forbids it.
    #[error("{0}")]
    Conflict(String),
    /// What was made is of no use.
    #[error("{0}")]
    NotWhole(String),
    /// A copy has failed on its way.
    #[error("{1}; the copy in {0} is incomplete and cannot be opened: delete it and copy again")]
    Copy(String, #[source] Box<Error>),
    /// A folder or file is not usable.
    #[error("cannot use {path}: {source}", path = path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// What was to be read from a file that was named cannot be.
    #[error("cannot read {path}: {source}", path = path.display())]
    Input {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// What was to be written to a file or folder that was named cannot be.
    #[error("cannot write {path}: {source}", path = path.display())]
    Output {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The runtime or a process of our own did not start.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
    /// Nobody can be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The bare driver, measured as a floor, failed.
    #[error("cannot measure the SQLite driver: {0}")]
    Floor(#[from] rusqlite::Error),
    /// A measurement makes no sense, so it is not printed.
    #[error("cannot measure {figure}: {why}")]
    Measurement {
        /// Which.
        figure: &'static str,
        /// What went wrong.
        why: String,
    },
    /// Something is wrong with a store; it has been told what.
    #[error("{} found; nothing was changed", findings(.0))]
    Findings(usize),
    /// A repair has left something.
    #[error("{} remain; see tenure db check", findings(.0))]
    NotRepaired(usize),
    /// Somebody interrupted it.
    #[error("interrupted")]
    Interrupted,
    /// Somebody interrupted it, and this goes on.
    #[error("interrupted; {0}")]
    GoesOn(String),
    /// A server said no.
    #[error("{sentence}")]
    Refused {
        /// The status with which the program ends.
        code: u8,
        /// What it said.
        sentence: String,
    },
    /// Nobody answers.
    #[error("{0}")]
    Unreachable(String),
    /// A job that was waited for has failed or was cancelled.
    #[error("{0}")]
    Unsuccessful(String),
    /// What was waited for has not come in time.
    #[error("{0}")]
    WaitOver(String),
    /// A value is not allowed.
    #[error("{0}")]
    Invalid(String),
    /// Somebody else has the lease.
    #[error("{0}")]
    Held(String),
    /// A program under a lease ended with this status; it has said why.
    #[error("the program ended with {0}")]
    Silent(u8),
    /// A program was not even started.
    #[error("cannot start the program: {0}")]
    NotStarted(String),
    /// Whoever read has had enough; nothing is said of that.
    #[error("output closed")]
    NobodyReads,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        if matches!(error, Error::NoKeys) { Self::Conflict(NO_KEYS.to_owned()) } else { Self::Library(error) }
    }
}

impl Failure {
    /// The same, with what it is said of.
    pub(crate) fn said_of(self, what: &str) -> Self {
        let Self::Refused { code, sentence } = self else { return self };
        Self::Refused { code, sentence: format!("{what}: {sentence}") }
    }

    /// The status with which the program ends.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Library(error) => code_of(error),
            Self::At { source, .. } | Self::Copy(_, source) => code_of(source),
            Self::NotThere(_) => 5,
            Self::Conflict(_) => 6,
            Self::NotWhole(_) | Self::Unsuccessful(_) => 1,
            Self::Refused { code, .. } | Self::Silent(code) => *code,
            Self::Held(_) => 75,
            Self::NotStarted(_) => 126,
            Self::Unreachable(_) => 3,
            Self::Invalid(_) => 7,
            Self::WaitOver(_) => 124,
            Self::NobodyReads => 0,
            Self::Usage(_) | Self::Input { .. } | Self::Output { .. } => 2,
            Self::Serve(
                ServeError::Open(_)
                | ServeError::OpenSocket
                | ServeError::Nowhere
                | ServeError::UnknownUser(_),
            ) => 2,
            Self::Folder { .. } | Self::Floor(_) => 3,
            Self::Serve(_)
            | Self::System { .. }
            | Self::Measurement { .. }
            | Self::Findings(_)
            | Self::NotRepaired(_) => 1,
            Self::Interrupted | Self::GoesOn(_) => 130,
        }
    }
}

fn findings(number: &usize) -> String {
    format!("{number} {}", if *number == 1 { "inconsistency" } else { "inconsistencies" })
}

fn code_of(error: &Error) -> u8 {
    match error {
        Error::Url { .. } => 2,
        Error::Fault(_) => 3,
        Error::NotFound(_) => 5,
        Error::Refused { .. } => 6,
        Error::Invalid(_) | Error::Json { .. } | Error::Settings(_) => 7,
        // What a later version of the library adds is no worse than this.
        Error::Unsuccessful { .. } | _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_failure_has_the_exit_code_that_scripts_rely_on() {
        let invalid = tenure::seconds("delay", f64::NAN).unwrap_err();
        let fault = tenure::Fault::Broken("it is damaged".into());
        assert_eq!(Failure::Usage("no".into()).code(), 2);
        assert_eq!(Failure::Library(fault.into()).code(), 3);
        assert_eq!(Failure::Library(invalid.into()).code(), 7);
        assert_eq!(Failure::Interrupted.code(), 130);
    }
}
