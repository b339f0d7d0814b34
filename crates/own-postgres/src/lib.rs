//! A PostgreSQL server of a test's own.
//!
//! It is made from the installed binaries in a directory of its own, listens on a free port of this machine only, runs
//! as an ordinary user, and is gone with its [`Server`], also when the process that started it is killed. A test that
//! needs one installs Debian's package if there is none and it may; `OWN_POSTGRES_BIN` names the directory of others than
//! the newest binaries. What stands before it or beside it in tests comes the same way: [a pooler](Server::pooler), and
//! [what tests rules for Prometheus](promtool).

mod binaries;
mod pooler;
mod promtool;

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

pub use pooler::Pooler;
pub use promtool::promtool;

/// The script that keeps it.
const KEEPER: &str = include_str!("server.sh");

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There are no binaries, and they could not be installed.
    #[error("PostgreSQL 15 or newer, PgBouncer or promtool is not installed, and could not be: {0}")]
    NotInstalled(String),
    /// It does not run.
    #[error("the server did not {0}")]
    NotRunning(String),
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    place: Place,
    directory: PathBuf,
    keeper: Mutex<Keeper>,
}

#[derive(Debug)]
struct Keeper {
    process: Child,
    /// It ends when this is closed.
    says: Option<ChildStdin>,
    hears: BufReader<ChildStdout>,
}

impl Server {
    /// Starts one as whoever installs PostgreSQL gets it.
    ///
    /// # Errors
    /// There are no binaries, or they do not start.
    pub fn start() -> Result<Self, Error> {
        Self::start_with(&[])
    }

    /// Starts one that does not wait for the disk: for tests that do not ask what a crash leaves.
    ///
    /// # Errors
    /// There are no binaries, or they do not start.
    pub fn start_hasty() -> Result<Self, Error> {
        Self::start_with(&[
            "fsync=off",
            "synchronous_commit=off",
            "full_page_writes=off",
            "max_connections=400",
        ])
    }

    /// Starts one with these settings, each `name=value`.
    ///
    /// # Errors
    /// There are no binaries, or they do not start.
    pub fn start_with(settings: &[&str]) -> Result<Self, Error> {
        Self::start_behind(0, settings)
    }

    /// Starts a streaming replica of this one, with these settings in place of those of this one. It may fall behind:
    /// this one waits for it no longer than a setting says.
    ///
    /// # Errors
    /// This one does not run, or the replica does not start.
    pub fn replica(&self, settings: &[&str]) -> Result<Self, Error> {
        Self::start_behind(self.port(), settings)
    }

    /// `primary` is the port of the server that it is a replica of; 0 if it is of none.
    fn start_behind(primary: u16, settings: &[&str]) -> Result<Self, Error> {
        let binaries = binaries::find_or_install()?;
        let place = Place::find().map_err(|error| Error::NotRunning(format!("find a free port: {error}")))?;
        let not_started = |error: std::io::Error| Error::NotRunning(format!("start: {error}"));
        let mut process = as_ordinary_user()
            .args(["sh", "-c", KEEPER, "server.sh"])
            .arg(&binaries)
            .arg(place.port.to_string())
            .arg(primary.to_string())
            .args(settings)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(not_started)?;
        let (Some(says), Some(hears)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(Error::NotRunning("open its pipes".to_owned()));
        };
        let mut keeper = Keeper { process, says: Some(says), hears: BufReader::new(hears) };
        let directory = PathBuf::from(keeper.line("start")?);
        Ok(Self { place, directory, keeper: Mutex::new(keeper) })
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.place.port
    }

