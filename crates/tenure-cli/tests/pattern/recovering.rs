//! What a holder leaves behind that dies goes on elsewhere, and nothing else is touched.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::pattern::stand::{Granted, on_each_store, until};
use crate::served::{ask, json_of};

/// T133: a thousand jobs wait while ten holders die one after the other, and a server with each of them. Each death is
/// recovered from, and none of the jobs that merely wait is granted, tried or written to.
#[test]
fn ten_recoveries_hand_out_nothing_of_a_backlog() {
    on_each_store("t133", |stand| {
        let waiting = stand.enqueue_many(&stand.second, "waits", 1_000);
        let tag = |id: &str| {
            let answer = ask(&stand.second, "GET", &format!("/v1/jobs/{id}"), "", "");
            crate::pattern::stand::header(&answer, "etag").to_owned()
        };
        let before: Vec<String> = waiting.iter().step_by(10).map(|id| tag(id)).collect();
        let dies = stand.enqueue(&stand.second, "dies", json!({ "max_attempts": 20 }));
        for pass in 1..=10 {
            let claim = json!({ "kinds": ["dies"], "lease_seconds": 1 });
            let granted = stand.granted(&stand.first(), claim);
            assert_eq!((granted.id(), granted.attempt()), (dies.clone(), pass));
            // Its holder says nothing more, and its server neither.
            stand.kill();
            stand.start_again();
        }
        let granted = stand.granted(&stand.first(), json!({ "kinds": ["dies"] }));
        granted.says(&stand.second, "complete", json!({}));
        let lost = stand.outcomes(&stand.second, &dies);
        assert_eq!(lost, [vec!["lost"; 10], vec!["succeeded"]].concat());
        assert_eq!(stand.count(&stand.second, "queued"), 1_000);
        let after: Vec<String> = waiting.iter().step_by(10).map(|id| tag(id)).collect();
        assert!(before == after, "a job that waited was written to");
        // Each is granted now, once, and for the first time.
        let granted = stand.claim(&stand.second, 5, json!({ "limit": 1000, "lease_seconds": 60 }));
        assert!(granted.iter().all(|granted| granted.attempt() == 1));
        let ids: BTreeSet<String> = granted.iter().map(Granted::id).collect();
        assert!(ids.len() == granted.len() && ids == waiting.into_iter().collect());
        assert!(stand.claim(&stand.first(), 0, json!({})).is_empty(), "there is nothing beside them");
        let delivery =
            json_of(&ask(&stand.second, "GET", &format!("/v1/jobs/{}/attempts", granted[0].id()), "", ""));
        assert_eq!(delivery["items"][0]["delivery"], 1, "{delivery}");
    });
}

/// T134: among twenty jobs whose holder died ten must not be tried again. Two servers recover at the same time: each of the
/// others is granted once.
#[test]
fn what_is_wrong_with_some_jobs_keeps_none_of_the_others_and_two_recoveries_share_them() {
    on_each_store("t134", |stand| {
        let last: Vec<String> =
            (0..10).map(|_| stand.enqueue(&stand.second, "last", json!({ "max_attempts": 1 }))).collect();
        let others: BTreeSet<String> = stand.enqueue_many(&stand.second, "other", 10).into_iter().collect();
        // A claim grants what it finds first, and need not find all.
        let mut held = 0;
        until("all are held", || {
            held += stand.claim(&stand.first(), 5, json!({ "limit": 20, "lease_seconds": 5 })).len();
            held == 20
        });
        stand.kill();
        stand.start_again();
        let first = stand.first();
        let granted: Vec<Granted> = std::thread::scope(|scope| {
            let recover = move |address: String| {
                let mut granted = stand.claim(&address, 20, json!({ "limit": 3, "lease_seconds": 60 }));
                loop {
                    let more = stand.claim(&address, 1, json!({ "limit": 3, "lease_seconds": 60 }));
                    if more.is_empty() {
                        return granted;
                    }
                    granted.extend(more);
                }
            };
            let [one, two] = [first.clone(), stand.second.clone()].map(|at| scope.spawn(move || recover(at)));
            [one.join().unwrap(), two.join().unwrap()].concat()
        });
        let ids: Vec<String> = granted.iter().map(Granted::id).collect();
        assert_eq!(ids.len(), 10, "{ids:?}");
        assert_eq!(ids.into_iter().collect::<BTreeSet<_>>(), others);
        assert!(granted.iter().all(|granted| granted.attempt() == 2));
        for id in last {
            until("the last attempt of a job was lost", || {
                stand.look(&stand.second, &id)["state"] == "failed"
            });
            let job = stand.look(&first, &id);
            assert_eq!(
                (job["error"]["type"].as_str(), job["attempt"].as_u64()),
                (Some("lost"), Some(1)),
                "{job}"
            );
        }
    });
}

