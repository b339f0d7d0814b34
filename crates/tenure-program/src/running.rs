//! A program that runs.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::begin::{RESULT, SHUTDOWN};
use crate::deadline::Deadline;
use crate::end::End;
use crate::lines::{Line, Source, Splitter};
use crate::orphans::kill_marked;
use crate::progress::{Progress, location};
use crate::removal::ScratchFolder;
use crate::sandbox::Confined;
use crate::supervisor::{KILL_ALL, REPORT};
use crate::tree::used_below;

/// Lines that wait for somebody to hear them. Then the program waits.
const WAITING: usize = 256;
/// Bytes that are read at once.
const READ: usize = 16 * 1024;
/// For how long what a program said last is waited for once its supervisor has ended.
const REST: Duration = Duration::from_secs(2);
/// The largest report of a supervisor.
const REPORT_BYTES: u64 = 4 * 1024;

/// What comes from a program.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// It has written a line.
    Line(Line),
    /// It says how far it has come.
    Progress(Progress),
    /// The program named the location of its result.
    Location(String),
    /// It has ended, and whatever it had started.
    Ended(End),
}

/// What a program can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// As Ctrl-C does.
    Interrupt,
    /// It shall come to an end: the shutdown file is there, and nothing else tells it.
    ShutdownFile,
    /// It shall come to an end: the shutdown file is there, and SIGTERM goes to its process group.
    Terminate,
}

/// A result file is larger than somebody wants to have it.
#[derive(Debug, thiserror::Error)]
#[error("the result file is larger than {0} bytes")]
pub struct TooLarge(pub u64);

/// A program that runs. Whoever lets go of it ends it.
#[derive(Debug)]
pub struct Running {
    events: Option<Receiver<Event>>,
    supervisor: Arc<Supervisor>,
    folder: ScratchFolder,
    /// The user of the program, if it is not that of this process.
    owner: Option<u32>,
    waiter: Option<JoinHandle<()>>,
    /// Locked until the folder is gone.
    _hosted: Option<File>,
}

/// By which a program is stopped. Harmless once it has ended.
#[derive(Debug, Clone)]
pub struct Reins {
    supervisor: Arc<Supervisor>,
    folder: PathBuf,
}

impl Reins {
    /// Tells the program something. What it does about it is its own affair.
    pub fn tell(&self, notice: Notice) {
        match notice {
            Notice::Interrupt => {
                self.supervisor.tell(Signal::INT);
            }
            Notice::ShutdownFile => {
                // Nobody looks for it any more if its folder has gone.
                let _ = File::create(self.folder.join(SHUTDOWN));
            }
            Notice::Terminate => {
                // Whoever does not look for the file hears the signal.
                let _ = File::create(self.folder.join(SHUTDOWN));
                self.supervisor.tell(Signal::TERM);
            }
        }
    }

    /// The time of processors that the program and whatever it has started have used by now, those of them that live and those
    /// that they have waited for. None where the system does not tell, and once it has ended.
    #[must_use]
    pub fn used(&self) -> Option<Duration> {
        let is_there = self.supervisor.is_there.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_there { used_below(self.supervisor.pid) } else { None }
    }

    /// Sets another deadline for a program that began with one.
    ///
    /// # Errors
    ///
    /// If the system does not write it; then the earlier deadline stays.
    pub fn extend(&self, deadline: Deadline) -> std::io::Result<()> {
        deadline.write(&self.folder)
    }

    /// Ends the program and whatever it has started, at once; answers whether there is a supervisor that does so.
    pub fn kill(&self) -> bool {
        self.supervisor.tell(KILL_ALL)
    }
}

/// The supervisor, as long as its number is its own.
#[derive(Debug)]
struct Supervisor {
    pid: Pid,
    is_there: Mutex<bool>,
}

impl Supervisor {
    fn tell(&self, signal: Signal) -> bool {
        let is_there = self.is_there.lock().unwrap_or_else(PoisonError::into_inner);
        // It may have ended just now; then there is nothing to tell.
        *is_there && kill_process(self.pid, signal).is_ok()
    }

    /// Waits for its end. Its number is free to be another's only once nobody here can mean it any more.
    fn end(&self, child: &mut Child) -> std::io::Result<ExitStatus> {
        while let Err(rustix::io::Errno::INTR) =
            waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
        {}
        let mut is_there = self.is_there.lock().unwrap_or_else(PoisonError::into_inner);
        *is_there = false;
        child.wait()
    }
}

