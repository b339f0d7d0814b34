//! What the exit code of a program means.

use std::time::Duration;

use crate::settings::Settings;

/// The code by which a program says that it cannot do its job now.
const AGAIN: i32 = 75;

/// What the codes of a program mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manners {
    permanent: Vec<i32>,
    again_after: Duration,
    attempts: u32,
}

/// What a program has said by its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// Its job is done.
    Done,
    /// It cannot do it now: it is due again after so long, and no attempt is spent.
    Again(Duration),
    /// It has failed.
    Failed {
        /// Whether it is tried again.
        is_for_good: bool,
    },
}

impl Manners {
    /// As the settings have it.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        let Settings { permanent, again_after, attempts, .. } = settings;
        Self { permanent: permanent.clone(), again_after: *again_after, attempts: *attempts }
    }

    /// What the end of this attempt says; no code means a signal.
    #[must_use]
    pub fn said(&self, code: Option<i32>, attempt: u32) -> Said {
        match code {
            Some(0) => Said::Done,
            Some(AGAIN) => Said::Again(self.again_after),
            code => {
                let is_permanent = code.is_some_and(|code| self.permanent.contains(&code));
                Said::Failed { is_for_good: is_permanent || attempt >= self.attempts }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sort;

    #[test]
    fn codes_mean_what_the_contract_says() {
        let mut settings = Settings::usual(Sort::Triggered);
        (settings.permanent, settings.attempts) = (vec![64], 3);
        let manners = Manners::of(&settings);
        let failed = |is_for_good| Said::Failed { is_for_good };
        assert_eq!(manners.said(Some(0), 1), Said::Done);
        assert_eq!(manners.said(Some(75), 99), Said::Again(Duration::from_secs(10)));
        assert_eq!(manners.said(Some(64), 1), failed(true));
        assert_eq!([manners.said(Some(1), 1), manners.said(Some(1), 3)], [failed(false), failed(true)]);
        assert_eq!(manners.said(None, 2), failed(false), "a signal is a failure like others");
        assert_eq!(
            Manners::of(&Settings::usual(Sort::Triggered)).said(Some(1), 1),
            failed(true),
            "as Kudu has it"
        );
    }
}
