//! What each field means.

use serde_json::Value;
use tenure_core::{Condition, Invalid, JobId, Kind, Name, QueueName, Timestamp};

use super::lex::{Text, Word};
use super::range::{numbers, spans, times};
use super::{BadSearch, FIELDS};

/// Hexadecimal digits that a text must have to match the end of an ID.
const SHORTEST_END: usize = 8;

/// What a word says.
pub(super) fn condition(word: &Word, now: Timestamp) -> Result<Condition, BadSearch> {
    let mut any = Vec::new();
    for value in &word.values {
        any.push(match &word.field {
            Some(field) => of_field(word, field, value, now)?,
            None if value.text.parse::<JobId>().is_ok() => Condition::IdBegins(value.text.clone()),
            None => Condition::OneOf(
                ids(&value.text).chain([Condition::KindHolds(value.text.clone().into())]).collect(),
            ),
        });
    }
    match any.pop() {
        Some(only) if any.is_empty() => Ok(only),
        last => Ok(Condition::OneOf(any.into_iter().chain(last).collect())),
    }
}

/// Returns the conditions of which one holds for a job with such an ID: the text begins the ID, or ends it if it is long
/// enough to be the end that lists show.
fn ids(text: &str) -> impl Iterator<Item = Condition> {
    let is_of_id = |letter: char| letter.is_ascii_hexdigit() || letter == '-';
    let digits = text.chars().filter(char::is_ascii_hexdigit).count();
    let may_end = digits >= SHORTEST_END && text.chars().all(is_of_id) && text.parse::<JobId>().is_err();
    let begins = Condition::IdBegins(text.to_owned());
    std::iter::once(begins).chain(may_end.then(|| Condition::IdBegins(format!("…{text}"))))
}

fn of_field(word: &Word, field: &str, value: &Text, now: Timestamp) -> Result<Condition, BadSearch> {
    let text = value.text.as_str();
    let refused = |wrong: Invalid| BadSearch::new(value.at, wrong.found, wrong.allowed);
    if let Some(path) = field.strip_prefix("args.") {
        check_is_no_comparison(value)?;
        return Ok(Condition::Arg {
            path: path.split('.').map(str::to_owned).collect(),
            value: json(value).to_string().into(),
        });
    }
    if let Some(key) = field.strip_prefix("meta.") {
        return Ok(Condition::Meta { key: key.to_owned(), value: text.to_owned() });
    }
    Ok(match field {
        "state" => Condition::State(text.parse().map_err(refused)?),
        "queue" => Condition::Queue(QueueName::new(text).map_err(refused)?),
        "kind" => Condition::Kind(Kind::new(text).map_err(refused)?),
        "tag" => Condition::Tag(Name::new("tag", text).map_err(refused)?),
        "id" => match ids(text).collect::<Vec<_>>() {
            both if both.len() > 1 => Condition::OneOf(both),
            _ => Condition::IdBegins(text.to_owned()),
        },
        "schedule" => Condition::Timer(text.to_owned()),
        "worker" => Condition::HolderBegins(text.to_owned()),
        "error" => Condition::FailureHolds(text.into()),
        "attempt" => Condition::Attempt(numbers(value)?),
        "priority" => Condition::Priority(numbers(value)?),
        "created" => Condition::Created(times(value, now)?),
        "ended" => Condition::Ended(times(value, now)?),
        "took" => Condition::Took(spans(value)?),
        "args" | "meta" => {
            let allowed = format!("{field}. followed by a path, such as {field}.user:7");
            return Err(BadSearch::new(word.at, format_args!("{field}:"), allowed));
        }
        unknown => return Err(unknown_field(word, unknown)),
    })
}

/// What would never be found is not looked for: args are equal to something, or are not.
fn check_is_no_comparison(value: &Text) -> Result<(), BadSearch> {
    if value.is_quoted || !value.text.starts_with(['<', '>']) {
        return Ok(());
    }
    let allowed = "a value; quote text that begins with < or >";
    Err(BadSearch::new(value.at, format_args!("{:?}, a comparison", value.text), allowed))
}

/// What is not in quotes and reads as a number, a truth or nothing is that; all else is text.
fn json(value: &Text) -> Value {
    if value.is_quoted {
        return Value::String(value.text.clone());
    }
    match serde_json::from_str(&value.text) {
        Ok(plain @ (Value::Null | Value::Bool(_) | Value::Number(_))) => plain,
        Ok(Value::String(_) | Value::Array(_) | Value::Object(_)) | Err(_) => {
            Value::String(value.text.clone())
        }
    }
}

fn unknown_field(word: &Word, unknown: &str) -> BadSearch {
    let shown: String = unknown.chars().take(32).collect();
    let names = FIELDS.map(|(name, _)| name);
    let near =
        names.into_iter().min_by_key(|name| apart(name, unknown)).filter(|name| apart(name, unknown) <= 2);
    let names = names.join(", ");
    let allowed = match near {
        Some(near) => {
            format!("did you mean {near}:? The fields are {names}; quote text that contains a colon")
        }
        None => format!("one of {names}; quote text that contains a colon"),
    };
    BadSearch::new(word.at + usize::from(word.is_not), format_args!("unknown field {shown:?}"), allowed)
}

/// How many signs have to be changed, put in or left out to make one of the other.
fn apart(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().take(32).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, sign) in one.chars().enumerate() {
        let mut before = row[0];
        row[0] = above + 1;
        for (left, wanted) in other.iter().enumerate() {
            let changed = before + usize::from(sign != *wanted);
            before = row[left + 1];
            row[left + 1] = changed.min(before + 1).min(row[left] + 1);
        }
    }
    row[other.len()]
}
