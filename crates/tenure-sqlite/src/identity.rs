//! Notices that a file, or its log, is another one than the one that was opened.
//!
//! SQLite goes on with what it has open. What it writes after a restore or a removal is lost when the program ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tenure_store::Fault;

use crate::inspect::{beside, broken};

/// A file's number in its file system; `None` on a system that has none.
type Number = Option<(u64, u64)>;

/// The file and its log, as they were when they were opened.
#[derive(Debug)]
pub(crate) struct Identity {
    path: PathBuf,
    file: Number,
    log: Number,
    lost: Arc<Lost>,
}

/// Why the open file must not be used any more, once that is known.
#[derive(Debug, Default)]
pub(crate) struct Lost(OnceLock<&'static str>);

impl Identity {
    /// Remembers which files are open now.
    pub(crate) fn of(path: &Path) -> Self {
        let log = beside(path, "-wal");
        Self { path: path.to_owned(), file: number(path), log: number(&log), lost: Arc::default() }
    }

    pub(crate) fn lost(&self) -> Arc<Lost> {
        Arc::clone(&self.lost)
    }

    /// Looks once more. The first difference is final: what was written until then may be in either file.
    pub(crate) fn check(&self) {
        let is_another = |path: &Path, before: Number| before.is_some() && number(path) != before;
        if is_another(&self.path, self.file) {
            let _ = self.lost.0.set("the file was replaced or removed while it was open");
        } else if is_another(&beside(&self.path, "-wal"), self.log) {
            let _ = self.lost.0.set("its -wal log was replaced or removed while it was open");
        }
    }
}

impl Lost {
    /// # Errors
    /// [`Fault::Broken`] once the file is lost.
    pub(crate) fn check(&self, path: &Path) -> Result<(), Fault> {
        let Some(why) = self.0.get() else { return Ok(()) };
        let rest =
            "the latest writes may be lost; restart this program, and stop it before you restore a backup";
        Err(broken(path, format_args!("{why}: {rest}")))
    }
}

#[cfg(unix)]
fn number(path: &Path) -> Number {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn number(_path: &Path) -> Number {
    None
}
