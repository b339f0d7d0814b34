//! The holder of a file's write lock. A transaction of the user's own on the store's file blocks the store's writer, and
//! the code that waits for the writer may be the code that should end the transaction.

use std::path::Path;

use tenure_store::Fault;

/// The list of file locks, where the system has one.
const LOCKS: &str = "/proc/locks";
/// Byte of the `-shm` file that a writer locks in WAL mode.
const WRITE_LOCK: u64 = 120;

/// Returns the fault of a write that could not begin because another connection kept the write lock.
pub(crate) fn held_for_too_long(path: &Path) -> Fault {
    let mut shm = path.as_os_str().to_owned();
    shm.push("-shm");
    let is_here = inode(Path::new(&shm)).zip(std::fs::read_to_string(LOCKS).ok());
    let is_here = is_here.map(|(inode, locks)| has_write_lock(&locks, std::process::id(), inode));
    let text = match is_here {
        Some(true) => {
            "an open transaction of this same process holds the write lock for too long; commit it before you call Tenure"
        }
        Some(false) => "another process holds the write lock for too long",
        None => "another connection holds the write lock for too long; end its transaction first",
    };
    Fault::Unavailable(text.to_owned())
}

#[cfg(unix)]
fn inode(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    // Not opened: closing any handle of the file would release SQLite's locks of this process.
    std::fs::metadata(path).ok().map(|found| found.ino())
}

#[cfg(not(unix))]
fn inode(_: &Path) -> Option<u64> {
    None
}

/// Looks for a line such as `1: POSIX  ADVISORY  WRITE 4711 fe:00:123456 120 120`.
fn has_write_lock(locks: &str, process: u32, inode: u64) -> bool {
    locks.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, "POSIX", _, "WRITE", holder, file, first, last] = fields.as_slice() else { return false };
        let number = |text: &str| text.parse::<u64>().ok();
        let covers = number(first).is_some_and(|first| first <= WRITE_LOCK)
            && (*last == "EOF" || number(last).is_some_and(|last| last >= WRITE_LOCK));
        // Some file systems list another device than they show.
        let file = file.rsplit(':').next().and_then(number);
        covers && file == Some(inode) && number(holder) == Some(process.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_write_lock_of_this_process_is_found_among_others() {
        let locks = "1: FLOCK  ADVISORY  WRITE 7 fe:00:55 0 EOF\n\
                     2: POSIX  ADVISORY  READ 7 fe:00:55 123 123\n\
                     3: POSIX  ADVISORY  WRITE 7 fe:00:55 120 121\n\
                     3: -> POSIX  ADVISORY  WRITE 8 fe:00:55 120 120\n\
                     4: POSIX  ADVISORY  WRITE 9 fe:00:66 1073741824 1073742335\n";
        assert!(has_write_lock(locks, 7, 55));
        assert!(!has_write_lock(locks, 7, 66), "another file");
        assert!(!has_write_lock(locks, 8, 55), "it waits for the lock");
        assert!(!has_write_lock(locks, 9, 66), "another lock");
        assert!(!has_write_lock("", 7, 55) && !has_write_lock("3: POSIX", 7, 55));
    }
}
