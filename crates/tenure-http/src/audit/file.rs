//! A file that gets each audit entry as a line of JSON. Requests never wait for it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Lines that wait for a slow disk. Further ones are left out of the file.
const WAITING_LINES: usize = 4_096;
/// Time that [`AuditFile::flush`] waits for a slow disk.
const FLUSH_WITHIN: Duration = Duration::from_secs(5);

/// A file that gets each audit entry as a line of JSON, written by a thread.
#[derive(Debug, Clone)]
pub struct AuditFile {
    thread: SyncSender<Order>,
}

#[derive(Debug)]
enum Order {
    Line(String),
    Reopen,
    Flush(SyncSender<()>),
}

impl AuditFile {
    /// Opens a file to append to. A new file can be read only by its owner, under any umask.
    ///
    /// # Errors
    /// The file cannot be opened, or the system has no thread for it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let (thread, orders) = sync_channel(WAITING_LINES);
        let mut appender = Appender { file: Some(open(path)?), path: path.to_owned(), is_torn: false };
        let run = move || appender.run(&orders);
        std::thread::Builder::new().name("tenure-audit-file".to_owned()).spawn(run)?;
        Ok(Self { thread })
    }

    /// Opens the file again, for example after it was renamed.
    pub fn reopen(&self) {
        let _ = self.thread.try_send(Order::Reopen);
    }

    /// Waits a few seconds until all entries so far are in the file.
    pub fn flush(&self) {
        let (done, is_done) = sync_channel(1);
        if self.thread.try_send(Order::Flush(done)).is_ok() {
            let _ = is_done.recv_timeout(FLUSH_WITHIN);
        }
    }

    pub(super) fn append(&self, line: String) {
        if self.thread.try_send(Order::Line(line)).is_err() {
            tracing::error!("audit file is too slow, so it misses an entry; the store has the entry");
        }
    }
}

struct Appender {
    path: PathBuf,
    file: Option<File>,
    /// True if the last line may be incomplete.
    is_torn: bool,
}

impl Appender {
    fn run(&mut self, orders: &Receiver<Order>) {
        let mut is_troubled = false;
        for order in orders {
            let done = match order {
                Order::Line(line) => self.write(&line),
                Order::Reopen => {
                    self.file = None;
                    Ok(())
                }
                Order::Flush(done) => {
                    let _ = done.send(());
                    continue;
                }
            };
            match done {
                Ok(()) => is_troubled = false,
                Err(_) if is_troubled => {}
                // Once: a full disk fails each line.
                Err(error) => {
                    is_troubled = true;
                    let path = self.path.display();
                    tracing::error!(
                        %error, %path,
                        "cannot write the audit file; check the disk; the store has all entries"
                    );
                }
            }
        }
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(open(&self.path)?),
        };
        let start = if self.is_torn { "\n" } else { "" };
        let written = file.write_all(format!("{start}{line}\n").as_bytes());
        self.is_torn = written.is_err();
        written
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_private_and_is_created_again_after_it_was_renamed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = (folder.path().join("audit.jsonl"), folder.path().join("audit.1"));
        let file = AuditFile::open(&path).unwrap();
        file.append("{\"a\":1}".to_owned());
        file.flush();
        std::fs::rename(&path, &old).unwrap();
        file.reopen();
        file.append("{\"a\":2}".to_owned());
        file.flush();
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "{\"a\":1}\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"a\":2}\n");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_full_disk_does_not_stop_the_caller() {
        let file = AuditFile::open(Path::new("/dev/full")).unwrap();
        file.append("{}".to_owned());
        file.append("{}".to_owned());
        file.flush();
    }
}
