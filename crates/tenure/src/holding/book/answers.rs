//! What follows from the store's answers.

use std::time::Duration;

use tenure_core::{Fence, LeaseOutcome, LeaseRefusal, Timestamp, Ttl};
use tenure_store::{Fault, Moment};

use super::entry::{Entry, Had, Kind, Stage};
use super::{Book, Gone, LOOK, Now, Number, Output, Request, SPREAD, STAY};
use crate::holding::Loss;
use crate::until_known::{REPEATS, still_unknown};

/// An answer to one wish, and when that was sent.
struct Answer {
    kind: Kind,
    outcome: LeaseOutcome,
    sent: Moment,
}

impl Answer {
    fn is_grant(&self) -> bool {
        matches!(self.outcome, LeaseOutcome::Granted { .. })
    }
}

impl Book {
    /// A request was answered: each wish in it by itself.
    pub(super) fn answered(&mut self, now: Now, number: u64, answer: Result<Vec<LeaseOutcome>, Fault>) {
        let Some(Request { sent, about }) = self.requests.remove(&number) else { return };
        let answer = answer.and_then(|outcomes| {
            let (wishes, answers) = (about.len(), outcomes.len());
            let odd = || Fault::Broken(format!("the store returned {answers} results for {wishes} requests"));
            (wishes == answers).then_some(outcomes).ok_or_else(odd)
        });
        let chance = self.chance.fraction();
        for (entry, kind) in &about {
            if let (Kind::Acquire, Some(entry)) = (kind, self.entries.get_mut(entry)) {
                entry.acquiring.remove(&number);
            }
        }
        let numbers: Vec<Number> = about.iter().map(|(entry, _)| *entry).collect();
        match answer {
            Ok(outcomes) => {
                for ((entry, kind), outcome) in about.into_iter().zip(outcomes) {
                    self.compare_clocks(now, entry, &outcome, sent);
                    self.take_in(now, number, entry, Answer { kind, outcome, sent });
                }
            }
            Err(fault) => {
                for (entry, _) in about {
                    if self.is_about(entry, number) {
                        self.failed(now, entry, &fault, chance);
                    }
                }
            }
        }
        numbers.into_iter().for_each(|number| self.say_again(now, number));
    }

