//! How far an access token reaches: to which jobs.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure::{Condition, Filter, Invalid, JobRecord, Kind, QueueName};

/// Names of one sort that a reach says at most.
const MOST: usize = 64;

/// Limits an access token to jobs of some queues, some kinds, or both. Without limits it covers the whole store.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Reach {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    queues: Vec<Names>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    kinds: Vec<Names>,
}

/// A name, or a prefix followed by `*`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
enum Names {
    Of(String),
    Begin(String),
}

/// How a route keeps to the reach of whoever asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Within {
    /// It tells of the jobs that are reached, and does something with them only.
    Jobs,
    /// It has nothing to do with anybody's jobs.
    Any,
    /// It concerns the whole store: whoever reaches less is refused.
    Whole,
}

impl Reach {
    /// Creates limits from queues and kinds; an empty list means all. A trailing `*` matches any suffix.
    ///
    /// # Errors
    /// An invalid name, or too many names.
    pub fn new(queues: &[String], kinds: &[String]) -> Result<Self, Invalid> {
        Ok(Self { queues: names("queues", queues)?, kinds: names("kinds", kinds)? })
    }

    pub(crate) const fn whole() -> Self {
        Self { queues: Vec::new(), kinds: Vec::new() }
    }

    /// Returns `true` if it covers the whole store.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.queues.is_empty() && self.kinds.is_empty()
    }

    /// Returns `true` if it covers jobs of this kind in this queue.
    #[must_use]
    pub fn covers(&self, queue: &str, kind: &str) -> bool {
        self.covers_queue(queue) && self.covers_kind(kind)
    }

    /// Returns the queues as given.
    pub fn queues(&self) -> impl Iterator<Item = String> {
        self.queues.iter().map(Names::to_string)
    }

    /// Returns the kinds as given.
    pub fn kinds(&self) -> impl Iterator<Item = String> {
        self.kinds.iter().map(Names::to_string)
    }

    /// Whether some jobs of this queue may be reached.
    pub(crate) fn covers_queue(&self, queue: &str) -> bool {
        self.queues.is_empty() || self.queues.iter().any(|names| names.mean(queue))
    }

    /// Whether some jobs of this kind may be reached.
    pub(crate) fn covers_kind(&self, kind: &str) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|names| names.mean(kind))
    }

    /// Whether this job is reached.
    pub(crate) fn covers_job(&self, job: &JobRecord) -> bool {
        self.covers(job.queue.as_str(), job.kind.as_str())
    }

    /// Whether all jobs of the queues that it reaches are reached, of whatever kind.
    pub(crate) fn has_all_kinds(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Whether jobs of the kinds that it reaches are reached in whichever queue they are.
    pub(crate) fn has_all_queues(&self) -> bool {
        self.queues.is_empty()
    }

    /// The kinds that it names, if it names each of them in full.
    pub(crate) fn named_kinds(&self) -> Option<Vec<Kind>> {
        let each = self.kinds.iter().map(|names| match names {
            Names::Of(name) => Kind::new(name).ok(),
            Names::Begin(_) => None,
        });
        each.collect()
    }

    /// Narrows a search down to the jobs that are reached.
    pub(crate) fn narrow(&self, filter: &mut Filter) {
        let named = self.queues.iter().map(|names| match names {
            Names::Of(name) => QueueName::new(name).ok(),
            Names::Begin(_) => None,
        });
        let named: Option<Vec<QueueName>> = named.collect();
        if let Some(named) = named.filter(|_| filter.queues.is_empty()) {
            // An index tells them.
            filter.queues = named;
        } else if !self.queues.is_empty() {
            let each = self.queues.iter().filter_map(|names| match names {
                Names::Of(name) => QueueName::new(name).ok().map(Condition::Queue),
                Names::Begin(text) => Some(Condition::QueueBegins(text.clone())),
            });
            filter.conditions.push(Condition::OneOf(each.collect()));
        }
        if !self.kinds.is_empty() {
            let each = self.kinds.iter().filter_map(|names| match names {
                Names::Of(name) => Kind::new(name).ok().map(Condition::Kind),
                Names::Begin(text) => Some(Condition::KindBegins(text.clone())),
            });
            filter.conditions.push(Condition::OneOf(each.collect()));
        }
    }
}

fn names(field: &str, said: &[String]) -> Result<Vec<Names>, Invalid> {
    if said.len() > MOST {
        return Err(Invalid::new(
            field,
            format_args!("{} entries", said.len()),
            format_args!("at most {MOST}"),
        ));
    }
    let each = said.iter().map(|text| {
        Names::try_from(text.clone()).map_err(|wrong| Invalid { field: field.to_owned(), ..wrong })
    });
    let mut names = each.collect::<Result<Vec<_>, _>>()?;
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

impl Names {
    fn mean(&self, name: &str) -> bool {
        match self {
            Self::Of(one) => one == name,
            Self::Begin(text) => name.starts_with(text.as_str()),
        }
    }
}

impl TryFrom<String> for Names {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        // Queues and kinds are named by the same rule.
        match text.strip_suffix('*') {
            Some("") => Ok(Self::Begin(String::new())),
            Some(begin) => Kind::new(begin).map(|_| Self::Begin(begin.to_owned())),
            None => Kind::new(&text).map(|_| Self::Of(text)),
        }
    }
}

impl From<Names> for String {
    fn from(names: Names) -> Self {
        names.to_string()
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(name) => f.write_str(name),
            Self::Begin(text) => write!(f, "{text}*"),
        }
    }
}

impl fmt::Display for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Jobs => "its jobs",
            Self::Any => "any",
            Self::Whole => "the whole store",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(queues: &[&str], kinds: &[&str]) -> Reach {
        let texts = |said: &[&str]| said.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        Reach::new(&texts(queues), &texts(kinds)).unwrap()
    }

    #[test]
    fn it_covers_what_it_names_and_what_begins_as_it_says() {
        let whole = Reach::default();
        assert!(whole.is_whole() && whole.covers("mail", "k"));
        let mail = reach(&["mail", "import-*"], &[]);
        assert!(mail.covers("mail", "k") && mail.covers("import-7", "k") && mail.covers("import-", "k"));
        for other in ["mai", "mail2", "Mail", "import", "x-import-7", "default", ""] {
            assert!(!mail.covers(other, "k"), "{other}");
        }
        let both = reach(&["mail"], &["send*"]);
        assert!(both.covers("mail", "send_all") && !both.covers("mail", "k") && !both.covers("m", "send"));
        assert!(reach(&["*"], &[]).covers("anything", "k"));
    }

    #[test]
    fn it_is_kept_as_it_was_said_and_nothing_is_read_that_could_not_be_said() {
        let both = reach(&["mail", "b*", "mail"], &["k"]);
        let text = serde_json::to_string(&both).unwrap();
        assert_eq!(text, r#"{"queues":["mail","b*"],"kinds":["k"]}"#);
        assert_eq!(serde_json::from_str::<Reach>(&text).unwrap(), both);
        for bad in
            [r#"{"queues":[""]}"#, r#"{"queues":["a*b"]}"#, r#"{"kinds":["**"]}"#, r#"{"kinds":["a b"]}"#]
        {
            assert!(serde_json::from_str::<Reach>(bad).is_err(), "{bad}");
        }
        let many: Vec<String> = (0..65).map(|number| number.to_string()).collect();
        assert_eq!(Reach::new(&many, &[]).unwrap_err().field, "queues");
    }
}
