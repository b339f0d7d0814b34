//! The answers of a store follow from its rows.

use super::Check;
use crate::history::{Entry, What};

/// The naive checker recomputes what the store derives from its rows, and finds no contradiction.
#[derive(Default)]
pub(super) struct Contradictions;

impl Check for Contradictions {
    fn rule(&self) -> &'static str {
        "a store's answers follow from its rows"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        let What::Compared(findings) = &entry.what else { return Ok(()) };
        if findings.is_empty() { Ok(()) } else { Err(findings.join("\n")) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{H0, at, verdict};
    use super::*;

    #[test]
    fn a_contradiction_is_found_and_none_is_accepted() {
        let compared = |findings| verdict(Contradictions, [at(1, H0, What::Compared(findings))]);
        assert_eq!(compared(vec![]), Ok(()));
        assert!(compared(vec!["totals".to_owned()]).is_err());
    }
}
