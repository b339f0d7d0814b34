//! Where the programs of a host run, and where they keep what is theirs.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tenure_apps::App;

use crate::exit::Failure;

/// Files of one working copy.
const MOST_FILES: u64 = 100_000;
/// How deep its folders may lie in one another.
const DEEPEST: u32 = 64;

/// The places of one host.
#[derive(Debug)]
pub(super) struct Places {
    /// What is there for the next run as well.
    data: PathBuf,
    /// Working copies of this host.
    work: PathBuf,
    /// Locked for as long as this host lives: what has no such lock was left behind by one that was killed.
    _lock: File,
}

/// A working copy, which goes with the run.
#[derive(Debug)]
pub(super) struct Copy {
    /// Where the program runs.
    pub(super) path: PathBuf,
    is_own: bool,
}

impl Places {
    /// Makes them below this folder, and removes what dead hosts have left there.
    pub(super) fn open(state: &Path, host: &str) -> Result<Self, Failure> {
        let all = state.join("work");
        let work = all.join(host);
        let fail = |source| Failure::Folder { path: work.clone(), source };
        fs::create_dir_all(&work).map_err(fail)?;
        let lock = File::create(lock_of(&work)).map_err(fail)?;
        lock.lock().map_err(fail)?;
        // Another host may do the same right now, and what is left is no reason not to work.
        let _ = remove_what_dead_hosts_left(&all);
        let data = fs::canonicalize(state).map_err(fail)?.join("data");
        Ok(Self { data, work: fs::canonicalize(&work).map_err(fail)?, _lock: lock })
    }

    /// Where this app keeps what is to be there for its next run.
    pub(super) fn data(&self, app: &App) -> io::Result<PathBuf> {
        let path = self.data.join(app.sort.word()).join(&app.name);
        fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// Where a run of this app takes place: its own folder, or a copy of it.
    pub(super) fn copy(&self, app: &App, run: &str) -> io::Result<Copy> {
        if app.settings.is_in_place == Some(true) {
            return Ok(Copy { path: app.folder.clone(), is_own: false });
        }
        let path = self.work.join(app.sort.word()).join(&app.name).join(run);
        let copy = Copy { path, is_own: true };
        let mut left = MOST_FILES;
        copy_folder(&app.folder, &copy.path, &mut left, DEEPEST)?;
        Ok(copy)
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        // If something of it cannot be removed, the next host tries again.
        let _ = fs::remove_dir_all(&self.work).and_then(|()| fs::remove_file(lock_of(&self.work)));
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if self.is_own {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn lock_of(work: &Path) -> PathBuf {
    work.with_extension("lock")
}

fn remove_what_dead_hosts_left(all: &Path) -> io::Result<()> {
    for entry in fs::read_dir(all)? {
        let path = entry?.path();
        if path.extension().is_none_or(|it| it != "lock") {
            continue;
        }
        // Who has the lock lives.
        if File::open(&path)?.try_lock().is_ok() {
            let _ = fs::remove_dir_all(path.with_extension(""));
            let _ = fs::remove_file(&path);
        }
    }
    Ok(())
}

/// Copies files and folders. Links stay links; what is neither is left out.
fn copy_folder(from: &Path, to: &Path, left: &mut u64, deeper: u32) -> io::Result<()> {
    if deeper == 0 {
        return Err(io::Error::other(format!("its folders lie more than {DEEPEST} deep in one another")));
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        *left = left
            .checked_sub(1)
            .ok_or_else(|| io::Error::other(format!("it has more than {MOST_FILES} files")))?;
        let (path, to, kind) = (entry.path(), to.join(entry.file_name()), entry.file_type()?);
        if kind.is_dir() {
            copy_folder(&path, &to, left, deeper - 1)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&path)?, &to)?;
        } else if kind.is_file() {
            fs::copy(&path, &to)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_apps::{Settings, Sort};

    fn app(folder: &Path) -> App {
        App {
            name: "a".to_owned(),
            sort: Sort::Triggered,
            folder: folder.to_owned(),
            command: Vec::new(),
            settings: Settings::usual(Sort::Triggered),
            wrong: Vec::new(),
            notes: Vec::new(),
            is_disabled: false,
        }
    }

    #[test]
    fn a_working_copy_goes_with_its_run_and_what_a_dead_host_left_with_the_next_host() {
        let folder = tempfile::tempdir().unwrap();
        let (source, state) = (folder.path().join("source"), folder.path().join("state"));
        fs::create_dir_all(source.join("below")).unwrap();
        fs::write(source.join("below/run.sh"), "true").unwrap();
        let places = Places::open(&state, "one").unwrap();
        let copy = places.copy(&app(&source), "1").unwrap();
        assert_eq!(fs::read_to_string(copy.path.join("below/run.sh")).unwrap(), "true");
        let path = copy.path.clone();
        let other = Places::open(&state, "two").unwrap();
        assert!(path.exists(), "its host lives");
        drop(copy);
        assert!(!path.exists());
        let left = places.copy(&app(&source), "2").unwrap();
        let path = left.path.clone();
        std::mem::forget(left);
        // Killed: its lock goes, and nothing else.
        let Places { _lock, .. } = &places;
        _lock.unlock().unwrap();
        let _third = Places::open(&state, "three").unwrap();
        assert!(!path.exists());
        drop(other);
        std::mem::forget(places);
    }
}
