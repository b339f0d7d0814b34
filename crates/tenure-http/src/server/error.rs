//! Reasons for which a server does not start.

use std::net::SocketAddr;

use super::tls::TlsError;

/// The error of a server that could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is not available.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The address is reachable from other machines without authentication.
    #[error(
        "{0} is reachable from other machines without authentication; set --auth tokens, or bind to 127.0.0.1"
    )]
    Open(SocketAddr),
    /// The Unix socket is not available.
    #[error("cannot listen on {}: {source}", path.display())]
    Socket {
        /// Path of the socket.
        path: std::path::PathBuf,
        /// The error of the operating system, or of the path.
        source: std::io::Error,
    },
    /// A Unix socket tells its users apart, which a server without authentication does not.
    #[error("a Unix socket needs authentication; set --auth tokens")]
    OpenSocket,
    /// The server would listen nowhere.
    #[error("no address and no Unix socket to listen on; set --bind ADDRESS:PORT or --socket PATH")]
    Nowhere,
    /// A grant names a user that the system's files do not list. The server's own user would keep its scope `admin`.
    #[error(
        "unknown user {0:?} in the grant unix-user:{0}; expected a name in /etc/passwd; for other users, such as \
         those of LDAP or DynamicUser, use the number"
    )]
    UnknownUser(String),
    /// Any client could name a person, or the name would have no effect.
    #[error("headers that name a person need --auth tokens and the address of the proxy in --trusted-proxy")]
    ProxySignIn,
    /// The certificate or key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}
