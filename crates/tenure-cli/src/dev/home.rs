//! Where the jobs of `tenure dev` are kept.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::exit::Failure;
use crate::files;

const FOLDER: &str = ".tenure";
const FILE: &str = "dev.db";

/// A place for jobs that can be opened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Home {
    /// What the library opens.
    pub(crate) url: String,
    /// The file or the kind of database, if there is one: what is in it goes on with the next start.
    pub(crate) kept_in: Option<String>,
}

impl Home {
    pub(crate) fn in_memory() -> Self {
        Self { url: "memory:".to_owned(), kept_in: None }
    }

    /// A file, or a store's URL, that somebody named.
    pub(crate) fn named(db: &str) -> Self {
        let is_url = db.contains("://") || db.starts_with("sqlite:") || db.starts_with("memory:");
        let url = if is_url { db.to_owned() } else { format!("sqlite://{db}") };
        let file = url.strip_prefix("sqlite:").map(|rest| rest.strip_prefix("//").unwrap_or(rest));
        // The rest of such a URL may hold a password.
        let database = url.starts_with("postgres").then_some("the database");
        Self { kept_in: file.or(database).map(str::to_owned), url }
    }

    /// The file that is used when nothing was said. Its folder keeps itself out of version control.
    pub(crate) fn usual() -> Result<Self, Failure> {
        let folder = folder(Path::new("."))?;
        Ok(Self::named(&format!("{}/{FILE}", folder.display())))
    }
}

/// Returns the path of the folder for what is made here.
pub(crate) fn place_in(parent: &Path) -> PathBuf {
    parent.join(FOLDER)
}

/// The folder for what is made here, created if need be.
pub(crate) fn folder(parent: &Path) -> Result<PathBuf, Failure> {
    let path = place_in(parent);
    let fail = |source| Failure::Folder { path: path.clone(), source };
    files::create_private_folder(&path).map_err(fail)?;
    match files::private_file().create_new(true).open(path.join(".gitignore")) {
        Ok(mut ignore) => ignore.write_all(b"*\n").map_err(fail)?,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(fail(error)),
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_by_its_path_or_by_a_url() {
        assert_eq!(Home::named("a/b.db").url, "sqlite://a/b.db");
        assert_eq!(Home::named("sqlite://a/b.db").kept_in, Some("a/b.db".into()));
        assert_eq!(Home::named("postgres://me:secret@h/jobs").kept_in, Some("the database".into()));
        assert_eq!(Home::named("/a/b.db"), Home::named("sqlite:///a/b.db"));
        assert_eq!(Home::named("memory:"), Home::in_memory());
    }

    #[test]
    fn the_folder_keeps_itself_out_of_version_control() {
        let parent = tempfile::tempdir().unwrap();
        let made = folder(parent.path()).unwrap();
        assert_eq!(std::fs::read_to_string(made.join(".gitignore")).unwrap(), "*\n");
        assert_eq!(folder(parent.path()).unwrap(), made, "a second time changes nothing");
    }
}
