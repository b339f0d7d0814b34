//! The last steps of the process that becomes the program.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use crate::limits::Limits;
use crate::rights::Rights;
use crate::sandbox::Confined;
use crate::supervisor::{OWN, is_child_of};

/// Prefix of a confined program's variables until it begins. Without it, `LD_PRELOAD` would run code in Tenure's processes,
/// outside the confinement.
const GUARD: &[u8] = b"program:";

/// Everything that another process of ours passed to this one.
struct Launch {
    supervisor: u32,
    is_apart: bool,
    limits: Limits,
    rights: Rights,
    confined: Confined,
    program: OsString,
}

/// Becomes the program, which dies if its supervisor does.
pub(crate) fn become_program(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(launch) = Launch::read(&mut args) else { return ExitCode::from(2) };
    die_with_the_supervisor();
    if !is_child_of(launch.supervisor) {
        return ExitCode::from(1);
    }
    if let Err(why) = launch.bind_this_process() {
        tell(&why);
        return ExitCode::from(126);
    }
    // Once more: the system forgets it when the user changes.
    die_with_the_supervisor();
    if !is_child_of(launch.supervisor) {
        return ExitCode::from(1);
    }
    let mut command = Command::new(&launch.program);
    if launch.confined.is_guarded() {
        command.env_clear().envs(unguarded(std::env::vars_os()));
    }
    let error = command.args(args).exec();
    let name = launch.program.to_string_lossy();
    let name: String = name.chars().map(|sign| if sign.is_control() { '?' } else { sign }).collect();
    tell(&format!("cannot run {name}: {error}"));
    // As shells say it.
    ExitCode::from(if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 })
}

impl Launch {
    fn read(args: &mut impl Iterator<Item = OsString>) -> Option<Self> {
        Some(Self {
            supervisor: args.next()?.to_str()?.parse().ok()?,
            is_apart: args.next()? == OWN,
            limits: Limits::read(&args.next()?)?,
            rights: Rights::read(&args.next()?)?,
            confined: Confined::read(&args.next()?)?,
            program: args.next()?,
        })
    }

    fn bind_this_process(&self) -> Result<(), String> {
        // In a new session, the program cannot signal processes of the host's terminal, nor stop forever on a read from it.
        // The command also gets a process group.
        if self.is_apart {
            rustix::process::setsid().map_err(|error| format!("cannot detach from the terminal: {error}"))?;
        }
        // Join first: later restrictions can prevent writes to the files of cgroups.
        self.confined.join_group()?;
        let limited = self.limits.bind_this_process();
        limited.map_err(|(name, error)| format!("cannot set the limit of {name}: {error}"))?;
        let bound = self.rights.bind_this_process();
        bound.map_err(|error| format!("cannot prevent new privileges: {error}"))?;
        self.confined.bind_this_process()
    }
}

fn die_with_the_supervisor() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
}

/// Hides variables from our own processes, until the program begins.
pub(crate) fn guarded(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    variables.into_iter().map(|(name, value)| {
        let name = [GUARD, name.as_bytes()].concat();
        (OsString::from_vec(name), value)
    })
}

fn unguarded(
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    variables.filter_map(|(name, value)| {
        let name = name.as_bytes().strip_prefix(GUARD)?;
        Some((OsStr::from_bytes(name).to_owned(), value))
    })
}

fn tell(words: &str) {
    // The host may have closed the pipe.
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("tenure: {words}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guarded_variable_reaches_the_program_alone() {
        let variables = [("LD_PRELOAD", "/evil.so"), ("PATH", "/bin")];
        let variables = variables.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let between: Vec<_> = guarded(variables.clone()).collect();
        assert!(
            between.iter().all(|(name, _)| name.to_str().unwrap().starts_with("program:")),
            "{between:?}"
        );
        let foreign = (OsString::from("LD_AUDIT"), OsString::from("x"));
        let found: Vec<_> = unguarded(between.into_iter().chain([foreign])).collect();
        assert_eq!(found, variables);
    }
}