    /// Where its files are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The URL of its database, with full rights.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.place.port)
    }

    /// Kills every process of it at once.
    ///
    /// # Errors
    /// It was not running.
    pub fn crash(&self) -> Result<(), Error> {
        self.tell("crash")
    }

    /// Ends it as an operator would, without waiting for its clients.
    ///
    /// # Errors
    /// It was not running.
    pub fn stop(&self) -> Result<(), Error> {
        self.tell("stop")
    }

    /// Starts it again after a crash or a stop; answers when it takes connections.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_again(&self) -> Result<(), Error> {
        self.tell("start")
    }

    /// Changes a setting, `name=value`, that a running server takes up.
    ///
    /// # Errors
    /// It does not run.
    pub fn set(&self, setting: &str) -> Result<(), Error> {
        self.tell(&format!("set {setting}"))
    }

    /// Puts a file among those of the server, which nobody else may read.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn put(&self, name: &str, contents: &str) -> Result<(), Error> {
        let lost = |error: std::io::Error| Error::NotRunning(format!("keep the file {name}: {error}"));
        let path = self.directory.join("data").join(name);
        let mut process = as_ordinary_user()
            .args(["sh", "-c", "umask 077; cat >\"$1\"", "sh"])
            .arg(path)
            .stdin(Stdio::piped())
            .spawn()
            .map_err(lost)?;
        if let Some(mut says) = process.stdin.take() {
            says.write_all(contents.as_bytes()).map_err(lost)?;
        }
        process.wait().map_err(lost).map(drop)
    }

    /// Lets a replica hear nothing more of its primary: from now on it falls behind.
    ///
    /// # Errors
    /// It does not run.
    pub fn hold(&self) -> Result<(), Error> {
        self.tell("hold")
    }

    /// Makes one that was killed or stopped a streaming replica of another, on its own port: its files are thrown away.
    ///
    /// # Errors
    /// It still runs, the other one does not, or it does not start.
    pub fn follow(&self, primary: &Self) -> Result<(), Error> {
        self.tell(&format!("follow {}", primary.place.port))
    }

    /// Makes a replica a server of its own, with what it has heard by now. Answers when it takes writes.
    ///
    /// # Errors
    /// It is no replica, or does not run.
    pub fn promote(&self) -> Result<(), Error> {
        self.tell("promote")
    }

    fn tell(&self, word: &str) -> Result<(), Error> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner).tell(word)
    }
}

impl Keeper {
    fn tell(&mut self, word: &str) -> Result<(), Error> {
        let lost = |error: std::io::Error| Error::NotRunning(format!("{word}: {error}"));
        if let Some(says) = &mut self.says {
            writeln!(says, "{word}").map_err(lost)?;
        }
        match self.line(word)?.as_str() {
            "ok" => Ok(()),
            other => Err(Error::NotRunning(format!("{word}: {other}"))),
        }
    }

    fn line(&mut self, word: &str) -> Result<String, Error> {
        let mut line = String::new();
        match self.hears.read_line(&mut line) {
            Ok(0) => Err(Error::NotRunning(format!("{word}; what it said is above"))),
            Ok(_) => Ok(line.trim().to_owned()),
            Err(error) => Err(Error::NotRunning(format!("{word}: {error}"))),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let keeper = self.keeper.get_mut().unwrap_or_else(PoisonError::into_inner);
        drop(keeper.says.take());
        let _ = keeper.process.wait();
    }
}

/// Where ports are taken from: below those that systems give to whoever takes any, and to whoever connects.
const PORTS: std::ops::Range<u16> = 20_000..32_000;
/// Where the next one of this process looks first: each process begins elsewhere.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A port for a server that listens on it later.
#[derive(Debug)]
struct Place {
    port: u16,
    /// By this others of us know that somebody has it, also before anybody listens and while he is down.
    _taken: UdpSocket,
}

impl Place {
    /// One that nobody has.
    fn find() -> std::io::Result<Self> {
        let many = u32::from(PORTS.end - PORTS.start);
        let mut lost = std::io::Error::from(std::io::ErrorKind::AddrInUse);
        for _ in 0..many {
            let next =
                std::process::id().wrapping_mul(101).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
            let port = PORTS.start + u16::try_from(next % many).unwrap_or(0);
            let taken = UdpSocket::bind((Ipv4Addr::LOCALHOST, port));
            match taken.and_then(|taken| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map(|_| taken)) {
                Ok(taken) => return Ok(Self { port, _taken: taken }),
                Err(error) => lost = error,
            }
        }
        Err(lost)
    }
}

/// What starts a program as somebody other than root: PostgreSQL does not run as root.
fn as_ordinary_user() -> Command {
    if binaries::is_root() {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).current_dir("/");
        return command;
    }
    Command::new("env")
}
