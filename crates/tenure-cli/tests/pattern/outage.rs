//! The store is away for a while.

use std::process::Command;
use std::time::Duration;

use own_postgres::Server;
use serde_json::json;
use tenure::rusqlite::Connection;

use crate::pattern::stand::{Stand, header, until};
use crate::served::{ask, json_of};

/// Most lines that a server writes about an outage, however many ask it meanwhile.
const LINES: usize = 20;

/// T141: while the store is away whoever asks is told so at once, and when to come back; nobody is told anything wrong, the
/// log does not fill up, and when the store is back all goes on by itself.
fn keeps_its_head(stand: &Stand, enough: u32, leave: impl FnOnce(), come_back: impl FnOnce()) {
    let id = stand.enqueue(&stand.first(), "star", json!({}));
    let held = stand.granted(&stand.first(), json!({ "lease_seconds": 120 }));
    let job = stand.job("star", json!({})).to_string();
    let claim = json!({ "queues": [stand.queue], "kinds": ["other"] }).to_string();
    std::thread::scope(|scope| {
        // Workers that wait when it happens. They are told, or are granted nothing; none is left hanging.
        let waiting: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| ask(&stand.second, "POST", "/v1/claim", "prefer: wait=5\r\n", &claim)))
            .collect();
        leave();
        let mut refused = 0;
        until("whoever asks again and again was told so", || {
            for address in [stand.first(), stand.second.clone()] {
                let told = ask(&address, "POST", "/v1/jobs", "", &job);
                assert_eq!(told.0, 503, "{told:?}");
                assert_eq!(json_of(&told)["type"], "urn:tenure:problem:storage-unavailable");
                assert!(header(&told, "retry-after").parse::<u64>().unwrap() >= 1);
                assert_eq!(ask(&address, "GET", "/livez", "", "").0, 200, "the server itself is well");
                refused += 1;
            }
            refused >= enough && waiting.iter().all(|waiting| waiting.is_finished())
        });
        for waiting in waiting {
            let told = waiting.join().unwrap();
            assert!(matches!(told.0, 200 | 503), "{told:?}");
        }
        come_back();
    });
    until("both are ready again", || {
        [stand.first(), stand.second.clone()].iter().all(|at| ask(at, "GET", "/readyz", "", "").0 == 200)
    });
    // What was granted before is still held, and what was refused has not been done by half.
    held.says(&stand.second, "complete", json!({}));
    assert_eq!(stand.look(&stand.second, &id)["state"], "succeeded");
    assert_eq!(stand.count(&stand.first(), "queued"), 0);
    let next = stand.enqueue(&stand.first(), "star", json!({}));
    assert_eq!(stand.granted(&stand.second, json!({})).id(), next);
    for lines in stand.complaints() {
        println!("T141 on {}: {} lines in the log", stand.name(), lines.len());
        assert!(lines.len() <= LINES, "{lines:#?}");
    }
}

#[test]
fn a_database_that_is_killed_and_comes_back_is_told_of_and_got_over() {
    let database = Server::start_hasty().unwrap();
    let stand = Stand::on(&database.url(), "t141");
    keeps_its_head(&stand, 200, || database.crash().unwrap(), || database.start_again().unwrap());
}

#[test]
fn a_file_that_somebody_else_locks_is_told_of_and_got_over() {
    let stand = Stand::on("jobs.db", "t141");
    let other = Connection::open(stand.folder().join("jobs.db")).unwrap();
    other.busy_timeout(Duration::from_secs(5)).unwrap();
    let lock = || other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Each of them waits a while for the lock before it is refused.
    keeps_its_head(&stand, 2, lock, || other.execute_batch("ROLLBACK").unwrap());
}

/// A server whose writes fail is not ready, and says why: reads alone are no use to a client that submits jobs.
#[test]
fn a_server_that_cannot_write_is_not_ready_and_tells_the_cause() {
    let database = Server::start_hasty().unwrap();
    let stand = Stand::on(&database.url(), "unwritable");
    let read_only = |is_on: bool| {
        let set = format!("ALTER SYSTEM SET default_transaction_read_only = {is_on}");
        for sql in [set.as_str(), "SELECT pg_reload_conf()"] {
            let done = Command::new("psql").args(["-qd", &database.url(), "-c", sql]).output().unwrap();
            assert!(done.status.success(), "{done:?}");
        }
    };
    let ready = || ask(&stand.first(), "GET", "/readyz?verbose", "", "");
    assert_eq!(ready().0, 200);
    read_only(true);
    until("it is not ready", || ready().0 == 503);
    assert_eq!(json_of(&ready())["status"], "store unavailable: database is read-only");
    let refused = ask(&stand.first(), "POST", "/v1/jobs", "", &stand.job("star", json!({})).to_string());
    assert_eq!(refused.0, 503, "{refused:?}");
    let detail = json_of(&refused)["detail"].to_string();
    assert!(detail.contains("database is read-only"), "{detail} {:?}", stand.complaints());
    read_only(false);
    until("it is ready again", || ready().0 == 200);
}
