//! How a program begins.

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::deadline::Deadline;
use crate::inherited::Inherited;
use crate::limits::Limits;
use crate::orphans::PREFIX;
use crate::rights::Rights;
use crate::running::Running;
use crate::supervisor::{Errand, own_binary};

/// What a program reads.
#[derive(Debug, Clone, Default)]
pub enum Input {
    /// Nothing.
    #[default]
    Nothing,
    /// These bytes.
    Bytes(Vec<u8>),
    /// What the host would read.
    Inherited,
}

/// Where what a program writes goes to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Output {
    /// To the host, line by line.
    #[default]
    Lines,
    /// To the host, line by line, and byte by byte to where the host writes.
    LinesAndThrough,
    /// To where the host writes, and nobody looks at it.
    Inherited,
}

/// A program, before it begins. There is no shell between, unless the command names one.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// What stands in its environment beside what it inherits.
    pub env: Vec<(String, OsString)>,
    /// What it finds of the environment of its host.
    pub inherits: Inherited,
    /// What it may use.
    pub limits: Limits,
    /// Its rights: privileges that it may gain, descriptors that it may reach.
    pub rights: Rights,
    /// Where it runs; where the host does if it is not said.
    pub folder: Option<PathBuf>,
    /// What it reads.
    pub input: Input,
    /// Where what it writes goes to.
    pub output: Output,
    /// Whether it stays in the process group of the host, so that it can read from a terminal. Then the terminal interrupts it.
    pub on_terminal: bool,
    /// Deadline at which the supervisor kills it, unless [`Reins::extend`](crate::Reins::extend) sets a later one.
    pub deadline: Option<Deadline>,
}

/// Why a program did not begin.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
pub struct StartError {
    what: &'static str,
    source: std::io::Error,
}

/// In the folder of a run: what the program answers.
pub(crate) const RESULT: &str = "result";
/// In the folder of a run: there as soon as it shall come to an end.
pub(crate) const SHUTDOWN: &str = "shutdown";
const ARGS: &str = "input";
/// Where a program finds them; by these all that it has started are found as well.
pub(crate) const RESULT_VARIABLE: &str = "JOB_RESULT_FILE";
pub(crate) const SHUTDOWN_VARIABLE: &str = "JOB_SHUTDOWN_FILE";

impl Program {
    /// Begins.
    ///
    /// # Errors
    ///
    /// If the system refuses a process or a folder. A program that cannot be run has ended with 126 or 127, as shells say it.
    pub fn start(self) -> Result<Running, StartError> {
        let because = |what| move |source| StartError { what, source };
        // Args and results can be secret, and the umask may let every user read them.
        let private = Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir();
        let folder = folder.map_err(because("cannot create a folder for the run"))?;
        if let Some(deadline) = self.deadline {
            deadline.write(folder.path()).map_err(because("cannot write the deadline of the program"))?;
        }
        let errand = Errand {
            host: std::process::id(),
            folder: folder.path().to_owned(),
            own_group: !self.on_terminal,
            limits: self.limits,
            rights: self.rights,
            command: self.command,
        };
        let binary = own_binary().map_err(because("cannot find the tenure program"))?;
        let mut command = Command::new(binary);
        // Given to the supervisor, and by it to the program.
        command.arg0("tenure").args(errand.args());
        command.env_clear().envs(self.inherits.variables()).envs(self.env);
        let (result, shutdown) = (folder.path().join(RESULT), folder.path().join(SHUTDOWN));
        command.env(RESULT_VARIABLE, result).env(SHUTDOWN_VARIABLE, &shutdown);
        command.env("WEBJOBS_SHUTDOWN_FILE", shutdown);
        if let Some(place) = self.folder {
            command.current_dir(place);
        }
        let input = match self.input {
            Input::Nothing => Stdio::null(),
            Input::Inherited => Stdio::inherit(),
            Input::Bytes(bytes) => {
                // A file, so that nobody waits for a program that does not read.
                let path = folder.path().join(ARGS);
                let written = std::fs::write(&path, bytes).and_then(|()| File::open(&path));
                Stdio::from(written.map_err(because("cannot write the input of the program"))?)
            }
        };
        command.stdin(input);
        if self.output != Output::Inherited {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        if !self.on_terminal {
            // What a terminal tells the host is the host's to pass on.
            command.process_group(0);
        }
        let cut = UnixStream::pair().map_err(because("cannot read the output of the program"))?;
        let child = command.spawn().map_err(because("cannot start the supervisor of the program"))?;
        Ok(Running::of(child, folder, self.output == Output::LinesAndThrough, cut))
    }
}
