//! The client. It uses plain HTTP; a client in any language does the same.

use std::fmt;
use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::time::Duration;

use tenure::{Clock, SystemClock};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// Wait before a request that was cut off is repeated.
const PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of tries of a request, and of polls.
const PATIENCE: usize = 100;

/// The ways in which a client follows a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// Polls at the interval that the answer suggests.
    Polling,
    /// Long polling: the server holds the answer until the job changes.
    Waiting,
    /// Server-sent events: each change as it happens.
    Events,
}

/// A client that sends requests through the load balancer.
#[derive(Debug, Clone)]
pub struct Client {
    balancer: SocketAddr,
    /// Distinguishes its requests from those of other clients.
    name: String,
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: String,
    head: String,
    /// Number of times that the request was cut off before.
    cuts: usize,
}

/// The story of one star.
#[derive(Debug)]
pub struct Story {
    pub name: String,
    pub way: Watch,
    /// The path at which the job was watched.
    pub item: String,
    /// The path of the star.
    pub star: String,
    pub answers: usize,
    pub cuts: usize,
    /// True if the watched path only ever answered 200 and 303.
    pub was_always_good: bool,
}

impl Client {
    pub fn of(balancer: SocketAddr, name: &str) -> Self {
        Self { balancer, name: name.to_owned() }
    }

    /// Requests a star and follows its job until the star exists.
    pub async fn has_a_star_made(self, name: &'static str, way: Watch) -> Result<Story> {
        // With this idempotency key the star is made once, however often the request is sent.
        let key = format!("idempotency-key: \"{} {name}\"", self.name);
        let accepted = self.ask("POST", "/stars", &[&key], &format!(r#"{{"name": "{name}"}}"#)).await?;
        if accepted.status != 202 {
            return Err(Error::other(format!("not accepted: {accepted:?}")));
        }
        let mut story = Story {
            name: name.to_owned(),
            way,
            item: path_of(accepted.header("location")).to_owned(),
            star: String::new(),
            answers: 0,
            cuts: accepted.cuts,
            was_always_good: true,
        };
        if way == Watch::Events {
            self.hear_of_the_end(&mut story).await?;
        }
        for _ in 0..PATIENCE {
            let prefer = if way == Watch::Waiting { "prefer: wait=10" } else { "prefer: wait=0" };
            let seen = self.ask("GET", &story.item, &[prefer], "").await?;
            story.note(&seen);
            if seen.status == 303 {
                seen.header("location").clone_into(&mut story.star);
                return Ok(story);
            }
            if way == Watch::Polling {
                SystemClock.sleep(Duration::from_secs(seen.header("retry-after").parse().unwrap_or(1))).await;
            }
        }
        Err(Error::other(format!("it has not come: {story:?}")))
    }

    /// Reads server-sent events until the job has ended. After a cut it resumes behind the last event.
    async fn hear_of_the_end(&self, story: &mut Story) -> Result<()> {
        let mut last = String::new();
        for _ in 0..PATIENCE {
            let headers = ["accept: text/event-stream", &last];
            let mut lines = BufReader::new(self.send("GET", &story.item, &headers, "").await?).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some(id) = line.strip_prefix("id: ") {
                    last = format!("last-event-id: {id}");
                }
                if line == "event: job" || line == "event: end" {
                    story.answers += 1;
                }
                if line == "event: end" {
                    return Ok(());
                }
            }
            story.cuts += 1;
            SystemClock.sleep(PAUSE).await;
        }
        Err(Error::other(format!("its end was not told: {story:?}")))
    }

    /// Sends a request, and repeats it if it is cut off. That is safe for a `GET`, and for a `POST` with a key.
    pub async fn ask(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Result<Answer> {
        for cuts in 0..PATIENCE {
            match self.ask_once(method, path, headers, body).await {
                Ok(answer) => return Ok(Answer { cuts, ..answer }),
                Err(_) => SystemClock.sleep(PAUSE).await,
            }
        }
        Err(ErrorKind::TimedOut.into())
    }

    async fn ask_once(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Result<Answer> {
        let (mut stream, mut text) = (self.send(method, path, headers, body).await?, String::new());
        stream.read_to_string(&mut text).await?;
        let (head, body) = text.split_once("\r\n\r\n").ok_or(ErrorKind::UnexpectedEof)?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or(ErrorKind::InvalidData)?;
        let answer = Answer { status, body: body.to_owned(), head: head.to_ascii_lowercase(), cuts: 0 };
        let length = answer.header("content-length").parse().unwrap_or(body.len());
        if body.len() == length { Ok(answer) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }

    async fn send(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(self.balancer).await?;
        let own = [format!("content-length: {}", body.len())];
        let always = ["host: localhost", "connection: close", "content-type: application/json"];
        let lines = own.iter().map(String::as_str).chain(always).chain(headers.iter().copied());
        let lines: String = lines.filter(|line| !line.is_empty()).map(|line| format!("{line}\r\n")).collect();
        let request = format!("{method} {path} HTTP/1.1\r\n{lines}\r\n{body}");
        stream.write_all(request.as_bytes()).await?;
        Ok(stream)
    }
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| *found == name).map_or("", |(_, value)| value)
    }
}

impl Story {
    fn note(&mut self, answer: &Answer) {
        self.answers += 1;
        self.cuts += answer.cuts;
        self.was_always_good &= matches!(answer.status, 200 | 303);
    }
}

impl fmt::Display for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Polling => "looking again and again",
            Self::Waiting => "having the answer held (Prefer: wait)",
            Self::Events => "being told each change (server-sent events)",
        })
    }
}

/// Returns the path of a URL. This client always connects to the balancer.
fn path_of(url: &str) -> &str {
    let after = url.find("://").map_or(0, |scheme| scheme + "://".len());
    url[after..].find('/').map_or(url, |path| &url[after + path..])
}
