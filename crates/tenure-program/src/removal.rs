//! Removing folders that programs have written to.
//!
//! A program can nest folders deeper than a recursive removal has stack or descriptors for. It can also take the rights to
//! them from their owner, and write to them while they are removed.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, DirEntry, FileType, Mode, OFlags, fchmod, fstat, openat, renameat, unlinkat,
};
use rustix::io::Errno;
use rustix::path::Arg;
use rustix::process::geteuid;
use tempfile::TempDir;

/// Flags that open a folder, and no link to one.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The reason for which a removal gives up.
const KEEPS_GROWING: &str = "a program still writes to it, or its folders are nested too deep";

/// Removes a folder with its content, also if its owner has no rights to parts of it. Follows no links: a link at `path` is
/// removed itself. Does nothing if there is no such path.
///
/// The depth of the folder costs neither stack nor open files. The removal ends, also if a program still writes to the folder.
///
/// # Errors
///
/// The first error of an entry that the system does not remove, or a folder that is not empty after some tries. By then,
/// everything else has gone unless it is very deep.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    Bounds::default().remove(path)
}

/// A folder that is removed when it goes out of scope, with all that programs have written to it.
#[derive(Debug)]
pub struct ScratchFolder(PathBuf);

impl ScratchFolder {
    /// Returns the path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl From<TempDir> for ScratchFolder {
    fn from(folder: TempDir) -> Self {
        // Its own removal is recursive.
        Self(folder.keep())
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // A drop has no caller to tell. The next host removes the folders of runs that stay.
        let _ = remove_folder(&self.0);
    }
}

/// Bounds of one removal. They allow hundreds of thousands of folders in one another. Without the last two, a program that
/// writes as fast as folders are removed would keep a removal from ending.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// Folders that are open in one another. Deeper ones are moved to the top.
    depth: usize,
    /// As many for folders that cannot be moved, such as those in a subvolume of Btrfs.
    depth_without_moves: usize,
    /// Folders that are moved to the top.
    moves: u32,
    /// Passes that leave something behind although they moved nothing.
    tries: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { depth: 32, depth_without_moves: 256, moves: 10_000, tries: 2 }
    }
}

impl Bounds {
    fn remove(self, path: &Path) -> io::Result<()> {
        let top = match open_folder(CWD, path) {
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::NOTDIR | Errno::LOOP) => return Ok(unlinkat(CWD, path, AtFlags::empty())?),
            opened => opened?,
        };
        let mut removal = Removal { top: Dir::new(top)?, bounds: self, failed: None };
        loop {
            let moves = removal.bounds.moves;
            removal.failed = None;
            removal.pass();
            match remove_empty(CWD, path) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => removal.note(error),
            }
            // A pass may not list folders that it has moved to the top itself.
            if removal.bounds.moves == moves {
                let Some(left) = removal.bounds.tries.checked_sub(1) else {
                    return Err(removal.failed.unwrap_or_else(|| io::Error::other(KEEPS_GROWING)));
                };
                removal.bounds.tries = left;
            }
            removal.top.rewind();
        }
    }
}

/// The removal of everything in one folder.
struct Removal {
    top: Dir,
    bounds: Bounds,
    /// The first error of the last pass.
    failed: Option<io::Error>,
}

impl Removal {
    /// Keeps the error of one entry. It must not protect the others: a program can cause it.
    fn note(&mut self, error: impl Into<io::Error>) {
        self.failed.get_or_insert_with(|| error.into());
    }

    /// Removes what it finds, in one walk. Every folder is opened from the descriptor of the one above it.
    fn pass(&mut self) {
        let mut below: Vec<(CString, Dir)> = Vec::new();
        loop {
            let folder = below.last_mut().map_or(&mut self.top, |(_, folder)| folder);
            let done = match folder.read() {
                Some(entry) => {
                    entry.map_err(io::Error::from).and_then(|entry| self.remove(&entry, &mut below))
                }
                None => {
                    let Some((name, _)) = below.pop() else { return };
                    let above = below.last().map_or(&self.top, |(_, folder)| folder);
                    // If it is not empty, the next pass finds it.
                    above.fd().map_err(io::Error::from).and_then(|above| remove_empty(above, &name)).map(drop)
                }
            };
            if let Err(error) = done {
                self.note(error);
            }
        }
    }

