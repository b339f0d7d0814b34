//! What is told of a job, by either server.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::pattern::stand::{Stand, header, id_of, on_each_store};
use crate::served::{ask, json_of};

/// What both servers tell of an item in the queue: the same, to the letter.
fn told_by_both(stand: &Stand, id: &str) -> (u16, Value, String) {
    let path = format!("/queue/{id}");
    let [one, two] = [stand.first(), stand.second.clone()].map(|at| ask(&at, "GET", &path, "", ""));
    assert_eq!((one.0, header(&one, "etag"), &one.2), (two.0, header(&two, "etag"), &two.2));
    let place = if one.0 == 303 { header(&one, "location").to_owned() } else { String::new() };
    (one.0, json_of(&one), place)
}

/// T132: a job in each of its states, made through one server and done through the other.
#[test]
fn both_servers_tell_the_same_of_a_job_in_each_of_its_states() {
    on_each_store("t132", |stand| {
        let tell = |id: &str| {
            let (status, job, place) = told_by_both(stand, id);
            (
                status,
                job["state"].as_str().unwrap().to_owned(),
                job["status"].as_str().unwrap().to_owned(),
                place,
            )
        };
        let told = |status: u16, state: &str, monitor: &str, place: &str| {
            (status, state.to_owned(), monitor.to_owned(), place.to_owned())
        };
        let id = stand.enqueue(&stand.first(), "star", json!({ "delay_seconds": 3600 }));
        assert_eq!(tell(&id), told(200, "scheduled", "NotStarted", ""));
        assert_eq!(ask(&stand.second, "POST", &format!("/v1/jobs/{id}/run-now"), "", "").0, 202);
        assert_eq!(tell(&id), told(200, "queued", "NotStarted", ""));
        let held = stand.granted(&stand.second, json!({}));
        held.says(&stand.second, "heartbeat", json!({ "progress": { "fraction": 0.4, "message": "lit" } }));
        assert_eq!(tell(&id), told(200, "running", "Running", ""));
        let (_, job, _) = told_by_both(stand, &id);
        assert_eq!((&job["progress"]["message"], &job["attempt"]), (&json!("lit"), &json!(1)));
        assert!(job["started_at"].is_string() && job["finished_at"].is_null());
        held.says(&stand.second, "complete", json!({ "resource_location": "/stars/7" }));
        assert_eq!(tell(&id), told(303, "succeeded", "Succeeded", "/stars/7"));
        // The other way to tell it never leads elsewhere.
        for path in [format!("/queue/{id}?redirect=false"), format!("/v1/jobs/{id}")] {
            let answer = ask(&stand.first(), "GET", &path, "", "");
            assert_eq!((answer.0, &json_of(&answer)["resource_location"]), (200, &json!("/stars/7")));
        }
        let bare = stand.enqueue(&stand.first(), "bare", json!({}));
        stand.granted(&stand.second, json!({})).says(&stand.second, "complete", json!({ "result": [1] }));
        assert_eq!(tell(&bare), told(200, "succeeded", "Succeeded", ""));
        let fallen = stand.enqueue(&stand.first(), "fallen", json!({ "max_attempts": 1 }));
        stand.granted(&stand.second, json!({})).says(
            &stand.second,
            "fail",
            json!({ "error": { "detail": "x" } }),
        );
        assert_eq!(tell(&fallen), told(200, "failed", "Failed", ""));
        let ended = stand.enqueue(&stand.first(), "ended", json!({}));
        assert_eq!(ask(&stand.second, "DELETE", &format!("/queue/{ended}"), "", "").0, 204);
        assert_eq!(tell(&ended), told(200, "cancelled", "Canceled", ""));
    });
}

/// T143: somebody reads page by page, from either server, while jobs are added and removed, and one server is killed.
#[test]
fn pages_are_stable_while_jobs_come_and_go_and_a_server_is_killed() {
    on_each_store("t143", |stand| {
        let there = stand.enqueue_many(&stand.first(), "star", 95);
        let (mut read, mut cursor, mut page) = (Vec::new(), String::new(), 0);
        loop {
            let address = if page == 0 { stand.first() } else { stand.second.clone() };
            let path = format!("/v1/jobs?queue={}&kind=star&limit=10{cursor}", stand.queue);
            let answer = json_of(&ask(&address, "GET", &path, "", ""));
            read.extend(answer["items"].as_array().unwrap().iter().map(id_of));
            let Some(next) = answer["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
            // New ones come before what has been read, and one that has been read goes.
            stand.enqueue_many(&stand.second, "star", 3);
            let gone = read.last().unwrap();
            assert_eq!(ask(&stand.second, "POST", &format!("/v1/jobs/{gone}/cancel"), "", "").0, 200);
            assert_eq!(ask(&stand.second, "DELETE", &format!("/v1/jobs/{gone}"), "", "").0, 204);
            if page == 0 {
                stand.kill();
            }
            page += 1;
        }
        let newest_first: Vec<String> = there.into_iter().rev().collect();
        assert_eq!(read, newest_first, "each once, in order, and none of those that came meanwhile");
        let all: BTreeSet<String> = read.into_iter().collect();
        assert_eq!(all.len(), 95);
    });
}
