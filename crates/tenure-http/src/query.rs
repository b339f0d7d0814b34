//! What stands behind the question mark: known names only, each read once unless it may be there often.

use std::str::FromStr;

use percent_encoding::percent_decode_str;
use tenure::{Invalid, limits};

use crate::problem::{Problem, ProblemType};

/// What was asked behind the question mark.
#[derive(Debug, Default)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Reads the pairs; whoever uses a name that is not among those known is told.
    pub(crate) fn read(query: Option<&str>, known: &[&str]) -> Result<Self, Problem> {
        let mut pairs = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decoded(name)?, decoded(value)?);
            if !known.contains(&name.as_str()) {
                let detail =
                    format!("unknown query parameter {name:?}; expected one of: {}", known.join(", "));
                return Err(Problem::new(ProblemType::Malformed, detail).with("field", name));
            }
            pairs.push((name, value));
        }
        Ok(Self { pairs })
    }

    /// The one value of a name.
    pub(crate) fn one<T: FromStr<Err = Invalid>>(&self, name: &str) -> Result<Option<T>, Problem> {
        let mut values = self.all::<T>(name)?;
        if values.len() > 1 {
            let detail = format!("query parameter {name} occurs {} times; expected once", values.len());
            return Err(Problem::new(ProblemType::Malformed, detail).with("field", name));
        }
        Ok(values.pop())
    }

    /// A whole number in these bounds; `usual` if it is not said.
    pub(crate) fn number(&self, name: &str, bounds: (u64, u64), usual: u64) -> Result<u64, Problem> {
        Ok(self.maybe_number(name, bounds)?.unwrap_or(usual))
    }

    /// A whole number in these bounds, if it is said.
    pub(crate) fn maybe_number(&self, name: &str, bounds: (u64, u64)) -> Result<Option<u64>, Problem> {
        match self.one::<Number>(name)? {
            Some(Number(number)) if !(bounds.0..=bounds.1).contains(&number) => {
                Err(out_of(name, number, bounds))
            }
            found => Ok(found.map(|Number(number)| number)),
        }
    }

    /// Whether something is wanted: `true` or `false`; not, if it is not said.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.text(name)?.as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => {
                let shown: String = other.chars().take(32).collect();
                let detail = format!("{name}: {shown:?}; expected true or false");
                Err(Problem::new(ProblemType::Malformed, detail).with("field", name))
            }
        }
    }

    /// The one value of a name, whatever stands in it.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, Problem> {
        let mut values = self.pairs.iter().filter(|(found, _)| found == name).map(|(_, value)| value.clone());
        let first = values.next();
        if values.next().is_some() {
            let detail = format!("query parameter {name} occurs more than once; expected once");
            return Err(Problem::new(ProblemType::Malformed, detail).with("field", name));
        }
        Ok(first)
    }

    /// How many are wanted on a page; usually 50.
    pub(crate) fn limit(&self, most: usize) -> Result<usize, Problem> {
        let limit = self.number("limit", (1, most as u64), 50)?;
        Ok(usize::try_from(limit).unwrap_or(most))
    }

    /// Returns all values of a name that a search compares with each job, of which there may be as many as in a search text.
    pub(crate) fn sought<T: FromStr<Err = Invalid>>(&self, name: &str) -> Result<Vec<T>, Problem> {
        let values = self.all(name)?;
        if values.len() > limits::SEARCH_VALUES {
            let detail =
                format!("{name}: {} values; expected at most {}", values.len(), limits::SEARCH_VALUES);
            return Err(Problem::new(ProblemType::Malformed, detail).with("field", name));
        }
        Ok(values)
    }

    /// Refuses more than so many values of these names together, before any of them is kept.
    pub(crate) fn check_number(&self, names: &[&str], most: usize) -> Result<(), Problem> {
        let values = |name: &str| {
            let found = self.pairs.iter().filter(move |(found, _)| found == name);
            found.map(|(_, value)| value.split(',').count()).sum::<usize>()
        };
        let counts = names.iter().map(|name| (*name, values(name)));
        let all: usize = counts.clone().map(|(_, count)| count).sum();
        let Some((largest, _)) = counts.max_by_key(|(_, count)| *count).filter(|_| all > most) else {
            return Ok(());
        };
        let detail = format!("{}: {all} values together; expected at most {most}", names.join(", "));
        Err(Problem::new(ProblemType::Malformed, detail).with("field", largest).with("limit", most))
    }

    /// All values of a name. Several may stand in one, with commas between.
    pub(crate) fn all<T: FromStr<Err = Invalid>>(&self, name: &str) -> Result<Vec<T>, Problem> {
        let values =
            self.pairs.iter().filter(|(found, _)| found == name).flat_map(|(_, value)| value.split(','));
        values
            .map(|value| {
                value.parse().map_err(|wrong: Invalid| {
                    let wrong = Invalid { field: name.to_owned(), ..wrong };
                    Problem::new(ProblemType::Malformed, wrong.to_string())
                        .with("field", name)
                        .with("allowed", wrong.allowed.as_str())
                })
            })
            .collect()
    }
}