    /// Removes an entry of the innermost folder. If it is a folder, moves it to the top or adds it to the open folders.
    fn remove(&mut self, entry: &DirEntry, below: &mut Vec<(CString, Dir)>) -> io::Result<()> {
        let name = entry.file_name();
        if name == c"." || name == c".." {
            return Ok(());
        }
        let above = below.last().map_or(&self.top, |(_, folder)| folder).fd()?;
        let Some(child) = remove_or_open(above, entry)? else { return Ok(()) };
        let mut moved = Ok(());
        if below.len() >= self.bounds.depth && self.bounds.moves > 0 {
            moved = move_to_top(above, name, self.top.fd()?);
            match moved {
                Ok(()) => {
                    self.bounds.moves -= 1;
                    return Ok(());
                }
                // A program has moved it. The next pass finds it.
                Err(Errno::NOENT) => return Ok(()),
                Err(_) => {}
            }
        }
        if below.len() < self.bounds.depth.max(self.bounds.depth_without_moves) {
            below.push((name.to_owned(), Dir::new(child)?));
            return Ok(());
        }
        Ok(moved?)
    }
}

/// Removes an entry unless it is a folder, which it returns.
fn remove_or_open(folder: impl AsFd, entry: &DirEntry) -> io::Result<Option<OwnedFd>> {
    let name = entry.file_name();
    if matches!(entry.file_type(), FileType::Directory | FileType::Unknown) {
        match open_folder(&folder, name) {
            // Not a folder, or no longer.
            Err(Errno::NOTDIR | Errno::LOOP) => {}
            Err(Errno::NOENT) => return Ok(None),
            opened => return Ok(Some(opened?)),
        }
    }
    match unlinkat(folder, name, AtFlags::empty()) {
        // The entry has gone, or has become a folder. The next pass removes a folder.
        Err(Errno::NOENT | Errno::ISDIR) => Ok(None),
        removed => Ok(removed.map(|()| None)?),
    }
}

/// Removes a folder if it is empty. Returns false if it is not.
fn remove_empty(above: impl AsFd, name: impl Arg) -> io::Result<bool> {
    match unlinkat(above, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        // A program has moved or replaced the folder since it was opened.
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(true),
        removed => Ok(removed.map(|()| true)?),
    }
}

/// Moves a folder to the top of its tree. Its new name is random: with a name that a program knows, the program could have the
/// folder moved onto itself, onto a folder above it, or onto one with content.
#[expect(clippy::disallowed_methods, reason = "a name derived from a seed could be recovered from the seed")]
fn move_to_top(above: impl AsFd, name: &CStr, top: impl AsFd) -> rustix::io::Result<()> {
    let mut drawn = [0; 16];
    getrandom::fill(&mut drawn).map_err(|_| Errno::AGAIN)?;
    renameat(above, name, top, format!(".removed-{:032x}", u128::from_ne_bytes(drawn)))
}

/// Opens a folder, not a link. If it belongs to this user, the user gets all rights to it.
fn open_folder(above: impl AsFd, name: impl Arg + Copy) -> rustix::io::Result<OwnedFd> {
    let opened = match openat(&above, name, FOLDER, Mode::empty()) {
        Err(Errno::ACCESS) => {
            give_access(&above, name)?;
            openat(&above, name, FOLDER, Mode::empty())?
        }
        opened => opened?,
    };
    let found = fstat(&opened)?;
    let mode = Mode::from_raw_mode(found.st_mode);
    if !mode.contains(Mode::RWXU) && found.st_uid == geteuid().as_raw() {
        fchmod(&opened, mode | Mode::RWXU)?;
    }
    Ok(opened)
}

/// Gives this user all rights to a folder of its own that it cannot open.
#[cfg(target_os = "linux")]
fn give_access(above: impl AsFd, name: impl Arg) -> rustix::io::Result<()> {
    use std::os::fd::AsRawFd;

    // A descriptor without rights: the mode of a link's target must not change.
    let path = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
    let folder = openat(above, name, path, Mode::empty())?;
    let found = fstat(&folder)?;
    if found.st_uid != geteuid().as_raw() {
        return Err(Errno::ACCESS);
    }
    // `fchmod` refuses such a descriptor.
    let itself = format!("/proc/self/fd/{}", folder.as_raw_fd());
    rustix::fs::chmod(itself, Mode::from_raw_mode(found.st_mode) | Mode::RWXU).map_err(|_| Errno::ACCESS)
}

/// Gives this user all rights to a folder of its own that it cannot open.
#[cfg(not(target_os = "linux"))]
fn give_access(above: impl AsFd, name: impl Arg + Copy) -> rustix::io::Result<()> {
    let found = rustix::fs::statat(&above, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if found.st_uid != geteuid().as_raw() {
        return Err(Errno::ACCESS);
    }
    rustix::fs::chmodat(
        above,
        name,
        Mode::from_raw_mode(found.st_mode) | Mode::RWXU,
        AtFlags::SYMLINK_NOFOLLOW,
    )
}

#[cfg(test)]
#[path = "removal_tests.rs"]
mod tests;
