//! A store's rows do not contradict each other.

use super::Check;
use crate::history::{Entry, What};

/// The store finds no contradiction between its rows.
pub(super) struct Agreement;

impl Check for Agreement {
    fn rule(&self) -> &'static str {
        "a store agrees with itself"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.what {
            What::Contradicts(found) => Err(found.join("; ")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{H0, at, grant, verdict};
    use super::*;

    #[test]
    fn a_contradiction_is_found_and_nothing_else() {
        let found = What::Contradicts(vec!["job 1 is in line and does not exist".to_owned()]);
        assert!(verdict(Agreement, [at(1, H0, found)]).is_err());
        assert_eq!(verdict(Agreement, [at(1, H0, grant(1, 9))]), Ok(()));
    }
}
