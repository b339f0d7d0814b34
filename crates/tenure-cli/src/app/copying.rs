//! Copying a folder within bounds.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, readlinkat, statat};
use rustix::io::Errno;

use super::links::leads_out;
use crate::files;

/// Files and folders of one copy.
const MOST_FILES: u64 = 100_000;
/// Bytes of one copy.
const MOST_BYTES: u64 = 2 << 30;
/// How deep its folders may lie in one another.
const DEEPEST: usize = 64;

/// What becomes of links that lead out of the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outward {
    /// They lead to where they led, from wherever the copy is.
    Kept,
    /// There may be none.
    Refused,
}

/// Flags that open a folder.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

struct Copying<'a> {
    top: &'a Path,
    outward: Outward,
    stop: &'a AtomicBool,
    files: u64,
    bytes: u64,
}

/// Copies files, folders and links, and skips everything else, such as pipes. Ends early if `stop` is set. The last `own`
/// names of the path `from` must be folders, not links.
///
/// # Errors
/// More files or bytes than a copy may have, a link that may not be, or what the system says.
pub(super) fn copy(
    (from, own): (&Path, usize),
    to: &Path,
    outward: Outward,
    stop: &AtomicBool,
) -> io::Result<()> {
    let top = open_top(from, own)?;
    Copying { top: from, outward, stop, files: 0, bytes: 0 }.folder(&top, from, to, 0)
}

/// Opens a folder without following links in the last `own` names of its path.
fn open_top(path: &Path, own: usize) -> io::Result<OwnedFd> {
    let mut names: Vec<&OsStr> = Vec::new();
    let mut above = path;
    while let (true, Some(name), Some(parent)) = (names.len() < own, above.file_name(), above.parent()) {
        names.push(name);
        above = parent;
    }
    let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
    let start = openat(CWD, above, FOLDER, Mode::empty()).map_err(|error| cannot_read(above, error))?;
    names.into_iter().rev().try_fold(start, |folder, name| open_folder(&folder, name, path))
}

/// Opens a folder in another one. Its path may have become a link since the other one was listed.
fn open_folder(parent: &OwnedFd, name: &OsStr, path: &Path) -> io::Result<OwnedFd> {
    let opened = openat(parent, name, FOLDER | OFlags::NOFOLLOW, Mode::empty());
    opened.map_err(|error| match error {
        Errno::NOTDIR | Errno::LOOP => {
            io::Error::other(format!("{}: a symbolic link, or not a folder", path.display()))
        }
        error => cannot_read(path, error),
    })
}

fn cannot_read(path: &Path, error: Errno) -> io::Error {
    let error = io::Error::from(error);
    io::Error::new(error.kind(), format!("cannot read {}: {error}", path.display()))
}

impl Copying<'_> {
    /// Copies the open folder `from`. Its `path` is for messages and links: another user could replace any part of it.
    fn folder(&mut self, from: &OwnedFd, path: &Path, to: &Path, depth: usize) -> io::Result<()> {
        if depth == DEEPEST {
            return refuse(format!("{}: folders are nested more than {DEEPEST} deep", path.display()));
        }
        fs::create_dir_all(to)?;
        for entry in Dir::read_from(from)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(io::Error::new(io::ErrorKind::Interrupted, "stopped"));
            }
            self.files += 1;
            if self.files > MOST_FILES {
                return refuse(format!("{}: more than {MOST_FILES} files", path.display()));
            }
            let (path, to, found) =
                (path.join(name), to.join(name), statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?);
            let kind = FileType::from_raw_mode(found.st_mode);
            if kind.is_dir() {
                self.folder(&open_folder(from, name, &path)?, &path, &to, depth + 1)?;
            } else if kind.is_symlink() {
                let target = readlinkat(from, name, Vec::new())?;
                self.link(Path::new(OsStr::from_bytes(target.to_bytes())), &path, &to)?;
            } else if kind.is_file() {
                // Before and after: it may grow while it is copied.
                self.has_room(&path, u64::try_from(found.st_size).unwrap_or(u64::MAX))?;
                self.bytes += copy_file((from, name), &path, &to)?;
                self.has_room(&path, 0)?;
            }
        }
        Ok(())
    }

    fn has_room(&self, path: &Path, more: u64) -> io::Result<()> {
        if self.bytes.saturating_add(more) <= MOST_BYTES {
            return Ok(());
        }
        let most = MOST_BYTES >> 20;
        refuse(format!(
            "{}: larger than {most} MiB; set is_in_place to run it without a copy",
            path.display()
        ))
    }

    fn link(&self, target: &Path, path: &Path, to: &Path) -> io::Result<()> {
        if !leads_out(self.top, path) {
            return symlink(target, to);
        }
        match self.outward {
            Outward::Refused => refuse(format!(
                "{}: the link leads out of the folder, to {}",
                path.display(),
                target.display()
            )),
            // What is relative to the folder of the link is somewhere else from the copy.
            Outward::Kept => symlink(path.parent().unwrap_or(path).join(target), to),
        }
    }
}

