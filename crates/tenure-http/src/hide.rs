//! What is hidden from those who only look: values under names such as `password`.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;
use tenure::{Candidate, Condition, Failure, Filter, Invalid, JobRecord, Timestamp, json_value};

/// What is shown instead.
pub(crate) const HIDDEN: &str = "(hidden)";
/// Replaces the error of a job from an encrypted store where it would leave the store unencrypted: in events and traces.
pub(crate) const ENCRYPTED: &str = "(encrypted)";
/// Hidden by default, wherever they stand in a name.
const USUAL: [&str; 17] = [
    "*password*",
    "*passwd*",
    "*pwd*",
    "*passphrase*",
    "*secret*",
    "*token*",
    "*authorization*",
    "*cookie*",
    "*credential*",
    "*api_key*",
    "*api-key*",
    "*apikey*",
    "*private_key*",
    "*private-key*",
    "*privatekey*",
    "*access_key*",
    "*accesskey*",
];
/// Hidden by default as whole words of a name. Within longer words they mean nothing: `shipping` holds `pin`.
const USUAL_WORDS: [&str; 3] = ["auth", "pass", "pin"];
/// Patterns at most, and their longest.
const MOST: usize = 100;
const LONGEST: usize = 128;

/// Names whose values are hidden from clients with an access token.
#[derive(Debug, Clone)]
pub struct Hiding {
    /// Each in lower case, cut at its stars.
    patterns: Vec<Vec<String>>,
    /// Words in lower case, each of which hides a name that has it.
    words: &'static [&'static str],
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
        Self { patterns: USUAL.iter().map(|pattern| cut(pattern)).collect(), words: &USUAL_WORDS }
    }
}

impl Hiding {
    /// Hides values of these names, ignoring case; `*` matches any text.
    ///
    /// # Errors
    /// Too many names, an empty one, or one that is too long.
    pub fn of(patterns: &[String]) -> Result<Self, Invalid> {
        if patterns.len() > MOST {
            let found = format!("{} entries", patterns.len());
            return Err(Invalid::new("hide", found, format_args!("at most {MOST}")));
        }
        if let Some(odd) = patterns.iter().find(|pattern| !(1..=LONGEST).contains(&pattern.len())) {
            let found = format!("{} bytes", odd.len());
            return Err(Invalid::new("hide", found, format_args!("1 to {LONGEST} bytes")));
        }
        Ok(Self { patterns: patterns.iter().map(|pattern| cut(pattern)).collect(), words: &[] })
    }

    /// Whether what has this name is hidden.
    pub(crate) fn means(&self, name: &str) -> bool {
        let lower = name.to_lowercase();
        self.patterns.iter().any(|parts| fits(parts, &lower))
            || words(name).any(|word| self.words.iter().any(|hidden| word.eq_ignore_ascii_case(hidden)))
    }

