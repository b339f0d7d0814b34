//! Who holds a job, who does not any more, and how many are held at once.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::pattern::stand::{Granted, header, on_each_store, until};
use crate::served::{SOON, ask, json_of};

/// T138: a holder was silent, another one has completed the job, and the server that granted it to the first was killed.
/// Whatever the first one says, to whichever server, changes nothing.
#[test]
fn whoever_comes_after_the_end_changes_neither_the_state_nor_the_time_of_expiry() {
    on_each_store("t138", |stand| {
        let id = stand.enqueue(&stand.first(), "star", json!({}));
        let late = stand.granted(&stand.first(), json!({ "lease_seconds": 1 }));
        let quick = stand.granted(&stand.second, json!({}));
        quick.says(&stand.second, "complete", json!({ "result": "quick", "resource_location": "/stars/7" }));
        let path = format!("/v1/jobs/{id}");
        let before = ask(&stand.second, "GET", &path, "", "");
        stand.kill();
        stand.start_again();
        for address in [stand.first(), stand.second.clone()] {
            for (what, more) in [
                ("heartbeat", json!({ "progress": { "fraction": 0.1 } })),
                ("complete", json!({ "result": "late" })),
                ("fail", json!({ "error": { "detail": "late" } })),
                ("fail", json!({ "retryable": false })),
                ("release", json!({ "delay_seconds": 60 })),
                ("logs", json!({ "first": 1, "lines": ["late"] })),
            ] {
                late.is_too_late(&address, what, more);
            }
            let item = json!({ "job_id": id, "token": late.job["token"], "outcome": "complete" });
            let all =
                json_of(&ask(&address, "POST", "/v1/settle", "", &json!({ "items": [item] }).to_string()));
            assert_eq!(all["items"][0]["status"], 409, "{all}");
            let after = ask(&address, "GET", &path, "", "");
            assert_eq!((header(&after, "etag"), &after.2), (header(&before, "etag"), &before.2));
        }
        let job = json_of(&before);
        assert!(job["expires_at"].is_string() && job["result"] == "quick", "{job}");
        // Whoever has ended it may say so again, as after an answer that was lost.
        assert_eq!(quick.says(&stand.first(), "complete", json!({ "result": "quick" }))["repeated"], true);
    });
}

/// T140: a job takes many times its lease. As long as its holder speaks nobody else has it, whichever server it speaks to;
/// if somebody wants it to stop, the holder hears so, and it is taken from a holder that does not.
#[test]
fn a_job_that_takes_much_longer_than_its_lease_is_never_without_its_holder() {
    on_each_store("t140", |stand| {
        const LEASE: Duration = Duration::from_secs(5);
        let id = stand.enqueue(&stand.first(), "long", json!({}));
        let held = stand.granted(&stand.first(), json!({ "lease_seconds": LEASE.as_secs() }));
        let (begun, mut looks) = (Instant::now(), 0);
        while begun.elapsed() < LEASE * 3 {
            let address = if looks % 2 == 0 { stand.first() } else { stand.second.clone() };
            let told = held.says(&address, "heartbeat", json!({}));
            assert_eq!(told["cancel_requested"], false);
            assert!(stand.claim(&stand.second, 0, json!({})).is_empty(), "somebody else has it as well");
            assert!(stand.claim(&stand.first(), 0, json!({})).is_empty(), "somebody else has it as well");
            looks += 1;
            std::thread::sleep(Duration::from_millis(100));
        }
        let grace = json!({ "grace_seconds": 1, "reason": "enough" }).to_string();
        let asked = ask(&stand.second, "POST", &format!("/v1/jobs/{id}/cancel"), "", &grace);
        assert_eq!(asked.0, 202, "{asked:?}");
        until("it is taken from a holder that goes on and does not stop", || {
            let (status, told) = held.say(&stand.first(), "heartbeat", json!({}));
            if status == 200 {
                assert_eq!(
                    (&told["cancel_requested"], &told["cancel_reason"]),
                    (&json!(true), &json!("enough"))
                );
            }
            status == 409
        });
        assert_eq!(stand.look(&stand.second, &id)["state"], "cancelled");
        held.is_too_late(&stand.second, "complete", json!({}));
    });
}