/// Copies the content of a file, and its permissions without the set-user-ID, set-group-ID and sticky bits. The copy may have
/// another owner: with these bits it would run with that owner's rights.
fn copy_file((folder, name): (impl AsFd, &OsStr), path: &Path, to: &Path) -> io::Result<u64> {
    // The file may have become a link or a pipe since its folder was listed.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = openat(folder, name, flags, Mode::empty());
    let mut source = File::from(opened.map_err(|error| cannot_read(path, error))?);
    let found = source.metadata()?;
    if !found.is_file() {
        return refuse(format!("{}: no longer a file", path.display()));
    }
    let mut target = files::private_file().create_new(true).open(to)?;
    let bytes = io::copy(&mut source, &mut target)?;
    target.set_permissions(fs::Permissions::from_mode(found.permissions().mode() & 0o777))?;
    Ok(bytes)
}

fn refuse<T>(why: String) -> io::Result<T> {
    Err(io::Error::other(why))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    static GO: AtomicBool = AtomicBool::new(false);

    fn stand() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let (from, to) = (root.path().join("a/from"), root.path().join("to"));
        fs::create_dir_all(from.join("below")).unwrap();
        (root, from, to)
    }

    #[test]
    fn links_within_stay_and_those_that_lead_out_lead_to_the_same_or_are_refused() {
        let (root, from, to) = stand();
        fs::write(root.path().join("a/shared"), "shared").unwrap();
        fs::write(from.join("file"), "own").unwrap();
        symlink("../file", from.join("below/within")).unwrap();
        symlink("../../shared", from.join("below/without")).unwrap();
        symlink("nowhere", from.join("dangling")).unwrap();
        copy((&from, 1), &to, Outward::Kept, &GO).unwrap();
        fs::write(to.join("file"), "of the copy").unwrap();
        assert_eq!(fs::read_to_string(to.join("below/within")).unwrap(), "of the copy");
        assert_eq!(fs::read_to_string(to.join("below/without")).unwrap(), "shared");
        assert_eq!(fs::read_link(to.join("dangling")).unwrap(), Path::new("nowhere"));
        let refused =
            copy((&from, 1), &root.path().join("other"), Outward::Refused, &GO).unwrap_err().to_string();
        assert!(refused.contains("below/without") && refused.contains("leads out"), "{refused}");
    }

    #[test]
    fn a_link_that_leads_out_through_another_link_is_refused_as_well() {
        let (root, from, to) = stand();
        symlink("..", from.join("below/up")).unwrap();
        copy((&from, 1), &to, Outward::Refused, &GO).unwrap();
        symlink("below/up/../shared", from.join("leak")).unwrap();
        let refused =
            copy((&from, 1), &root.path().join("other"), Outward::Refused, &GO).unwrap_err().to_string();
        assert!(refused.contains("leak: the link leads out"), "{refused}");
    }

    #[test]
    fn more_bytes_than_a_copy_may_have_are_refused_before_they_are_written() {
        let (_root, from, to) = stand();
        // It takes no room: nobody has written to it.
        fs::File::create(from.join("large")).unwrap().set_len(MOST_BYTES + 1).unwrap();
        let refused = copy((&from, 1), &to, Outward::Kept, &GO).unwrap_err().to_string();
        assert!(
            refused.contains("large") && refused.contains("2048 MiB") && refused.contains("is_in_place"),
            "{refused}"
        );
        assert!(!to.join("large").exists());
    }

    #[test]
    fn a_copy_never_runs_with_the_rights_of_its_owner() {
        let (root, from, to) = stand();
        for (name, mode) in [("program", 0o6755), ("below/sticky", 0o1640), ("open", 0o4777)] {
            fs::write(from.join(name), "#!/bin/sh").unwrap();
            fs::set_permissions(from.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        for (to, outward) in [(to, Outward::Kept), (root.path().join("deployed"), Outward::Refused)] {
            copy((&from, 1), &to, outward, &GO).unwrap();
            let mode = |name: &str| to.join(name).metadata().unwrap().permissions().mode() & 0o7777;
            assert_eq!([mode("program"), mode("below/sticky"), mode("open")], [0o755, 0o640, 0o777]);
        }
    }

    #[test]
    fn a_file_that_became_a_link_or_a_pipe_is_refused() {
        let (root, from, _) = stand();
        fs::write(root.path().join("secret"), "secret").unwrap();
        symlink(root.path().join("secret"), from.join("link")).unwrap();
        assert!(copy_file((CWD, from.join("link").as_os_str()), &from, &root.path().join("copy")).is_err());
        let pipe = from.join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        let refused =
            copy_file((CWD, pipe.as_os_str()), &pipe, &root.path().join("copy")).unwrap_err().to_string();
        assert!(refused.contains("no longer a file"), "{refused}");
        assert!(!root.path().join("copy").exists());
    }

    #[test]
    fn a_folder_that_became_a_link_is_not_copied() {
        let (root, from, to) = stand();
        let secret = root.path().join("secret");
        fs::create_dir_all(secret.join("below")).unwrap();
        fs::write(secret.join("below/key"), "secret").unwrap();
        symlink(&secret, from.join("link")).unwrap();
        let open = open_top(&from, 1).unwrap();
        assert!(open_folder(&open, OsStr::new("link"), &from).is_err());
        for (path, own) in [(from.join("link"), 1), (from.join("link/below"), 2)] {
            let refused = copy((&path, own), &to, Outward::Kept, &GO).unwrap_err().to_string();
            assert!(refused.contains("a symbolic link"), "{refused}");
            copy((&path, own - 1), &root.path().join(format!("followed{own}")), Outward::Kept, &GO).unwrap();
        }
        assert!(!to.exists());
    }

    /// The listed folder stays the one that was opened, although its path leads elsewhere meanwhile.
    #[test]
    fn a_folder_that_is_replaced_while_it_is_open_is_copied_as_it_was() {
        let (root, from, to) = stand();
        fs::write(from.join("below/file"), "own").unwrap();
        fs::create_dir(root.path().join("secret")).unwrap();
        fs::write(root.path().join("secret/file"), "secret").unwrap();
        let below = open_folder(&open_top(&from, 1).unwrap(), OsStr::new("below"), &from).unwrap();
        fs::rename(from.join("below"), root.path().join("aside")).unwrap();
        symlink(root.path().join("secret"), from.join("below")).unwrap();
        let mut copying = Copying { top: &from, outward: Outward::Kept, stop: &GO, files: 0, bytes: 0 };
        copying.folder(&below, &from.join("below"), &to, 1).unwrap();
        assert_eq!(fs::read_to_string(to.join("file")).unwrap(), "own");
    }

    #[test]
    fn a_copy_ends_when_it_is_told_to() {
        let (_root, from, to) = stand();
        fs::write(from.join("file"), "").unwrap();
        let stopped = copy((&from, 1), &to, Outward::Kept, &AtomicBool::new(true)).unwrap_err();
        assert!(stopped.kind() == io::ErrorKind::Interrupted && !to.join("file").exists(), "{stopped}");
    }
}
