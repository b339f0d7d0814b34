//! What was accepted is there, whatever becomes of the server that said so.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::pattern::stand::{Stand, id_of, on_each_store, until};
use crate::served::{ask, json_of};

/// How long the start of a job may take when nothing is wrong: a line of workers looks every five seconds even if it hears
/// of nothing, and the machine may do other things as well. The lease, after which something would be recovered, is thirty.
const NORMAL: Duration = Duration::from_secs(25);

/// T130: the server is killed as soon as it has said 202. The job is granted in the normal time: nobody has to recover it.
#[test]
fn a_job_starts_as_soon_as_any_other_although_its_server_was_killed_right_after_the_202() {
    on_each_store("t130", |stand| {
        let mut quickest = NORMAL;
        for round in 0..4 {
            // Every other job finds a worker waiting; for the others one comes.
            let waits_already = round % 2 == 0;
            let took = std::thread::scope(|scope| {
                let claim = || (stand.granted(&stand.second, json!({})), Instant::now());
                let waiting = waits_already.then(|| scope.spawn(claim));
                let id = stand.enqueue(&stand.first(), "star", json!({ "args": round }));
                let accepted = Instant::now();
                stand.kill();
                let (granted, at) = waiting.map_or_else(claim, |waiting| waiting.join().unwrap());
                assert_eq!((granted.id(), granted.attempt()), (id, 1));
                granted.says(&stand.second, "complete", json!({}));
                at.saturating_duration_since(accepted)
            });
            println!("T130 on {}: granted {took:?} after the 202; waiting: {waits_already}", stand.name());
            assert!(took < NORMAL, "{took:?}");
            quickest = quickest.min(took);
            stand.start_again();
        }
        // A machine that runs other tests delays some, not all.
        assert!(quickest < Duration::from_secs(1), "{quickest:?}");
    });
}

/// T131: a client whose server was killed sends its requests again, to the other one.
#[test]
fn what_was_cut_off_and_sent_again_elsewhere_is_one_job() {
    on_each_store("t131", |stand| {
        let first = stand.first();
        let post = |address: &str, key: usize| {
            let job = stand.job("star", json!({ "args": key })).to_string();
            try_to_ask(address, &format!("idempotency-key: \"{} order {key}\"\r\n", stand.queue), &job)
        };
        // The first server is killed while some are answered and others are on their way.
        let answered = std::thread::scope(|scope| {
            let ask_often = |client: usize| {
                let mut asked = Vec::new();
                for key in (0..1_000).map(|n| client * 1_000 + n) {
                    asked.push((key, post(&first, key)));
                    if asked.last().is_some_and(|(_, answer)| answer.is_none()) {
                        break;
                    }
                }
                asked
            };
            let asking: Vec<_> = (0..8).map(|client| scope.spawn(move || ask_often(client))).collect();
            until("some were accepted", || stand.count(&stand.second, "queued") >= 16);
            stand.kill();
            asking.into_iter().flat_map(|asked| asked.join().unwrap()).collect::<Vec<_>>()
        });
        let heard = answered.iter().filter(|(_, answer)| answer.is_some()).count();
        assert!(heard > 0 && heard < answered.len(), "the kill came in between: {heard}");
        let mut ids = BTreeSet::new();
        for (key, before) in &answered {
            let again = post(&stand.second, *key).unwrap();
            assert_eq!(again.0, 202, "{again:?}");
            if let Some(before) = before {
                assert_eq!(
                    id_of(&json_of(before)),
                    id_of(&json_of(&again)),
                    "the same job, and the same place"
                );
                assert!(again.1.contains("idempotency-replayed: true"), "{again:?}");
            }
            ids.insert(id_of(&json_of(&again)));
        }
        assert_eq!(ids.len(), answered.len());
        assert_eq!(stand.count(&stand.second, "queued"), answered.len() as u64, "and no job beside them");
    });
}

/// T146: sixteen who write through both servers, of which one is killed.
#[test]
fn ids_are_unique_and_grow_whoever_writes_and_whoever_is_killed() {
    on_each_store("t146", |stand| {
        let (of_writer, one): (Mutex<BTreeMap<usize, Vec<String>>>, _) = (Mutex::default(), stand.first());
        std::thread::scope(|scope| {
            for writer in 0..16 {
                let (of_writer, one) = (&of_writer, &one);
                scope.spawn(move || {
                    let (address, jobs) = if writer % 2 == 0 { (one, 1_000) } else { (&stand.second, 20) };
                    for n in 0..jobs {
                        let job = stand.job("star", json!({ "args": [writer, n] })).to_string();
                        // Of the one that is killed no more is heard.
                        let Some(answer) = try_to_ask(address, "", &job) else { return };
                        assert_eq!(answer.0, 202, "{answer:?}");
                        of_writer.lock().unwrap().entry(writer).or_default().push(id_of(&json_of(&answer)));
                    }
                });
            }
            until("some have written", || stand.count(&stand.second, "queued") >= 100);
            stand.kill();
        });
        let of_writer = of_writer.into_inner().unwrap();
        for (writer, ids) in &of_writer {
            assert!(ids.is_sorted(), "the ids of writer {writer} grow: {ids:?}");
        }
        let acknowledged: Vec<&String> = of_writer.values().flatten().collect();
        let unique: BTreeSet<&String> = acknowledged.iter().copied().collect();
        assert!(unique.len() == acknowledged.len() && unique.len() >= 160, "{}", unique.len());
        // What was accepted is there, once; of what was cut off there may be more, and no id is there twice.
        let listed = listed(stand);
        let there: BTreeSet<&String> = listed.iter().collect();
        assert!(there.len() == listed.len() && unique.is_subset(&there), "{} {}", there.len(), listed.len());
        // The newest come first, and so do those of one writer.
        for ids in of_writer.values() {
            let places: Vec<_> = ids.iter().map(|id| listed.iter().position(|other| other == id)).collect();
            assert!(places.iter().rev().is_sorted(), "{places:?}");
        }
    });
}

/// All ids of this queue, the newest first.
fn listed(stand: &Stand) -> Vec<String> {
    let (mut listed, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/v1/jobs?limit=50&queue={}{cursor}", stand.queue);
        let page = json_of(&ask(&stand.second, "GET", &path, "", ""));
        listed.extend(page["items"].as_array().unwrap().iter().map(id_of));
        let Value::String(next) = &page["next_cursor"] else { return listed };
        cursor = format!("&cursor={next}");
    }
}

/// What is answered, if that comes whole: the server may be killed meanwhile.
fn try_to_ask(address: &str, headers: &str, body: &str) -> Option<(u16, String, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    let head =
        "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json";
    write!(stream, "{head}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    serde_json::from_str::<Value>(body).ok()?;
    Some((head.split(' ').nth(1)?.parse().ok()?, head.to_ascii_lowercase(), body.to_owned()))
}
