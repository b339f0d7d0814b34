//! Test programs that passed and have not changed since need not run again while one works on another crate.
//!
//! A pass leaves a file beside the program. It is void once the program, a binary of its package, or any file of the
//! repository that is not Rust is newer. Programs that read Rust sources while they run have no such file.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::files;

/// Programs of these packages read sources of the repository while they run.
const READERS: &[&str] = &["xtask", "architecture", "all-", "lab-", "pages-", "book", "package"];

/// Returns true if the program passed after the last change of its inputs.
pub fn has_passed(said: &Path, inputs: &[PathBuf], newest_text: SystemTime) -> bool {
    let name = said.file_name().unwrap_or_default().to_string_lossy();
    let Some(passed) = modified(&stamp(said)) else {
        return false;
    };
    !READERS.iter().any(|reader| name.starts_with(reader))
        && passed > newest_text
        && inputs.iter().all(|input| modified(input).is_some_and(|at| at < passed))
}

/// Notes that a program passed, or forgets that it did.
pub fn note(said: &Path, passed: bool) -> io::Result<()> {
    match (passed, fs::remove_file(stamp(said))) {
        (true, _) => File::create(stamp(said)).map(|_| ()),
        (false, Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error),
        (false, _) => Ok(()),
    }
}

/// The time of the last change of a file that is not Rust.
pub fn newest_text(root: &Path) -> io::Result<SystemTime> {
    let texts = files::all(root)?.into_iter().filter(|path| !path.ends_with(".rs"));
    Ok(texts.filter_map(|path| modified(&root.join(path))).max().unwrap_or(SystemTime::UNIX_EPOCH))
}

/// The sources whose documentation is checked.
pub fn sources(root: &Path) -> io::Result<Vec<PathBuf>> {
    let sources =
        files::all(root)?.into_iter().filter(|path| path.ends_with(".rs") && path.contains("/src/"));
    Ok(sources.map(|path| root.join(path)).collect())
}

fn stamp(said: &Path) -> PathBuf {
    said.with_extension("passed")
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_is_void_once_an_input_is_newer() {
        let folder = std::env::temp_dir().join(format!("tenure-fresh-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (program, said) = (folder.join("it-1"), folder.join("it-1.said"));
        fs::write(&program, "").unwrap();
        let inputs = [program.clone()];
        let old = SystemTime::UNIX_EPOCH;
        assert!(!has_passed(&said, &inputs, old), "it never ran");
        note(&said, true).unwrap();
        File::options().write(true).open(&program).unwrap().set_modified(old).unwrap();
        assert!(has_passed(&said, &inputs, old));
        let stamped = modified(&stamp(&said)).unwrap();
        assert!(!has_passed(&said, &inputs, stamped), "a text is as new");
        File::options().write(true).open(&program).unwrap().set_modified(stamped).unwrap();
        assert!(!has_passed(&said, &inputs, old), "the program is as new");
        note(&said, false).unwrap();
        assert!(!has_passed(&said, &[], old), "it failed");
        fs::remove_dir_all(&folder).unwrap();
    }
}
