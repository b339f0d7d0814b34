//! Fuzz target of event streams that servers send.

use std::io::Cursor;

use tenure_fuzz::Target;

use super::events::{Event, Events};

#[test]
fn events_are_read_as_they_are_written() {
    let words =
        &["id: ", "event: ", "data: ", "data:", "\n", "\r\n", "\n\n", ": alive", "retry: 1000", "\0", "\r"];
    Target::new(env!("CARGO_MANIFEST_DIR"), "event_stream").words(words).check(|input| {
        let events: Vec<Event> = Events::read(Cursor::new(input.to_vec())).collect();
        let lines = input.iter().filter(|byte| **byte == b'\n').count();
        assert!(events.len() <= lines / 2);
        let mut written = String::new();
        for Event { id, name, data } in &events {
            let id = id.iter().map(|id| format!("id: {id}\n"));
            let data = data.split('\n').map(|line| format!("data: {line}\n"));
            written += &id.chain([format!("event: {name}\n")]).chain(data).collect::<String>();
            written.push('\n');
        }
        // A carriage return at the end of a value belongs to the end of its line when it is written again.
        if !written.contains('\r') {
            let again: Vec<Event> = Events::read(Cursor::new(written.into_bytes())).collect();
            assert_eq!(again, events);
        }
        format!("{} {}", events.len(), events.first().is_some_and(|event| event.id.is_some()))
    });
}
