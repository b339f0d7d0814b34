//! What is hidden from those who only look: values under names such as `password`.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;
use tenure::{Condition, Failure, Filter, Invalid, JobRecord, Timestamp};

/// What is shown instead.
const HIDDEN: &str = "(hidden)";
/// What is hidden unless whoever runs the server says otherwise.
const USUAL: [&str; 7] =
    ["*password*", "*passwd*", "*secret*", "*token*", "*authorization*", "*api_key*", "*private_key*"];
/// Patterns at most, and their longest.
const MOST: usize = 100;
const LONGEST: usize = 128;

/// The names whose values are hidden.
#[derive(Debug, Clone)]
pub struct Hiding {
    /// Each in lower case, cut at its stars.
    patterns: Vec<Vec<String>>,
}

/// How much of a job somebody is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// All.
    Plain,
    /// Not what is hidden.
    Hidden,
    /// All, to somebody who is otherwise not shown what is hidden, and has asked for it.
    Revealed,
}

impl Default for Hiding {
    fn default() -> Self {
        Self { patterns: USUAL.iter().map(|pattern| cut(pattern)).collect() }
    }
}

impl Hiding {
    /// What has one of these names, in whatever case; a star stands for anything.
    ///
    /// # Errors
    /// Too many of them, one that is too long, or an empty one.
    pub fn of(patterns: &[String]) -> Result<Self, Invalid> {
        if patterns.len() > MOST {
            let found = format!("{} of them", patterns.len());
            return Err(Invalid::new("hide", found, format_args!("at most {MOST}")));
        }
        if let Some(odd) = patterns.iter().find(|pattern| !(1..=LONGEST).contains(&pattern.len())) {
            let found = format!("text of {} bytes", odd.len());
            return Err(Invalid::new("hide", found, format_args!("1 to {LONGEST} bytes")));
        }
        Ok(Self { patterns: patterns.iter().map(|pattern| cut(pattern)).collect() })
    }

    /// Whether what has this name is hidden.
    pub(crate) fn means(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.patterns.iter().any(|parts| fits(parts, &name))
    }

    /// JSON text without what is hidden; as it was if nothing is.
    pub(crate) fn json(&self, text: Option<Box<RawValue>>) -> Option<Box<RawValue>> {
        let text = text?;
        let Ok(mut value) = serde_json::from_str::<Value>(text.get()) else { return Some(text) };
        if !self.hide(&mut value) {
            return Some(text);
        }
        serde_json::value::to_raw_value(&value).ok()
    }

