//! The process between a host and its program: nothing of the program outlives it, and it does not outlive the host.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process, kill_process_group, wait,
};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::deadline::Deadline;
use crate::end::{End, Usage};
use crate::launch::become_program;
use crate::limits::Limits;
use crate::orphans::Record;
use crate::removal::remove_folder;
use crate::rights::Rights;
use crate::sandbox::Confined;
use crate::tree::{count_below, kill_below, used_below};

/// The first argument of a supervisor.
const SUPERVISE: &str = "supervise-program";
/// The first argument of what is about to become the program.
const BECOME: &str = "become-program";
/// Of a program that is parted from the terminal, and of one that is not.
pub(crate) const OWN: &str = "own";
const SHARED: &str = "shared";
/// By which a host says that everything has to end at once.
pub(crate) const KILL_ALL: Signal = Signal::USR1;
/// So often it looks whether the host is there, where the system does not tell.
const LOOK: Duration = Duration::from_millis(500);
/// So often it looks what a program uses that may not use more.
const LOOK_AT_USE: Duration = Duration::from_millis(50);
/// Between two rounds of killing.
const ROUND: Duration = Duration::from_millis(5);

/// What a supervisor is told.
pub(crate) struct Errand {
    /// Whose program it is.
    pub(crate) host: u32,
    /// The folder of the run: the report goes there.
    pub(crate) folder: PathBuf,
    /// Whether the program is parted from the terminal, and so has a process group of its own.
    pub(crate) own_group: bool,
    /// What it may use.
    pub(crate) limits: Limits,
    /// Its rights.
    pub(crate) rights: Rights,
    /// Its confinement, and the word for it.
    pub(crate) confined: (Confined, String),
    /// The program and its arguments.
    pub(crate) command: Vec<OsString>,
}

/// The report in the folder of a run.
pub(crate) const REPORT: &str = "report";

/// Becomes a supervisor if this process was started as one; a host's `main` calls it before anything else, on its first thread.
///
/// Answers none in a process that was started by anybody else.
#[must_use]
pub fn entered() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    match args.next()?.to_str()? {
        SUPERVISE => {
            let errand = Errand::read(args)?;
            Some(ExitCode::from(u8::from(supervise(&errand).is_err())))
        }
        BECOME => Some(become_program(args)),
        _ => None,
    }
}

impl Errand {
    pub(crate) fn args(&self) -> Vec<OsString> {
        let group = if self.own_group { OWN } else { SHARED };
        let said = [self.host.to_string(), self.limits.to_string(), self.rights.to_string()];
        let [host, limits, rights] = said.map(OsString::from);
        let confined = OsString::from(&self.confined.1);
        let mut args =
            vec![SUPERVISE.into(), host, self.folder.clone().into(), group.into(), limits, rights, confined];
        args.extend(self.command.iter().cloned());
        args
    }

    fn read(mut args: impl Iterator<Item = OsString>) -> Option<Self> {
        let host = args.next()?.to_str()?.parse().ok()?;
        let (folder, own_group) = (PathBuf::from(args.next()?), args.next()? == OWN);
        let (limits, rights) = (Limits::read(&args.next()?)?, Rights::read(&args.next()?)?);
        let word = args.next()?;
        let confined = (Confined::read(&word)?, word.into_string().ok()?);
        Some(Self { host, folder, own_group, limits, rights, confined, command: args.collect() })
    }
}

/// This binary, also if another one lies in its place by now.
pub(crate) fn own_binary() -> std::io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { std::env::current_exe() }
}

/// What a supervisor hears.
enum Heard {
    Signal(i32),
    HostGone,
    /// It is time to look what the program uses.
    Look,
}

struct Watch<'a> {
    errand: &'a Errand,
    program: Pid,
    heard: Receiver<Heard>,
    end: End,
    host_gone: bool,
    deadline: Option<Deadline>,
}

fn supervise(errand: &Errand) -> std::io::Result<()> {
    // Before anything is opened. A program could also reach what its supervisor has open.
    errand.rights.close_descriptors()?;
    // A program can attach to its supervisor, which must therefore have no more rights.
    errand.rights.bind_this_process()?;
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(getpid()))?;
    // Before there is a program: nothing that is said meanwhile is lost.
    let mut signals = Signals::new([SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1])?;
    let (tell, heard) = channel();
    watch_host(errand.host, tell.clone());
    if errand.limits.are_looked_at() {
        call_to_look(tell.clone());
    }
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if tell.send(Heard::Signal(signal)).is_err() {
                return;
            }
        }
    });
    // A file system that locks nothing must not keep a program from running.
    let record = Record::open(&errand.folder).ok();
    let mut command = Command::new(own_binary()?);
    command.arg0("tenure").arg(BECOME).arg(getpid().as_raw_nonzero().to_string());
    command.arg(if errand.own_group { OWN } else { SHARED });
    command.args([&errand.limits.to_string(), &errand.rights.to_string(), &errand.confined.1]);
    command.args(&errand.command);
    // From this thread, which lives as long as the process: the system watches the thread that starts a child.
    let child = command.spawn()?;
    let (program, deadline) = (Pid::from_child(&child), Deadline::read(&errand.folder));
    let mut watch = Watch { errand, program, heard, end: End::default(), host_gone: false, deadline };
    watch.until_the_end();
    if let Some(group) = &errand.confined.0.group {
        let has_failed = watch.end.code != Some(0);
        watch.end.beyond = watch.end.beyond.take().or_else(|| group.reached(has_failed));
        group.close();
    }
    let report = serde_json::to_vec(&End { usage: Usage::of_children(), ..watch.end })?;
    if watch.host_gone {
        // Nobody else does.
        return remove_folder(&errand.folder);
    }
    record.map_or(Ok(()), Record::close)?;
    std::fs::write(errand.folder.join(REPORT), report)
}

