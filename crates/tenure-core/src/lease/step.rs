//! What becomes of a lease: one function, all cells of the table.

use std::time::Duration;

use super::ledger::{LedgerNote, What};
use super::line::Line;
use super::{Late, Lease, LeaseAct, LeaseOutcome, LeaseRefusal, LeaseState, Ownership, Phase};
use crate::{Epoch, Fence, Holder, LeaseId, LeaseName, Timestamp, Ttl, invalid, limits};

/// What a store writes for one wish, together or not at all.
#[derive(Debug, Clone, PartialEq)]
pub struct Stepped {
    /// What to answer.
    pub outcome: LeaseOutcome,
    /// The row from now on, if it changes.
    pub lease: Option<Lease>,
    /// What to add to the ledger, in order.
    pub notes: Vec<LedgerNote>,
    /// What becomes of the place in line of whoever asked.
    pub ticket: Ticket,
}

impl Stepped {
    /// Whether others may have the lease sooner than before: who waits for it should look again.
    #[must_use]
    pub fn frees(&self, before: Option<&Lease>, now: Timestamp) -> bool {
        let end = |lease: &Lease| {
            let locked = lease.state(now).is_locked();
            (locked && lease.until().is_none(), lease.until().filter(|_| locked))
        };
        before.zip(self.lease.as_ref()).is_some_and(|(before, after)| end(after) < end(before))
    }
}

/// What becomes of a place in line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ticket {
    /// Nothing.
    AsIs,
    /// It is kept until then; one that is there already keeps its place.
    Kept(Timestamp),
    /// It is given up.
    GivenUp,
}

/// Decides what a wish comes to. `lease` is `None` if its name was never held; `line` is who else waits.
#[must_use]
pub fn step(
    name: &LeaseName,
    lease: Option<&Lease>,
    act: &LeaseAct,
    line: Line,
    epoch: Epoch,
    now: Timestamp,
) -> Stepped {
    let found = lease.cloned().unwrap_or_else(|| Lease::fresh(name.clone(), now));
    let cut = found.cut(now);
    let stepped = decide(cut.clone().unwrap_or(found), act, line, epoch, now);
    // A refusal writes nothing else. If the new end were not kept, it would move on with the clock.
    Stepped { lease: stepped.lease.or(cut), ..stepped }
}

fn decide(lease: Lease, act: &LeaseAct, line: Line, epoch: Epoch, now: Timestamp) -> Stepped {
    match act {
        LeaseAct::Acquire { id, by, ttl, wait } => {
            let wanted = Wanted { id: *id, by, ttl: *ttl };
            let mut stepped = acquire(lease, &wanted, line, epoch, now);
            stepped.ticket = match (&stepped.outcome, wait) {
                (LeaseOutcome::Refused(_), Some(span)) => Ticket::Kept(now.after(*span)),
                (LeaseOutcome::Refused(_), None) => Ticket::AsIs,
                _ => Ticket::GivenUp,
            };
            stepped
        }
        LeaseAct::Renew { id, fence, late } => {
            owned(lease, (*id, *fence), now, |lease, state| renew(lease, state, *late, now))
        }
        LeaseAct::Change { id, fence, to } => {
            // A change that happened already is repeated without harm.
            let replayed = lease.held.as_ref().is_some_and(|held| held.id == *to);
            let id = if replayed { *to } else { *id };
            owned(lease, (id, *fence), now, |lease, state| change(lease, state, *to, now))
        }
        LeaseAct::Release { .. } if cfg!(mutant = "lease-release-unowned") => {
            let state = lease.state(now);
            release(lease, state, now)
        }
        LeaseAct::Release { id, fence } => {
            owned(lease, (*id, *fence), now, |lease, state| release(lease, state, now))
        }
        LeaseAct::Break { within, by, reason } => broken(lease, *within, by, reason, now),
        LeaseAct::Leave { id } => {
            let held = lease.held.as_ref().is_some_and(|held| held.id == *id);
            let state = lease.state(now);
            let stepped = if held { release(lease, state, now) } else { answer(LeaseOutcome::Left) };
            Stepped { outcome: LeaseOutcome::Left, ticket: Ticket::GivenUp, ..stepped }
        }
        LeaseAct::Forget { by } => forget(lease, by, line, now),
    }
}

