//! What is left of programs whose host and supervisor were killed together: nobody was there to end what they had started.
//!
//! Each supervisor keeps a file in the folder of its run locked for as long as it lives. Whoever can lock it knows that the supervisor
//! is gone, whatever its number is by now, and in whichever container it lived. The folder has a name of its own, which stands in the
//! environment of all that the program has started: by that they are found, never by a name or by a number that was written down.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::removal::remove_folder;
use crate::sandbox::Group;
use crate::supervisor::REPORT;

/// Before the name of each folder of a run.
pub(crate) const PREFIX: &str = "tenure-run-";
/// In the folder of a run: locked by its supervisor.
const RECORD: &str = "supervised";

/// In the folder of a run: locked by its host.
const HOSTED: &str = "hosted";

/// Locks the folder of a run for as long as the host keeps the file. Without a file system that can lock, returns `None`, and
/// no other host removes the folder.
pub(crate) fn lock_for_host(folder: &Path) -> Option<File> {
    let file = File::create_new(folder.join(HOSTED)).ok()?;
    file.try_lock().ok()?;
    Some(file)
}

/// That a supervisor lives, for as long as this is kept.
#[derive(Debug)]
pub(crate) struct Record {
    path: PathBuf,
    _locked: File,
}

impl Record {
    /// Nobody finds it before it is locked.
    pub(crate) fn open(folder: &Path) -> std::io::Result<Self> {
        let (path, unlocked) = (folder.join(RECORD), folder.join("unlocked"));
        let file = File::create(&unlocked)?;
        file.lock()?;
        std::fs::rename(unlocked, &path)?;
        Ok(Self { path, _locked: file })
    }

    /// Everybody has ended: what lies in the folder is the host's to read.
    pub(crate) fn close(self) -> std::io::Result<()> {
        std::fs::remove_file(&self.path)
    }
}

/// Ends what is left of programs of this user whose host and supervisor were killed together on this machine; answers how many
/// processes that were. A host calls it when it begins, and once more a little later if it stays: a supervisor holds its lock until the
/// last of its threads has ended.
///
/// A process that has cleared or hidden its environment is not found.
pub fn end_orphans() -> u32 {
    let Ok(found) = std::fs::read_dir(std::env::temp_dir()) else { return 0 };
    let folders = found.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    folders.map(|entry| end_of_lost(&entry.path())).sum()
}

fn end_of_lost(folder: &Path) -> u32 {
    let me = rustix::process::geteuid().as_raw();
    // A folder that somebody else has made says nothing about processes of this user.
    if !folder.symlink_metadata().is_ok_and(|found| found.is_dir() && found.uid() == me) {
        return 0;
    }
    let path = folder.join(RECORD);
    let Ok(record) = File::options().write(true).open(&path) else {
        remove_reported(folder);
        return 0;
    };
    match record.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return 0,
    }
    // It may have been closed since it was opened.
    if !path.exists() {
        return 0;
    }
    let (mut killed, is_all) = kill_marked(folder);
    // Here are also those that have cleared their environment.
    if let Some(group) = folder.file_name().and_then(Group::left) {
        killed += group.count();
        group.close();
    }
    if is_all {
        // Whoever cannot remove it finds it again, and nobody in it.
        let _ = remove_folder(folder);
    }
    killed
}

/// Removes the folder of a run that has ended, if its host died before it removed the folder. Args and results must not stay.
fn remove_reported(folder: &Path) {
    let host = File::options().write(true).open(folder.join(HOSTED));
    if folder.join(REPORT).exists() && host.is_ok_and(|host| host.try_lock().is_ok()) {
        // The next host tries again.
        let _ = remove_folder(folder);
    }
}

/// Kills all that were started with this folder in their environment; answers how many, and whether that is all of them.
#[cfg(target_os = "linux")]
pub(crate) fn kill_marked(folder: &Path) -> (u32, bool) {
    use std::collections::BTreeSet;
    use std::time::Duration;
    /// Rounds of killing, and the time between two of them: they may start others as long as one of them lives.
    const ROUNDS: u32 = 400;
    const ROUND: Duration = Duration::from_millis(5);

    let mut killed = BTreeSet::new();
    let (_nobody, never) = std::sync::mpsc::channel::<()>();
    for _ in 0..ROUNDS {
        let found = marked(folder);
        if found.is_empty() {
            return (u32::try_from(killed.len()).unwrap_or(u32::MAX), true);
        }
        for (pid, handle) in found {
            if rustix::process::pidfd_send_signal(&handle, rustix::process::Signal::KILL).is_ok() {
                killed.insert(pid);
            }
        }
        let _ = never.recv_timeout(ROUND);
    }
    (u32::try_from(killed.len()).unwrap_or(u32::MAX), false)
}

/// Elsewhere nobody tells what stands in the environment of a process.
#[cfg(not(target_os = "linux"))]
pub(crate) fn kill_marked(_: &Path) -> (u32, bool) {
    (0, true)
}

/// Every living process of this user, but this one, that was started with this folder in its environment.
#[cfg(target_os = "linux")]
fn marked(folder: &Path) -> Vec<(i32, std::os::fd::OwnedFd)> {
    use std::os::unix::ffi::OsStrExt;

    use rustix::process::{Pid, PidfdFlags, geteuid, getpid, pidfd_open};

    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    let (me, user) = (getpid().as_raw_nonzero().get(), geteuid().as_raw());
    let marks = [crate::begin::RESULT_VARIABLE, crate::begin::SHUTDOWN_VARIABLE].map(|name| {
        let mut mark = format!("{name}=").into_bytes();
        mark.extend(folder.as_os_str().as_bytes());
        mark.push(b'/');
        mark
    });
    let found = all.filter_map(|entry| {
        let entry = entry.ok()?;
        let pid: i32 = entry.file_name().to_str()?.parse().ok().filter(|pid| *pid != me)?;
        // Programs of root may run as other users.
        if user != 0 && entry.metadata().ok()?.uid() != user {
            return None;
        }
        // Before its environment is read: if the number is another's by then, this handle is of one that has ended.
        let handle = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|variable| marks.iter().any(|mark| variable.starts_with(mark))).then_some((pid, handle))
    });
    found.collect()
}