    /// Answers whether anything was hidden. What is too deep was refused when it was stored.
    fn hide(&self, value: &mut Value) -> bool {
        match value {
            Value::Object(fields) => fields.iter_mut().fold(false, |any, (name, value)| {
                if !self.means(name) {
                    return self.hide(value) || any;
                }
                *value = Value::String(HIDDEN.to_owned());
                true
            }),
            Value::Array(items) => {
                // Each of them, not only up to the first.
                let hidden = items.iter_mut().filter_map(|item| self.hide(item).then_some(()));
                hidden.count() > 0
            }
            Value::String(text) => {
                let shown = self.text(text);
                let hides = shown != *text;
                *text = shown;
                hides
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Notes without what is hidden.
    pub(crate) fn notes(&self, notes: &mut BTreeMap<String, String>) {
        for (name, value) in notes.iter_mut() {
            *value = if self.means(name) { HIDDEN.to_owned() } else { self.text(value) };
        }
    }

    /// Text without what stands behind such a name and `=` or `:`.
    pub(crate) fn text(&self, text: &str) -> String {
        let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(at) = rest.find(['=', ':']) {
            let (before, behind) = rest.split_at(at);
            let (sign, behind) = behind.split_at(1);
            shown.push_str(before);
            shown.push_str(sign);
            rest = behind;
            let name = before.trim_end().trim_end_matches(['"', '\'', '\\']);
            let from = name.rfind(|sign: char| !(sign.is_alphanumeric() || "_-.".contains(sign)));
            let name = from
                .map_or(name, |from| name[from..].trim_start_matches(|sign: char| !sign.is_alphanumeric()));
            if name.is_empty() || !self.means(name) {
                continue;
            }
            let end = value_end(rest);
            if !rest[..end].trim().is_empty() {
                shown.push_str(HIDDEN);
                rest = &rest[end..];
            }
        }
        shown.push_str(rest);
        shown
    }

    /// Whether a job that was found is meant by what somebody sees of it: an error may say more than he is shown.
    pub(crate) fn is_meant(&self, filter: &Filter, job: &JobRecord, now: Timestamp) -> bool {
        let of_failures = filter.conditions.iter().filter(|condition| asks_for_failure(condition));
        let mut of_failures = of_failures.peekable();
        let Some(failure) = job.failure.as_ref().filter(|_| of_failures.peek().is_some()) else {
            return true;
        };
        let shown = self.text(&failure.message);
        if shown == failure.message {
            return true;
        }
        let mut job = job.clone();
        job.failure = Some(Failure::new(failure.cause, &shown));
        of_failures.all(|condition| condition.holds(&job, now))
    }

    /// Refuses to search for what is hidden: whoever guesses would be told.
    pub(crate) fn check(&self, filter: &Filter) -> Result<(), Invalid> {
        // What is left out would tell what it says.
        let guesses =
            |condition: &Condition| matches!(condition, Condition::Not(other) if asks_for_failure(other));
        if filter.conditions.iter().any(guesses) {
            return Err(Invalid::new(
                "q",
                "errors that do not say something",
                "errors that say something: what is hidden in them cannot be found by what is left out",
            ));
        }
        if filter.conditions.iter().any(|condition| self.asks_for_hidden(condition)) {
            return Err(Invalid::new(
                "q",
                "a value that is hidden",
                "other values: hidden ones cannot be searched for",
            ));
        }
        Ok(())
    }

    fn asks_for_hidden(&self, condition: &Condition) -> bool {
        match condition {
            Condition::Not(other) => self.asks_for_hidden(other),
            Condition::OneOf(some) => some.iter().any(|each| self.asks_for_hidden(each)),
            Condition::Arg { path, .. } => path.iter().any(|name| self.means(name)),
            Condition::Meta { key, .. } => self.means(key),
            // What is said of anything else holds no such names; of what errors say see [`Self::is_meant`].
            Condition::State(_)
            | Condition::Queue(_)
            | Condition::QueueBegins(_)
            | Condition::Kind(_)
            | Condition::KindBegins(_)
            | Condition::KindHolds(_)
            | Condition::Own
            | Condition::Tag(_)
            | Condition::IdBegins(_)
            | Condition::HolderBegins(_)
            | Condition::FailureHolds(_)
            | Condition::Timer(_)
            | Condition::Attempt(_)
            | Condition::Priority(_)
            | Condition::Created(_)
            | Condition::Ended(_)
            | Condition::Took(_)
            | _ => false,
        }
    }
}

/// Whether it depends on what an error says.
fn asks_for_failure(condition: &Condition) -> bool {
    if let Condition::Not(other) = condition {
        return asks_for_failure(other);
    }
    if let Condition::OneOf(some) = condition {
        return some.iter().any(asks_for_failure);
    }
    matches!(condition, Condition::FailureHolds(_))
}

/// Where a value ends that stands at the beginning of this text: behind its closing quotation mark, or before what separates
/// it from the next one. A scheme such as `Bearer` is a part of it.
fn value_end(text: &str) -> usize {
    let start = text.len() - text.trim_start_matches([' ', '\\']).len();
    let value = &text[start..];
    if let Some(mark) = value.chars().next().filter(|mark| matches!(mark, '"' | '\'')) {
        return value[1..].find(mark).map_or(text.len(), |end| start + 1 + end + 1);
    }
    let separates = |sign: char| sign.is_whitespace() || ",;&)}]".contains(sign);
    let end = value.find(separates).unwrap_or(value.len());
    let is_scheme = ["bearer", "basic", "digest"].contains(&value[..end].to_lowercase().as_str());
    if is_scheme && end < value.len() {
        let more = &value[end + 1..];
        return start + end + 1 + more.find(separates).unwrap_or(more.len());
    }
    start + end
}

fn cut(pattern: &str) -> Vec<String> {
    pattern.to_lowercase().split('*').map(str::to_owned).collect()
}

/// Whether a name is made of these parts, with anything between them.
fn fits(parts: &[String], name: &str) -> bool {
    let [first, between @ .., last] = parts else {
        return parts.first().is_some_and(|only| only == name);
    };
    let Some(mut rest) = name.strip_prefix(first.as_str()) else { return false };
    for part in between {
        let Some(at) = rest.find(part.as_str()) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything_and_case_is_nothing() {
        let hiding = Hiding::of(&["*password*".to_owned(), "pin".to_owned(), "x*z".to_owned()]).unwrap();
        for name in ["password", "PASSWORD", "db_Password_old", "pin", "Pin", "xz", "x-y-z"] {
            assert!(hiding.means(name), "{name}");
        }
        for name in ["pass", "pins", "spin", "xzy", "", "z"] {
            assert!(!hiding.means(name), "{name}");
        }
        assert_eq!(Hiding::of(&[String::new()]).unwrap_err().field, "hide");
    }

    #[test]
    fn what_is_under_such_a_name_is_hidden_however_deep_and_the_rest_is_as_it_was() {
        let raw = |text: &str| Some(RawValue::from_string(text.to_owned()).unwrap());
        let hiding = Hiding::default();
        let shown = |text: &str| hiding.json(raw(text)).unwrap().get().to_owned();
        assert_eq!(shown(r#"{"a": 1.10, "b":[1]}"#), r#"{"a": 1.10, "b":[1]}"#, "not a byte is other");
        let deep = shown(r#"[{"user":{"apiToken":{"x":["s1"]},"name":"ada"}},"url?secret=s2&x=1"]"#);
        assert!(!deep.contains("s1") && !deep.contains("s2") && deep.contains("ada"), "{deep}");
        assert!(deep.contains("x=1"), "{deep}");
    }

    #[test]
    fn text_is_shown_without_what_stands_behind_such_a_name() {
        let hiding = Hiding::default();
        for text in [
            "password=s3cret rest",
            "db password: s3cret, rest",
            "{\"password\": \"s3cret\", \"b\": \"rest\"}",
            "{\\\"password\\\":\\\"s3cret\\\",\\\"b\\\":\\\"rest\\\"}",
            "Authorization: Bearer s3cret rest",
            "password='s3 s3cret' rest",
            "https://h/?access_token=s3cret&b=rest",
            "é: password=s3cret rest",
        ] {
            let shown = hiding.text(text);
            assert!(!shown.contains("s3cret") && shown.contains("rest"), "{text}: {shown}");
        }
        for text in ["at 10:30 it failed", "a=1:2", "password", "token=", ": =", ""] {
            assert_eq!(hiding.text(text), text);
        }
    }
}
