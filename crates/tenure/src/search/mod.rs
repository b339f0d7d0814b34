//! Saying in one line which jobs are meant: `state:failed kind:mail created:>-2h -tag:test`.
//!
//! Words stand side by side and all of them hold; what stands behind a colon with commas between is one of these; a `-`
//! before a word says that it does not hold.

#[cfg(test)]
mod fuzz;
mod lex;
mod range;
#[cfg(test)]
mod tests;
mod values;

use tenure_core::{Condition, JobId, Timestamp, limits};
use tenure_store::Filter;

use lex::{Word, words};
use values::condition;

/// Before which colon something may stand, and what it means. `args` and `meta` go on with a dot and a name.
pub const FIELDS: [(&str, &str); 15] = [
    ("state", "state: scheduled, queued, blocked, running, succeeded, failed or cancelled"),
    ("queue", "queue"),
    ("kind", "kind"),
    ("tag", "a tag"),
    ("id", "job ID, its beginning, its last 8 digits, or its short form 01a20712-29aa…451a"),
    ("schedule", "schedule that created the job"),
    ("worker", "ID of the worker or host, its beginning, or its short form"),
    ("args", "value at a path in args, such as args.user.id:42"),
    ("meta", "metadata entry, such as meta.tenant:\"Acme Inc\""),
    ("error", "text in the last error"),
    ("attempt", "number of attempts, such as >2"),
    ("priority", "priority, such as <=0 or 1..5"),
    ("created", "creation time, such as >-2h, 2026-11-20 or 2026-11-20..2026-11-21"),
    ("ended", "end time, in the same forms as created"),
    ("took", "duration of the last attempt, such as >30s"),
];

/// The error of an invalid search, with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid search at character {at}: {found}; {}{allowed}", if .allowed.starts_with("did you mean") { "" } else { "expected " })]
pub struct BadSearch {
    /// Position of the first invalid character, counted from 1.
    pub at: usize,
    /// What was found there.
    pub found: String,
    /// What is allowed there.
    pub allowed: String,
}

impl BadSearch {
    fn new(at: usize, found: impl std::fmt::Display, allowed: impl std::fmt::Display) -> Self {
        Self { at, found: found.to_string(), allowed: allowed.to_string() }
    }
}

/// Reads a search. Times such as `-2h` are counted from `now`.
///
/// ```
/// # use tenure::{search, Timestamp};
/// let filter = search("state:failed kind:mail args.user.id:42 -tag:test", Timestamp::EPOCH)?;
/// assert_eq!(filter.kinds.len(), 1);
/// assert_eq!(search("stat:failed", Timestamp::EPOCH).unwrap_err().at, 1);
/// # Ok::<(), tenure::BadSearch>(())
/// ```
///
/// # Errors
/// Says at which character it is not understood, and what may stand there.
pub fn search(text: &str, now: Timestamp) -> Result<Filter, BadSearch> {
    let length = text.chars().count();
    if length > limits::SEARCH_CHARS {
        let allowed = format!("at most {} characters", limits::SEARCH_CHARS);
        return Err(BadSearch::new(limits::SEARCH_CHARS + 1, format_args!("{length} characters"), allowed));
    }
    let words = words(text)?;
    check_values(&words)?;
    let mut filter = Filter::default();
    for word in words {
        let condition = condition(&word, now)?;
        add(&mut filter, &word, condition);
    }
    Ok(filter)
}

/// Refuses too many values: a store may compare each of them with thousands of jobs.
fn check_values(words: &[Word]) -> Result<(), BadSearch> {
    let values = || words.iter().flat_map(|word| &word.values);
    let Some(first_too_many) = values().nth(limits::SEARCH_VALUES) else { return Ok(()) };
    let allowed = format!("at most {} values in all terms together", limits::SEARCH_VALUES);
    Err(BadSearch::new(first_too_many.at, format_args!("{} values", values().count()), allowed))
}

/// Narrows a filter down: by its lists, which indexes serve, if they are not used yet, else by a condition.
fn add(filter: &mut Filter, word: &Word, condition: Condition) {
    if word.is_not {
        filter.conditions.push(Condition::Not(Box::new(condition)));
        return;
    }
    let any = if let Condition::OneOf(any) = condition { any } else { vec![condition] };
    match any.first() {
        Some(Condition::State(_)) if filter.states.is_empty() => {
            filter.states.extend(any.iter().filter_map(state))
        }
        Some(Condition::Queue(_)) if filter.queues.is_empty() => {
            filter.queues.extend(any.iter().filter_map(queue))
        }
        Some(Condition::Kind(_)) if filter.kinds.is_empty() => {
            filter.kinds.extend(any.iter().filter_map(kind))
        }
        Some(Condition::Tag(tag)) if any.len() == 1 => filter.tags.push(tag.clone()),
        Some(Condition::IdBegins(_))
            if filter.ids.is_empty() && any.iter().all(|id| whole_id(id).is_some()) =>
        {
            filter.ids.extend(any.iter().filter_map(whole_id));
        }
        Some(Condition::Created(range)) if any.len() == 1 => {
            let from = filter.created_from.map_or(*range.start(), |from| from.max(*range.start()));
            filter.created_from = Some(from);
            let before = range.end().after(std::time::Duration::from_micros(1));
            filter.created_before = Some(filter.created_before.map_or(before, |known| known.min(before)));
        }
        Some(Condition::Ended(range)) if any.len() == 1 => {
            let from = filter.ended_from.map_or(*range.start(), |from| from.max(*range.start()));
            filter.ended_from = Some(from);
            let before = range.end().after(std::time::Duration::from_micros(1));
            filter.ended_before = Some(filter.ended_before.map_or(before, |known| known.min(before)));
        }
        Some(_) if any.len() == 1 => filter.conditions.extend(any),
        Some(_) => filter.conditions.push(Condition::OneOf(any)),
        None => {}
    }
}

fn whole_id(condition: &Condition) -> Option<JobId> {
    if let Condition::IdBegins(text) = condition { text.parse().ok() } else { None }
}

fn state(condition: &Condition) -> Option<tenure_core::StateName> {
    if let Condition::State(state) = condition { Some(*state) } else { None }
}

fn queue(condition: &Condition) -> Option<tenure_core::QueueName> {
    if let Condition::Queue(queue) = condition { Some(queue.clone()) } else { None }
}

fn kind(condition: &Condition) -> Option<tenure_core::Kind> {
    if let Condition::Kind(kind) = condition { Some(kind.clone()) } else { None }
}
