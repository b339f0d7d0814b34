//! Accepts connections on the address and on the Unix socket, one when there is room for it.

use std::sync::Arc;
use std::time::Duration;

use tenure::Clock;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::crowd::{Origin, turn_away};
use super::socket::{Own, Socket};
use crate::access::strangers::Remote;

/// A connection, and where it comes from.
pub(super) struct Accepted {
    pub(super) stream: Stream,
    pub(super) permit: OwnedSemaphorePermit,
}

/// A new connection. Over TCP, it has the address of the client. Over a Unix socket, it has the numbers of the client's user and
/// group, and those of the server's user.
pub(super) enum Stream {
    Tcp(TcpStream, Remote),
    Unix(UnixStream, (u32, u32), Own),
}

impl Stream {
    pub(super) fn origin(&self) -> Origin {
        match self {
            Self::Tcp(_, remote) => Origin::of(*remote),
            Self::Unix(_, (uid, _), _) => Origin::User(*uid),
        }
    }

    pub(super) fn turn_away(self, expects_tls: bool) {
        match self {
            Self::Tcp(stream, _) => turn_away(stream, expects_tls),
            Self::Unix(stream, ..) => turn_away(stream, false),
        }
    }
}

/// The next connection, once there is room for it.
pub(super) async fn accept(
    listeners: (Option<&TcpListener>, Option<&Socket>),
    room: &Arc<Semaphore>,
    clock: &dyn Clock,
) -> Accepted {
    /// Pause after the system has refused a connection: it may have no more files.
    const AFTER_ERROR: Duration = Duration::from_millis(100);
    loop {
        let Ok(permit) = Arc::clone(room).acquire_owned().await else { return std::future::pending().await };
        let accepted = tokio::select! {
            accepted = accept_tcp(listeners.0) => accepted,
            accepted = accept_unix(listeners.1) => accepted,
        };
        match accepted {
            Ok(stream) => return Accepted { stream, permit },
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                clock.sleep(AFTER_ERROR).await;
            }
        }
    }
}

async fn accept_tcp(listener: Option<&TcpListener>) -> std::io::Result<Stream> {
    let Some(listener) = listener else { return std::future::pending().await };
    let (stream, remote) = listener.accept().await?;
    Ok(Stream::Tcp(stream, Remote(remote.ip())))
}

async fn accept_unix(socket: Option<&Socket>) -> std::io::Result<Stream> {
    let Some(socket) = socket else { return std::future::pending().await };
    let (stream, _) = socket.listener.accept().await?;
    let user = stream.peer_cred()?;
    Ok(Stream::Unix(stream, (user.uid(), user.gid()), socket.own))
}