    /// What may grant it has been answered: what was given back before that is given back again.
    fn say_again(&mut self, now: Now, number: Number) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        if let Stage::Leaving(leaving) = &mut entry.stage
            && leaving.next.is_none()
            && entry.acquiring.is_empty()
        {
            leaving.next = Some(now.moment);
            self.place(number);
        }
    }

    /// Whether this request is the one that is waited for.
    fn is_about(&self, number: Number, request: u64) -> bool {
        let asked = self.entries.get(&number).and_then(|entry| entry.asked);
        asked.is_some_and(|asked| asked.request == request)
    }

    fn take_in(&mut self, now: Now, request: u64, number: Number, answer: Answer) {
        let is_awaited = self.is_about(number, request);
        let Some(entry) = self.entries.get_mut(&number) else { return };
        if is_awaited {
            entry.asked = None;
            (entry.tries, entry.slow) = (0, 0);
        }
        match (&entry.stage, answer.kind) {
            (Stage::Had(_), Kind::Renew) => self.renewed(now, number, answer),
            (Stage::Had(_), Kind::Acquire) => self.granted_again(now, number, &answer),
            // A grant that comes late is still one; whatever else comes late is asked again under the same id.
            (Stage::Wanted(_), Kind::Acquire) if is_awaited || answer.is_grant() => {
                self.acquired(now, number, answer);
            }
            (Stage::Leaving(_), Kind::Acquire) if is_awaited => self.acquired_too_late(now, number, &answer),
            (Stage::Leaving(_), Kind::GiveBack) => self.given_back(now, (number, request), &answer.outcome),
            _ => {}
        }
        self.place(number);
    }

    fn acquired(&mut self, now: Now, number: Number, answer: Answer) {
        if let LeaseOutcome::Granted { fence, until } = answer.outcome {
            self.granted(now, number, (fence, until), answer.sent);
        } else if let LeaseOutcome::Refused(refusal) = answer.outcome {
            self.refused(now, number, refusal);
        } else {
            self.odd(now, number, &answer.outcome);
        }
    }

    fn granted(&mut self, now: Now, number: Number, grant: (Fence, Option<Timestamp>), sent: Moment) {
        let chance = self.chance.fraction();
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let (fence, until) = grant;
        let late = cfg!(mutant = "lease-deadline-from-receipt");
        let deadline = entry.beat.deadline(if late { now.moment } else { sent });
        if deadline.is_some_and(|deadline| deadline <= now.moment) {
            // The answer took so long that it says nothing about now. Asked again, the time starts again.
            let late = Fault::Unknown("the renewal arrived after the lease had expired".to_owned());
            return self.failed(now, number, &late, chance);
        }
        let since = match entry.beat.ttl() {
            Ttl::For(span) => until.map_or(now.time, |until| until.before(span)),
            Ttl::Endless => now.time,
        };
        if entry.is_look() {
            // Looks that bring something may go on: a lease that changes hands often is not held up.
            self.looks.refill();
        }
        let renew = sent.after(entry.beat.renew_after(chance));
        entry.stage = Stage::Had(Had { fence, since, until, sent, deadline, renew, doubtful: false });
        // It may have been asked for again by now. While this is held that brings nothing new; after that it
        // may bring a grant that nobody asked for.
        (entry.asked, entry.tries, entry.slow) = (None, 0, 0);
        entry.astray = !entry.acquiring.is_empty();
        self.ready.remove(number);
        self.tally.held += 1;
        self.leave_line(number);
        self.out.push(Output::Granted { number, fence, until, deadline });
    }

    /// A request that was sent before it was held has been answered as well. What is held under another fence
    /// than the believed one was lost in between.
    fn granted_again(&mut self, now: Now, number: Number, answer: &Answer) {
        let Some(Stage::Had(had)) = self.entries.get(&number).map(|entry| &entry.stage) else { return };
        if let LeaseOutcome::Granted { fence, .. } = answer.outcome
            && fence > had.fence
        {
            self.lose(now, number, Loss::TakenAway { fence });
        }
    }

    fn refused(&mut self, now: Now, number: Number, refusal: LeaseRefusal) {
        let chance = self.chance.fraction();
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let is_first = self.lines.get(&entry.name).and_then(|line| line.first()) == Some(&number);
        let Stage::Wanted(wanted) = &mut entry.stage else { return };
        if wanted.waits {
            let pause = if wanted.missed {
                Duration::ZERO
            } else if is_first {
                until_look(&refusal, now, chance)
            } else {
                STAY
            };
            let pause = if cfg!(mutant = "waits-for-hint") { STAY * 10_000 } else { pause };
            wanted.next = Some(now.moment.after(pause));
            (wanted.looks, wanted.last) = (true, Some(Ok(refusal)));
            return;
        }
        self.out.push(Output::Refused { number, refusal });
        self.give_up(now, number);
    }

    /// It was asked for by somebody who has gone since.
    fn acquired_too_late(&mut self, now: Now, number: Number, answer: &Answer) {
        let Some(Entry { stage: Stage::Leaving(leaving), .. }) = self.entries.get_mut(&number) else {
            return;
        };
        if let LeaseOutcome::Granted { fence, .. } = answer.outcome {
            leaving.fence = Some(fence);
        }
        leaving.next = Some(now.moment);
    }

    fn renewed(&mut self, now: Now, number: Number, answer: Answer) {
        let chance = self.chance.fraction();
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let beat = entry.beat;
        let Stage::Had(had) = &mut entry.stage else { return };
        if had.deadline.is_some_and(|deadline| deadline <= now.moment) {
            // Not even a good answer counts after the deadline: somebody may have looked meanwhile.
            self.expire(now, number);
        } else if let LeaseOutcome::Renewed { until } = answer.outcome {
            if answer.sent < had.sent {
                return;
            }
            let deadline = beat.deadline(answer.sent);
            (had.sent, had.until, had.deadline) = (answer.sent, until, deadline);
            (had.renew, had.doubtful) = (answer.sent.after(beat.renew_after(chance)), false);
            self.tally.renewals += 1;
            self.out.push(Output::Renewed { number, until, deadline });
        } else if let LeaseOutcome::RenewedLate { lapsed, .. } = answer.outcome {
            self.lose(now, number, Loss::Expired { at: lapsed });
        } else if let LeaseOutcome::Refused(refusal) = &answer.outcome {
            self.lose(now, number, loss_by(refusal));
        } else {
            self.odd(now, number, &answer.outcome);
        }
    }

    fn given_back(&mut self, now: Now, (number, request): (Number, u64), outcome: &LeaseOutcome) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let Stage::Leaving(leaving) = &mut entry.stage else { return };
        let end = match (outcome, leaving.unknown) {
            (LeaseOutcome::Refused(refusal), false) => Gone::Lost(loss_by(refusal)),
            // What is refused now may have been given back by an earlier try whose answer was lost.
            _ => Gone::Free,
        };
        let end = leaving.said.take().unwrap_or(end);
        if leaving.enough.is_some_and(|enough| enough <= request) {
            return self.gone(number, end);
        }
        // Something may have granted it since, or may yet.
        (leaving.said, leaving.fence) = (Some(end), None);
        leaving.next = entry.acquiring.is_empty().then_some(now.moment);
    }

    /// The answer did not come in time.
    pub(super) fn unanswered(&mut self, now: Now, number: Number) {
        let chance = self.chance.fraction();
        let Some(entry) = self.entries.get_mut(&number) else { return };
        entry.slow = entry.slow.saturating_add(1);
        let waited = entry.asked.map_or(Duration::ZERO, |asked| asked.until.since(asked.sent));
        let fault = Fault::Unknown(format!("no answer within {} ms", waited.as_millis()));
        self.failed(now, number, &fault, chance);
    }

    /// A try came to nothing, or nobody knows what it came to.
    fn failed(&mut self, now: Now, number: Number, fault: &Fault, chance: f64) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        entry.asked = None;
        entry.tries = entry.tries.saturating_add(1);
        let (tries, next) = (entry.tries, now.moment.after(entry.beat.pause(entry.tries, chance)));
        let is_unknown = matches!(fault, Fault::Unknown(_));
        match &mut entry.stage {
            Stage::Had(had) => {
                had.renew = next;
                if !std::mem::replace(&mut had.doubtful, true) {
                    self.tally.doubtful += 1;
                    self.out.push(Output::Doubtful { number, fault: fault.clone() });
                }
            }
            Stage::Wanted(wanted) => {
                wanted.unknown |= is_unknown;
                wanted.next = Some(next);
                let goes_on = if wanted.waits { fault.is_passing() } else { is_unknown && tries <= REPEATS };
                if goes_on {
                    wanted.last = Some(Err(fault.clone()));
                } else {
                    let fault = match wanted.unknown && !is_unknown {
                        true => still_unknown("no answer to an earlier try", fault),
                        false => fault.clone(),
                    };
                    self.out.push(Output::Failed { number, fault });
                    self.give_up(now, number);
                }
            }
            Stage::Leaving(leaving) => {
                leaving.unknown |= is_unknown;
                leaving.next = Some(next);
                leaving.fault = Some(fault.clone());
                if *fault == Fault::Closed {
                    self.gone(number, Gone::Unheard(Fault::Closed));
                }
            }
            Stage::Lost(_) => {}
        }
        self.place(number);
    }

    fn odd(&mut self, now: Now, number: Number, outcome: &LeaseOutcome) {
        let fault = Fault::Broken(format!("the store returned an unexpected result: {outcome:?}"));
        self.failed(now, number, &fault, 1.0);
    }

    /// Compares how long it has been by the store's clock and by this host's.
    fn compare_clocks(&mut self, now: Now, number: Number, outcome: &LeaseOutcome, sent: Moment) {
        let (LeaseOutcome::Granted { until: Some(until), .. } | LeaseOutcome::Renewed { until: Some(until) }) =
            outcome
        else {
            return;
        };
        let Some(Ttl::For(span)) = self.entries.get(&number).map(|entry| entry.beat.ttl()) else { return };
        let (shown, got) = (until.before(span), now.moment);
        let Some((last_shown, last_sent, last_got)) = self.store_time.replace((shown, sent, got)) else {
            return;
        };
        let (least, most) = (sent.since(last_got), got.since(last_sent));
        // Of two requests that were under way at once, any may have been read first.
        let together = last_got.since(sent);
        let margin = Duration::from_secs(1).max(most / 10);
        let (ahead, behind) = (shown.since(last_shown), last_shown.since(shown));
        let step = if ahead > most + margin {
            Some((ahead - most, true))
        } else if ahead + margin < least || behind > margin + together {
            Some((least + behind - ahead.min(least), false))
        } else {
            None
        };
        if let Some((by, ahead)) = step {
            self.tally.clock_steps += 1;
            self.out.push(Output::ClockStepped { by, ahead });
        }
    }
}

