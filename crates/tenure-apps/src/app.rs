//! An app: one program of a folder.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use tenure_core::{Invalid, Name};

use crate::settings::Settings;

/// Whether a program runs when something asks for it, or all the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sort {
    /// By a schedule, or when somebody asks.
    Triggered,
    /// All the time: begun again when it ends.
    Continuous,
}

/// A program of a folder, and all that was said about it.
#[derive(Debug, Clone, PartialEq)]
pub struct App {
    /// What it is called. A triggered and a continuous one may share a name.
    pub name: String,
    /// Which sort it is.
    pub sort: Sort,
    /// Where its files are: what is copied before it runs, and where it runs.
    pub folder: PathBuf,
    /// The program and its first arguments; what is a file of its folder is said relative to that.
    pub command: Vec<OsString>,
    /// How it runs.
    pub settings: Settings,
    /// Why it cannot run here. Nothing if it can.
    pub wrong: Vec<String>,
    /// What was not understood, and does not keep it from running.
    pub notes: Vec<String>,
    /// Whether somebody has put a `disable.job` beside it.
    pub is_disabled: bool,
}

impl Sort {
    /// In a word, which is also the name of its folder.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Triggered => "triggered",
            Self::Continuous => "continuous",
        }
    }

    /// Where the apps of the other sort are below this folder.
    pub(crate) fn other_of(self, root: &Path) -> PathBuf {
        match self {
            Self::Triggered => root.join(Self::Continuous.word()),
            Self::Continuous => root.join(Self::Triggered.word()),
        }
    }

    /// The sort of this word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        [Self::Triggered, Self::Continuous].into_iter().find(|sort| sort.word() == word)
    }
}

impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl App {
    /// Whether it runs on this host.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.wrong.is_empty()
    }
}

/// Room for a prefix before the name.
const PREFIX_BYTES: usize = 40;

/// Accepts the name of an app: it becomes part of names of kinds, timers and leases.
///
/// # Errors
/// As names of Tenure are refused, and a little sooner, for what is put before them.
pub fn check_name(name: &str) -> Result<(), Invalid> {
    // A folder that is hidden is no app, and `..` is somebody else's folder.
    if name.starts_with('.') {
        return Err(Invalid::new("name", format_args!("{name:?}"), "a name that does not begin with a dot"));
    }
    Name::behind("name", &"x".repeat(PREFIX_BYTES), name).map(drop)
}
