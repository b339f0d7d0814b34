//! Requests to a server's Unix socket.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::time::Duration as Left;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};
use ureq::{Agent, Error, config::Config};

use crate::exit::Failure;

/// Beginning of the URL of a Unix socket.
const SCHEME: &str = "unix:";
/// Origin of requests to a Unix socket: the server requires a `Host` header.
const ORIGIN: &str = "http://localhost";

/// Returns the path of a Unix socket, if a URL names one.
pub(super) fn path_of(base: &str) -> Option<&Path> {
    base.strip_prefix(SCHEME).map(Path::new)
}

/// Returns `true` if a URL names a Unix socket.
pub(crate) fn is_socket(base: &str) -> bool {
    path_of(base).is_some()
}

/// Returns the part of request URLs that stands before every path.
pub(super) fn origin_of(base: &str) -> &str {
    if is_socket(base) { ORIGIN } else { base }
}

/// Checks the URL of a Unix socket, and removes the empty host: `unix:///run/tenure.sock` is `unix:/run/tenure.sock`.
pub(super) fn base(url: &str) -> Result<String, Failure> {
    let path = url.strip_prefix(SCHEME).unwrap_or_default();
    let path = path.strip_prefix("//").unwrap_or(path);
    if !path.starts_with('/') || path.ends_with('/') || path.contains('?') {
        let shown: String = url.chars().take(200).collect();
        let why = format!(
            "invalid URL {shown:?}: expected unix: and an absolute path, such as unix:/run/tenure.sock"
        );
        return Err(Failure::Usage(why));
    }
    Ok(format!("{SCHEME}{path}"))
}

/// Creates what sends requests to a Unix socket.
pub(super) fn agent(config: Config, path: &Path) -> Agent {
    Agent::with_parts(config, Socket(path.to_owned()), NoNames)
}

/// Connects to a Unix socket.
#[derive(Debug)]
struct Socket(PathBuf);

impl Connector<()> for Socket {
    type Out = Connection;

    fn connect(&self, details: &ConnectionDetails<'_>, _: Option<()>) -> Result<Option<Connection>, Error> {
        let stream = UnixStream::connect(&self.0)?;
        let (input, output) = (details.config.input_buffer_size(), details.config.output_buffer_size());
        Ok(Some(Connection { stream, buffers: LazyBuffers::new(input, output) }))
    }
}

/// Looks up no name: a socket has none.
#[derive(Debug)]
struct NoNames;

impl Resolver for NoNames {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let mut addresses = self.empty();
        addresses.push(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        Ok(addresses)
    }
}

#[derive(Debug)]
struct Connection {
    stream: UnixStream,
    buffers: LazyBuffers,
}

impl Transport for Connection {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let timeout = timeout.for_write();
        self.stream.set_write_timeout(left(timeout)?)?;
        let output = self.buffers.output().get(..amount).unwrap_or_default();
        match (&self.stream).write_all(output) {
            // A server that refuses a request closes the socket before it has read the body. Its answer can still
            // be read.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                Ok(())
            }
            written => written.map_err(|error| in_time(error, timeout)),
        }
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let timeout = timeout.for_read();
        self.stream.set_read_timeout(left(timeout)?)?;
        let input = self.buffers.input_append_buf();
        let amount = loop {
            match (&self.stream).read(input) {
                // The kernel does not repeat a read with a timeout after a signal.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read.map_err(|error| in_time(error, timeout))?,
            }
        };
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        let Ok(()) = self.stream.set_nonblocking(true) else { return false };
        // Anything to read between two requests is the end, or no answer to anything.
        let waits =
            matches!((&self.stream).read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock);
        waits && self.stream.set_nonblocking(false).is_ok()
    }
}

/// Returns the time that is left; `None` if there is no limit.
fn left(timeout: NextTimeout) -> Result<Option<Duration>, Error> {
    match timeout.after {
        Left::NotHappening => Ok(None),
        Left::Exact(left) if left.is_zero() => Err(Error::Timeout(timeout.reason)),
        Left::Exact(left) => Ok(Some(left)),
    }
}

fn in_time(error: std::io::Error, timeout: NextTimeout) -> Error {
    let is_late = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
    if is_late { Error::Timeout(timeout.reason) } else { error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_named_by_an_absolute_path() {
        for url in ["unix:/run/tenure.sock", "unix:///run/tenure.sock"] {
            assert_eq!(base(url).unwrap(), "unix:/run/tenure.sock");
        }
        for bad in ["unix:", "unix:tenure.sock", "unix://host/tenure.sock", "unix:/run/", "unix:/a?b"] {
            assert_eq!(base(bad).unwrap_err().code(), 2, "{bad}");
        }
        assert_eq!(origin_of("unix:/run/tenure.sock"), "http://localhost");
        assert_eq!(origin_of("https://a"), "https://a");
    }
}