    /// JSON text without what is hidden; as it was if nothing is. Text that cannot be parsed, such as one with half a
    /// surrogate pair, is hidden as a whole.
    pub(crate) fn json(&self, text: Option<Box<RawValue>>) -> Option<Box<RawValue>> {
        let text = text?;
        let Ok(mut value) = json_value(text.get()) else {
            return serde_json::value::to_raw_value(HIDDEN).ok();
        };
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

    /// Text without what stands behind such a name and `=` or `:`, and without the passwords of URLs.
    pub(crate) fn text(&self, text: &str) -> String {
        let text = without_passwords(text);
        let (mut shown, mut rest) = (String::with_capacity(text.len()), text.as_str());
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

    /// Whether a job is meant by all of these conditions, by what somebody sees of it: an error may say more than he is
    /// shown.
    pub(crate) fn is_meant(&self, conditions: &[Condition], job: &JobRecord, now: Timestamp) -> bool {
        if conditions.is_empty() {
            return true;
        }
        let shown = |failure: &Failure| Failure::new(failure.cause, &self.text(&failure.message)).message;
        let shown = job.failure.as_ref().map(shown);
        let candidate = Candidate::showing(job, shown.as_deref());
        conditions.iter().all(|condition| condition.holds_for(&candidate, now))
    }

    /// Refuses to search for what is hidden: whoever guesses would be told.
    pub(crate) fn check(&self, filter: &Filter) -> Result<(), Invalid> {
        if filter.conditions.iter().any(|condition| self.asks_for_hidden(condition)) {
            return Err(Invalid::new(
                "q",
                "a search for a hidden value",
                "other values; hidden values cannot be searched",
            ));
        }
        Ok(())
    }

    /// Returns true if a part of JSON would be hidden where it is shown. The text is decoded first, as shown args are: a
    /// newline in a string ends a hidden value, and its escape in the text does not.
    fn hides_in(&self, json: &str) -> bool {
        json_value(json).map_or(true, |mut value| self.hide(&mut value))
    }

    fn asks_for_hidden(&self, condition: &Condition) -> bool {
        match condition {
            Condition::Not(other) => self.asks_for_hidden(other),
            Condition::OneOf(some) => some.iter().any(|each| self.asks_for_hidden(each)),
            Condition::Arg { path, value } => {
                path.iter().any(|name| self.means(name)) || self.hides_in(value.as_str())
            }
            Condition::Meta { key, value } => self.means(key) || self.text(value) != *value,
            // What is said of anything else holds no such names; what errors say is compared by [`Self::is_meant`].
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
            | Condition::Owner(_)
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

/// Takes out of a search what depends on what errors say.
pub(crate) fn of_failures(filter: &mut Filter) -> Vec<Condition> {
    let (taken, left) = std::mem::take(&mut filter.conditions).into_iter().partition(asks_for_failure);
    filter.conditions = left;
    taken
}

/// Returns true if a search depends on what errors say.
pub(crate) fn asks_for_failures(filter: &Filter) -> bool {
    filter.conditions.iter().any(asks_for_failure)
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

/// Text without what stands between the colon and the `@` of a URL.
fn without_passwords(text: &str) -> String {
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find("://") {
        let (before, behind) = rest.split_at(at + 3);
        shown.push_str(before);
        rest = behind;
        let ends = |sign: char| sign.is_whitespace() || "/?#\"'<>".contains(sign);
        let authority = &behind[..behind.find(ends).unwrap_or(behind.len())];
        let colon = authority.rfind('@').and_then(|at| Some((authority[..at].find(':')?, at)));
        if let Some((colon, at)) = colon.filter(|(colon, at)| colon + 1 < *at) {
            shown.push_str(&authority[..=colon]);
            shown.push_str(HIDDEN);
            rest = &behind[at..];
        }
    }
    shown.push_str(rest);
    shown
}

/// Where a value ends that stands at the beginning of this text: behind its closing quotation mark or bracket, or before what
/// separates it from the next one. A scheme such as `Bearer` is a part of it, and so is what stands in brackets behind a name.
fn value_end(text: &str) -> usize {
    let is_gap = |sign: char| sign == '\\' || sign.is_whitespace() && !['\n', '\r'].contains(&sign);
    let start = text.len() - text.trim_start_matches(is_gap).len();
    let value = &text[start..];
    match value.chars().next() {
        // Within text that is quoted itself, its marks are escaped.
        Some(mark @ ('"' | '\'')) if text[..start].ends_with('\\') => {
            return value[1..].find(mark).map_or(text.len(), |end| start + 1 + end + 1);
        }
        Some('"' | '\'') => return start + quoted_end(value),
        Some('{' | '[' | '(') => return start + bracketed_end(value),
        Some(_) | None => {}
    }
    let separates = |sign: char| sign.is_whitespace() || ",;&)}]([{".contains(sign);
    let end = value.find(separates).unwrap_or(value.len());
    let behind = value[end..].trim_start_matches(' ');
    let is_name = end > 0 && value[..end].chars().all(|sign| sign.is_alphanumeric() || "_:".contains(sign));
    if is_name && behind.starts_with(['{', '[', '(']) {
        return text.len() - behind.len() + bracketed_end(behind);
    }
    let is_scheme = ["bearer", "basic", "digest"].contains(&value[..end].to_lowercase().as_str());
    let mut behind = value[end..].chars();
    if is_scheme && let Some(separator) = behind.next() {
        // A separator may take several bytes, and several blanks may separate.
        let more = behind.as_str();
        let more = if separator.is_whitespace() { more.trim_start() } else { more };
        return text.len() - more.len() + more.find(separates).unwrap_or(more.len());
    }
    start + end
}

/// Where text ends that begins with a quotation mark: behind the next one that is not escaped, or nowhere.
fn quoted_end(text: &str) -> usize {
    let mut signs = text.char_indices();
    let Some((_, mark)) = signs.next() else { return 0 };
    let mut is_escaped = false;
    for (at, sign) in signs {
        if is_escaped {
            is_escaped = false;
        } else if sign == '\\' {
            is_escaped = true;
        } else if sign == mark {
            return at + sign.len_utf8();
        }
    }
    text.len()
}

/// Where text ends that begins with a bracket: behind the one that closes it, or with the line.
fn bracketed_end(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(sign) = text[at..].chars().next() {
        match sign {
            '"' => {
                at += quoted_end(&text[at..]);
                continue;
            }
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth -= 1,
            '\n' => return at,
            _ => {}
        }
        at += sign.len_utf8();
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// Returns the words of a name: `dbPass`, `db_pass` and `DB-PASS2` have two.
fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|sign: char| !sign.is_alphabetic()).flat_map(|part| {
        let mut before_is_lower = false;
        let mut starts = vec![0];
        for (at, sign) in part.char_indices() {
            // `dbPass` and `DBPass` have the same words.
            let next = part[at + sign.len_utf8()..].chars().next();
            let begins = before_is_lower || (at > 0 && next.is_some_and(char::is_lowercase));
            if sign.is_uppercase() && begins {
                starts.push(at);
            }
            before_is_lower = !sign.is_uppercase();
        }
        let ends = starts.clone().into_iter().skip(1).chain([part.len()]);
        starts.into_iter().zip(ends).map(|(start, end)| &part[start..end])
    })
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
    fn short_words_are_hidden_only_as_whole_words_of_a_name() {
        let hiding = Hiding::default();
        for name in [
            "auth",
            "basic-auth",
            "basicAuth",
            "X_AUTH",
            "db_pass",
            "dbPass",
            "DBPass",
            "PINCode",
            "pass",
            "pin",
            "userPin",
            "card.pin",
            "pin2",
        ] {
            assert!(hiding.means(name), "{name}");
        }
        for name in ["author", "shipping", "opinion", "bypass", "passed", "compass", "Pinned", "pins"] {
            assert!(!hiding.means(name), "{name}");
        }
        assert!(hiding.means("passphrase") && hiding.means("sshPassphrase2"));
        assert_eq!(
            hiding.text("author=ada pin=4711 shipping: fast"),
            "author=ada pin=(hidden) shipping: fast"
        );
        let own = Hiding::of(&["iban".to_owned()]).unwrap();
        assert!(own.means("iban") && !own.means("pin"), "own names replace the default ones");
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
        let nested = shown(r#"[{"pin":1},{"$serde_json::private::RawValue":"[{},{}]"}]"#);
        assert_eq!(nested, r#"[{"pin":"(hidden)"},{"$serde_json::private::RawValue":"[{},{}]"}]"#);
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
            "authorization: Bearer\u{a0}s3cret rest",
            "authorization: Basic \u{3000} s3cret rest",
            "password:\u{2003}s3cret rest",
            "password:\ts3cret rest",
            "password='s3 s3cret' rest",
            "https://h/?access_token=s3cret&b=rest",
            "é: password=s3cret rest",
            "password: {\"a\": \"s3cret\"} rest",
            "tokens: [\"s1\", \"s3cret\"] rest",
            "{\"password\": \"ab\\\"s3cret\"} rest",
            "token: Token { value: \"s3cret\" } rest",
            "token: Some(\"a s3cret\") rest",
            "token=[a, {b: s3cret}], rest",
            "x-api-key: s3cret rest",
            "apiKey=s3cret rest",
            "Cookie: s3cret rest",
            "connecting to postgres://bob:s3cret@db.example/jobs rest",
            "https://ada:p:s3cret@h?x rest",
        ] {
            let shown = hiding.text(text);
            assert!(!shown.contains("s3cret") && shown.contains("rest"), "{text}: {shown}");
        }
        assert_eq!(hiding.text("token: {open s3cret\nrest"), "token:(hidden)\nrest");
        for text in [
            "http://h:80/a?b",
            "http://@h/",
            "a://:@h",
            "mailto:ada@h",
            "at 10:30 it failed",
            "a=1:2",
            "password",
            "token=",
            ": =",
            "",
        ] {
            assert_eq!(hiding.text(text), text);
        }
    }
}
