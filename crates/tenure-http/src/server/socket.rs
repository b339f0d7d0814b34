//! The Unix socket of a server: its file, from the start to the end.

use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream as StdStream;
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

use crate::secret::drawn;

/// Permission bits of a mode.
const PERMISSIONS: u32 = 0o777;
/// Permission bits for other users than the owner and the group.
const OTHERS: u32 = 0o007;
/// File in which a system lists its groups.
const GROUPS: &str = "/etc/group";
/// Permission of other users to write, and the bit with which they cannot replace files of others.
const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;
/// Name of a socket in its private folder.
const NEW: &str = "s";
/// File with the number that Linux shows for each user that a user namespace does not know, and its usual value.
const OVERFLOW_UID: &str = "/proc/sys/kernel/overflowuid";
const USUAL_OVERFLOW_UID: u32 = 65_534;

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

/// Number of the user that runs the server; `None` if unknown users have the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Own(pub Option<u32>);

impl Own {
    /// Asks the kernel, which names the same user to the other end of a connection.
    fn of_this_process() -> Result<Self> {
        let (one, _other) = UnixStream::pair()?;
        let uid = one.peer_cred()?.uid();
        let own = Self::unless_shared(uid, &std::fs::read_to_string(OVERFLOW_UID).unwrap_or_default());
        if own == Self(None) {
            tracing::warn!(uid, "the server's own user has the number of unknown users, so it needs a grant");
        }
        Ok(own)
    }

    /// Compares a user with the number of unknown users, from the text of the kernel's file.
    fn unless_shared(uid: u32, overflow: &str) -> Self {
        let shared = overflow.trim().parse().unwrap_or(USUAL_OVERFLOW_UID);
        Self((uid != shared).then_some(uid))
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
        check_folder(folder_of(&wanted.path))?;
        check_free(&wanted.path)?;
        let own = Own::of_this_process()?;
        // The file gets its name when its mode and group are right, and takes the place of an old one in one step.
        let private = PrivateFolder::create_in(folder_of(&wanted.path))?;
        let new = private.0.join(NEW);
        let listener = UnixListener::bind(&new)?;
        let file = place(wanted, &new)?;
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

/// A folder that only the server's own user can open, so that no other can replace the new socket with a link. It is
/// removed when this is dropped.
struct PrivateFolder(PathBuf);

impl PrivateFolder {
    fn create_in(folder: &Path) -> Result<Self> {
        let chance = drawn().map_err(|error| Error::other(error.to_string()))?;
        // As short as possible, because the path of a socket is limited.
        let path = folder.join(format!(".{:08x}", u32::from_ne_bytes(chance)));
        // Refuses an existing file, and follows no link.
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0.join(NEW));
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Returns the folder of a path.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Refuses a folder in which any user could replace the socket.
fn check_folder(folder: &Path) -> Result<()> {
    let mode = std::fs::metadata(folder)?.mode();
    if mode & OTHERS_WRITE != 0 && mode & STICKY == 0 {
        let detail =
            "every local user can replace files in the folder; choose one that only the server can write";
        return Err(Error::new(ErrorKind::PermissionDenied, detail));
    }
    Ok(())
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
    async fn a_folder_in_which_others_can_replace_the_socket_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = SocketFile::new(folder.path().join("tenure.sock"));
        let set = |mode| std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode));
        for mode in [0o777, 0o702] {
            set(mode).unwrap();
            assert_eq!(Socket::bind(&wanted).unwrap_err().kind(), ErrorKind::PermissionDenied, "{mode:o}");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
        for mode in [0o1777, 0o755] {
            set(mode).unwrap();
            drop(Socket::bind(&wanted).unwrap());
        }
    }

    #[test]
    fn a_new_socket_is_made_where_only_its_own_user_gets() {
        let folder = tempfile::tempdir().unwrap();
        let private = PrivateFolder::create_in(folder.path()).unwrap();
        let path = private.0.clone();
        assert_eq!(mode(&path), 0o700);
        std::fs::write(path.join(NEW), "").unwrap();
        drop(private);
        assert!(!path.exists());
    }

    #[test]
    fn a_user_with_the_number_of_unknown_ones_is_not_the_servers_own() {
        assert_eq!(Own::unless_shared(900, "65534\n"), Own(Some(900)));
        for (uid, overflow) in [(65_534, "65534\n"), (65_534, ""), (900, "900\n")] {
            assert_eq!(Own::unless_shared(uid, overflow), Own(None), "{uid} {overflow:?}");
        }
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
