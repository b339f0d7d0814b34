//! The rows that requests about leases need.

use std::collections::BTreeSet;

use tenure_core::{Holder, LeaseAct, LeaseName};

use super::acquisition;
use crate::LeaseWish;

/// The rows to read before requests are decided.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reads<'w> {
    /// All leases.
    pub names: BTreeSet<&'w LeaseName>,
    /// Leases that may be granted. If such a name has no row, a grant brings one.
    pub wanted: BTreeSet<&'w LeaseName>,
    /// Leases whose lines count.
    pub lines: BTreeSet<&'w LeaseName>,
    /// Holders that want a lease. The store looks up if a refusal to them is on record for the lease's present ownership.
    pub wanting: Vec<(&'w LeaseName, &'w Holder)>,
}

impl<'w> Reads<'w> {
    /// Lists the rows that these requests need.
    pub fn of(wishes: impl Iterator<Item = &'w LeaseWish>) -> Self {
        let mut reads = Self::default();
        for LeaseWish { name, act } in wishes {
            reads.names.insert(name);
            if acquisition(act).is_some() || matches!(act, LeaseAct::Forget { .. }) {
                reads.lines.insert(name);
            }
            if let LeaseAct::Acquire { by, .. } = act {
                reads.wanted.insert(name);
                reads.wanting.push((name, by));
            }
        }
        reads
    }
}
