//! The description of a store for people, and the abilities that not every store has.

use std::fmt;

use crate::{Caution, Encryption, Joint, Measures};

/// The description of a store for people. No code depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// The store and its location in a few words, without secrets.
    pub place: String,
    /// The kind of storage in one word, such as `sqlite`.
    pub engine: &'static str,
    /// Risks of its location or connection, such as a file that every user can read.
    pub cautions: Vec<Caution>,
}

/// The abilities that not every store has.
#[derive(Clone, Copy, Default)]
pub struct Extras<'s> {
    /// Requests in transactions of the caller.
    pub joint: Option<&'s dyn Joint>,
    /// Encryption of values at rest.
    pub encryption: Option<&'s dyn Encryption>,
    /// Measures of calls; see [`MeasuredStore`](crate::MeasuredStore).
    pub measures: Option<&'s Measures>,
}

impl fmt::Debug for Extras<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extras")
            .field("joint", &self.joint.is_some())
            .field("encryption", &self.encryption.is_some())
            .field("measures", &self.measures.is_some())
            .finish()
    }
}
