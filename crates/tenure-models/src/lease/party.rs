//! A party: a program that wants the name, with the arithmetic by which a holder believes.

use super::row::{Claim, Row, Wish};
use super::{Bug, Setting};

/// Requests of one party at most that nobody waits for any more.
pub const MOST_LATE: usize = 2;

/// A program that wants the name. It takes no step unless it likes: one that takes none for a while is paused, and its
/// clock goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Party {
    /// The acquisition that it works on; 0 if none.
    pub id: u8,
    /// What it believes to hold.
    pub belief: Option<Belief>,
    /// The request whose answer it waits for.
    pub call: Option<Call>,
    /// Requests that are under way though nobody waits for their answers.
    pub late: [Option<Wish>; MOST_LATE],
    /// An effect of its work that is under way to a resource, with the ownership that it names.
    pub effect: Option<Claim>,
    /// What it has seen of somebody else's ownership.
    pub watch: Option<Watch>,
}

/// A belief to hold the name. It ends by the believer's own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Belief {
    /// What is believed to be held.
    pub claim: Claim,
    /// Ticks of its own clock until the deadline; more than none.
    pub left: u8,
    /// By how much its clock has fallen behind since the request was sent.
    pub slow: u8,
}

/// A request and the wait for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call {
    /// What is asked.
    pub wish: Wish,
    /// Ticks of its own clock since it was sent, as far as they matter.
    pub age: u8,
    /// By how much its clock has fallen behind since.
    pub slow: u8,
    /// The answer, if it is under way; else the request is.
    pub answer: Option<Reply>,
}

/// An answer that changes what a party believes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reply {
    /// It is granted.
    Granted(Claim),
    /// It is renewed.
    Renewed,
    /// It is not renewed.
    Refused,
}

/// A look at the row and how long ago that was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Watch {
    /// Whether the row is still as it was seen. The party does not know; the store compares.
    pub unchanged: bool,
    /// Ticks of its own clock since.
    pub age: u8,
    /// By how much its clock ran ahead.
    pub fast: u8,
}

/// How a party's clock goes during one tick of the store's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Pace {
    /// As the store's.
    #[default]
    Even,
    /// It stands.
    Slow,
    /// It goes twice as fast.
    Fast,
}

impl Party {
    /// The paces at which its clock may go now, within the budget.
    pub fn paces(&self, setting: &Setting) -> impl Iterator<Item = Pace> + use<> {
        let drift = setting.drift;
        let sleeps = setting.has(Bug::ClockSleepsWithTheMachine);
        let trust = setting.trust();
        let call = self.call.filter(|call| call.age < trust && call.is_timed());
        let may_lag = |slow: u8| sleeps || slow < drift;
        let is_timed = self.belief.is_some() || call.is_some();
        let slow = is_timed
            && self.belief.is_none_or(|belief| may_lag(belief.slow))
            && call.is_none_or(|call| may_lag(call.slow));
        let fast = self.watch.is_some_and(|watch| watch.fast < drift && watch.age < setting.lease);
        [(Pace::Even, true), (Pace::Slow, slow), (Pace::Fast, fast)]
            .into_iter()
            .filter_map(|(pace, may)| may.then_some(pace))
    }

    /// A tick of the store's clock passes.
    pub fn tick(&mut self, pace: Pace, setting: &Setting) {
        let (ticks, lag, lead) = match pace {
            Pace::Even => (1, 0, 0),
            Pace::Slow => (0, u8::from(!setting.has(Bug::ClockSleepsWithTheMachine)), 0),
            Pace::Fast => (2, 0, 1),
        };
        if let Some(belief) = &mut self.belief
            && !setting.has(Bug::BelievesUntilTold)
        {
            belief.left = belief.left.saturating_sub(ticks);
            belief.slow += lag;
        }
        if self.belief.is_some_and(|belief| belief.left == 0) {
            self.lose();
        }
        if let Some(call) = &mut self.call
            && call.is_timed()
        {
            call.age = (call.age + ticks).min(setting.trust());
            // An answer to it is worth nothing any more, however slow the clock was.
            call.slow = if call.age == setting.trust() { 0 } else { call.slow + lag };
        }
        if let Some(watch) = &mut self.watch {
            watch.age = (watch.age + ticks).min(setting.lease);
            watch.fast = if watch.age == setting.lease { 0 } else { watch.fast + lead };
        }
    }

    /// Sends a request.
    pub fn ask(&mut self, wish: Wish, setting: &Setting) {
        match wish {
            Wish::Acquire { id } | Wish::TakeOver { id, .. } => self.id = id,
            Wish::Release(_) if setting.has(Bug::ReleasesBeforeTheWorkEnds) => self.id = 0,
            Wish::Release(_) => (self.id, self.belief) = (0, None),
            // Whoever has left comes back under another id.
            Wish::Leave { .. } if !setting.has(Bug::ComesBackUnderTheSameId) => self.id = 0,
            Wish::Leave { .. } => {}
            Wish::Renew(_) => {}
        }
        self.watch = None;
        self.call = Some(Call { wish, age: 0, slow: 0, answer: None });
    }

