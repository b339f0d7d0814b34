//! One event, as a line for a person. Pure: what to say follows from the event and the job.

use std::time::Duration;

use tenure::{Event, Happening, JobId, JobRecord, State, StateName, Timestamp, Why};

use crate::screen::{Screen, Tone};

/// What is said about an event: a word, and more about it.
#[derive(Debug, PartialEq)]
pub(crate) struct Said {
    pub(crate) word: &'static str,
    pub(crate) tone: Tone,
    pub(crate) more: String,
}

/// The line of an event. `job` is the job as it is now, if it was worth looking at.
pub(crate) fn line(event: &Event, job: Option<&JobRecord>, screen: &Screen) -> String {
    let Said { word, tone, more } = said(event, job);
    let line = format!(
        "{}  {}  {:<10}  {}  {more}",
        screen.paint(Tone::Faint, &time_of(event.at)),
        short(event.id),
        event.kind.as_str(),
        screen.paint(tone, &format!("{word:<9}")),
    );
    line.trim_end().to_owned()
}

/// What is said about an event.
pub(crate) fn said(event: &Event, job: Option<&JobRecord>) -> Said {
    let say = |word, tone, more: String| Said { word, tone, more };
    match &event.what {
        Happening::Enqueued => {
            let due = job.and_then(|job| job.state.due()).filter(|due| *due > event.at);
            let later = due.map_or_else(String::new, |due| format!(", due {}", until(event.at, due)));
            say("enqueued", Tone::Faint, format!("in {}{later}{}", event.queue, of_timer(job)))
        }
        Happening::Started { attempt: 1 } => say("started", Tone::Busy, String::new()),
        Happening::Started { attempt } => say("started", Tone::Busy, format!("attempt {attempt}")),
        Happening::Progressed { fraction, message } => {
            say("progress", Tone::Busy, format!("{} {:>3.0} %  {message}", bar(*fraction), fraction * 100.0))
        }
        Happening::Became { state, failure } => became(event, *state, failure.as_deref(), job),
        Happening::AskedToStop => say("stopping", Tone::Careful, "cancel requested".to_owned()),
        Happening::Deleted => say("deleted", Tone::Faint, String::new()),
    }
}

fn became(event: &Event, state: StateName, failure: Option<&str>, job: Option<&JobRecord>) -> Said {
    let because = |more: String| match failure.map(first_line) {
        // The word before it has said so.
        Some(failure) => {
            let why = failure.strip_prefix("cancelled: ").unwrap_or(failure);
            if more.is_empty() { why.to_owned() } else { format!("{more}: {why}") }
        }
        None => more,
    };
    let (word, tone, more) = match state {
        StateName::Succeeded => {
            ("succeeded", Tone::Good, format!("{}{}{}", took(job), of_timer(job), left_behind(job)))
        }
        StateName::Failed => ("failed", Tone::Bad, because(took(job))),
        StateName::Cancelled => ("cancelled", Tone::Careful, because(took(job))),
        StateName::Blocked => ("blocked", Tone::Faint, String::new()),
        StateName::Running => ("running", Tone::Busy, String::new()),
        StateName::Scheduled | StateName::Queued => {
            let (word, tone) = waiting(job, failure);
            let due = job.and_then(|job| job.state.due()).filter(|due| *due > event.at);
            (word, tone, because(due.map_or_else(|| "now".to_owned(), |due| until(event.at, due))))
        }
    };
    Said { word, tone, more }
}

fn waiting(job: Option<&JobRecord>, failure: Option<&str>) -> (&'static str, Tone) {
    let why = job.and_then(|job| match job.state {
        State::Waiting { why, .. } | State::Blocked { why, .. } => Some(why),
        State::Running { .. } | State::Finished { .. } => None,
    });
    match why {
        Some(Why::Retry) => ("retry", Tone::Careful),
        Some(Why::Snoozed) => ("snoozed", Tone::Faint),
        Some(Why::Released) => ("released", Tone::Careful),
        Some(Why::Lost) => ("lost", Tone::Bad),
        Some(Why::Asked) => ("again", Tone::Plain),
        Some(Why::Enqueued) => ("waiting", Tone::Plain),
        // It has moved on since; what the event itself tells is enough.
        None if failure.is_some() => ("retry", Tone::Careful),
        None => ("waiting", Tone::Plain),
    }
}

fn until(from: Timestamp, due: Timestamp) -> String {
    format!("at {}, in {}", &time_of(due)[..8], span(due.since(from)))
}

/// The timer that brought it, and for which slot.
fn of_timer(job: Option<&JobRecord>) -> String {
    let slot = job.and_then(|job| job.terms.slot.as_ref());
    slot.map_or_else(String::new, |slot| {
        format!(" by schedule {} for {}", slot.timer, &time_of(slot.at)[..8])
    })
}

/// How long the last attempt took.
fn took(job: Option<&JobRecord>) -> String {
    let times = job.and_then(|job| match job.state {
        State::Finished { at, .. } => Some(at.since(job.started?)),
        State::Waiting { .. } | State::Blocked { .. } | State::Running { .. } => None,
    });
    times.map_or_else(String::new, |span_| format!("in {}", span(span_)))
}

fn left_behind(job: Option<&JobRecord>) -> String {
    let place = job.and_then(|job| job.output.as_ref()).and_then(|output| output.place.as_deref());
    place.map_or_else(String::new, |place| format!(" → {place}"))
}

pub(crate) fn bar(fraction: f64) -> String {
    let full = (0..10).filter(|step| f64::from(*step) + 0.5 < fraction * 10.0).count();
    "█".repeat(full) + &"░".repeat(10 - full)
}

/// A span in the unit that reads best.
pub(crate) fn span(span: Duration) -> String {
    let millis = span.as_secs_f64() * 1e3;
    match millis {
        ..10.0 => format!("{millis:.1} ms"),
        ..1000.0 => format!("{millis:.0} ms"),
        _ => format!("{:.1} s", span.as_secs_f64()),
    }
}

/// The time of day in UTC, to the millisecond.
pub(crate) fn time_of(at: Timestamp) -> String {
    at.to_string().get(11..23).unwrap_or("--:--:--.---").to_owned()
}

/// The end of an id: ids that are made one after the other begin alike.
pub(crate) fn short(id: JobId) -> String {
    let id = id.to_string();
    id.get(28..).unwrap_or(&id).to_owned()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests;