impl Running {
    pub(crate) fn of(
        mut child: Child,
        (folder, hosted): (ScratchFolder, Option<File>),
        confined: Confined,
        through: bool,
        (cut, held): (UnixStream, UnixStream),
    ) -> Self {
        let (tell, events) = sync_channel(WAITING);
        let supervisor = Arc::new(Supervisor { pid: Pid::from_child(&child), is_there: Mutex::new(true) });
        let (mut readers, cut) = (Vec::new(), Arc::new(cut));
        let (is_read, all_read) = sync_channel::<()>(0);
        if let Some(pipe) = child.stdout.take() {
            let (tell, is_read, cut) = (tell.clone(), is_read.clone(), Arc::clone(&cut));
            readers.push(std::thread::spawn(move || {
                let _is_read = is_read;
                read((pipe, &cut), Source::Out, &tell, through.then(std::io::stdout));
            }));
        }
        if let Some(pipe) = child.stderr.take() {
            let (tell, is_read, cut) = (tell.clone(), is_read.clone(), Arc::clone(&cut));
            readers.push(std::thread::spawn(move || {
                let _is_read = is_read;
                read((pipe, &cut), Source::Err, &tell, through.then(std::io::stderr));
            }));
        }
        drop(is_read);
        let owner = confined.user.map(|user| user.uid);
        let (watched, place) = (Arc::clone(&supervisor), folder.path().to_owned());
        let waiter = std::thread::spawn(move || {
            let ended = watched.end(&mut child);
            let report = reported(&place.join(REPORT));
            if report.is_none() {
                // It was killed, and has ended nobody.
                if let Some(group) = confined.group {
                    group.close();
                }
                let _ = kill_marked(&place);
            }
            // A supervisor that was killed has left processes that may hold the pipes for as long as they like.
            let _ = all_read.recv_timeout(REST);
            drop(held);
            for reader in readers {
                // Whatever went wrong with it, the end is told.
                let _ = reader.join();
            }
            let end = report.unwrap_or_else(|| lost(ended.ok()));
            // Nobody may be listening any more.
            let _ = tell.send(Event::Ended(end));
        });
        Self { events: Some(events), supervisor, folder, owner, waiter: Some(waiter), _hosted: hosted }
    }

    /// What comes next, if something comes within this span. The last is the end.
    pub fn next(&self, within: Duration) -> Option<Event> {
        match self.events.as_ref()?.recv_timeout(within) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            // Only if the end was heard before, or whoever tells it has failed.
            Err(RecvTimeoutError::Disconnected) => Some(Event::Ended(End::default())),
        }
    }

    /// By which it can be stopped from elsewhere.
    #[must_use]
    pub fn reins(&self) -> Reins {
        Reins { supervisor: Arc::clone(&self.supervisor), folder: self.folder.path().to_owned() }
    }

    /// What the program has written into its result file, if it has.
    ///
    /// # Errors
    ///
    /// If that is more than so many bytes.
    pub fn result(&self, most: u64) -> Result<Option<Vec<u8>>, TooLarge> {
        let Some(bytes) = bounded(&self.folder.path().join(RESULT), self.owner, most + 1) else {
            return Ok(None);
        };
        if bytes.len() as u64 > most { Err(TooLarge(most)) } else { Ok((!bytes.is_empty()).then_some(bytes)) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A reader that wants to tell something stops waiting for somebody to hear it.
        drop(self.events.take());
        self.supervisor.tell(KILL_ALL);
        if let Some(waiter) = self.waiter.take() {
            let _ = waiter.join();
        }
    }
}

/// Reads the start of an ordinary file. Returns `None` if `owner` is another user than the file's.
///
/// The program may have put anything there, such as a pipe without a writer, or a link to a file that it cannot read itself.
fn bounded(path: &Path, owner: Option<u32>, most: u64) -> Option<Vec<u8>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let found = file.metadata().ok()?;
    if !found.is_file() || owner.is_some_and(|owner| found.uid() != owner) {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn reported(path: &Path) -> Option<End> {
    serde_json::from_slice(&bounded(path, None, REPORT_BYTES)?).ok()
}

/// A supervisor that was killed itself has told nothing.
fn lost(status: Option<ExitStatus>) -> End {
    use std::os::unix::process::ExitStatusExt;
    End { signal: status.and_then(|status| status.signal()), is_lost: true, ..End::default() }
}

/// Whether there may be more to read, once there is; not if the other one was cut.
fn has_more(pipe: &impl AsFd, cut: &UnixStream) -> bool {
    let mut both = [PollFd::new(pipe, PollFlags::IN), PollFd::new(cut, PollFlags::IN)];
    while let Err(rustix::io::Errno::INTR) = poll(&mut both, None) {}
    both[1].revents().is_empty()
}

/// Reads to the end or until it is cut, whether anybody listens or not: a program does not stop because nobody hears it.
fn read(
    (mut pipe, cut): (impl Read + AsFd, &UnixStream),
    source: Source,
    tell: &SyncSender<Event>,
    mut through: Option<impl Write>,
) {
    let (mut splitter, mut buffer) = (Splitter::new(source), vec![0; READ]);
    let hear = |line: Line| {
        let is_out = line.source == Source::Out;
        let event = match (Progress::of(&line.text), location(&line.text)) {
            (Some(progress), _) if is_out => Event::Progress(progress),
            (_, Some(location)) if is_out => Event::Location(location.to_owned()),
            _ => Event::Line(line),
        };
        let _ = tell.send(event);
    };
    while has_more(&pipe, cut) {
        let read = match pipe.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => &buffer[..read],
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        if let Some(out) = &mut through {
            // A terminal that was closed must not stop the program.
            let _ = out.write_all(read).and_then(|()| out.flush());
        }
        splitter.take(read, hear);
    }
    if let Some(line) = splitter.rest() {
        hear(line);
    }
}
