//! A claim under way: what it asks, and what it was granted by now.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Reserved, limits};
use tenure_store::{Fault, Moment, Reserve};
use tokio_postgres::Row;

use super::claim::{self, How, Of};
use crate::heads::{self, Head};
use crate::keyed::{self, Around};
use crate::link::Link;
use crate::marks::Behind;
use crate::memory::Memory;
use crate::news::News;
use crate::query::{Answered, Query};
use crate::sweep;
use crate::time::Time;
use crate::value;

/// Whoever begins an epoch waits for as long as anything may be held of which it has not heard.
pub(super) const TELL_TTL: &str = "UPDATE meta SET value = $1 WHERE name = 'ttl' AND value < $1";

/// What a claim looks for first.
#[derive(Clone, Copy)]
pub(super) struct Look {
    /// What has lapsed: nothing is granted then.
    pub lapses: bool,
    /// What has come due, and is to be lined up.
    pub lines_up: bool,
}

/// What claims have granted for each want.
#[derive(Default)]
pub(super) struct Grants {
    granted: Vec<(usize, claim::Granted)>,
    /// How many jobs for each want.
    pub had: Vec<usize>,
}

impl Grants {
    pub(super) fn are_none(&self) -> bool {
        self.had.iter().all(|had| *had == 0)
    }

    /// The jobs, each with the want that it serves. Whatever is written of that is told.
    pub(super) fn read(&self, memory: &Memory, ask: &Reserve) -> Vec<(usize, Reserved)> {
        let mut news = News::for_whom(&memory.bulletin);
        let mut jobs = Vec::new();
        for (want, granted) in &self.granted {
            jobs.extend(granted.read(memory, &mut news, ask).into_iter().map(|job| (*want, job)));
        }
        // Whoever asked in vain has nothing to tell.
        if !jobs.is_empty() {
            memory.publish(news);
        }
        jobs
    }
}

/// A claim under way.
pub(super) struct Claiming<'a> {
    ask: &'a Reserve,
    memory: Arc<Memory>,
    time: Time,
    first: Look,
    /// Where looks at what comes next begin.
    head: Head,
    /// All that is meant: if keys have to be asked about any of it, nothing is granted without that.
    meant: (Vec<String>, Vec<i32>),
    /// So many wants are asked about at the same time: one, if each may take what the next would have.
    pub together: usize,
    /// Whether no want may take what another wants.
    apart: bool,
    left: usize,
    pub granted: Grants,
    /// When a look is at the whole again, of lanes.
    whole_in: Option<Duration>,
}

impl<'a> Claiming<'a> {
    pub(super) fn new(link: &Link, ask: &'a Reserve, first: Look) -> Self {
        let (time, memory) = (link.database.time.clone(), Arc::clone(&link.memory));
        // A given clock is for those who want to know beforehand what comes.
        let is_given = time.told().is_some();
        let head = if is_given { heads::START } else { memory.heads().begin(time.clock().moment()) };
        let left = ask.at_most.min(limits::RESERVE_JOBS);
        let wanted: usize = ask.wants.iter().map(|want| want.at_most.min(left)).sum();
        // If each want may have all that it wants, none has to wait for another.
        let together = if wanted <= left { ask.wants.len().max(1) } else { 1 };
        let queues: BTreeSet<_> = ask.wants.iter().map(|want| &want.queue).collect();
        let (meant, apart) = (claim::meant(&memory, &ask.wants), queues.len() == ask.wants.len());
        let granted = Grants { granted: Vec::new(), had: vec![0; ask.wants.len()] };
        Self { ask, memory, time, first, head, meant, together, apart, left, granted, whole_in: None }
    }

    /// What comes before the claims, first what is sent along.
    pub(super) fn opening(&self, before: Vec<Query>, ttl_told: i64) -> Vec<Query> {
        let mut queries = before;
        let ttl = value::micros(self.ask.ttl);
        if ttl_told < ttl {
            queries.push(Query::new(TELL_TTL).with(ttl));
        }
        if self.first.lines_up {
            queries.push(sweep::line_up(self.time.told(), self.head));
        }
        queries
    }