struct Wanted<'a> {
    id: LeaseId,
    by: &'a Holder,
    ttl: Ttl,
}

fn acquire(mut lease: Lease, wanted: &Wanted<'_>, line: Line, epoch: Epoch, now: Timestamp) -> Stepped {
    let until = wanted.ttl.until(now);
    match (lease.state(now), &mut lease.held) {
        (LeaseState::Held, Some(held)) if held.id == wanted.id => {
            held.ttl = wanted.ttl;
            held.phase = Phase::Held { until };
            let fence = lease.fence;
            return wrote(LeaseOutcome::Granted { fence, until }, lease, vec![]);
        }
        (LeaseState::Held, Some(held)) => {
            let (by, since) = (held.by.clone(), held.since);
            let fence = lease.fence;
            let until = lease.until();
            let refusal = LeaseRefusal::Held { by, fence, since, until, waiting: line.waiting };
            return turned_away(&lease, wanted.by, refusal, now);
        }
        (LeaseState::Breaking, _) => {
            let refusal = LeaseRefusal::Breaking { until: lease.until().unwrap_or(now) };
            return turned_away(&lease, wanted.by, refusal, now);
        }
        _ => {}
    }
    let since = lease.free_since(now).unwrap_or(now);
    let again = line.turn(since, now);
    if again > now {
        let awaited = refused(LeaseRefusal::Awaited { ahead: line.ahead, again });
        // If the clock was put back it is free since now: else nobody came nearer before it is as late again.
        let moved = (since > now).then(|| lease.free_from(now));
        return Stepped { lease: moved, ..awaited };
    }
    let mut notes = Vec::new();
    if !cfg!(mutant = "ledger-misses-lapse") {
        notes.extend(lapse_of(&lease, now));
    }
    let (what, note) = lease.held.as_ref().map_or((What::Acquired, String::new()), |before| {
        (What::TookOver, invalid::storable(&format!("after {}", before.by), limits::NOTE_BYTES))
    });
    if !(cfg!(mutant = "lease-takeover-keeps-fence") && lease.held.is_some()) {
        lease.fence = lease.fence.next(epoch);
    }
    lease.forgotten = false;
    let by = wanted.by.clone();
    notes.push(LedgerNote { by: by.clone(), note, since: Some(now), until, ..of(&lease, what, now) });
    lease.held =
        Some(Ownership { id: wanted.id, by, since: now, ttl: wanted.ttl, phase: Phase::Held { until } });
    let fence = lease.fence;
    wrote(LeaseOutcome::Granted { fence, until }, lease, notes)
}

/// Goes on with a wish of an owner, if it names the present ownership.
fn owned(
    lease: Lease,
    (id, fence): (LeaseId, Fence),
    now: Timestamp,
    go_on: impl FnOnce(Lease, LeaseState) -> Stepped,
) -> Stepped {
    // An id alone does not tell: the same one may have come back under another fence.
    let by_fence = !cfg!(mutant = "lease-fence-unchecked");
    if by_fence && fence < lease.fence {
        return refused(LeaseRefusal::Lost { fence: lease.fence });
    }
    let Some(held) = &lease.held else { return refused(LeaseRefusal::NotHeld) };
    if held.id != id || by_fence && fence != lease.fence {
        return refused(LeaseRefusal::WrongId);
    }
    let state = lease.state(now);
    go_on(lease, state)
}