/// A whole number.
struct Number(u64);

impl FromStr for Number {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let shown: String = text.chars().take(32).collect();
        text.parse()
            .map(Self)
            .map_err(|_| Invalid::new("number", format_args!("{shown:?}"), "a whole number"))
    }
}

fn out_of(name: &str, number: u64, (least, most): (u64, u64)) -> Problem {
    let detail = format!("{name}: {number}; expected {least} to {most}");
    Problem::new(ProblemType::Malformed, detail).with("field", name)
}

fn decoded(text: &str) -> Result<String, Problem> {
    let text = text.replace('+', " ");
    let decoded = percent_decode_str(&text).decode_utf8();
    decoded
        .map(String::from)
        .map_err(|_| Problem::new(ProblemType::Malformed, "the query string is not valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure::StateName;

    #[test]
    fn a_search_compares_jobs_with_a_bounded_number_of_values() {
        let states = |count| {
            let text = format!("state={}", vec!["failed"; count].join(","));
            Query::read(Some(&text), &["state"]).unwrap().sought::<StateName>("state")
        };
        assert_eq!(states(limits::SEARCH_VALUES).unwrap().len(), 32);
        let refused = format!("{:?}", states(33).unwrap_err());
        assert!(refused.contains("state: 33 values; expected at most 32"), "{refused}");
    }

    #[test]
    fn the_values_of_several_names_have_a_bound_together() {
        let refused = |text: &str| {
            let query = Query::read(Some(text), &["a", "b", "c"]).unwrap();
            query.check_number(&["a", "b"], 3).err().map(|problem| problem.document())
        };
        assert_eq!(refused("a=1,2&b=3&c=4,5,6,7"), None);
        let told = refused("a=1&b=2&b=,").unwrap();
        assert_eq!((&told["field"], &told["limit"], &told["status"]), (&"b".into(), &3.into(), &400.into()));
        assert_eq!(told["detail"], "a, b: 4 values together; expected at most 3");
    }

    #[test]
    fn names_are_known_and_values_are_read() {
        let query = Query::read(
            Some("state=queued,running&state=failed&tag=a%20b&limit=7"),
            &["state", "tag", "limit"],
        );
        let query = query.unwrap();
        assert_eq!(query.all::<StateName>("state").unwrap().len(), 3);
        assert_eq!(query.number("limit", (1, 1000), 50).unwrap(), 7);
        assert_eq!(Query::default().number("limit", (1, 1000), 50).unwrap(), 50);
        assert!(query.one::<StateName>("state").is_err(), "three are not one");
    }

    #[test]
    fn what_is_not_known_or_makes_no_sense_is_told_by_name() {
        let told = |query: &str| Query::read(Some(query), &["limit"]).unwrap_err().document();
        assert_eq!(told("limt=1")["field"], "limt");
        assert_eq!(told("%ff=1")["status"], 400);
        for bad in ["limit=0", "limit=1001", "limit=-1", "limit=", "limit=1&limit=2", "limit=1e3"] {
            let query = Query::read(Some(bad), &["limit"]).unwrap();
            assert_eq!(
                query.number("limit", (1, 1000), 50).unwrap_err().document()["field"],
                "limit",
                "{bad}"
            );
        }
    }
}
