//! A lease as the list of its ownerships: told apart from how a row is kept, to compare the two.

use std::time::Duration;

use tenure_core::{Holding, Late, LeaseAct, LeaseId, LeaseOutcome, LeaseRefusal, Line, Timestamp, Ttl, What};

/// One ownership, as somebody who watches would note it.
#[derive(Debug, Clone)]
pub struct Span {
    pub fence: u64,
    pub id: LeaseId,
    ttl: Ttl,
    from: Timestamp,
    /// When it ends or ended, as far as that is known.
    end: Option<Timestamp>,
    broken: bool,
    /// Nobody can go on with it.
    over: bool,
}

#[derive(Debug, Default)]
pub struct Model {
    pub spans: Vec<Span>,
    /// When its name was last forgotten.
    freed: Option<Timestamp>,
}

impl Span {
    fn is_locked(&self, now: Timestamp) -> bool {
        !self.over && self.end.is_none_or(|end| end > now)
    }

    fn cut(&mut self, at: Timestamp) {
        self.end = Some(self.end.map_or(at, |end| end.min(at)));
    }
}

impl Model {
    /// The number of grants so far that count for the fence.
    pub fn fence(&self) -> u64 {
        self.spans.last().map_or(0, |span| span.fence)
    }

    pub fn is_locked(&self, now: Timestamp) -> bool {
        self.spans.last().is_some_and(|span| span.is_locked(now))
    }

    /// Does it, and tells whether the answer is what it should be.
    pub fn expects(&mut self, act: &LeaseAct, line: Line, now: Timestamp, answer: &LeaseOutcome) -> bool {
        match act {
            LeaseAct::Acquire { id, ttl, .. } => self.acquire(*id, *ttl, line, now, answer),
            LeaseAct::Renew { id, fence, late } => {
                self.own(*id, fence.number(), answer, |span, answer| span.renew(*late, now, answer))
            }
            LeaseAct::Change { id, fence, to } => {
                let replayed = self.spans.last().is_some_and(|span| span.id == *to);
                let id = if replayed { *to } else { *id };
                self.own(id, fence.number(), answer, |span, answer| span.change(*to, now, answer))
            }
            LeaseAct::Release { id, fence } => self.own(*id, fence.number(), answer, |span, answer| {
                span.cut(now);
                span.over = true;
                *answer == LeaseOutcome::Released
            }),
            LeaseAct::Break { within, .. } => self.break_it(*within, now, answer),
            LeaseAct::Leave { id } => {
                if let Some(span) = self.spans.last_mut().filter(|span| span.id == *id && !span.over) {
                    span.cut(now);
                    span.over = true;
                }
                *answer == LeaseOutcome::Left
            }
            LeaseAct::Forget { .. } => {
                if self.is_locked(now) {
                    return is_refusal_of_locked(answer, self.spans.last());
                }
                if let Some(span) = self.spans.last_mut() {
                    span.over = true;
                }
                *answer == LeaseOutcome::Forgotten
            }
        }
    }

    fn acquire(&mut self, id: LeaseId, ttl: Ttl, line: Line, now: Timestamp, answer: &LeaseOutcome) -> bool {
        let until = ttl.until(now);
        let last = self.spans.last_mut();
        if let Some(span) = last.filter(|span| span.is_locked(now)) {
            if span.id != id || span.broken {
                return is_refusal_of_locked(answer, Some(span));
            }
            (span.ttl, span.end) = (ttl, until);
            return is_grant(answer, span.fence, until);
        }
        let free_since = self.spans.last().and_then(|span| span.end).or(self.freed);
        let start = Duration::from_millis(250) * line.ahead.min(8);
        let again = free_since.unwrap_or(now).after(start);
        if again > now {
            let awaited = LeaseRefusal::Awaited { ahead: line.ahead, again };
            return *answer == LeaseOutcome::Refused(awaited);
        }
        let fence = self.fence() + 1;
        self.spans.push(Span { fence, id, ttl, from: now, end: until, broken: false, over: false });
        is_grant(answer, fence, until)
    }

    fn own(
        &mut self,
        id: LeaseId,
        fence: u64,
        answer: &LeaseOutcome,
        act: impl FnOnce(&mut Span, &LeaseOutcome) -> bool,
    ) -> bool {
        let LeaseOutcome::Refused(refusal) = answer else {
            let present = self.spans.last_mut().filter(|span| !span.over && span.id == id);
            return present.filter(|span| span.fence == fence).is_some_and(|span| act(span, answer));
        };
        match self.spans.last_mut() {
            Some(last) if fence < last.fence => matches!(refusal, LeaseRefusal::Lost { .. }),
            None => *refusal == LeaseRefusal::NotHeld,
            Some(last) if last.over => *refusal == LeaseRefusal::NotHeld,
            Some(last) if last.id != id || last.fence != fence => *refusal == LeaseRefusal::WrongId,
            Some(last) => act(last, answer),
        }
    }

