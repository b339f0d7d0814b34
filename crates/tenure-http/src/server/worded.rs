//! Words for what is refused before it is a request: where the head of one cannot be read, whoever reads heads answers with a bare
//! status. Here the answer gets the document that every other refusal has.

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::heads::Phase;
use crate::problem::{Problem, ProblemType};

/// The refusal of a head that is too large.
pub(super) const TOO_LARGE: &str =
    "request headers too large; expected at most 100 headers, and 32 KiB including the path";

/// A connection on which bare answers are replaced, and what is left to send of the last one that was.
pub(super) struct Worded<S> {
    stream: S,
    phase: Phase,
    /// Number of bytes of the last write that the stream did not accept. The next write begins with them.
    rest: usize,
    left: Vec<u8>,
    sent: usize,
}

impl<S: AsyncWrite + Unpin> Worded<S> {
    pub(super) fn new(stream: S, phase: Phase) -> Self {
        Self { stream, phase, rest: 0, left: Vec::new(), sent: 0 }
    }

    /// Returns the answer that replaces this text; `None` if the text belongs to a route's response, such as its body.
    fn worded(&self, answer: &[u8]) -> Option<Vec<u8>> {
        if self.rest > 0 || self.phase.is_serving() { None } else { worded(answer) }
    }

    /// Notes how much of some bytes was written.
    fn note(&mut self, bytes: usize, written: &Poll<Result<usize>>) {
        if let Poll::Ready(Ok(written)) = written {
            self.rest = bytes.saturating_sub(*written);
        }
    }

    /// Sends what is left of an answer that was replaced.
    fn send_left(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        while self.sent < self.left.len() {
            let sent = ready!(Pin::new(&mut self.stream).poll_write(context, &self.left[self.sent..]))?;
            if sent == 0 {
                return Poll::Ready(Err(std::io::ErrorKind::WriteZero.into()));
            }
            self.sent += sent;
        }
        (self.left, self.sent) = (Vec::new(), 0);
        Poll::Ready(Ok(()))
    }

    /// Takes the place of an answer; what cannot be sent at once is sent with what comes next.
    fn replace(&mut self, context: &mut Context<'_>, answer: Vec<u8>) -> Result<()> {
        self.left = answer;
        match self.send_left(context) {
            Poll::Ready(sent) => sent,
            Poll::Pending => Ok(()),
        }
    }
}

/// The answer in place of this one, if it is a bare one: nothing that comes from a route is without a document and a number.
fn worded(answer: &[u8]) -> Option<Vec<u8>> {
    let status = answer.strip_prefix(b"HTTP/1.1 ")?;
    let (problem_type, detail) = match status.get(..4)? {
        b"400 " => (ProblemType::Malformed, "the request head is not valid HTTP/1.1"),
        b"431 " => (ProblemType::HeadersTooLarge, TOO_LARGE),
        _ => return None,
    };
    let head = std::str::from_utf8(answer).ok()?.strip_suffix("\r\n\r\n")?.to_ascii_lowercase();
    let is_bare = head.contains("\r\ncontent-length: 0") && !head.contains("\r\nx-request-id:");
    if !is_bare {
        return None;
    }
    let line = head.lines().next()?.to_ascii_uppercase();
    Some(message(&line, "", &Problem::new(problem_type, detail)).into_bytes())
}

/// Returns a complete response with a problem document, after which the connection ends. Each of the further headers ends
/// with a line break.
pub(super) fn message(line: &str, headers: &str, problem: &Problem) -> String {
    let body = problem.document().to_string();
    format!(
        "{line}\r\ncontent-type: application/problem+json\r\n{headers}cache-control: no-store\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

impl<S: AsyncRead + Unpin> AsyncRead for Worded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Worded<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<Result<usize>> {
        ready!(self.send_left(context))?;
        if let Some(answer) = self.worded(from) {
            return Poll::Ready(self.replace(context, answer).map(|()| from.len()));
        }
        let written = Pin::new(&mut self.stream).poll_write(context, from);
        self.note(from.len(), &written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        ready!(self.send_left(context))?;
        let mut parts = from.iter().filter(|part| !part.is_empty());
        if let (Some(only), None) = (parts.next(), parts.next())
            && let Some(answer) = self.worded(only)
        {
            return Poll::Ready(self.replace(context, answer).map(|()| only.len()));
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, from);
        self.note(from.iter().map(|part| part.len()).sum(), &written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        ready!(self.send_left(context))?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        ready!(self.send_left(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn the_body_of_a_route_is_sent_as_it_is() {
        let bare = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
        let body = format!("12345678{bare}");
        let (mut client, server) = tokio::io::duplex(8);
        let mut stream = Worded::new(server, Phase::new());
        let text = body.clone();
        let sent = tokio::spawn(async move { stream.write_all(text.as_bytes()).await });
        let mut told = vec![0; body.len()];
        client.read_exact(&mut told).await.unwrap();
        sent.await.unwrap().unwrap();
        assert_eq!(String::from_utf8(told).unwrap(), body, "the rest of a write is no answer");
        let phase = Phase::new();
        let stream = Worded::new(tokio::io::empty(), phase.clone());
        assert!(stream.worded(bare.as_bytes()).is_some());
        let _serving = phase.serve(Duration::ZERO);
        assert_eq!(stream.worded(bare.as_bytes()), None);
    }

    #[test]
    fn only_a_bare_answer_gets_words() {
        let bare = |line: &str| {
            format!("HTTP/1.1 {line}\r\nconnection: close\r\ncontent-length: 0\r\ndate: now\r\n\r\n")
        };
        let told = String::from_utf8(worded(bare("431 Request Header Fields Too Large").as_bytes()).unwrap())
            .unwrap();
        let (head, body) = told.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("HTTP/1.1 431 ") && head.contains(&format!("content-length: {}", body.len())),
            "{told}"
        );
        assert!(body.contains("urn:tenure:problem:headers-too-large"), "{told}");
        let route = "HTTP/1.1 400 Bad Request\r\nx-request-id: 7\r\ncontent-length: 0\r\n\r\n";
        let whole = "HTTP/1.1 400 Bad Request\r\ncontent-length: 10\r\n\r\n{}";
        for kept in [route, whole, &bare("404 Not Found"), &bare("200 OK"), "HTTP/1.1 4", "{\"a\":1}", ""] {
            assert_eq!(worded(kept.as_bytes()), None, "{kept}");
        }
    }
}
