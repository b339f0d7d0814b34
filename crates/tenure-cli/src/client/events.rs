//! Server-sent events, as they come.

use std::io::{BufRead, BufReader, Read};

/// Longest line of a stream that is read.
const LINE_BYTES: u64 = 1 << 30;

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) data: String,
}

/// A stream of events. It ends where the stream does, however that is.
pub(super) struct Events {
    lines: BufReader<Box<dyn Read>>,
}

impl Events {
    pub(super) fn read(stream: impl Read + 'static) -> Self {
        Self { lines: BufReader::new(Box::new(stream)) }
    }

    fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        self.lines.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line).ok()?;
        // A line that was cut off is not one.
        line.pop().filter(|last| *last == b'\n')?;
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        String::from_utf8(line).ok()
    }
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let (mut event, mut has_data) = (Event::default(), false);
        loop {
            let line = self.line()?;
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "" if line.is_empty() && event != Event::default() => return Some(event),
                "id" => event.id = Some(value.to_owned()),
                "event" => value.clone_into(&mut event.name),
                "data" => {
                    // The first line may be empty.
                    if std::mem::replace(&mut has_data, true) {
                        event.data.push('\n');
                    }
                    event.data.push_str(value);
                }
                // A comment that keeps the connection alive, or what later versions say.
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &'static str) -> Vec<Event> {
        Events::read(text.as_bytes()).collect()
    }

    #[test]
    fn events_are_read_with_their_numbers_and_comments_are_passed_over() {
        let events =
            all(": alive\n\nid: 7\nevent: job\nretry: 1000\ndata: {\ndata: }\n\nevent:end\r\ndata:x\r\n\r\n");
        let job = Event { id: Some("7".to_owned()), name: "job".to_owned(), data: "{\n}".to_owned() };
        assert_eq!(events, [job, Event { id: None, name: "end".to_owned(), data: "x".to_owned() }]);
    }

    #[test]
    fn an_empty_first_line_of_data_stays() {
        assert_eq!(all("data:\ndata: x\n\n")[0].data, "\nx");
    }

    #[test]
    fn an_event_that_was_cut_off_is_none() {
        assert_eq!(all("id: 1\nevent: end\ndata: {}\n"), []);
        assert_eq!(all("id: 1\nevent: end\ndata: {\"state\":\"succ"), []);
    }
}