    /// What claims these wants, and where each of it looks.
    pub(super) fn claims(&self, wants: Range<usize>, fresh: bool) -> Vec<(Query, (usize, Of))> {
        let mut claims = Vec::with_capacity(wants.len());
        for index in wants {
            let want = &self.ask.wants[index];
            // If no want has to wait for another, or may take what another wants, each is asked about by itself.
            let alone = (self.together > 1 && self.apart)
                .then(|| claim::meant(&self.memory, std::slice::from_ref(want)));
            let meant = alone.as_ref().unwrap_or(&self.meant);
            let lapses_behind = self.first.lapses.then_some(self.head);
            let how = How { at_most: want.at_most.min(self.left), lapses_behind, meant, fresh };
            let claim = claim::claim(&self.memory, self.ask, want, &self.time, &how);
            claims.extend(claim.map(|claim| (claim.query, (index, claim.of))));
        }
        claims
    }

    /// Whether anything is to be looked for but jobs that were never claimed before. It is, once others have been met, for so many
    /// claims.
    pub(super) fn may_be_begun(&self) -> bool {
        self.memory.claims_begun()
    }

    /// Takes in what was claimed. It answers false if that was to be jobs that were never claimed before, and was none because there
    /// are others: they may be locked for a moment.
    pub(super) fn take_in(&mut self, claimed: Vec<Answered>, of: &[(usize, Of)]) -> bool {
        for (claimed, (index, of)) in claimed.into_iter().zip(of) {
            let granted = claim::Granted::of(claimed.rows);
            let jobs = granted.len();
            if granted.met_begun {
                self.memory.met_begun();
                if jobs == 0 {
                    self.look_closely(of);
                    return false;
                }
            }
            if let Some(look) = of {
                self.note_look(look, &granted);
            }
            if jobs < self.ask.wants[*index].at_most {
                self.look_closely(of);
            }
            self.left = self.left.saturating_sub(jobs);
            if let (Some(started), None) = (granted.started(), self.time.told()) {
                let until = started.as_micros().saturating_add(value::micros(self.ask.ttl));
                self.memory.heads().holds(until);
            }
            self.granted.had[*index] = jobs;
            self.granted.granted.push((*index, granted));
        }
        true
    }

    /// Has the next claim look closely where this one has looked. One by a given clock always does.
    fn look_closely(&self, of: &Of) {
        if let Some(look) = of {
            self.memory.marks().look_closely(&look.lanes);
        }
    }

    /// Notes a look, and what it has claimed.
    fn note_look(&mut self, look: &Behind, granted: &claim::Granted) {
        let (mut marks, now) = (self.memory.marks(), self.time.clock().moment());
        self.whole_in = self.whole_in.into_iter().chain(marks.whole_in(&look.lanes, now)).min();
        match granted.claimed() {
            Some(claimed) => marks.looked(look, &claimed, now),
            None => marks.looked_in_vain(look, now),
        }
    }

    pub(super) fn look_around(&self) -> Query {
        let (queues, lanes) = self.meant.clone();
        let look = Query::new(keyed::AROUND).with(self.time.told()).with(queues).with(lanes);
        look.with(self.head.held).with(self.head.later)
    }

    /// Takes in what is around, seen by a look that set out at this moment.
    pub(super) fn around(&self, rows: &[Row], sent: Moment) -> Result<Around, Fault> {
        let now = self.time.clock().moment();
        let is_given = self.time.told().is_some();
        let whole_in = self.memory.heads().whole_in(now).filter(|_| !is_given);
        let around = keyed::around(rows.first(), self.whole_in.into_iter().chain(whole_in).min())?;
        if !is_given {
            let mut heads = self.memory.heads();
            heads.comes_due(around.due_later, sent);
            if around.keyed {
                heads.is_unclear();
            } else {
                heads.comes_next(around.next_in(), sent);
            }
            heads.looked(self.head, around.took, around.head, now);
        }
        Ok(around)
    }
}
