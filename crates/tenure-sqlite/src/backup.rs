//! A copy of the file while it is in use.

use std::fs::{self, File};
use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use tenure_store::Fault;

use crate::fault::fault_of;
use crate::inspect::{beside, broken, of_file};
use crate::private;

/// Pages copied at once: 4 MiB.
const STEP_PAGES: i32 = 1024;

/// Copies what `conn` sees in its transaction. The copy appears whole under its name, or not at all.
pub(crate) fn copy(conn: &Connection, from: &Path, to: &Path) -> Result<(), Fault> {
    let same = fs::canonicalize(from).ok().is_some_and(|from| fs::canonicalize(to).ok() == Some(from));
    if same || beside(to, "-wal").exists() {
        return Err(broken(to, "the file is in use; choose another file for the backup"));
    }
    let partial = beside(to, ".partial");
    let copied = fill(conn, &partial).and_then(|()| put_in_place(&partial, to));
    if copied.is_err() {
        // What is left of it is of no use, and the fault that is told is the first one.
        let _ = fs::remove_file(&partial);
    }
    copied
}

fn fill(conn: &Connection, partial: &Path) -> Result<(), Fault> {
    let fail = |error: rusqlite::Error| of_file(partial, fault_of(&error));
    if partial.exists() {
        fs::remove_file(partial)
            .map_err(|error| broken(partial, format_args!("cannot remove the file ({error})")))?;
    }
    let created = private::options().create_new(true).open(partial);
    created.map_err(|error| broken(partial, format_args!("cannot create the file ({error})")))?;
    let mut copy = Connection::open(partial).map_err(fail)?;
    {
        // The transaction of `conn` holds the copy to one moment, however much is written meanwhile.
        let backup = Backup::new(conn, &mut copy).map_err(fail)?;
        loop {
            match backup.step(STEP_PAGES).map_err(fail)? {
                StepResult::Done => break,
                StepResult::More => {}
                StepResult::Busy | StepResult::Locked | _ => {
                    return Err(of_file(partial, Fault::Unavailable("the file is busy".to_owned())));
                }
            }
        }
    }
    copy.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(())).map_err(fail)?;
    copy.execute("INSERT INTO meta (name, value) VALUES ('backup', 1)", []).map_err(fail)?;
    // The workers use the original: none of them is in the copy, or lost from it.
    copy.execute("DELETE FROM host", []).map_err(fail)?;
    copy.close().map_err(|(_, error)| fail(error))
}

fn put_in_place(partial: &Path, to: &Path) -> Result<(), Fault> {
    let directory =
        to.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::rename(partial, to)
        .and_then(|()| File::open(directory)?.sync_all())
        .map_err(|error| broken(to, format_args!("cannot write the backup ({error})")))
}
