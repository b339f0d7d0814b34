//! Which files are taken, and what is said about the others, which stay as they are.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use tenure_sqlite::{Options, SqliteStore};
use tenure_store::{Fault, ManualClock, Store, Views};

use crate::given::{file, new_jobs, open, runtime};
use tenure_store::Jobs;

fn refusal(file: &Path) -> String {
    match SqliteStore::open(file, Options::default(), Arc::new(ManualClock::new())) {
        Err(Fault::Broken(text)) => {
            assert!(text.contains(&*file.display().to_string()), "it names no file: {text}");
            text
        }
        Err(other) => panic!("not a fault for a person: {other}"),
        Ok(_) => panic!("it was opened"),
    }
}

/// Refused with these words; the file and its directory stay byte for byte what they were.
fn is_refused_untouched(file: &Path, words: &str) {
    let before = fs::read(file).unwrap();
    let beside = || fs::read_dir(file.parent().unwrap()).unwrap().count();
    let files = beside();
    let text = refusal(file);
    assert!(text.contains(words), "{text}");
    assert!(fs::read(file).unwrap() == before, "the file was touched");
    assert_eq!(beside(), files, "something was put beside it");
}

/// A closed file with some jobs in it.
fn filled(file: &Path, jobs: u64) {
    runtime().block_on(async {
        let store = open(file);
        store.enqueue(new_jobs(1, jobs)).await.unwrap();
        store.close().await.unwrap();
    });
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let (_directory, file) = file();
    fs::write(&file, "dear diary, ".repeat(100)).unwrap();
    is_refused_untouched(&file, "not an SQLite database");
    fs::write(&file, "short").unwrap();
    is_refused_untouched(&file, "not an SQLite database");
}

#[test]
fn the_database_of_another_program_is_refused() {
    for journal_mode in ["DELETE", "WAL"] {
        for application_id in [0, 0x0F05_5112] {
            let (_directory, file) = file();
            let other = Connection::open(&file).unwrap();
            let pragmas =
                format!("PRAGMA journal_mode={journal_mode}; PRAGMA application_id={application_id};");
            other.execute_batch(&format!("{pragmas} CREATE TABLE photo (name TEXT);")).unwrap();
            other.close().unwrap();
            is_refused_untouched(&file, "another program");
        }
    }
}

#[test]
fn a_later_schema_is_refused_with_what_to_do() {
    let (_directory, file) = file();
    filled(&file, 1);
    let conn = Connection::open(&file).unwrap();
    conn.execute_batch("PRAGMA journal_mode=DELETE; PRAGMA user_version = 99").unwrap();
    conn.close().unwrap();
    is_refused_untouched(&file, "schema version 99");
    assert!(refusal(&file).contains("update this program"));
}

#[test]
fn a_schema_that_somebody_edited_is_refused() {
    let (_directory, file) = file();
    filled(&file, 1);
    let conn = Connection::open(&file).unwrap();
    conn.execute("UPDATE migration SET sql = sql || ' '", []).unwrap();
    conn.close().unwrap();
    assert!(refusal(&file).contains("step 0001_jobs"));
}

#[test]
fn a_damaged_header_is_refused() {
    let (_directory, file) = file();
    filled(&file, 10);
    let mut bytes = fs::read(&file).unwrap();
    bytes[..16].fill(0xFF);
    fs::write(&file, bytes).unwrap();
    is_refused_untouched(&file, "not an SQLite database");
}

#[test]
fn a_damaged_page_is_refused() {
    let (_directory, file) = file();
    filled(&file, 1000);
    let whole = fs::read(&file).unwrap();
    let pages = whole.len() / 4096;
    assert!(pages > 20);
    // Whichever page it is: the schema's, an index's or a table's.
    for page in [1, pages / 2, pages - 2] {
        let mut bytes = whole.clone();
        bytes[page * 4096..(page + 1) * 4096].fill(0xAA);
        fs::write(&file, bytes).unwrap();
        is_refused_untouched(&file, "damaged");
    }
}

#[test]
fn a_file_that_was_cut_short_is_refused() {
    let (_directory, file) = file();
    filled(&file, 1000);
    let whole = fs::read(&file).unwrap();
    for length in [whole.len() / 2, 4096, 50] {
        fs::write(&file, &whole[..length]).unwrap();
        is_refused_untouched(&file, if length == 50 { "not an SQLite database" } else { "truncated" });
    }
}

#[test]
fn a_directory_and_a_missing_directory_are_refused() {
    let (directory, _) = file();
    assert!(refusal(directory.path()).contains("is a directory"));
    assert!(refusal(&directory.path().join("nowhere/tenure.db")).contains("does not exist"));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_directory_that_may_not_be_written_is_refused() {
    // Not even a privileged user may put a file there.
    assert!(refusal(Path::new("/proc/self/tenure.db")).contains("is writable"));
}

#[test]
fn an_empty_file_is_taken() {
    let (_directory, file) = file();
    fs::write(&file, "").unwrap();
    filled(&file, 1);
    assert!(file.metadata().unwrap().len() > 0);
}

#[test]
fn a_closed_store_leaves_one_whole_file_that_another_program_recognises() {
    let (directory, file) = file();
    filled(&file, 100);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    assert_eq!(fs::read(&file).unwrap()[68..72], *b"TNUR");
    runtime().block_on(async {
        let store = open(&file);
        assert_eq!(store.counts().await.unwrap()[0].jobs, 100);
        assert!(
            store.about().place.ends_with("tenure.db (WAL, synchronous FULL)"),
            "{}",
            store.about().place
        );
    });
}

#[test]
fn many_may_open_a_new_file_at_once() {
    let (_directory, file) = file();
    std::thread::scope(|scope| {
        let opening: Vec<_> = (0..8).map(|_| scope.spawn(|| open(&file))).collect();
        opening.into_iter().for_each(|opening| drop(opening.join().unwrap()));
    });
}