impl Watch<'_> {
    fn until_the_end(&mut self) {
        while !self.has_ended() {
            let wait = self.deadline.map_or(LOOK, |deadline| deadline.left().min(LOOK));
            match self.heard.recv_timeout(wait) {
                Ok(Heard::Signal(SIGCHLD)) => {
                    self.reap();
                }
                Ok(Heard::Signal(SIGUSR1)) | Err(RecvTimeoutError::Disconnected) => self.end.killed = true,
                Ok(Heard::Signal(signal)) => self.pass_on(signal),
                Ok(Heard::HostGone) => self.host_gone = true,
                Ok(Heard::Look) => self.look(),
                Err(RecvTimeoutError::Timeout) => self.host_gone = !is_child_of(self.errand.host),
            }
            if self.has_expired() {
                (self.end.is_expired, self.end.killed) = (true, true);
            }
            if self.end.killed || self.host_gone {
                break;
            }
        }
        let by_itself = self.has_ended();
        let left = self.kill_all();
        if by_itself {
            self.end.left_behind = left;
        }
    }

    /// Returns true if the deadline has passed and the host has set no later one.
    fn has_expired(&mut self) -> bool {
        let is_over = |deadline: Deadline| deadline.left().is_zero();
        if !self.deadline.is_some_and(is_over) {
            return false;
        }
        // The host writes, and does not call: most deadlines are extended long before they pass.
        self.deadline = Deadline::read(&self.errand.folder).or(self.deadline);
        self.deadline.is_some_and(is_over) && !self.has_ended()
    }

    /// Ends it if it uses more than it may.
    fn look(&mut self) {
        let Limits { processes, cpu, .. } = self.errand.limits;
        let count = || u64::from(count_below(getpid()));
        let used = || used_below(getpid()).unwrap_or_default().as_secs();
        if let Some(most) = processes.filter(|most| count() > *most) {
            self.end.beyond = Some(format!("more than {most} processes at once"));
        } else if let Some(most) = cpu.filter(|most| used() >= *most) {
            self.end.beyond = Some(format!("more than {most} s of CPU time"));
        }
        self.end.killed |= self.end.beyond.is_some();
    }

    fn has_ended(&self) -> bool {
        self.end.code.is_some() || self.end.signal.is_some()
    }

    /// What whoever stops a supervisor wants to stop is the program.
    fn pass_on(&self, signal: i32) {
        let Some(signal) = Signal::from_named_raw(signal) else { return };
        // It may have ended just now.
        let _ = match (self.errand.own_group, signal) {
            // It has a group of its own as soon as it has become the program.
            (true, _) => {
                kill_process_group(self.program, signal).or_else(|_| kill_process(self.program, signal))
            }
            (false, Signal::TERM) => kill_process(self.program, signal),
            // The terminal has told all of its group already.
            (false, _) => Ok(()),
        };
    }

    /// Takes note of all that have ended; answers whether there is anybody left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.program => self.note(status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    fn note(&mut self, status: WaitStatus) {
        self.end.code = status.exit_status();
        self.end.signal = status.terminating_signal();
    }

    /// Ends all that there is until there is nobody left, however quickly they start others.
    fn kill_all(&mut self) -> u32 {
        let mut first = None;
        loop {
            if self.errand.own_group && !(cfg!(target_os = "linux") && self.has_ended()) {
                let _ = kill_process_group(self.program, Signal::KILL)
                    .or_else(|_| kill_process(self.program, Signal::KILL));
            }
            let killed = kill_below(getpid());
            first.get_or_insert(killed);
            if let Some(group) = &self.errand.confined.0.group {
                group.kill();
            }
            if !self.reap() {
                return first.unwrap_or(0);
            }
            // A child that has ended is told by a signal; somebody else's child is looked for.
            let _ = self.heard.recv_timeout(ROUND);
        }
    }
}

pub(crate) fn is_child_of(host: u32) -> bool {
    getppid().is_some_and(|parent| i64::from(parent.as_raw_nonzero().get()) == i64::from(host))
}

/// Hears of the host's end at once.
#[cfg(target_os = "linux")]
fn watch_host(host: u32, tell: Sender<Heard>) {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{PidfdFlags, pidfd_open};
    std::thread::spawn(move || {
        let pid = i32::try_from(host).ok().and_then(Pid::from_raw);
        let Some(Ok(handle)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else { return };
        // If it was somebody else's number by then, its parent is another one now.
        while is_child_of(host) {
            let mut watched = [PollFd::new(&handle, PollFlags::IN)];
            if poll(&mut watched, None).is_ok() {
                break;
            }
        }
        // Nobody listens any more if everything has ended.
        let _ = tell.send(Heard::HostGone);
    });
}

/// Where no handle of a process can be had it is looked for now and then.
#[cfg(not(target_os = "linux"))]
fn watch_host(_: u32, _: Sender<Heard>) {}

/// Calls whoever looks what a program uses, for as long as somebody listens.
fn call_to_look(tell: Sender<Heard>) {
    std::thread::spawn(move || {
        let (_nobody, never) = channel::<()>();
        while never.recv_timeout(LOOK_AT_USE).is_err() && tell.send(Heard::Look).is_ok() {}
    });
}
