//! What a program may become.

use std::ffi::OsStr;
use std::fmt;
use std::io;

/// What a program may become: all that its host may, if nothing is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rights {
    /// Whether neither the program nor what it starts can get more rights than it has, by `sudo` for one. On Linux only; elsewhere
    /// such a program does not begin.
    pub no_new_privs: bool,
}

impl Rights {
    /// As one word between two processes of ours.
    pub(crate) fn read(word: &OsStr) -> Option<Self> {
        match word.to_str()? {
            "none" => Some(Self { no_new_privs: true }),
            "any" => Some(Self { no_new_privs: false }),
            _ => None,
        }
    }

    /// Takes from this process, which is about to become the program, what it may not become.
    pub(crate) fn bind_this_process(self) -> io::Result<()> {
        if self.no_new_privs { set_no_new_privs() } else { Ok(()) }
    }
}

#[cfg(target_os = "linux")]
fn set_no_new_privs() -> io::Result<()> {
    rustix::thread::set_no_new_privs(true).map_err(io::Error::from)
}

#[cfg(not(target_os = "linux"))]
fn set_no_new_privs() -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "not supported by this system"))
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.no_new_privs { "none" } else { "any" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_go_from_process_to_process_as_they_are() {
        for no_new_privs in [true, false] {
            let rights = Rights { no_new_privs };
            assert_eq!(Rights::read(OsStr::new(&rights.to_string())), Some(rights));
        }
        assert_eq!(Rights::read(OsStr::new("")), None);
    }
}