/// T135: a holder lives for a while, and dies with its server. Another worker waits elsewhere.
#[test]
fn the_job_of_a_holder_that_dies_goes_on_elsewhere_within_a_lease_and_a_look() {
    const LEASE: Duration = Duration::from_secs(5);
    // Whoever waits looks each five seconds, and would wait for fifty.
    const LOOK: Duration = Duration::from_secs(5);
    const LOADED: Duration = Duration::from_secs(5);
    on_each_store("t135", |stand| {
        let id = stand.enqueue(&stand.first(), "long", json!({}));
        let held = stand.granted(&stand.first(), json!({ "lease_seconds": LEASE.as_secs() }));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| (stand.granted(&stand.second, json!({})), Instant::now()));
            let mut beats = 0;
            until("it has lived for a while", || {
                held.says(&stand.first(), "heartbeat", json!({ "progress": { "fraction": 0.5 } }));
                beats += 1;
                beats == 20
            });
            let died = Instant::now();
            stand.kill();
            let (granted, at) = waiting.join().unwrap();
            let took = at.duration_since(died);
            println!(
                "T135 on {}: resumed {took:?} after its holder died; its lease was {LEASE:?}",
                stand.name()
            );
            assert!(took < LEASE + LOOK + LOADED, "{took:?}");
            assert_eq!((granted.id(), granted.attempt()), (id.clone(), 2));
            held.is_too_late(&stand.second, "complete", json!({}));
            granted.says(&stand.second, "complete", json!({}));
        });
        assert_eq!(stand.outcomes(&stand.second, &id), ["lost", "succeeded"]);
    });
}

/// A worker that makes a file named after its job. Told to, it dawdles before it says so.
const MAKER: &str = r#"
import json, os, sys, threading, urllib.request
url, queue, folder, dawdles = sys.argv[1:]
def ask(path, body):
    headers = {"content-type": "application/json", "prefer": "wait=20"}
    request = urllib.request.Request(url + path, json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(request))
job = ask("/v1/claim", {"queues": [queue], "lease_seconds": 1 if dawdles == "yes" else 30})["jobs"][0]
try:
    open(os.path.join(folder, job["id"]), "x").write(job["args"])
    print("made", flush=True)
except FileExistsError:
    print("found", flush=True)
if dawdles == "yes":
    threading.Event().wait()
ask("/v1/jobs/" + job["id"] + "/complete", {"token": job["token"], "resource_location": "/stars/" + job["id"]})
"#;

/// T139: a worker is killed between what it did and saying so. What it did is known by the id of its job, so that the next
/// attempt finds it.
#[test]
fn what_was_done_right_before_a_kill_is_done_once_if_it_is_known_by_its_job() {
    on_each_store("t139", |stand| {
        let sky = tempfile::tempdir().unwrap();
        let make = |address: &str, dawdles: &str| {
            let mut command = Command::new("python3");
            command
                .args(["-c", MAKER, &format!("http://{address}"), stand.queue])
                .arg(sky.path())
                .arg(dawdles);
            let mut worker = command.stdout(Stdio::piped()).spawn().unwrap();
            let mut said = String::new();
            BufReader::new(worker.stdout.take().unwrap()).read_line(&mut said).unwrap();
            (worker, said)
        };
        let id = stand.enqueue(&stand.first(), "star", json!({ "args": "Sol" }));
        let (mut killed, said) = make(&stand.first(), "yes");
        assert_eq!(said, "made\n");
        killed.kill().unwrap();
        killed.wait().unwrap();
        let (mut next, said) = make(&stand.second, "no");
        assert_eq!((said.as_str(), next.wait().unwrap().success()), ("found\n", true));
        assert_eq!(stand.outcomes(&stand.second, &id), ["lost", "succeeded"]);
        let item = ask(&stand.first(), "GET", &format!("/queue/{id}"), "", "");
        assert_eq!(
            (item.0, crate::pattern::stand::header(&item, "location")),
            (303, format!("/stars/{id}").as_str())
        );
        assert_eq!(std::fs::read_dir(sky.path()).unwrap().count(), 1);
    });
}
