//! The recorder at work: it hears hints, but what it writes down it has read in the store; and what several servers read they
//! write once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tenure::{Error, Event, Happening, JobId, Moment, StateName, Tenure, Timestamp};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::event::EventDocument;
use super::journal;
use super::known::Known;
use super::position::{self, Position};
use super::recorder::Shared;
use super::sources::{self, Ends};
use super::webhook::{EVENT_KEPT, last_number};
use crate::hide::Hiding;

/// It looks at least so often, for all who follow,
const LOOK: Duration = Duration::from_secs(2);
/// and so long apart for what others have written.
const APART: Duration = Duration::from_millis(200);
/// After a fault it waits so long.
const AFTER_FAULT: Duration = Duration::from_secs(1);
/// What ends is seen a little later than it says that it ended: so long after that it looks again.
const OVERLAP: Duration = Duration::from_secs(30);
/// It looks at slots so long apart.
const SLOTS_APART: Duration = Duration::from_secs(2);
/// The position is written so long apart.
const SAVED_APART: Duration = Duration::from_secs(5);
/// Jobs of which it was heard that they ended, and that were not yet looked at.
const HEARD: usize = 10_000;

/// The recorder at work.
pub(super) struct Hearing {
    tenure: Tenure,
    shared: Arc<Shared>,
    hiding: Hiding,
    events: broadcast::Receiver<Arc<Event>>,
    others: broadcast::Receiver<()>,
    began: Timestamp,
    heard: BTreeSet<JobId>,
    /// Whether there may be more than what was heard of.
    scan: bool,
    at: At,
    known: Known,
    slots_looked: Option<Moment>,
    /// The last event that was in the journal when it was looked at.
    last: Option<u64>,
    saved: Option<Moment>,
    /// The version of the position that was written here last.
    version: Option<u64>,
}

/// How far it has read.
#[derive(Debug, Clone, Copy)]
struct At {
    /// What has just ended.
    ahead: Ends,
    /// The same once more, when all of it can be seen. What is written down as the position is how far this has come.
    again: Ends,
    /// Which slots were decided before this instant was read.
    slots: Timestamp,
    ledger: u64,
}

impl Hearing {
    pub(super) fn new(tenure: &Tenure, shared: Arc<Shared>, hiding: Hiding) -> Self {
        let began = tenure.now();
        Self {
            tenure: tenure.clone(),
            shared,
            hiding,
            events: tenure.events(),
            others: tenure.store().others(),
            began,
            heard: BTreeSet::new(),
            scan: true,
            at: At { ahead: Ends::since(began), again: Ends::since(began), slots: began, ledger: 0 },
            known: Known::default(),
            slots_looked: None,
            last: None,
            saved: None,
            version: None,
        }
    }

    pub(super) async fn run(mut self) {
        let clock = self.tenure.store().clock();
        while let Err(error) = self.begin().await {
            self.failed(&error).await;
        }
        let mut scanned = clock.moment();
        loop {
            if self.scan {
                scanned = clock.moment();
            }
            if let Err(error) = self.look().await {
                self.failed(&error).await;
                self.scan = true;
            }
            // What is too much for one look is looked at in the next.
            let rest =
                if self.scan { Duration::ZERO } else { LOOK.saturating_sub(clock.moment().since(scanned)) };
            tokio::select! {
                biased;
                event = self.events.recv() => match event {
                    Ok(event) => self.note(&event),
                    Err(RecvError::Lagged(_)) => self.scan = true,
                    Err(RecvError::Closed) => return,
                },
                wrote = self.others.recv() => {
                    if matches!(wrote, Err(RecvError::Closed)) {
                        return;
                    }
                    self.scan = true;
                    clock.sleep(APART).await;
                }
                () = clock.sleep(rest) => {}
            }
            while let Ok(event) = self.events.try_recv() {
                self.note(&event);
            }
            // However much is heard meanwhile: not all of what happens is.
            self.scan |= clock.moment().since(scanned) >= LOOK;
            if self.shared.is_over(clock.moment()) {
                // Whoever comes later is told of what happens from then on.
                if let Err(error) = self.keep(None).await {
                    tracing::debug!(%error, "failed to clear the end marker of the event log");
                }
                return;
            }
        }
    }

