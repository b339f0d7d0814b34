//! A server under test, and what is asked of it without this program.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::program::{Program, command, run};

pub const SOON: Duration = Duration::from_secs(60);

/// A server on a file in this folder, on a port that was free, and where that is.
pub fn served(folder: &Path) -> (Program, String) {
    served_at(folder, "127.0.0.1:0")
}

/// The same on a port that is said.
pub fn served_at(folder: &Path, bind: &str) -> (Program, String) {
    let mut program = Program::start(&["serve", "--db", "jobs.db", "--bind", bind], folder);
    let line = program.line_with("http://", SOON);
    let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap().to_owned();
    (program, address)
}

/// A server that may go and come back at its place. A system that is set as it comes gives ports like this one to nobody
/// who asks for any, so that nobody has it while the server is away.
pub fn served_in_place(folder: &Path) -> (Program, String) {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let port = || 20_000 + (std::process::id() * 16 + TRIED.fetch_add(1, Ordering::Relaxed)) % 12_000;
    let address = std::iter::repeat_with(|| format!("127.0.0.1:{}", port()));
    let free = address.take(1_000).find(|address| TcpListener::bind(address).is_ok());
    served_at(folder, &free.expect("some port is free"))
}

/// What is answered: the status, the head, and the body.
pub fn ask(address: &str, method: &str, path: &str, headers: &str, body: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head ends");
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_ascii_lowercase(), body.to_owned())
}

pub fn json_of(answer: &(u16, String, String)) -> Value {
    serde_json::from_str(&answer.2).unwrap_or_else(|_| panic!("no JSON: {answer:?}"))
}

/// Runs the program to its end with this on its standard input.
pub fn run_with(args: &[&str], folder: &Path, input: &str) -> Output {
    let mut child = command(args, folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut pipe = child.stdin.take().expect("it is piped");
    pipe.write_all(input.as_bytes()).expect("it reads");
    drop(pipe);
    child.wait_with_output().expect("it is our child")
}

/// What the program says when it is asked something about the server at this address.
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

pub fn said(output: &Output) -> Said {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    Said { code: output.status.code().unwrap(), out: text(&output.stdout), err: text(&output.stderr) }
}

/// Asks the server at this address by the program.
pub fn tenure(address: &str, folder: &Path, args: &[&str]) -> Said {
    let url = format!("http://{address}");
    said(&run(&[args, &["--url", &url]].concat(), folder))
}

/// As a worker: is granted the next job, whichever it is.
pub fn claim(address: &str) -> Value {
    let claimed = ask(address, "POST", "/v1/claim", "prefer: wait=20\r\n", "{}");
    json_of(&claimed)["jobs"][0].clone()
}

/// As a worker: says of a job that it was granted how it stands.
pub fn say(address: &str, job: &Value, what: &str, more: Value) -> Value {
    let mut body = more;
    body["token"] = job["token"].clone();
    let path = format!("/v1/jobs/{}/{what}", job["id"].as_str().unwrap());
    let answer = ask(address, "POST", &path, "", &body.to_string());
    assert_eq!(answer.0, 200, "{answer:?}");
    json_of(&answer)
}

/// As a worker: does the next job well.
pub fn work(address: &str) {
    let job = claim(address);
    say(address, &job, "complete", json!({ "result": { "done": true } }));
}
