//! What is said about events.

use std::sync::Arc;

use tenure::{Kind, QueueName};

use super::*;

const AT: &str = "2026-03-29T07:43:59.123456Z";

fn event(what: Happening) -> Event {
    Event {
        at: AT.parse().unwrap(),
        id: "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10".parse().unwrap(),
        kind: Kind::new("build_star").unwrap(),
        queue: QueueName::new("stars").unwrap(),
        what,
    }
}

fn became(state: StateName, failure: Option<&str>) -> Event {
    event(Happening::Became { state, failure: failure.map(str::to_owned) })
}

#[test]
fn a_line_names_the_time_the_end_of_the_id_the_kind_and_what_happened() {
    let shown = said(&event(Happening::Enqueued), None);
    assert_eq!((shown.word, shown.more.as_str()), ("enqueued", "in stars"));
    let event = event(Happening::Started { attempt: 2 });
    assert_eq!(time_of(event.at), "07:43:59.123");
    assert_eq!(short(event.id), "8c4e5b10");
    assert_eq!(said(&event, None).more, "attempt 2");
}

#[test]
fn a_bar_is_empty_at_nothing_and_full_at_all() {
    assert_eq!(bar(0.0), "░░░░░░░░░░");
    assert_eq!(bar(0.6), "██████░░░░");
    assert_eq!(bar(1.0), "██████████");
    let shown = said(&event(Happening::Progressed { fraction: 0.6, message: "igniting".into() }), None);
    assert_eq!(shown.more, "██████░░░░  60 %  igniting");
}

#[test]
fn a_failure_is_told_in_its_first_line() {
    let shown = said(&became(StateName::Failed, Some("no such planet\nat line 7")), None);
    assert_eq!((shown.word, shown.tone), ("failed", Tone::Bad));
    assert!(shown.more.contains("no such planet") && !shown.more.contains("line 7"));
}

#[test]
fn a_job_that_has_moved_on_is_told_as_its_event_tells_it() {
    assert_eq!(said(&became(StateName::Scheduled, Some("no answer")), None).word, "retry");
    assert_eq!(said(&became(StateName::Queued, None), None).word, "waiting");
    assert_eq!(said(&became(StateName::Succeeded, None), None).word, "succeeded");
}

#[test]
fn a_reason_is_told_once() {
    let shown = said(&became(StateName::Cancelled, Some("cancelled: has left")), None);
    assert_eq!((shown.word, shown.more.as_str()), ("cancelled", "has left"));
    assert_eq!(said(&became(StateName::Cancelled, None), None).more, "");
}

#[test]
fn spans_read_in_their_unit() {
    assert_eq!(span(Duration::from_micros(940)), "0.9 ms");
    assert_eq!(span(Duration::from_millis(42)), "42 ms");
    assert_eq!(span(Duration::from_millis(1_620)), "1.6 s");
}

/// The whole of what a person sees when a star was built.
#[tokio::test]
async fn a_star_that_was_built_is_shown_with_its_place() {
    let tenure = tenure::Tenure::open("memory:").await.unwrap();
    let mut events = tenure.events();
    let id = tenure.enqueue(super::super::kinds::BuildStar { name: "Vega".into() }).await.unwrap().id();
    let waiting = tenure.clone();
    let until_built = async move { drop(waiting.wait(id).await) };
    super::super::kinds::worker(&tenure).run(until_built).await.unwrap();
    let job = tenure.jobs().get(id).await.unwrap();
    let mut last: Option<Arc<Event>> = None;
    while let Ok(event) = events.try_recv() {
        last = Some(event);
    }
    let shown = said(&last.unwrap(), Some(&job));
    assert_eq!(shown.word, "succeeded");
    assert!(shown.more.starts_with("in ") && shown.more.ends_with(" → /stars/1"), "{}", shown.more);
}
