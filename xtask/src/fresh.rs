//! Test programs that passed and have not changed since need not run again while one works on another crate.
//!
//! A pass leaves a file beside the program. It is void once the program, a binary of its package, or any file of the
//! repository that is not Rust is newer. Programs that read Rust sources while they run are never skipped. The check of
//! the packages compiles nothing, so only the names of Rust files matter to it.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::files;

/// Programs of these packages read sources of the repository while they run.
const READERS: &[&str] = &["xtask", "architecture", "pages-", "book"];
/// Programs whose pass is void once a Rust file is added, renamed or removed.
const LISTERS: &[&str] = &["package"];

/// The files of the repository that are not Rust: any program may read them while it runs.
pub struct Texts {
    newest: SystemTime,
    /// Tells a list of names from another, so that a deleted or renamed file counts as a change.
    names: String,
    /// A fingerprint that includes the names of Rust files.
    all_names: String,
}

impl Texts {
    /// Looks at the files as they are now.
    pub fn of(root: &Path) -> io::Result<Self> {
        let mut paths = files::all(root)?;
        let all_names = fingerprint(&paths);
        paths.retain(|path| !path.ends_with(".rs"));
        let newest = paths.iter().filter_map(|path| modified(&root.join(path))).max();
        let newest = newest.unwrap_or(SystemTime::UNIX_EPOCH);
        Ok(Self { newest, names: fingerprint(&paths), all_names })
    }

    /// The names that matter to the program with this output.
    fn names_for(&self, said: &Path) -> &str {
        if is_one_of(LISTERS, said) { &self.all_names } else { &self.names }
    }
}

fn fingerprint(paths: &[String]) -> String {
    let mut hasher = DefaultHasher::new();
    paths.hash(&mut hasher);
    hasher.finish().to_string()
}

fn is_one_of(programs: &[&str], said: &Path) -> bool {
    let name = said.file_name().unwrap_or_default().to_string_lossy();
    programs.iter().any(|program| name.starts_with(program))
}

/// Returns true if the program passed in a run that started after the last change of its inputs.
pub fn has_passed(said: &Path, inputs: &[PathBuf], texts: &Texts) -> bool {
    let Some(started) = modified(&passed_file(said)) else {
        return false;
    };
    !is_one_of(READERS, said)
        && fs::read_to_string(passed_file(said)).is_ok_and(|names| names == texts.names_for(said))
        && started > texts.newest
        && inputs.iter().all(|input| modified(input).is_some_and(|at| at < started))
}

/// Notes that a run starts. A later change voids it, even while it runs.
pub fn start(said: &Path, texts: &Texts) -> io::Result<()> {
    fs::write(started_file(said), texts.names_for(said))
}

/// Notes that a program passed, or forgets that it did.
pub fn end(said: &Path, passed: bool) -> io::Result<()> {
    if passed {
        return fs::rename(started_file(said), passed_file(said));
    }
    match fs::remove_file(passed_file(said)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The sources whose documentation is checked.
pub fn sources(root: &Path) -> io::Result<Vec<PathBuf>> {
    let sources =
        files::all(root)?.into_iter().filter(|path| path.ends_with(".rs") && path.contains("/src/"));
    Ok(sources.map(|path| root.join(path)).collect())
}

fn started_file(said: &Path) -> PathBuf {
    said.with_extension("started")
}

fn passed_file(said: &Path) -> PathBuf {
    said.with_extension("passed")
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_pass_is_void_once_an_input_is_newer() {
        let folder = std::env::temp_dir().join(format!("tenure-fresh-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (program, said) = (folder.join("it-1"), folder.join("it-1.said"));
        fs::write(&program, "").unwrap();
        let inputs = [program.clone()];
        let texts =
            |newest, names: &str| Texts { newest, names: names.to_owned(), all_names: "all".to_owned() };
        let old = texts(SystemTime::UNIX_EPOCH, "a");
        assert!(!has_passed(&said, &inputs, &old), "it never ran");
        start(&said, &old).unwrap();
        assert!(!has_passed(&said, &inputs, &old), "it still runs");
        end(&said, true).unwrap();
        let started = modified(&passed_file(&said)).unwrap();
        let change = |at| File::options().write(true).open(&program).unwrap().set_modified(at).unwrap();
        change(SystemTime::UNIX_EPOCH);
        assert!(has_passed(&said, &inputs, &old));
        assert!(!has_passed(&said, &inputs, &texts(started, "a")), "a text is as new");
        assert!(!has_passed(&said, &inputs, &texts(SystemTime::UNIX_EPOCH, "b")), "a text has another name");
        change(started);
        assert!(!has_passed(&said, &inputs, &old), "the program is as new");
        end(&said, false).unwrap();
        assert!(!has_passed(&said, &[], &old), "it failed");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_new_rust_file_matters_to_the_check_of_the_packages_alone() {
        let folder = std::env::temp_dir().join(format!("tenure-fresh-names-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let texts = |all_names: &str| Texts {
            newest: SystemTime::UNIX_EPOCH,
            names: "a".to_owned(),
            all_names: all_names.to_owned(),
        };
        for (name, is_void) in [("it-1.said", false), ("package.said", true)] {
            let said = folder.join(name);
            start(&said, &texts("b")).unwrap();
            end(&said, true).unwrap();
            assert!(has_passed(&said, &[], &texts("b")), "{name}");
            assert_eq!(has_passed(&said, &[], &texts("c")), !is_void, "{name}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
