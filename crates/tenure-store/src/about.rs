//! A store as people see it, and the abilities that not every store has.

use std::fmt;

use crate::{Caution, Encryption, Joint, Measures};

/// A store as people see it. Nothing depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// A few words without secrets: what it is and where.
    pub place: String,
    /// The kind of storage in one word, such as `sqlite`.
    pub engine: &'static str,
    /// Dangers in the way it is kept or reached, such as a file that every user can read.
    pub cautions: Vec<Caution>,
}

/// The abilities that not every store has.
#[derive(Clone, Copy, Default)]
pub struct Extras<'s> {
    /// Takes part in a transaction of the caller.
    pub joint: Option<&'s dyn Joint>,
    /// Encrypts values at rest.
    pub encryption: Option<&'s dyn Encryption>,
    /// Measures calls; see [`MeasuredStore`](crate::MeasuredStore).
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
