//! The recorder: as long as somebody wants to know, it writes down what happens. It hears hints, but what it writes it has
//! read in the store; and what several servers read they write once.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::records::{Document, NewValue, Only, Put, RecordKey, Writes};
use tenure::{Error, Event, Happening, JobId, Moment, Name, StateName, Tenure, Timestamp};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use super::event::EventDocument;
use super::webhook::EVENT_KEPT;
use super::{journal, sources};

/// It looks at least so often,
const LOOK: Duration = Duration::from_secs(2);
/// and so long apart for what others have written.
const APART: Duration = Duration::from_millis(200);
/// After a fault it waits so long.
const AFTER_FAULT: Duration = Duration::from_secs(1);
/// When nobody wants to know any more, it goes on for so long: he may come back.
const IDLE: Duration = Duration::from_secs(60);
/// What ends is seen a little later than it says that it ended: so far back it looks again.
const OVERLAP: Duration = Duration::from_secs(30);
/// The position is written so long apart.
const SAVED_APART: Duration = Duration::from_secs(5);
/// Events that are remembered to have been appended.
const REMEMBERED: usize = 10_000;
/// Jobs of which it was heard that they ended, and that were not yet looked at.
const HEARD: usize = 10_000;

const SHELF: &str = "events";
const KEY: &str = "position";

/// Writes down what happens as long as somebody follows.
#[derive(Clone)]
pub(crate) struct Recorder {
    shared: Arc<Shared>,
}

struct Shared {
    following: Mutex<Following>,
    /// Changes when something was appended here.
    appended: watch::Sender<u64>,
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

impl Default for Recorder {
    fn default() -> Self {
        let following = Mutex::default();
        Self { shared: Arc::new(Shared { following, appended: watch::Sender::new(0) }) }
    }
}

impl Recorder {
    /// Begins to follow; what happens from now on is written down.
    pub(crate) fn follow(&self, tenure: &Tenure) -> Follow {
        let mut following = self.shared.lock();
        following.count += 1;
        following.none_since = None;
        if !following.runs {
            following.runs = true;
            // It listens before this returns, and so before anything is looked at.
            let hearing = Hearing::new(tenure, Arc::clone(&self.shared));
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
    /// Ends when there may be more in the journal; now and then it ends although there is not.
    pub(crate) async fn more(&mut self) {
        let clock = self.tenure.store().clock();
        tokio::select! {
            biased;
            Ok(()) = self.appended.changed() => {}
            () = clock.sleep(LOOK) => {}
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

/// Up to where everything was written down.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Position {
    /// What had ended before.
    since: Timestamp,
    /// What stands in the ledger up to this number.
    ledger: u64,
}

/// The recorder at work.
struct Hearing {
    tenure: Tenure,
    shared: Arc<Shared>,
    events: broadcast::Receiver<Arc<Event>>,
    others: broadcast::Receiver<()>,
    began: Timestamp,
    heard: BTreeSet<JobId>,
    /// Whether everything is to be looked through.
    scan: bool,
    remembered: (BTreeSet<String>, VecDeque<String>),
    saved: Option<Moment>,
}

impl Hearing {
    fn new(tenure: &Tenure, shared: Arc<Shared>) -> Self {
        Self {
            tenure: tenure.clone(),
            shared,
            events: tenure.events(),
            others: tenure.store().others(),
            began: tenure.now(),
            heard: BTreeSet::new(),
            scan: true,
            remembered: Default::default(),
            saved: None,
        }
    }

    async fn run(mut self) {
        let clock = self.tenure.store().clock();
        let mut position = loop {
            match self.position().await {
                Ok(position) => break position,
                Err(error) => self.failed(&error).await,
            }
        };
        loop {
            if let Err(error) = self.look(&mut position).await {
                self.failed(&error).await;
                self.scan = true;
            }
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
                () = clock.sleep(LOOK) => self.scan = true,
            }
            while let Ok(event) = self.events.try_recv() {
                self.note(&event);
            }
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

    /// Where it goes on: where this server or another one was, or here and now.
    async fn position(&self) -> Result<Position, Error> {
        let (shelf, key) = (Name::new("shelf", SHELF)?, RecordKey::new(KEY)?);
        let there = self.tenure.store().record(&shelf, &key).await?;
        let kept = there.and_then(|there| serde_json::from_slice::<Position>(there.value.as_bytes()).ok());
        if let Some(kept) = kept {
            let since = kept.since.max(self.tenure.now().before(EVENT_KEPT));
            return Ok(Position { since: since.min(self.began), ..kept });
        }
        Ok(Position { since: self.began, ledger: sources::last_of_ledger(&self.tenure).await? })
    }

    /// Writes down what is new.
    async fn look(&mut self, position: &mut Position) -> Result<(), Error> {
        let now = self.tenure.now();
        let (mut found, heard) = (Vec::new(), std::mem::take(&mut self.heard));
        let read = self.read(&heard, position, &mut found).await;
        let (next, until) = match read {
            Ok(read) => read,
            Err(error) => {
                self.heard = heard;
                return Err(error);
            }
        };
        found.retain(|event| !self.remembered.0.contains(&event.id));
        match journal::append(&self.tenure, &found).await {
            Ok(0) => {}
            Ok(_) => self.shared.appended.send_modify(|count| *count += 1),
            Err(error) => {
                self.heard = heard;
                return Err(error);
            }
        }
        found.into_iter().for_each(|event| self.remember(event.id));
        position.ledger = next;
        if self.scan {
            // What is too much for one look is looked at in the next, and without an overlap until that is all.
            position.since = until.unwrap_or_else(|| position.since.max(now.before(OVERLAP)));
            self.scan = until.is_some();
        }
        self.save(*position).await
    }

    async fn read(
        &self,
        heard: &BTreeSet<JobId>,
        position: &Position,
        found: &mut Vec<EventDocument>,
    ) -> Result<(u64, Option<Timestamp>), Error> {
        let mut until = None;
        for id in heard {
            found.extend(sources::one(&self.tenure, *id).await?);
        }
        found.retain(|event| !self.remembered.0.contains(&event.id));
        if self.scan {
            let known: BTreeSet<String> = found.iter().map(|event| event.id.clone()).collect();
            let (ended, cut) = sources::ended(&self.tenure, position.since).await?;
            found.extend(ended.into_iter().filter(|event| !known.contains(&event.id)));
            until = cut;
            found.extend(sources::slots(&self.tenure, position.since).await?);
        }
        let mut behind = position.ledger;
        loop {
            let (leases, next) = sources::leases(&self.tenure, behind).await?;
            found.extend(leases);
            if next == behind {
                return Ok((behind, until));
            }
            behind = next;
        }
    }

    fn remember(&mut self, id: String) {
        let (known, order) = &mut self.remembered;
        if known.insert(id.clone()) {
            order.push_back(id);
        }
        if order.len() > REMEMBERED
            && let Some(first) = order.pop_front()
        {
            known.remove(&first);
        }
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

    async fn keep(&self, position: Option<Position>) -> Result<(), Error> {
        let value = |position: Position| -> Result<NewValue, Error> {
            let text =
                serde_json::to_vec(&position).map_err(|source| Error::Json { what: "position", source })?;
            Ok(NewValue { value: Document::new(text)?, keep: Some(EVENT_KEPT) })
        };
        let (shelf, key) = (Name::new("shelf", SHELF)?, RecordKey::new(KEY)?);
        let put = Put { shelf, key, only: Only::Any, to: position.map(value).transpose()? };
        self.tenure.store().write_records(Writes { records: vec![put], ..Writes::default() }).await?;
        Ok(())
    }
}
