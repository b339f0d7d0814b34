//! Who has asked for jobs in vain since anybody was last called: if he asks again, it is because time has passed, and he
//! most likely does so in vain.

use std::collections::BTreeSet;

use tenure_core::HostId;

/// More than these are not kept apart.
const MOST: usize = 1_000;

/// Who has asked in vain since anybody was last called.
#[derive(Debug, Default)]
pub(crate) struct Vain {
    /// How often somebody had been called then.
    calls: u64,
    holders: BTreeSet<HostId>,
}

impl Vain {
    /// Whether this one has asked in vain since anybody was called, which has happened so often.
    pub(crate) fn has_asked(&self, holder: HostId, calls: u64) -> bool {
        self.calls == calls && self.holders.contains(&holder)
    }

    /// Notes that this one was granted nothing, who set out when somebody had been called so often.
    pub(crate) fn note(&mut self, holder: HostId, calls: u64) {
        if self.calls != calls || self.holders.len() >= MOST {
            self.holders.clear();
        }
        self.calls = calls;
        self.holders.insert(holder);
    }

    /// Notes that this one was granted something: there may be more.
    pub(crate) fn forget(&mut self, holder: HostId) {
        self.holders.remove(&holder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_asked_in_vain_has_done_so_until_somebody_is_called() {
        let (one, other) = (HostId::from_bytes([1; 16]), HostId::from_bytes([2; 16]));
        let mut vain = Vain::default();
        assert!(!vain.has_asked(one, 0));
        vain.note(one, 7);
        assert!(vain.has_asked(one, 7) && !vain.has_asked(other, 7) && !vain.has_asked(one, 8));
        vain.note(other, 7);
        assert!(vain.has_asked(one, 7) && vain.has_asked(other, 7));
        vain.note(other, 8);
        assert!(!vain.has_asked(one, 8) && vain.has_asked(other, 8));
        vain.forget(other);
        assert!(!vain.has_asked(other, 8));
    }
}
