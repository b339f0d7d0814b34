//! What may have been meant by a name that is not there.

use super::{Ask, Client};

/// Things that are known by names that people give.
const NAMED: [&str; 3] = ["queues", "schedules", "leases"];

impl Client {
    /// The name nearest to the one at this path of which there is nothing.
    pub(super) fn nearest(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix("/v1/")?;
        let (things, rest) = rest.split_once('/')?;
        let things = NAMED.into_iter().find(|named| *named == things)?;
        let name = rest.split(['/', '?']).next()?;
        let page = self.ask(&Ask::get(format!("/v1/{things}"))).ok()?.json().ok()?;
        let names = page["items"].as_array()?.iter().filter_map(|item| item["name"].as_str());
        nearest(name, names).map(str::to_owned)
    }
}

/// The nearest of these, if one is near enough to be meant.
fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let enough = (name.chars().count() / 3).clamp(1, 3);
    let far = |known: &str| distance(&name.to_lowercase(), &known.to_lowercase());
    names.map(|known| (far(known), known)).filter(|(far, _)| *far <= enough).min().map(|(_, known)| known)
}

/// How many signs have to be put in, left out, changed, or swapped with the next one.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let change = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut best = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_meant_and_what_is_far_is_not() {
        let known = ["mail", "nightly", "default"];
        let meant = |name| nearest(name, known.into_iter());
        assert_eq!(
            (meant("mial"), meant("Nightly"), meant("defalt")),
            (Some("mail"), Some("nightly"), Some("default"))
        );
        assert_eq!((meant("stars"), meant("m")), (None, None));
        assert_eq!((distance("", "abc"), distance("abc", "abc"), distance("ab", "ba")), (3, 0, 1));
    }
}