    fn break_it(&mut self, within: Option<Duration>, now: Timestamp, answer: &LeaseOutcome) -> bool {
        let Some(span) = self.spans.last_mut().filter(|span| !span.over) else {
            return *answer == LeaseOutcome::Refused(LeaseRefusal::NotHeld);
        };
        if span.is_locked(now) {
            match within {
                Some(within) => span.cut(now.after(within)),
                None => span.end = Some(span.end.unwrap_or(now)),
            }
        }
        span.broken = true;
        let free = span.end.map_or(now, |end| end.max(now));
        *answer == LeaseOutcome::Breaks { free }
    }

    /// What the ledger has to tell once all that is over is written down.
    pub fn holdings(&self, told: &[Holding], now: Timestamp) -> Result<(), String> {
        if told.len() != self.spans.len() {
            return Err(format!("{} are told of {}", told.len(), self.spans.len()));
        }
        for (told, span) in told.iter().zip(&self.spans) {
            let ended = span.end.filter(|end| *end <= now || span.broken);
            let same = (told.fence.number(), told.from, told.to) == (span.fence, span.from, ended);
            let fits = match told.end {
                None => ended.is_none(),
                Some(What::Broke) => span.broken,
                Some(_) => ended.is_some(),
            };
            if !same || !fits {
                return Err(format!("{told:?} is told of {span:?}"));
            }
        }
        let overlap = told.windows(2).find(|two| two[0].to.is_none_or(|to| to > two[1].from));
        overlap.map_or(Ok(()), |two| Err(format!("two at a time: {two:?}")))
    }
}

impl Span {
    fn renew(&mut self, late: Late, now: Timestamp, answer: &LeaseOutcome) -> bool {
        let (end, until) = (self.end, self.ttl.until(now));
        match (self.is_locked(now), self.broken, end) {
            (true, true, Some(until)) => *answer == LeaseOutcome::Refused(LeaseRefusal::Breaking { until }),
            (false, true, _) => *answer == LeaseOutcome::Refused(LeaseRefusal::Broken),
            (true, ..) => {
                self.end = until;
                *answer == LeaseOutcome::Renewed { until }
            }
            (false, false, Some(lapsed)) if late == Late::Counts => {
                self.end = until;
                *answer == LeaseOutcome::RenewedLate { until, lapsed }
            }
            (false, false, Some(at)) => *answer == LeaseOutcome::Refused(LeaseRefusal::Lapsed { at }),
            (false, false, None) => false,
        }
    }

    fn change(&mut self, to: LeaseId, now: Timestamp, answer: &LeaseOutcome) -> bool {
        let refused = |refusal| *answer == LeaseOutcome::Refused(refusal);
        match (self.is_locked(now), self.broken, self.end) {
            (true, true, Some(until)) => refused(LeaseRefusal::Breaking { until }),
            (false, true, _) => refused(LeaseRefusal::Broken),
            (false, false, Some(at)) => refused(LeaseRefusal::Lapsed { at }),
            (_, _, until) => {
                self.id = to;
                *answer == LeaseOutcome::Changed { until }
            }
        }
    }
}

fn is_grant(answer: &LeaseOutcome, number: u64, until: Option<Timestamp>) -> bool {
    matches!(answer, LeaseOutcome::Granted { fence, until: u } if fence.number() == number && *u == until)
}

fn is_refusal_of_locked(answer: &LeaseOutcome, span: Option<&Span>) -> bool {
    let Some(span) = span else { return false };
    match answer {
        LeaseOutcome::Refused(LeaseRefusal::Breaking { until }) => span.broken && span.end == Some(*until),
        LeaseOutcome::Refused(LeaseRefusal::Held { fence, since, until, .. }) => {
            !span.broken && (fence.number(), *since, *until) == (span.fence, span.from, span.end)
        }
        LeaseOutcome::Granted { .. }
        | LeaseOutcome::Renewed { .. }
        | LeaseOutcome::RenewedLate { .. }
        | LeaseOutcome::Changed { .. }
        | LeaseOutcome::Released
        | LeaseOutcome::Breaks { .. }
        | LeaseOutcome::Left
        | LeaseOutcome::Forgotten
        | LeaseOutcome::Refused(_) => false,
    }
}
