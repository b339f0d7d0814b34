//! The recorder: as long as somebody wants to know, it writes down what happens. It hears hints, but what it writes it has
//! read in the store; and what several servers read they write once.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::records::{Document, NewValue, Only, Put, RecordKey, Writes, Written};
use tenure::{Error, Event, Happening, JobId, Moment, Name, StateName, Tenure, Timestamp};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use super::event::EventDocument;
use super::known::Known;
use super::sources::Ends;
use super::webhook::{EVENT_KEPT, last_number};
use super::{journal, sources};
use crate::hide::Hiding;

/// It looks at least so often, for all who follow,
const LOOK: Duration = Duration::from_secs(2);
/// and each of them only so often by himself: many who follow cost no more than few.
const FOLLOWER_LOOKS: Duration = Duration::from_secs(60);
/// and so long apart for what others have written.
const APART: Duration = Duration::from_millis(200);
/// After a fault it waits so long.
const AFTER_FAULT: Duration = Duration::from_secs(1);
/// When nobody wants to know any more, it goes on for so long: he may come back.
pub(super) const IDLE: Duration = Duration::from_secs(15 * 60);
/// What ends is seen a little later than it says that it ended: so long after that it looks again.
const OVERLAP: Duration = Duration::from_secs(30);
/// It looks at slots so long apart.
const SLOTS_APART: Duration = Duration::from_secs(2);
/// The position is written so long apart.
const SAVED_APART: Duration = Duration::from_secs(5);
/// Jobs of which it was heard that they ended, and that were not yet looked at.
const HEARD: usize = 10_000;

const SHELF: &str = "events";
const KEY: &str = "position";

/// Writes down what happens as long as somebody follows.
#[derive(Clone)]
pub(crate) struct Recorder {
    shared: Arc<Shared>,
    /// What is told to nobody.
    hiding: Hiding,
}

struct Shared {
    following: Mutex<Following>,
    /// Changes when something was appended here.
    appended: watch::Sender<u64>,
    /// Since when nothing was left out, once that is known.
    began: watch::Sender<Option<Timestamp>>,
}

#[derive(Default)]
struct Following {
    count: usize,
    /// Since when nobody follows.
    none_since: Option<Moment>,
    runs: bool,
}

/// Somebody who wants to know. When he goes, this is dropped.
pub(crate) struct Follow {
    tenure: Tenure,
    shared: Arc<Shared>,
    appended: watch::Receiver<u64>,
}

impl Recorder {
    pub(crate) fn new(hiding: Hiding) -> Self {
        Self { shared: Arc::new(Shared::new()), hiding }
    }

    /// Begins to follow; what happens from now on is written down.
    pub(crate) fn follow(&self, tenure: &Tenure) -> Follow {
        let mut following = self.shared.lock();
        following.count += 1;
        following.none_since = None;
        if !following.runs {
            following.runs = true;
            self.shared.began.send_replace(None);
            // It listens before this returns, and so before anything is looked at.
            let hearing = Hearing::new(tenure, Arc::clone(&self.shared), self.hiding.clone());
            tokio::spawn(hearing.run());
        }
        Follow {
            tenure: tenure.clone(),
            shared: Arc::clone(&self.shared),
            appended: self.shared.appended.subscribe(),
        }
    }

    /// Whether somebody in this program wants to know.
    pub(crate) fn is_on(&self) -> bool {
        self.shared.lock().runs
    }

    /// Says that something was appended by somebody else in this program.
    pub(crate) fn call(&self) {
        self.shared.appended.send_modify(|count| *count += 1);
    }
}

impl Follow {
    /// Since when all that happens is written down.
    pub(crate) async fn began(&self) -> Timestamp {
        let mut began = self.shared.began.subscribe();
        let known = began.wait_for(Option::is_some).await.ok().and_then(|known| *known);
        // Whoever says it is there for as long as this is.
        known.unwrap_or(Timestamp::EPOCH)
    }

    /// Ends when there may be more in the journal; now and then it ends although there is not.
    pub(crate) async fn more(&mut self) {
        let clock = self.tenure.store().clock();
        tokio::select! {
            biased;
            Ok(()) = self.appended.changed() => {}
            () = clock.sleep(FOLLOWER_LOOKS) => {}
        }
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        let mut following = self.shared.lock();
        following.count -= 1;
        if following.count == 0 {
            following.none_since = Some(self.tenure.store().clock().moment());
        }
    }
}

impl Shared {
    fn new() -> Self {
        let (appended, began) = (watch::Sender::new(0), watch::Sender::new(None));
        Self { following: Mutex::default(), appended, began }
    }

    fn lock(&self) -> MutexGuard<'_, Following> {
        self.following.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody has followed for a while; then it ends.
    fn is_over(&self, now: Moment) -> bool {
        let mut following = self.lock();
        let over = following.none_since.is_some_and(|since| now.since(since) >= IDLE);
        if over {
            following.runs = false;
        }
        over
    }
}

/// Up to where everything was written down, whenever it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Position {
    /// What had ended before.
    since: Timestamp,
    /// What stands in the ledger up to this number.
    ledger: u64,
    /// Nothing was left out since.
    began: Timestamp,
}

/// Since when all that happens is written down, by whichever server; `None` if it is not.
pub(super) async fn began(tenure: &Tenure) -> Result<Option<Timestamp>, Error> {
    Ok(kept(tenure).await?.map(|position| position.began))
}

async fn kept(tenure: &Tenure) -> Result<Option<Position>, Error> {
    let (shelf, key) = (Name::new("shelf", SHELF)?, RecordKey::new(KEY)?);
    let there = tenure.store().record(&shelf, &key).await?;
    Ok(there.and_then(|there| serde_json::from_slice::<Position>(there.value.as_bytes()).ok()))
}

/// The recorder at work.
struct Hearing {
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
    fn new(tenure: &Tenure, shared: Arc<Shared>, hiding: Hiding) -> Self {
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

    async fn run(mut self) {
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
                    tracing::debug!(%error, "where the events ended stays written down");
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
        tracing::warn!(%error, "what happens is not written down at the moment");
        self.tenure.store().clock().sleep(AFTER_FAULT).await;
    }

    /// Goes on where this server or another one was, or begins here and now.
    async fn begin(&mut self) -> Result<(), Error> {
        let (since, ledger) = match kept(&self.tenure).await? {
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
            tracing::warn!(%error, "that events are recorded is not written down yet");
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
        let value = |position: Position| -> Result<NewValue, Error> {
            let text =
                serde_json::to_vec(&position).map_err(|source| Error::Json { what: "position", source })?;
            Ok(NewValue { value: Document::new(text)?, keep: Some(EVENT_KEPT) })
        };
        let (shelf, key) = (Name::new("shelf", SHELF)?, RecordKey::new(KEY)?);
        // Only what stands there from here is taken away: somebody else may have begun meanwhile.
        let only =
            if position.is_some() { Only::Any } else { self.version.map_or(Only::Absent, Only::Version) };
        let put = Put { shelf, key, only, to: position.map(value).transpose()? };
        let writes = Writes { records: vec![put], ..Writes::default() };
        if let Written::Done { versions, .. } = self.tenure.store().write_records(writes).await? {
            self.version = versions.first().copied().flatten();
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
            let (events, next) = journal::behind(tenure, behind).await.unwrap();
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
