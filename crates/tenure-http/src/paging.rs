//! Pages of lists that a server has in memory as a whole.

use tenure::Invalid;

use crate::problem::Problem;
use crate::query::Query;

/// Entries of a page, unless the client asks for another number.
const USUAL: u64 = 100;
/// Entries of a page at most.
const MOST: u64 = 1_000;

/// Query parameters of such a list.
pub(crate) const LISTED: [(&str, &str); 2] = [
    ("cursor", "`next_cursor` of the previous page"),
    ("limit", "Maximum number of results: 1 to 1000; default 100"),
];

/// The page that a client asks for.
#[derive(Debug)]
pub(crate) struct Paging {
    after: Option<String>,
    at_most: usize,
}

impl Paging {
    /// Reads `cursor` and `limit`, and refuses every other parameter.
    pub(crate) fn read(query: Option<&str>) -> Result<Self, Problem> {
        Self::of(&Query::read(query, &LISTED.map(|(name, _)| name))?)
    }

    /// Reads `cursor` and `limit` of a list that has more parameters.
    pub(crate) fn of(query: &Query) -> Result<Self, Problem> {
        let at_most = query.number("limit", (1, MOST), USUAL)?;
        let after = query.text("cursor")?;
        if after.as_deref() == Some("") {
            return Err(Invalid::new("cursor", "empty", "`next_cursor` of the previous page").into());
        }
        Ok(Self { after, at_most: usize::try_from(at_most).unwrap_or(usize::MAX) })
    }

    /// Returns `true` for the first page.
    pub(crate) fn is_first(&self) -> bool {
        self.after.is_none()
    }

    /// Cuts the page out of entries in the order of their keys, and returns the cursor of the next page. An entry that is
    /// removed meanwhile does not matter, because the cursor is a key and no position.
    pub(crate) fn cut<T>(
        &self,
        entries: impl IntoIterator<Item = T>,
        key: impl Fn(&T) -> String,
    ) -> (Vec<T>, Option<String>) {
        let is_behind = |entry: &T| self.after.as_ref().is_none_or(|after| key(entry) > *after);
        let mut left = entries.into_iter().filter(is_behind);
        let page: Vec<T> = left.by_ref().take(self.at_most).collect();
        let next = left.next().and_then(|_| page.last().map(&key));
        (page, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_and_the_last_one_has_no_cursor() {
        let names = ["a", "b", "c", "d", "e"];
        let page = |query: &str| Paging::read(Some(query)).unwrap().cut(names, |name| (*name).to_owned());
        assert_eq!(page("limit=2"), (vec!["a", "b"], Some("b".to_owned())));
        assert_eq!(page("limit=2&cursor=b"), (vec!["c", "d"], Some("d".to_owned())));
        assert_eq!(page("limit=2&cursor=d"), (vec!["e"], None));
        // The entry of the cursor was removed meanwhile.
        assert_eq!(page("limit=2&cursor=bb"), (vec!["c", "d"], Some("d".to_owned())));
        assert_eq!(page(""), (names.to_vec(), None));
        assert!(Paging::read(Some("limit=1001")).is_err() && Paging::read(Some("offset=1")).is_err());
        assert!(Paging::read(Some("cursor=")).is_err());
    }
}
