//! The Unix socket of a server: its file, from the start to the end.

use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream as StdStream;
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

/// Permission bits of a mode.
const PERMISSIONS: u32 = 0o777;
/// Permission bits for other users than the owner and the group.
const OTHERS: u32 = 0o007;
/// File in which a system lists its groups.
const GROUPS: &str = "/etc/group";

/// A Unix socket to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketFile {
    /// Path of the socket.
    pub path: PathBuf,
    /// Permission bits; default: `0o600`, for the server's own user.
    pub mode: u32,
    /// Group of the file, by name or number; default: that of the process.
    pub group: Option<String>,
}

impl SocketFile {
    /// Creates the description of a socket for the server's own user.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), mode: 0o600, group: None }
    }
}

/// Number of the user that runs the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Own(pub u32);

impl Own {
    /// Asks the kernel, which names the same user to the other end of a connection.
    fn of_this_process() -> Result<Self> {
        let (one, _other) = UnixStream::pair()?;
        Ok(Self(one.peer_cred()?.uid()))
    }
}

/// A socket that listens. Its file is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) listener: UnixListener,
    pub(super) own: Own,
    path: PathBuf,
    /// Device and number of the file: another server may have replaced it.
    file: (u64, u64),
}

impl Socket {
    /// Listens. Replaces the socket of a server that has ended. Refuses any other file, and a socket on which a server listens.
    pub(super) fn bind(wanted: &SocketFile) -> Result<Self> {
        if wanted.mode & !PERMISSIONS != 0 {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("invalid mode {:04o}; expected 0000 to 0777, such as 0660", wanted.mode),
            ));
        }
        check_free(&wanted.path)?;
        let own = Own::of_this_process()?;
        // The file gets its name when its mode and group are right, and takes the place of an old one in one step.
        let new = beside(&wanted.path);
        let _ = std::fs::remove_file(&new);
        let listener = UnixListener::bind(&new)?;
        let placed = place(wanted, &new);
        if placed.is_err() {
            let _ = std::fs::remove_file(&new);
        }
        let file = placed?;
        if wanted.mode & OTHERS != 0 {
            let path = wanted.path.display();
            tracing::warn!("every local user can connect to {path}; only those with a grant are served");
        }
        Ok(Self { listener, own, path: wanted.path.clone(), file })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let is_ours =
            std::fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == self.file);
        if is_ours {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Refuses a path that is in use.
fn check_free(path: &Path) -> Result<()> {
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !found.file_type().is_socket() {
        return Err(Error::new(
            ErrorKind::AlreadyExists,
            "the file exists and is not a socket; choose another path",
        ));
    }
    match StdStream::connect(path) {
        Ok(_) => {
            Err(Error::new(ErrorKind::AddrInUse, "a running server listens on this socket; stop it first"))
        }
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Sets mode and group of a new socket and gives it its name. Returns its device and number.
fn place(wanted: &SocketFile, new: &Path) -> Result<(u64, u64)> {
    if let Some(group) = &wanted.group {
        chown(new, None, Some(group_id(group)?))?;
    }
    std::fs::set_permissions(new, std::fs::Permissions::from_mode(wanted.mode))?;
    let found = std::fs::symlink_metadata(new)?;
    std::fs::rename(new, &wanted.path)?;
    Ok((found.dev(), found.ino()))
}

/// Returns a name beside a path, for this process.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    path.with_file_name(name)
}

fn group_id(group: &str) -> Result<u32> {
    if let Ok(number) = group.parse() {
        return Ok(number);
    }
    let groups = std::fs::read_to_string(GROUPS)?;
    let found = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(group)).then(|| fields.nth(1)?.parse().ok())?
    });
    let unknown = || format!("unknown group {group:?}; expected a name in {GROUPS} or a number");
    found.ok_or_else(|| Error::new(ErrorKind::NotFound, unknown()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & PERMISSIONS
    }

    #[tokio::test]
    async fn a_socket_has_its_mode_and_its_file_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenure.sock");
        let mut wanted = SocketFile::new(&path);
        let socket = Socket::bind(&wanted).unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(Socket::bind(&wanted).unwrap_err().kind(), ErrorKind::AddrInUse, "a running server");
        drop(socket);
        assert!(!path.exists());
        (wanted.mode, wanted.group) =
            (0o660, Some(std::fs::metadata(folder.path()).unwrap().gid().to_string()));
        let _socket = Socket::bind(&wanted).unwrap();
        assert_eq!(mode(&path), 0o660);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no other file is left");
    }

    #[tokio::test]
    async fn the_socket_of_a_killed_server_is_replaced_and_other_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenure.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "a socket that is not answered");
        let first = Socket::bind(&SocketFile::new(&path)).unwrap();
        // Another server that has replaced the file keeps it.
        std::fs::remove_file(&path).unwrap();
        let _second = Socket::bind(&SocketFile::new(&path)).unwrap();
        drop(first);
        assert!(StdStream::connect(&path).is_ok());
        let file = folder.path().join("jobs.db");
        std::fs::write(&file, "precious").unwrap();
        let link = folder.path().join("link.sock");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for other in [&file, &link, &folder.path().to_owned()] {
            let refused = Socket::bind(&SocketFile::new(other)).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::AlreadyExists, "{refused}");
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    }

    #[tokio::test]
    async fn a_wrong_mode_or_group_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenure.sock");
        let refused = |mode, group: Option<&str>| {
            let wanted = SocketFile { path: path.clone(), mode, group: group.map(str::to_owned) };
            Socket::bind(&wanted).unwrap_err().to_string()
        };
        assert!(refused(0o4777, None).contains("invalid mode"));
        assert!(refused(0o660, Some("no such group")).contains("unknown group"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
