//! The files that somebody names, and how many this program may have open: each connection is one.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::exit::Failure;
use crate::output::safe;

/// Lets this program have as many files open as its system allows it to allow itself: what is usual is too little for a
/// server.
pub(crate) fn allow_many() {
    let limits = getrlimit(Resource::Nofile);
    // Whoever may not have more gets along with what he has.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, maximum: limits.maximum });
}

/// The text of a file that somebody has named, or of standard input if it is `-`: so many bytes at most.
pub(crate) fn text_of(file: &Path, most: u64) -> Result<String, Failure> {
    let is_input = file == Path::new("-");
    let named = if is_input { PathBuf::from("standard input") } else { file.to_owned() };
    let mut bytes = Vec::new();
    let read = match is_input {
        true => std::io::stdin().lock().take(most + 1).read_to_end(&mut bytes),
        false => File::open(file).and_then(|file| file.take(most + 1).read_to_end(&mut bytes)),
    };
    read.map_err(|source| Failure::Input { path: named.clone(), source })?;
    let odd = |what: &str| Failure::Invalid(format!("{} {what}", safe::line(&named.to_string_lossy())));
    if bytes.len() as u64 > most {
        return Err(odd(&format!("is larger than {most} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| odd("is not UTF-8"))
}

/// Creates a folder and those above it, which only their owner can open, under any umask. Folders that exist keep their
/// permissions.
pub(crate) fn create_private_folder(path: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Returns options that write a file, and create it for its owner alone, under any umask.
pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

/// Whether a file can be put at this path, as far as can be known before it is done.
pub(crate) fn can_be_written(path: &Path) -> Result<(), Failure> {
    let refuse = |source| Failure::Output { path: path.to_owned(), source };
    if path.is_dir() {
        return Err(refuse(ErrorKind::IsADirectory.into()));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    tempfile::Builder::new().prefix(".tenure-").tempfile_in(folder).map(drop).map_err(refuse)
}
