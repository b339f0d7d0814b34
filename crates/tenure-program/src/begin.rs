//! How a program begins.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, Permissions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::deadline::Deadline;
use crate::inherited::Inherited;
use crate::launch::guarded;
use crate::limits::Limits;
use crate::orphans::{PREFIX, lock_for_host};
use crate::removal::ScratchFolder;
use crate::rights::Rights;
use crate::running::Running;
use crate::sandbox::{Account, Confined, Confinement};
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
    /// Files, ports, resources and user that it is confined to.
    pub confinement: Confinement,
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

/// Part of a run's folder that the program may change.
const OWN: &str = "own";
/// File for the result of the program.
pub(crate) const RESULT: &str = "own/result";
/// Folder for temporary files of a program in a sandbox.
const TEMPORARY: &str = "own/tmp";
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
        let folder = self.folder_of_run().map_err(because("cannot create a folder for the run"))?;
        let hosted = lock_for_host(folder.path());
        if let Some(deadline) = self.deadline {
            deadline.write(folder.path()).map_err(because("cannot write the deadline of the program"))?;
        }
        let unconfined = because("cannot confine the program");
        let confined = match self.confinement.is_none() {
            true => Ok(Confined::default()),
            false => self.confinement.clone().prepare(folder.path(), &folder.path().join(OWN)),
        };
        let confined = confined.and_then(|confined| Ok((confined.word()?, confined)));
        let (word, confined) = confined.map_err(|why| unconfined(std::io::Error::other(why)))?;
        let environment = self.environment(folder.path());
        let errand = Errand {
            host: std::process::id(),
            folder: folder.path().to_owned(),
            own_group: !self.on_terminal,
            limits: self.limits,
            rights: self.rights,
            confined: (confined, word),
            command: self.command.clone(),
        };
        let binary = own_binary().map_err(because("cannot find the tenure program"))?;
        let mut command = Command::new(binary);
        // Given to the supervisor, and by it to the program.
        command.arg0("tenure").args(errand.args());
        command.env_clear();
        match errand.confined.0.is_guarded() {
            true => command.envs(guarded(environment)),
            false => command.envs(environment),
        };
        if let Some(place) = &self.folder {
            command.current_dir(place);
        }
        let input = match &self.input {
            Input::Nothing => Stdio::null(),
            Input::Inherited => Stdio::inherit(),
            Input::Bytes(bytes) => {
                // A file, so that nobody waits for a program that does not read.
                let path = folder.path().join(ARGS);
                let written = self.write_input(&path, bytes);
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
        let spawned = command.spawn().inspect_err(|_| errand.confined.0.end());
        let child = spawned.map_err(because("cannot start the supervisor of the program"))?;
        let through = self.output == Output::LinesAndThrough;
        Ok(Running::of(child, (folder, hosted), errand.confined.0, through, cut))
    }

    /// Creates the folder of a run, with a part that belongs to the program.
    fn folder_of_run(&self) -> std::io::Result<ScratchFolder> {
        // Args and results can be secret, and the umask may let every user read them.
        let private = Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir()?;
        let folder = ScratchFolder::from(folder);
        if self.confinement.user.is_some() {
            // The other user must reach its part of the folder. The rest belongs to the host, which is root, so that the
            // program cannot put links there.
            std::fs::set_permissions(folder.path(), Permissions::from_mode(0o711))?;
        }
        let has_temporary = !self.confinement.sandboxes.is_empty();
        let all = [Some(OWN), has_temporary.then_some(TEMPORARY)];
        let paths: Vec<PathBuf> = all.into_iter().flatten().map(|name| folder.path().join(name)).collect();
        paths.iter().try_for_each(|path| DirBuilder::new().mode(0o700).create(path))?;
        // Give away the outer folder last: its owner can replace the inner one.
        paths.iter().rev().try_for_each(|path| self.confinement.give(path))?;
        Ok(folder)
    }

    /// Writes the input of the program, and opens it. Other users can pass through the folder, but must not read it.
    fn write_input(&self, path: &Path, bytes: &[u8]) -> std::io::Result<File> {
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
        std::io::Write::write_all(&mut file, bytes)?;
        self.confinement.give(path)?;
        File::open(path)
    }

    /// Returns the environment of the program. A later variable replaces an earlier one.
    fn environment(&self, folder: &Path) -> Vec<(OsString, OsString)> {
        let mut variables: Vec<(OsString, OsString)> = self.inherits.variables().collect();
        if !self.confinement.sandboxes.is_empty() {
            variables.push(("TMPDIR".into(), folder.join(TEMPORARY).into()));
        }
        variables.extend(self.confinement.user.iter().flat_map(Account::variables));
        variables.extend(self.env.iter().map(|(name, value)| (name.into(), value.clone())));
        let (result, shutdown) = (folder.join(RESULT), folder.join(SHUTDOWN));
        variables.extend([
            (RESULT_VARIABLE.into(), result.into()),
            (SHUTDOWN_VARIABLE.into(), shutdown.clone().into()),
            ("WEBJOBS_SHUTDOWN_FILE".into(), shutdown.into()),
        ]);
        variables
    }
}
