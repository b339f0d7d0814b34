//! What a program may use.

use std::ffi::OsStr;
use std::fmt;
use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What a program may use. No limit but the system's where none is said.
///
/// The system keeps to memory, files and open files, for each process. Processes and the time of processors are counted by the
/// supervisor over all that the program has started, every twentieth of a second, on Linux only: whoever has more is ended with
/// all of it. The system's own count of processes is one for the whole user, so it would be used up by others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory that each process may have for itself.
    pub memory: Option<u64>,
    /// Processes, children and theirs together.
    pub processes: Option<u64>,
    /// Seconds of processors, for all of them together.
    pub cpu: Option<u64>,
    /// Bytes of the largest file that it may write.
    pub file: Option<u64>,
    /// Files that each of its processes may have open.
    pub open_files: Option<u64>,
}

/// Behind this the system ends a single process that nobody has ended for all of them.
const LATER: u64 = 2;

impl Limits {
    /// Whether somebody has to look what the program and all that it has started use.
    pub(crate) fn are_looked_at(&self) -> bool {
        self.processes.is_some() || self.cpu.is_some()
    }

    /// As one word between two processes of ours.
    pub(crate) fn read(word: &OsStr) -> Option<Self> {
        let mut parts = word.to_str()?.split(',').map(|part| match part {
            "" => Some(None),
            number => number.parse().ok().map(Some),
        });
        let mut next = || parts.next()?;
        let limits =
            Self { memory: next()?, processes: next()?, cpu: next()?, file: next()?, open_files: next()? };
        Some(limits)
    }

    /// Sets those that the system keeps to, for this process and all that it starts.
    pub(crate) fn bind_this_process(&self) -> Result<(), (&'static str, io::Error)> {
        let bound = [
            ("memory", Resource::Data, self.memory),
            ("cpu", Resource::Cpu, self.cpu.map(|seconds| seconds.saturating_add(LATER))),
            ("file", Resource::Fsize, self.file),
            ("open_files", Resource::Nofile, self.open_files),
        ];
        for (name, resource, limit) in bound {
            let Some(limit) = limit else { continue };
            // Nobody may raise what somebody else has bounded already.
            let limit = getrlimit(resource).maximum.map_or(limit, |most| most.min(limit));
            let both = Rlimit { current: Some(limit), maximum: Some(limit) };
            setrlimit(resource, both).map_err(|error| (name, error.into()))?;
        }
        Ok(())
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [self.memory, self.processes, self.cpu, self.file, self.open_files];
        let words = all.map(|limit| limit.map_or_else(String::new, |limit| limit.to_string()));
        f.write_str(&words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_go_from_process_to_process_as_they_are() {
        let all =
            Limits { memory: Some(1), processes: Some(2), cpu: Some(3), file: Some(4), open_files: Some(5) };
        for limits in [Limits::default(), all, Limits { cpu: Some(7), ..Limits::default() }] {
            assert_eq!(Limits::read(OsStr::new(&limits.to_string())), Some(limits));
        }
        assert_eq!(Limits::read(OsStr::new("1,2")), None);
        assert_eq!(Limits::read(OsStr::new("x,,,,")), None);
    }
}