fn renew(mut lease: Lease, state: LeaseState, late: Late, now: Timestamp) -> Stepped {
    let Some(held) = &mut lease.held else { return refused(LeaseRefusal::NotHeld) };
    let (lapsed, until) = (held.phase, held.ttl.until(now));
    match (state, lapsed, late) {
        (LeaseState::Held, ..) => {
            held.phase = Phase::Held { until };
            wrote(LeaseOutcome::Renewed { until }, lease, vec![])
        }
        (LeaseState::Lapsed, Phase::Held { until: Some(at) } | Phase::Lapsed { at }, Late::Refused) => {
            refused(LeaseRefusal::Lapsed { at })
        }
        (LeaseState::Lapsed, Phase::Held { until: Some(lapsed) } | Phase::Lapsed { at: lapsed }, _) => {
            held.phase = Phase::Held { until };
            let (by, since) = (held.by.clone(), held.since);
            let note = format!("it had lapsed at {lapsed}");
            let late =
                LedgerNote { by, since: Some(since), until, note, ..of(&lease, What::RenewedLate, now) };
            wrote(LeaseOutcome::RenewedLate { until, lapsed }, lease, vec![late])
        }
        (LeaseState::Breaking, Phase::Breaking { until }, _) => refused(LeaseRefusal::Breaking { until }),
        _ => refused(LeaseRefusal::Broken),
    }
}

fn change(mut lease: Lease, state: LeaseState, to: LeaseId, now: Timestamp) -> Stepped {
    let until = lease.until();
    match (state, &mut lease.held) {
        (LeaseState::Held, Some(held)) if held.id == to => answer(LeaseOutcome::Changed { until }),
        (LeaseState::Held, Some(held)) => {
            held.id = to;
            let (by, since) = (held.by.clone(), held.since);
            let changed = LedgerNote { by, since: Some(since), until, ..of(&lease, What::Changed, now) };
            wrote(LeaseOutcome::Changed { until }, lease, vec![changed])
        }
        (LeaseState::Breaking, _) => refused(LeaseRefusal::Breaking { until: until.unwrap_or(now) }),
        (LeaseState::Lapsed, _) => refused(LeaseRefusal::Lapsed { at: until.unwrap_or(now) }),
        (LeaseState::Broken, _) => refused(LeaseRefusal::Broken),
        (LeaseState::Free | LeaseState::Held, _) => refused(LeaseRefusal::NotHeld),
    }
}

fn release(mut lease: Lease, state: LeaseState, now: Timestamp) -> Stepped {
    let freed = lease.free_since(now).unwrap_or(now);
    let note = match state {
        LeaseState::Lapsed => lapse_of(&lease, now),
        // That it was broken is on record.
        LeaseState::Broken => None,
        LeaseState::Free | LeaseState::Held | LeaseState::Breaking => lease.held.as_ref().map(|held| {
            LedgerNote { by: held.by.clone(), since: Some(held.since), ..of(&lease, What::Released, now) }
        }),
    };
    (lease.held, lease.freed) = (None, freed);
    wrote(LeaseOutcome::Released, lease, note.into_iter().collect())
}

fn broken(mut lease: Lease, within: Option<Duration>, by: &Holder, reason: &str, now: Timestamp) -> Stepped {
    let (state, end) = (lease.state(now), lease.until());
    let Some(held) = &mut lease.held else { return refused(LeaseRefusal::NotHeld) };
    let soonest = match state {
        LeaseState::Broken => return answer(LeaseOutcome::Breaks { free: now }),
        LeaseState::Lapsed => {
            // Nothing is left to take from its holder but that it could have been renewed late.
            let noted = lapse_of(&lease, now);
            lease.end_broken(end.unwrap_or(now));
            return wrote(LeaseOutcome::Breaks { free: now }, lease, noted.into_iter().collect());
        }
        LeaseState::Free | LeaseState::Held | LeaseState::Breaking => {
            within.map_or(end.unwrap_or(now), |within| now.after(within))
        }
    };
    let free = end.map_or(soonest, |end| end.min(soonest));
    if state == LeaseState::Breaking && Some(free) == end {
        return answer(LeaseOutcome::Breaks { free });
    }
    let since = Some(held.since);
    if free > now {
        held.phase = Phase::Breaking { until: free };
    } else {
        lease.end_broken(now);
    }
    let note = invalid::storable(reason, limits::NOTE_BYTES);
    let asked = LedgerNote { by: by.clone(), since, until: Some(free), note, ..of(&lease, What::Broke, now) };
    wrote(LeaseOutcome::Breaks { free }, lease, vec![asked])
}

