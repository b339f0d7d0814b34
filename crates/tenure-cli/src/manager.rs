//! What the service manager of the machine is told, if it asked for it: that the server is ready, that it stops, and again
//! and again that it lives. systemd asks so of a unit of `Type=notify`; it takes a datagram, so no library of its is needed.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use tenure::Clock;

use crate::screen::complain;

/// The service manager, or nobody.
#[derive(Debug)]
pub(crate) struct Manager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// Within which time it wants to hear that the server lives.
    watches_within: Option<Duration>,
}

impl Manager {
    /// Whoever started this program and asked to be told.
    pub(crate) fn of_environment() -> Self {
        let socket = std::env::var_os("NOTIFY_SOCKET").and_then(|name| {
            let opened = address(&name).and_then(|address| Ok((UnixDatagram::unbound()?, address)));
            opened.map_err(|error| complain(&format!("cannot use NOTIFY_SOCKET {name:?}: {error}"))).ok()
        });
        let said = |name| std::env::var(name).ok();
        let own = std::process::id();
        let watches_within = watched(said("WATCHDOG_USEC").as_deref(), said("WATCHDOG_PID").as_deref(), own);
        Self { socket, watches_within }
    }

    /// Requests are answered from now on.
    pub(crate) fn is_ready(&self) {
        self.tell("READY=1");
    }

    /// It was told to stop.
    pub(crate) fn is_stopping(&self) {
        self.tell("STOPPING=1");
    }

    /// Tells that it lives, twice in the time in which that is wanted, for as long as this is awaited. It is a task like
    /// those that answer: where they do not get their turn, it does not either, and that is what is watched.
    pub(crate) async fn tell_that_it_lives(&self, clock: &dyn Clock) {
        let (Some(_), Some(within)) = (&self.socket, self.watches_within) else {
            return std::future::pending().await;
        };
        loop {
            self.tell("WATCHDOG=1");
            clock.sleep(within / 2).await;
        }
    }

    /// Who does not listen any more misses it: no job waits for that.
    fn tell(&self, what: &str) {
        if let Some((socket, address)) = &self.socket
            && let Err(error) = socket.send_to_addr(what.as_bytes(), address)
        {
            tracing::warn!(%error, what, "cannot notify the service manager");
        }
    }
}

/// A path, or after an `@` a name that stands in no folder.
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes() {
        #[cfg(target_os = "linux")]
        [b'@', name @ ..] => <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name),
        [b'/', ..] => SocketAddr::from_pathname(name),
        _other => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "expected an absolute path or a name that begins with @",
        )),
    }
}

/// What is asked of another process is not asked of this one.
fn watched(micros: Option<&str>, process: Option<&str>, own: u32) -> Option<Duration> {
    if process.is_some_and(|process| process.parse() != Ok(own)) {
        return None;
    }
    let micros = micros?.parse().ok().filter(|micros| *micros > 0)?;
    Some(Duration::from_micros(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_process_that_is_meant_is_watched() {
        let second = Some(Duration::from_secs(1));
        assert_eq!(watched(Some("1000000"), None, 7), second);
        assert_eq!(watched(Some("1000000"), Some("7"), 7), second);
        assert_eq!(watched(Some("1000000"), Some("8"), 7), None);
        assert_eq!(watched(Some("0"), None, 7), None);
        assert_eq!(watched(Some("soon"), None, 7), None);
        assert_eq!(watched(None, None, 7), None);
    }

    #[test]
    fn a_manager_is_a_path_or_a_name_and_nothing_else() {
        assert!(address(OsStr::new("/run/systemd/notify")).is_ok());
        assert!(address(OsStr::new("notify")).is_err());
        assert_eq!(address(OsStr::new("@notify")).is_ok(), cfg!(target_os = "linux"));
    }
}