    /// Takes note of the answer to its request; whether it came in time to be of use.
    pub fn hear(&mut self, setting: &Setting) -> bool {
        let Some(Call { wish, age, slow, answer: Some(reply) }) = self.call.take() else { return true };
        let (age, slow) = if setting.has(Bug::CountsFromTheAnswer) { (0, 0) } else { (age, slow) };
        let left = setting.trust() - age;
        match (reply, wish) {
            (Reply::Refused, _) => self.lose(),
            (Reply::Granted(claim), _) if left > 0 => self.belief = Some(Belief { claim, left, slow }),
            (Reply::Granted(_), _) => self.lose(),
            (Reply::Renewed, Wish::Renew(claim)) => {
                // A belief that is over does not come back.
                if let Some(belief) = self.belief.filter(|belief| belief.claim == claim)
                    && left > belief.left
                {
                    self.belief = Some(Belief { claim, left, slow });
                }
            }
            (
                Reply::Renewed,
                Wish::Acquire { .. } | Wish::TakeOver { .. } | Wish::Release(_) | Wish::Leave { .. },
            ) => {}
        }
        left > 0
    }

    /// It believes no more.
    fn lose(&mut self) {
        (self.belief, self.id) = (None, 0);
        if self.call.is_some_and(|call| matches!(call.wish, Wish::Renew(_)) && call.answer.is_some()) {
            self.call = None;
        }
    }

    /// It dies and starts again, knowing nothing.
    pub fn crash(&mut self) {
        *self = Self { late: self.late, effect: self.effect, ..Self::default() };
    }

    /// The request under way goes on without anybody waiting for its answer.
    pub fn give_up(&mut self) {
        if let Some(call) = self.call.take() {
            self.repeat(call.wish);
        }
    }

    /// A request is under way once more.
    pub fn repeat(&mut self, wish: Wish) {
        if let Some(free) = self.late.iter_mut().find(|late| late.is_none()) {
            *free = Some(wish);
        }
        self.late.sort_unstable();
    }

    /// How many of its requests nobody waits for.
    #[must_use]
    pub fn late_requests(&self) -> usize {
        self.late.iter().flatten().count()
    }

    /// How many of its requests are under way.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.late_requests() + usize::from(self.call.is_some_and(|call| call.answer.is_none()))
    }

    /// An id for a new acquisition, which nobody has any memory of.
    #[must_use]
    pub fn fresh_id(&self, number: u8, row: &Row) -> u8 {
        let remembered = |id: u8| {
            let under_way = self.late.iter().flatten().copied().chain(self.call.map(|call| call.wish));
            let named = under_way.map(Wish::id).chain(self.effect.map(|claim| claim.id));
            named
                .chain(row.held.filter(|held| held.party == number).map(|held| held.id))
                .any(|used| used == id)
        };
        (1..).find(|id| !remembered(*id)).unwrap_or(u8::MAX)
    }

    /// Whether it would learn something from a look at the row.
    #[must_use]
    pub fn can_look(&self, row: &Row) -> bool {
        let is_outdated = self.watch.is_none_or(|watch| !watch.unchanged);
        row.held.is_some() && self.belief.is_none() && self.call.is_none() && is_outdated
    }

    /// It looks at the row, and begins to count how long that stays so.
    pub fn look(&mut self) {
        self.watch = Some(Watch { unchanged: true, age: 0, fast: 0 });
    }

    /// Numbers its acquisitions anew, in the order in which they are met; answers the new number of the one by which
    /// it owns the row. Requests that nobody waits for are left in the order of their new numbers.
    pub fn rename(&mut self, owned: u8) -> u8 {
        let mut known = [0_u8; 8];
        let mut number = |id: &mut u8| {
            if *id == 0 {
                return;
            }
            let place = known.iter().position(|old| *old == *id || *old == 0).unwrap_or(known.len() - 1);
            known[place] = *id;
            *id = u8::try_from(place + 1).unwrap_or(u8::MAX);
        };
        let mut owned = owned;
        number(&mut owned);
        number(&mut self.id);
        if let Some(belief) = &mut self.belief {
            number(&mut belief.claim.id);
        }
        if let Some(call) = &mut self.call {
            number(call.wish.id_mut());
            if let Some(Reply::Granted(claim)) = &mut call.answer {
                number(&mut claim.id);
            }
        }
        if let Some(claim) = &mut self.effect {
            number(&mut claim.id);
        }
        self.late.iter_mut().flatten().for_each(|wish| number(wish.id_mut()));
        self.late.sort_unstable();
        owned
    }

    /// The row has changed since it was seen.
    pub fn outdate(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.unchanged = false;
        }
        for wish in self.late.iter_mut().flatten().chain(self.call.iter_mut().map(|call| &mut call.wish)) {
            if let Wish::TakeOver { unchanged, .. } = wish {
                *unchanged = false;
            }
        }
        self.late.sort_unstable();
    }
}

impl Call {
    /// Whether the answer may begin or prolong a belief.
    fn is_timed(&self) -> bool {
        let asks = matches!(self.wish, Wish::Acquire { .. } | Wish::TakeOver { .. } | Wish::Renew(_));
        asks && self.answer != Some(Reply::Refused)
    }
}

impl Wish {
    fn id_mut(&mut self) -> &mut u8 {
        match self {
            Self::Acquire { id } | Self::TakeOver { id, .. } | Self::Leave { id } => id,
            Self::Renew(claim) | Self::Release(claim) => &mut claim.id,
        }
    }

    /// The acquisition that it names.
    #[must_use]
    pub fn id(self) -> u8 {
        match self {
            Self::Acquire { id } | Self::TakeOver { id, .. } | Self::Leave { id } => id,
            Self::Renew(claim) | Self::Release(claim) => claim.id,
        }
    }
}