fn forget(mut lease: Lease, by: &Holder, line: Line, now: Timestamp) -> Stepped {
    let state = lease.state(now);
    let until = lease.until();
    match (state, &lease.held) {
        (LeaseState::Held, Some(held)) => {
            let (by, since, waiting) = (held.by.clone(), held.since, line.waiting);
            refused(LeaseRefusal::Held { by, fence: lease.fence, since, until, waiting })
        }
        (LeaseState::Breaking, _) => refused(LeaseRefusal::Breaking { until: until.unwrap_or(now) }),
        _ if lease.forgotten || lease.fence == Fence::NONE => answer(LeaseOutcome::Forgotten),
        _ => {
            let mut notes: Vec<LedgerNote> = lapse_of(&lease, now).into_iter().collect();
            notes.push(LedgerNote { by: by.clone(), ..of(&lease, What::Forgotten, now) });
            lease.freed = lease.free_since(now).unwrap_or(now);
            (lease.held, lease.forgotten) = (None, true);
            if cfg!(mutant = "lease-fence-restarts") {
                lease.fence = Fence::NONE;
            }
            wrote(LeaseOutcome::Forgotten, lease, notes)
        }
    }
}

/// The note that an ownership has lapsed, if it has and that is not on record.
pub(super) fn lapse_of(lease: &Lease, now: Timestamp) -> Option<LedgerNote> {
    let held = lease.held.as_ref()?;
    let Phase::Held { until: Some(at) } = held.phase else { return None };
    (at <= now).then(|| LedgerNote {
        by: held.by.clone(),
        since: Some(held.since),
        ..of(lease, What::Lapsed, at)
    })
}

impl Lease {
    /// This lease with an end that its TTL allows; `None` if its end is no later.
    ///
    /// Each grant and each renewal ends a TTL after the clock of that moment. An end that lies further ahead shows
    /// that the clock was set back since, and its holder may be dead.
    fn cut(&self, now: Timestamp) -> Option<Self> {
        let held = self.held.as_ref()?;
        let latest = held.ttl.until(now)?;
        let phase = match held.phase {
            Phase::Held { until: Some(until) } if until > latest => Phase::Held { until: Some(latest) },
            Phase::Breaking { until } if until > latest => Phase::Breaking { until: latest },
            Phase::Held { .. } | Phase::Breaking { .. } | Phase::Broken | Phase::Lapsed { .. } => {
                return None;
            }
        };
        let held = Ownership { phase, ..held.clone() };
        Some(Self { held: Some(held), ..self.clone() })
    }

    fn free_from(mut self, at: Timestamp) -> Self {
        self.freed = at;
        if let Some(Ownership { phase: Phase::Lapsed { at: lapsed }, .. }) = &mut self.held {
            *lapsed = at;
        }
        self
    }

    fn end_broken(&mut self, at: Timestamp) {
        self.freed = at;
        if let Some(held) = &mut self.held {
            held.phase = Phase::Broken;
        }
    }
}

fn of(lease: &Lease, what: What, at: Timestamp) -> LedgerNote {
    LedgerNote {
        at,
        name: lease.name.clone(),
        fence: lease.fence,
        what,
        by: Holder::default(),
        since: None,
        until: None,
        note: String::new(),
    }
}

/// Somebody wanted what another has: that is on record.
fn turned_away(lease: &Lease, by: &Holder, refusal: LeaseRefusal, now: Timestamp) -> Stepped {
    let note = LedgerNote { by: by.clone(), until: lease.until(), ..of(lease, What::Refused, now) };
    Stepped { notes: vec![note], ..refused(refusal) }
}

fn answer(outcome: LeaseOutcome) -> Stepped {
    Stepped { outcome, lease: None, notes: Vec::new(), ticket: Ticket::AsIs }
}

fn refused(refusal: LeaseRefusal) -> Stepped {
    answer(LeaseOutcome::Refused(refusal))
}

fn wrote(outcome: LeaseOutcome, lease: Lease, notes: Vec<LedgerNote>) -> Stepped {
    Stepped { outcome, lease: Some(lease), notes, ticket: Ticket::AsIs }
}
