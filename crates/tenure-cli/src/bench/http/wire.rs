//! A client that costs little: what is measured is the server.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::exit::Failure;

/// What is read at once at most.
const READ: usize = 64 * 1024;

/// A connection that is kept.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

/// What was answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Connection {
    pub(super) async fn open(address: SocketAddr) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).await.map_err(lost)?;
        stream.set_nodelay(true).map_err(lost)?;
        Ok(Self { stream, read: Vec::with_capacity(READ) })
    }

    /// Sends a request as it stands; nobody waits for its answer.
    pub(super) async fn send(&mut self, request: &[u8]) -> Result<(), Failure> {
        self.stream.write_all(request).await.map_err(lost)
    }

    /// Reads on until these bytes have come.
    pub(super) async fn read_until(&mut self, wanted: &[u8]) -> Result<(), Failure> {
        while !self.read.windows(wanted.len()).any(|some| some == wanted) {
            if self.stream.read_buf(&mut self.read).await.map_err(lost)? == 0 {
                return Err(wrong("the server closed the connection"));
            }
        }
        Ok(())
    }

    /// Whether more may come.
    pub(super) fn is_open(&mut self) -> bool {
        let mut some = [0; 1024];
        loop {
            match self.stream.try_read(&mut some) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) => return error.kind() == std::io::ErrorKind::WouldBlock,
            }
        }
    }

    /// Whether nothing more has come, not even an end.
    pub(super) fn is_waiting(&mut self) -> bool {
        let nothing = self.stream.try_read(&mut [0]);
        nothing.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }

    /// Sends a request as it stands, and waits for its answer.
    pub(super) async fn ask(&mut self, request: &[u8]) -> Result<Answer, Failure> {
        self.send(request).await?;
        self.read.clear();
        loop {
            if let Some((status, head, length)) = head_of(&self.read)
                && self.read.len() >= head + length
            {
                return Ok(Answer { status, body: self.read[head..head + length].to_vec() });
            }
            if self.stream.read_buf(&mut self.read).await.map_err(lost)? == 0 {
                return Err(wrong("the server closed the connection"));
            }
        }
    }
}

/// The text of a request.
pub(super) fn request(method: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         {headers}\r\n{body}"
    )
    .into_bytes()
}

/// The status of an answer, if it is one.
pub(super) fn status_of(answer: &[u8]) -> Option<u16> {
    let line = answer.split(|byte| *byte == b'\r').next()?;
    std::str::from_utf8(line).ok()?.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()
}

/// The status of an answer, where its head ends, and how long its body is; nothing before the head is whole.
fn head_of(read: &[u8]) -> Option<(u16, usize, usize)> {
    let end = read.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(read.get(..end)?).ok()?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    Some((status, end, length.unwrap_or(0)))
}

fn lost(source: std::io::Error) -> Failure {
    Failure::System { what: "lost a connection to the server", source }
}

pub(super) fn wrong(why: impl Into<String>) -> Failure {
    Failure::Measurement { figure: "http", why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_once_it_is_whole() {
        let text = b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(head_of(text), Some((202, text.len() - 2, 2)));
        assert_eq!(head_of(&text[..30]), None);
        assert_eq!((status_of(text), status_of(b"HTTP/1.1 2"), status_of(b"")), (Some(202), None, None));
        assert_eq!(head_of(b"HTTP/1.1 204 No Content\r\n\r\n"), Some((204, 27, 0)));
    }
}
