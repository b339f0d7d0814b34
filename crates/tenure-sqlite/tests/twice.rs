//! One program opens its file twice.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use crate::given;

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use given::{file, open};

/// SQLite's locks belong to the process: closing any descriptor of the file gives up all of them. Then a
/// program that reads the file and ends, such as `sqlite3` 3.40, believes that it is the last one and
/// removes the log in use; what is acknowledged from then on is lost.
#[test]
fn opening_a_file_a_second_time_keeps_the_locks_of_the_first() {
    let (_directory, file) = file();
    let _one = open(&file);
    assert!(is_locked(&file));
    let _two = open(&file);
    assert!(is_locked(&file), "a program that comes and goes will remove the log");
}

/// Whether this process has a lock on the file itself, as the kernel tells it.
fn is_locked(file: &Path) -> bool {
    let (process, inode) = (std::process::id().to_string(), std::fs::metadata(file).unwrap().ino());
    let of_file = format!(":{inode}");
    std::fs::read_to_string("/proc/locks").unwrap().lines().any(|lock| {
        let mut words = lock.split_whitespace();
        words.any(|word| word == process) && words.any(|word| word.ends_with(&of_file))
    })
}
