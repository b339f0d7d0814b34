//! The row of the name, what is asked of the store that keeps it, and what that answers.

/// What is left of a lease that has no end.
pub const ENDLESS: u8 = u8::MAX;

/// The row, with instants as what is left until them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Row {
    /// The fence that is written there.
    pub fence: u8,
    /// Which grant was the last: 1, 2, … No store has this: it tells one grant from the next even if a bug gives
    /// both the same fence.
    pub grant: u8,
    /// Who owns it.
    pub held: Option<Held>,
}

/// An ownership.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Held {
    /// Whose.
    pub party: u8,
    /// By which acquisition.
    pub id: u8,
    /// How many ticks are left of it; none if it has lapsed or is broken.
    pub left: u8,
    /// Whether somebody breaks it or has broken it.
    pub broken: bool,
    /// Whether somebody has put on record that it lapsed.
    pub noticed: bool,
}

/// A claim to an ownership, as its holder names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Claim {
    /// The acquisition.
    pub id: u8,
    /// The fence that it was told.
    pub fence: u8,
    /// Which grant that was, beyond doubt.
    pub grant: u8,
}

/// What is asked of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wish {
    /// To have the name.
    Acquire {
        /// The acquisition.
        id: u8,
    },
    /// To have what somebody seems to have left.
    TakeOver {
        /// The acquisition.
        id: u8,
        /// Whether the row is still as it was seen. The request carries what was seen; the store compares.
        unchanged: bool,
    },
    /// To have it for longer.
    Renew(Claim),
    /// To give it back.
    Release(Claim),
    /// To give back whatever came of an acquisition whose answer never came.
    Leave {
        /// The acquisition.
        id: u8,
    },
}

/// What the store answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// It is yours.
    Granted(Claim),
    /// It is yours for longer.
    Renewed,
    /// It is given back.
    Released,
    /// Somebody else holds it, or it is being broken.
    Busy,
    /// Its time was over when the renewal came.
    Lapsed,
    /// Somebody breaks it, or has broken it.
    Broken,
    /// It is not yours any more, or never was.
    NotYours,
}

impl Row {
    /// Whether nobody else can take it now.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.held.is_some_and(|held| held.left > 0)
    }

    /// Whether this claim is the present ownership.
    #[must_use]
    pub fn is_owned_under(&self, party: u8, claim: Claim) -> bool {
        self.grant == claim.grant && self.held.is_some_and(|held| held.party == party && held.id == claim.id)
    }

    /// The row so many ticks later.
    #[must_use]
    pub fn later(mut self, ticks: u8) -> Self {
        if let Some(held) = &mut self.held
            && held.left != ENDLESS
        {
            held.left = held.left.saturating_sub(ticks);
        }
        self
    }

    /// The row after the store's clock went back so many ticks, as far as the model follows it.
    #[must_use]
    pub fn earlier(mut self, ticks: u8, at_most: u8) -> Self {
        // What has lapsed lapses once more: how long ago that was is not kept.
        if let Some(held) = &mut self.held
            && !held.broken
            && !held.noticed
        {
            held.left = held.left.saturating_add(ticks).min(at_most);
        }
        self
    }
}