/// T142: three at once, whoever asks which server; each holder ends in another way, some of them by silence.
#[test]
fn a_limit_is_exact_over_both_servers_and_every_end_makes_room_again() {
    on_each_store("t142", |stand| {
        const MOST: usize = 3;
        let path = format!("/v1/queues/{}", stand.queue);
        assert_eq!(ask(&stand.first(), "PUT", &path, "", &json!({ "max_running": MOST }).to_string()).0, 201);
        stand.enqueue_many(&stand.first(), "star", 30);
        let (held, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for worker in 0..8 {
                let (held, ended, first) = (&held, &ended, stand.first());
                scope.spawn(move || {
                    let address = if worker % 2 == 0 { first } else { stand.second.clone() };
                    while ended.load(Ordering::SeqCst) < 24 {
                        assert!(stand.count(&address, "running") <= MOST as u64);
                        for granted in stand.claim(&address, 1, json!({ "limit": 2, "lease_seconds": 5 })) {
                            let now = held.fetch_add(1, Ordering::SeqCst) + 1;
                            assert!(now <= MOST, "{now} at once");
                            ends(&granted, &address, ended.load(Ordering::SeqCst), || {
                                held.fetch_sub(1, Ordering::SeqCst);
                            });
                            ended.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                });
            }
        });
        // What fell silent lapses, and is done by whoever asks next. Then there is room for exactly three, and no more.
        until("nobody holds any", || {
            for granted in stand.claim(&stand.second, 0, json!({})) {
                granted.says(&stand.second, "complete", json!({}));
            }
            stand.count(&stand.second, "running") == 0
        });
        stand.enqueue_many(&stand.second, "star", 2 * MOST);
        assert_eq!(stand.claim(&stand.second, 5, json!({ "limit": 10 })).len(), MOST);
        assert!(stand.claim(&stand.first(), 0, json!({ "limit": 10 })).is_empty());
    });
}

/// One of the ways in which a run ends. `free` is called when this holder counts as one no more: before it says so, because
/// the next may be granted before the answer is heard.
fn ends(granted: &Granted, address: &str, number: usize, free: impl FnOnce()) {
    let id = granted.id();
    match number % 5 {
        0 => {
            free();
            granted.says(address, "complete", json!({}));
        }
        1 => {
            free();
            granted.says(address, "fail", json!({ "retryable": false }));
        }
        2 => {
            free();
            granted.says(address, "fail", json!({ "retry_after_seconds": 3600 }));
        }
        3 => {
            free();
            let body = json!({ "grace_seconds": 0 }).to_string();
            let answer = ask(address, "POST", &format!("/v1/jobs/{id}/cancel"), "", &body);
            assert!(matches!(answer.0, 200 | 202), "{answer:?}");
        }
        // It says nothing more: somebody else has it once its lease is over, which is five seconds after it was granted.
        _ => {
            free();
            let _: &Value = &granted.job;
        }
    }
}

/// T145: a server that is told to stop lets nobody wait and ends in time; what was granted through it is settled through
/// the other one, and what is given back has spent no attempt.
#[test]
fn a_server_that_stops_answers_whoever_waits_and_takes_no_job_along() {
    on_each_store("t145", |stand| {
        let ids = stand.enqueue_many(&stand.first(), "star", 2);
        let held = stand.claim(&stand.first(), 5, json!({ "limit": 2 }));
        assert_eq!(held.len(), 2);
        let stopped = std::thread::scope(|scope| {
            let claims: Vec<_> =
                (0..5).map(|_| scope.spawn(|| stand.claim(&stand.first(), 50, json!({})))).collect();
            let mut events = TcpStream::connect(stand.first()).unwrap();
            let path = format!("/v1/jobs/{}/events", ids[0]);
            write!(events, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
            let mut events = BufReader::new(events).lines().map_while(Result::ok);
            assert!(events.any(|line| line == "event: job"), "it is told how it stands, and of each change");
            until("all of them wait", || {
                let metrics = ask(&stand.first(), "GET", "/metrics", "", "").2;
                metrics.lines().any(|line| line == "tenure_claims_waiting 5")
            });
            let begun = Instant::now();
            assert_eq!(stand.interrupt(SOON), Some(0));
            for claim in claims {
                assert!(claim.join().unwrap().is_empty());
            }
            assert!(
                !events.any(|line| line == "event: end"),
                "the job goes on, and so may who follows it, elsewhere"
            );
            begun.elapsed()
        });
        println!("T145 on {}: stopped in {stopped:?} with six waiting", stand.name());
        // Its grace has 25 seconds, and whoever waits would do so for fifty.
        assert!(stopped < Duration::from_secs(20), "{stopped:?}");
        held[0].says(&stand.second, "complete", json!({ "result": 1 }));
        held[1].says(&stand.second, "release", json!({}));
        let again = stand.granted(&stand.second, json!({}));
        assert_eq!((again.id(), again.attempt()), (held[1].id(), 1), "no attempt was spent");
        assert_eq!(stand.outcomes(&stand.second, &again.id()), ["released", "runs"]);
        let done: HashSet<_> = ids.iter().map(|id| stand.look(&stand.second, id)["state"].clone()).collect();
        assert_eq!(done, HashSet::from([json!("running"), json!("succeeded")]));
    });
}