/// When who waits looks again: when the lease can be had, or after a while.
fn until_look(refusal: &LeaseRefusal, now: Now, chance: f64) -> Duration {
    let spread = SPREAD.mul_f64(chance);
    let free = match refusal {
        LeaseRefusal::Held { until, .. } => until.map(|until| until.since(now.time) + spread),
        LeaseRefusal::Breaking { until } => Some(until.since(now.time) + spread),
        LeaseRefusal::Awaited { again, .. } => Some(again.since(now.time)),
        LeaseRefusal::WrongId
        | LeaseRefusal::Lost { .. }
        | LeaseRefusal::Lapsed { .. }
        | LeaseRefusal::Broken
        | LeaseRefusal::NotHeld => None,
    };
    free.unwrap_or(LOOK).min(LOOK)
}

/// How a holder lost what it is refused.
fn loss_by(refusal: &LeaseRefusal) -> Loss {
    match refusal {
        LeaseRefusal::Lost { fence } | LeaseRefusal::Held { fence, .. } => Loss::TakenAway { fence: *fence },
        LeaseRefusal::Lapsed { at } => Loss::Expired { at: *at },
        LeaseRefusal::Broken | LeaseRefusal::Breaking { .. } => Loss::Broken,
        LeaseRefusal::WrongId | LeaseRefusal::NotHeld | LeaseRefusal::Awaited { .. } => Loss::Released,
    }
}