    fn note(&mut self, event: &Event) {
        let Happening::Became { state, .. } = &event.what else { return };
        match state {
            StateName::Succeeded | StateName::Failed | StateName::Cancelled => {
                if self.heard.len() < HEARD {
                    self.heard.insert(event.id);
                } else {
                    self.scan = true;
                }
            }
            StateName::Scheduled | StateName::Queued | StateName::Blocked | StateName::Running => {}
        }
    }

    async fn failed(&self, error: &Error) {
        tracing::warn!(%error, "failed to record events; retrying");
        self.tenure.store().clock().sleep(AFTER_FAULT).await;
    }

    /// Goes on where this server or another one was, or begins here and now.
    async fn begin(&mut self) -> Result<(), Error> {
        let (since, ledger) = match position::kept(&self.tenure).await? {
            Some(kept) => {
                let since = kept.since.max(self.tenure.now().before(EVENT_KEPT)).min(self.began);
                self.began = kept.began;
                (since, kept.ledger)
            }
            None => (self.began, sources::last_of_ledger(&self.tenure).await?),
        };
        self.at = At { ahead: Ends::since(since), again: Ends::since(since), slots: since, ledger };
        // Before anybody is told a place: if this server is gone in a moment, the next one goes on there. What happened before
        // can be read of a store that takes nothing.
        if let Err(error) = self.save(Position { since, ledger, began: self.began }).await {
            tracing::warn!(%error, "failed to mark event recording as active; retrying");
        }
        self.shared.began.send_replace(Some(self.began));
        Ok(())
    }

    /// Writes down what is new.
    async fn look(&mut self) -> Result<(), Error> {
        let (mut at, heard, mut found) = (self.at, std::mem::take(&mut self.heard), Vec::new());
        let mut written = self.read(&heard, &mut at, &mut found).await;
        if written.is_ok() {
            let mut here = BTreeSet::new();
            found.retain(|event| !self.known.has(&event.id) && here.insert(event.id.clone()));
            written = journal::append(&self.tenure, &found).await.map(|appended| {
                if appended > 0 {
                    self.shared.appended.send_modify(|count| *count += 1);
                }
            });
        }
        if let Err(error) = written {
            self.heard = heard;
            return Err(error);
        }
        found.iter().for_each(|event| self.known.remember(&event.id));
        self.at = at;
        if self.scan {
            self.call_of_others().await?;
        }
        self.scan = self.scan && (at.ahead.is_cut() || at.again.is_cut());
        let since = at.again.since.min(at.slots);
        self.save(Position { since, ledger: at.ledger, began: self.began }).await
    }

    async fn read(
        &mut self,
        heard: &BTreeSet<JobId>,
        at: &mut At,
        found: &mut Vec<EventDocument>,
    ) -> Result<(), Error> {
        let of = (&self.tenure, &self.hiding);
        for id in heard {
            found.extend(sources::one(of, *id).await?);
        }
        if self.scan {
            found.extend(at.ahead.next(of, None).await?);
            let seen_by_now = self.tenure.now().before(OVERLAP);
            if at.again.since < seen_by_now {
                found.extend(at.again.next(of, Some(seen_by_now)).await?);
            }
            let now = self.tenure.store().clock().moment();
            if self.slots_looked.is_none_or(|looked| now.since(looked) >= SLOTS_APART) {
                found.extend(sources::slots(&self.tenure, at.slots).await?);
                at.slots = at.slots.max(seen_by_now);
                self.slots_looked = Some(now);
            }
        }
        loop {
            let (leases, next) = sources::leases(of, at.ledger).await?;
            found.extend(leases);
            if next == at.ledger {
                return Ok(());
            }
            at.ledger = next;
        }
    }

