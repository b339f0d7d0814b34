//! What an error of SQLite means to a caller.

use rusqlite::{Error, ErrorCode, Row, ffi, types::Type};
use tenure_core::{JobId, LeaseName, Name};
use tenure_store::{Fault, FaultCause};

/// Says that a stored value cannot be read: only another program can have written it.
pub(crate) fn unreadable(what: impl std::fmt::Display) -> Error {
    Error::FromSqlConversionFailure(0, Type::Null, what.to_string().into())
}

/// Whether a stored value could not be read, though the file and the disk are well.
pub(crate) fn is_unreadable(error: &Error) -> bool {
    matches!(
        error,
        Error::FromSqlConversionFailure(..)
            | Error::InvalidColumnType(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::Utf8Error(..)
    )
}

/// Names the column that could not be read.
pub(crate) fn of_column(row: &Row<'_>, column: usize, error: Error) -> Error {
    if !is_unreadable(&error) {
        return error;
    }
    match row.as_ref().column_name(column) {
        Ok(name) => unreadable(format_args!("column {name}: {}", what_is_unreadable(&error))),
        Err(_) => error,
    }
}

/// Names the job in whose row something could not be read.
pub(crate) fn of_job(id: JobId, error: Error) -> Error {
    named(format_args!("job {id}"), error)
}

/// Names the lease in whose row something could not be read.
pub(crate) fn of_lease(name: &LeaseName, error: Error) -> Error {
    named(format_args!("lease {name}"), error)
}

/// Names the timer in whose rows something could not be read.
pub(crate) fn of_timer(name: &Name, error: Error) -> Error {
    named(format_args!("timer {name}"), error)
}

fn named(what: std::fmt::Arguments<'_>, error: Error) -> Error {
    if is_unreadable(&error) {
        unreadable(format_args!("{what}: {}", what_is_unreadable(&error)))
    } else {
        error
    }
}

pub(crate) fn what_is_unreadable(error: &Error) -> String {
    if let Error::FromSqlConversionFailure(_, _, what) = error { what.to_string() } else { error.to_string() }
}

/// What to do next about an error of a transaction that was rolled back.
pub(crate) fn fault_of(error: &Error) -> Fault {
    if is_unreadable(error) {
        // One row is no reason to give up the file: all else in it can go on.
        return Fault::Unavailable(format!(
            "{}, damaged or written by a newer version; update this program, or see `tenure db check` ({})",
            FaultCause::UnreadableData.as_str(),
            what_is_unreadable(error)
        ));
    }
    let Error::SqliteFailure(failure, _) = error else {
        return Fault::Broken(format!("unexpected SQLite error ({error})"));
    };
    let unavailable = |text: &str| Fault::Unavailable(text.to_owned());
    match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
            unavailable("another process holds the write lock for too long")
        }
        ErrorCode::DiskFull => {
            unavailable(&format!("{}; free some space and retry", FaultCause::DiskFull.as_str()))
        }
        ErrorCode::SystemIoFailure => Fault::Unavailable(format!("disk I/O error ({})", detail(failure))),
        ErrorCode::OutOfMemory => unavailable(FaultCause::OutOfMemory.as_str()),
        ErrorCode::OperationInterrupted | ErrorCode::OperationAborted | ErrorCode::SchemaChanged => {
            unavailable("the statement was interrupted")
        }
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
            Fault::Broken("the file is damaged; restore a backup".to_owned())
        }
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => Fault::Broken(format!(
            "{}: the file is not writable; check its permissions",
            FaultCause::ReadOnly.as_str()
        )),
        ErrorCode::CannotOpen => {
            Fault::Broken("cannot open the file; check that its directory is writable".to_owned())
        }
        ErrorCode::ConstraintViolation
        | ErrorCode::TypeMismatch
        | ErrorCode::ApiMisuse
        | ErrorCode::TooBig
        | ErrorCode::ParameterOutOfRange
        | ErrorCode::InternalMalfunction
        | ErrorCode::NotFound
        | ErrorCode::NoLargeFileSupport
        | ErrorCode::AuthorizationForStatementDenied
        | ErrorCode::Unknown
        | _ => Fault::Broken(format!("SQLite refused a statement ({error})")),
    }
}

/// What became of a transaction whose commit failed with this error. SQLite has rolled it back, but
/// what a failing disk has kept of it is known only to the disk.
pub(crate) fn fault_of_commit(error: &Error, rolled_back: bool) -> Fault {
    let io = error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure);
    if rolled_back && !io {
        return fault_of(error);
    }
    Fault::Unknown(fault_of(error).to_string())
}

fn detail(failure: &ffi::Error) -> &'static str {
    ffi::code_to_str(failure.extended_code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing_with(code: i32) -> Error {
        Error::SqliteFailure(ffi::Error::new(code), None)
    }

    /// solid_queue #133, #385: what its users saw was "database is locked".
    #[test]
    fn nobody_reads_that_the_database_is_locked() {
        for code in [ffi::SQLITE_BUSY, ffi::SQLITE_LOCKED, ffi::SQLITE_BUSY_SNAPSHOT, ffi::SQLITE_PROTOCOL] {
            let fault = fault_of(&failing_with(code));
            assert!(fault.is_passing(), "{fault}");
            assert!(!fault.to_string().contains("locked"), "{fault}");
        }
    }

    #[test]
    fn what_passes_is_told_from_what_does_not() {
        assert!(fault_of(&failing_with(ffi::SQLITE_FULL)).is_passing());
        assert!(fault_of(&failing_with(ffi::SQLITE_IOERR_FSYNC)).is_passing());
        assert!(!fault_of(&failing_with(ffi::SQLITE_CORRUPT)).is_passing());
        assert!(!fault_of(&failing_with(ffi::SQLITE_NOTADB)).is_passing());
        assert!(!fault_of(&failing_with(ffi::SQLITE_READONLY)).is_passing());
        assert!(fault_of(&unreadable("a state 9")).is_passing());
    }

    #[test]
    fn a_commit_on_a_failing_disk_has_an_unknown_outcome() {
        let unknown = |code, rolled_back| {
            matches!(fault_of_commit(&failing_with(code), rolled_back), Fault::Unknown(_))
        };
        assert!(unknown(ffi::SQLITE_IOERR_FSYNC, true));
        assert!(unknown(ffi::SQLITE_FULL, false));
        assert!(!unknown(ffi::SQLITE_FULL, true));
    }
}
