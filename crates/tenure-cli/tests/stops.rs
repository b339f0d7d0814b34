//! `tenure serve` is told to stop at any moment: it ends within its grace and with 0, and nothing that it acknowledged is lost.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]
#![allow(clippy::disallowed_methods, reason = "moments of a real program are moments of real time")]

use crate::program;
use crate::served;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use program::{Program, command};
use served::{SOON, ask, served};
use tempfile::tempdir;

/// Nobody keeps it from ending: it ends before its grace of 25 seconds is over.
const WITHIN: Duration = Duration::from_secs(20);

/// Sends a request on a connection of its own, and answers what came back, whatever that is.
fn tried(address: &str, method: &str, path: &str, headers: &str, body: &str) -> String {
    let Ok(mut stream) = TcpStream::connect(address) else { return String::new() };
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let length = body.len();
    let sent = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n{headers}\r\n{body}"
    );
    let (_, mut answer) = (stream.write_all(sent.as_bytes()), Vec::new());
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Those who ask without end: some enqueue, one works, one follows a job, one waits for one.
fn crowd(address: &str, over: &Arc<AtomicBool>, accepted: &Arc<Mutex<Vec<String>>>) -> Vec<JoinHandle<()>> {
    let spawn = |what: fn(&str, &Mutex<Vec<String>>)| {
        let (address, over, accepted) = (address.to_owned(), Arc::clone(over), Arc::clone(accepted));
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                what(&address, &accepted);
            }
        })
    };
    let enqueue = |address: &str, accepted: &Mutex<Vec<String>>| {
        let answer = tried(address, "POST", "/v1/jobs", "", "{\"kind\":\"mail\"}");
        if answer.starts_with("HTTP/1.1 202") {
            let place = answer.split("/queue/").nth(1).unwrap();
            accepted.lock().unwrap().push(place.split('\r').next().unwrap().to_owned());
        }
    };
    let batch = |address: &str, accepted: &Mutex<Vec<String>>| {
        let jobs = format!("{{\"jobs\":[{}]}}", vec!["{\"kind\":\"mail\"}"; 50].join(","));
        let answer = tried(address, "POST", "/v1/jobs/batch", "", &jobs);
        if answer.starts_with("HTTP/1.1 202") {
            let ids =
                answer.split("\"id\":\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned());
            accepted.lock().unwrap().extend(ids);
        }
    };
    let work = |address: &str, _: &Mutex<Vec<String>>| {
        tried(address, "POST", "/v1/claim", "prefer: wait=20\r\n", "{\"queues\":[\"nothing here\"]}");
        tried(address, "POST", "/v1/claim", "prefer: wait=20\r\n", "{\"queues\":[\"empty\"]}");
    };
    let follow = |address: &str, accepted: &Mutex<Vec<String>>| {
        let last = accepted.lock().unwrap().last().cloned();
        if let Some(id) = last {
            tried(address, "GET", &format!("/v1/jobs/{id}/events"), "", "");
        }
    };
    let wait = |address: &str, accepted: &Mutex<Vec<String>>| {
        let last = accepted.lock().unwrap().last().cloned();
        if let Some(id) = last {
            tried(address, "GET", &format!("/queue/{id}"), "prefer: wait=50\r\n", "");
        }
    };
    vec![spawn(enqueue), spawn(enqueue), spawn(batch), spawn(work), spawn(follow), spawn(wait)]
}

/// Stops it at so many moments that this seed draws, and looks whether all is there in the end.
fn stop_at_random(moments: u32, mut seed: u64) {
    let folder = tempdir().unwrap();
    let accepted = Arc::new(Mutex::new(Vec::new()));
    for moment in 0..moments {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let lives = Duration::from_millis(seed >> 33 & 0x1ff);
        stop_after(folder.path(), lives, moment % 5 == 0, &accepted);
    }
    let (_server, address) = served(folder.path());
    let accepted = accepted.lock().unwrap();
    assert!(accepted.len() > 100, "only {} jobs were accepted", accepted.len());
    for id in &*accepted {
        assert_eq!(ask(&address, "GET", &format!("/v1/jobs/{id}"), "", "").0, 200, "{id} is lost");
    }
}

fn stop_after(folder: &Path, lives: Duration, at_start: bool, accepted: &Arc<Mutex<Vec<String>>>) {
    let over = Arc::new(AtomicBool::new(false));
    let mut program = Program::start(&["serve", "--db", "jobs.db", "--bind", "127.0.0.1:0"], folder);
    let crowd = if at_start {
        Vec::new()
    } else {
        let line = program.line_with("http://", SOON);
        let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap().to_owned();
        crowd(&address, &over, accepted)
    };
    std::thread::sleep(if at_start { lives / 16 } else { lives });
    program.terminate();
    let code = program.end(WITHIN);
    over.store(true, Ordering::Relaxed);
    crowd.into_iter().for_each(|one| one.join().unwrap());
    // Before the program has begun to listen for signals the system ends it: it has promised nothing yet.
    let is_well = code == Some(0) || at_start && code.is_none();
    assert!(is_well, "{code:?} after {lives:?}: {:?}", program.complaints());
}

#[test]
fn it_ends_well_whenever_it_is_told_to_and_keeps_what_it_acknowledged() {
    stop_at_random(10, 1);
}

/// `cargo test -p tenure-cli --test it -- --ignored stops::`
#[test]
#[ignore = "it takes a minute"]
fn it_ends_well_at_a_hundred_moments() {
    stop_at_random(100, 2);
}

#[test]
fn who_asks_twice_does_not_wait() {
    let folder = tempdir().unwrap();
    let serve = ["serve", "--db", "jobs.db", "--bind", "127.0.0.1:0", "--drain-delay", "600s"];
    let mut program = Program::start(&serve, folder.path());
    program.line_with("http://", SOON);
    program.terminate();
    program.line_with("stopping", SOON);
    program.interrupt();
    let code = program.end(WITHIN);
    assert!(code != Some(0), "it was stopped in the middle: {code:?}");
}

#[test]
fn the_manager_of_the_machine_hears_that_it_is_ready_lives_and_stops() {
    let folder = tempdir().unwrap();
    let manager = UnixDatagram::bind(folder.path().join("manager")).unwrap();
    manager.set_read_timeout(Some(SOON)).unwrap();
    let hear = || {
        let mut said = [0; 64];
        let length = manager.recv(&mut said).expect("something is told");
        String::from_utf8_lossy(&said[..length]).into_owned()
    };
    let mut serve = command(&["serve", "--db", "jobs.db", "--bind", "127.0.0.1:0"], folder.path());
    serve.env("NOTIFY_SOCKET", folder.path().join("manager")).env("WATCHDOG_USEC", "200000");
    // Under such a manager it would go on answering for a while.
    serve.env("TENURE_SERVER__DRAIN_DELAY", "0s");
    let mut program = Program::start_command(serve.env_remove("WATCHDOG_PID"));
    assert_eq!([hear(), hear(), hear()], ["READY=1", "WATCHDOG=1", "WATCHDOG=1"]);
    program.line_with("http://", SOON);
    program.terminate();
    let mut last = hear();
    while last == "WATCHDOG=1" {
        last = hear();
    }
    assert_eq!(last, "STOPPING=1");
    assert_eq!(program.end(WITHIN), Some(0));
}