    /// Calls those who follow if anything was appended, by whichever server.
    async fn call_of_others(&mut self) -> Result<(), Error> {
        let last = last_number(&self.tenure).await?;
        if self.last.replace(last) != Some(last) {
            self.shared.appended.send_modify(|count| *count += 1);
        }
        Ok(())
    }

    async fn save(&mut self, position: Position) -> Result<(), Error> {
        let now = self.tenure.store().clock().moment();
        if self.saved.is_some_and(|saved| now.since(saved) < SAVED_APART) {
            return Ok(());
        }
        self.keep(Some(position)).await?;
        self.saved = Some(now);
        Ok(())
    }

    async fn keep(&mut self, position: Option<Position>) -> Result<(), Error> {
        if let Some(version) = position::keep(&self.tenure, position, self.version).await? {
            self.version = version;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tenure::{Chance, Draft, ManualClock, MemoryStore};

    use super::*;

    async fn ended(tenure: &Tenure, count: usize) {
        for _ in 0..count {
            let id = tenure.enqueue_draft(Draft::raw("bill", &serde_json::Value::Null)).await.unwrap().id();
            tenure.jobs().cancel(id, Duration::ZERO, "").await.unwrap();
        }
    }

    async fn told(tenure: &Tenure) -> usize {
        let (mut behind, mut count) = (0, 0);
        loop {
            let (events, next) = journal::behind(tenure, behind, journal::PAGE).await.unwrap();
            count += events.len();
            let Some(next) = next else { return count };
            behind = next;
        }
    }

    fn hearing(clock: &ManualClock) -> Hearing {
        let tenure = Tenure::on(Arc::new(MemoryStore::new(Arc::new(clock.clone()))), Chance::seeded(1));
        Hearing::new(&tenure, Arc::new(Shared::new()), Hiding::default())
    }

    /// What was committed by somebody slow, behind what had been read by then.
    #[tokio::test]
    async fn what_is_seen_only_after_later_ends_were_read_is_told_a_little_later() {
        let clock = ManualClock::new();
        let mut hearing = hearing(&clock);
        hearing.at.ahead = Ends::since(hearing.tenure.now().after(Duration::from_secs(5)));
        ended(&hearing.tenure, 1).await;
        hearing.look().await.unwrap();
        assert_eq!(told(&hearing.tenure).await, 0);
        clock.advance(OVERLAP + Duration::from_secs(1));
        hearing.scan = true;
        hearing.look().await.unwrap();
        assert_eq!((told(&hearing.tenure).await, hearing.scan), (1, false));
    }

    /// Whoever goes on where another server has ended tells of what was decided in between.
    #[tokio::test]
    async fn slots_that_were_decided_while_nobody_recorded_are_told() {
        let clock = ManualClock::new();
        let mut first = hearing(&clock);
        first.begin().await.unwrap();
        first.look().await.unwrap();
        let job = Draft::raw("report", &serde_json::Value::Null);
        let timer = tenure::TimerDraft::of("nightly", "every 60s", job);
        first.tenure.timers().set(timer).await.unwrap();
        clock.advance(Duration::from_secs(61));
        first.tenure.store().fire(10).await.unwrap();
        clock.advance(OVERLAP * 10);
        let shared = Arc::new(Shared::new());
        let mut next = Hearing::new(&first.tenure, shared, Hiding::default());
        next.begin().await.unwrap();
        next.look().await.unwrap();
        assert_eq!(told(&next.tenure).await, 1);
    }

    #[tokio::test]
    async fn more_than_one_look_takes_is_told_though_all_of_it_ended_in_one_instant() {
        let clock = ManualClock::new();
        let mut hearing = hearing(&clock);
        ended(&hearing.tenure, 4_500).await;
        let mut looks = 0;
        while hearing.scan {
            hearing.look().await.unwrap();
            looks += 1;
        }
        assert_eq!((told(&hearing.tenure).await, looks), (4_500, 3));
        // And no event twice when all is looked at again.
        clock.advance(OVERLAP * 2);
        hearing.scan = true;
        while hearing.scan {
            hearing.look().await.unwrap();
        }
        assert_eq!(told(&hearing.tenure).await, 4_500);
    }
}
