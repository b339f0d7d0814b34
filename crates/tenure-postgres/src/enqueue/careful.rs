//! Accepting a batch that has to be compared with what is there: first every answer, then every row.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{
    Args, Cancel, CancelRequest, JobId, Kind, NewJob, OnConflict, QueueName, State, UniqueKey,
};
use tenure_store::{Accepted, Enqueued, Fault, Happening, Refusal, Values};
use tokio_postgres::Row;

use super::put;
use super::rooms::{self, Rooms};
use crate::link::Link;
use crate::memory::Memory;
use crate::query::Query;
use crate::rows::{self, Kept, Stored, Ties};
use crate::transaction::Gate;
use crate::writing::Writing;
use crate::{lanes, value};

const HOLDERS: &str = "SELECT key, id, until FROM unique_key WHERE key = ANY ($1)";
const THERE: &str = "SELECT id FROM job WHERE id = ANY ($1)";
/// The positions of the jobs with these args. PostgreSQL compares lengths first, so it reads few args.
const SAME_ARGS: &str = "SELECT u.n FROM unnest($1::uuid[], $2::bytea[]) WITH ORDINALITY u (id, args, n)
     CROSS JOIN LATERAL (SELECT args FROM job WHERE id = u.id LIMIT 1) j WHERE j.args = u.args";
/// Most jobs whose args are sent to be compared at once.
const COMPARED: usize = 128;
/// Of those that were there when this was decided: whoever has taken a key since keeps it.
const FREE: &str = "DELETE FROM unique_key WHERE key = ANY ($1) AND id = ANY ($2)";
const TAKE: &str = "INSERT INTO unique_key (key, seq, id, until)
     SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::uuid[], $4::bigint[])";
const TAG: &str = "INSERT INTO tag (tag, seq, id) SELECT * FROM unnest($1::text[], $2::bigint[], $3::uuid[])
     ON CONFLICT DO NOTHING";

/// What is there, and what the earlier jobs of a batch will have changed.
#[derive(Default)]
struct Plan<'a> {
    there: BTreeMap<JobId, There>,
    /// Is true if other jobs may depend on one that is there.
    concerns_keys: bool,
    holders: BTreeMap<UniqueKey, JobId>,
    stored: BTreeMap<JobId, &'a NewJob>,
    /// Who had keys before, if only until some time ago.
    had: Vec<JobId>,
    /// The jobs that are there of those for which any of the batch waits.
    awaited: BTreeSet<JobId>,
    /// Which queues have fair shares.
    fair: BTreeSet<QueueName>,
    /// What else was agreed about queues, and how many jobs may still come into them.
    rooms: Rooms,
}

/// The known part of a stored job. All of it, for very many jobs, would take too much memory.
struct There {
    kind: Kind,
    queue: QueueName,
    owner: Option<String>,
    lane: i32,
    waits: bool,
    /// Args of a job of the batch, if they are equal.
    args: Option<Args>,
}

impl There {
    fn of(stored: Stored) -> Self {
        let Stored { job, lane, .. } = stored;
        let waits = matches!(job.state, State::Waiting { .. } | State::Blocked { .. });
        Self { kind: job.kind, queue: job.queue, owner: job.terms.owner.clone(), lane, waits, args: None }
    }

    /// Tells the same as [`NewJob::repeats`].
    fn is_repeated_by(&self, new: &NewJob) -> bool {
        self.kind == new.kind && self.args.as_ref() == Some(&new.args) && self.owner == new.terms.owner
    }
}

/// Who holds which key.
fn holders(rows: &[Row], now: i64) -> BTreeMap<UniqueKey, JobId> {
    let holder = |row: &Row| {
        let (key, until): (&[u8], Option<i64>) = (row.get(0), row.get(2));
        let key = key.try_into().map(UniqueKey).ok()?;
        until.is_none_or(|until| until > now).then(|| (key, value::job_id(row, 1)))
    };
    rows.iter().filter_map(holder).collect()
}

/// Stores a batch, or nothing of it.
pub(super) async fn enqueue(link: &mut Link, batch: &[NewJob]) -> Result<Enqueued, Fault> {
    let gated = |new: &NewJob| new.terms.are_gated() || link.memory.lanes().is_fair(&new.queue);
    let mut gate = if batch.iter().any(gated) { Gate::Keys } else { Gate::Open };
    let mut tries = 0;
    loop {
        match try_enqueue(link, gate, batch).await {
            Ok(Some(enqueued)) => return Ok(enqueued),
            Ok(None) => gate = Gate::Keys,
            Err(fault) => {
                if !link.may_try_again(&mut tries).await {
                    return Err(fault);
                }
            }
        }
    }
}

/// `None` if it has to be done under the lock of the gates.
async fn try_enqueue(link: &mut Link, gate: Gate, batch: &[NewJob]) -> Result<Option<Enqueued>, Fault> {
    let reads = reads(&link.memory, batch);
    let (mut writing, read) = Writing::begin(link, gate, reads).await?;
    let mut plan = Plan::read(&mut writing, batch, &read).await?;
    if (plan.concerns_keys || !plan.fair.is_empty()) && gate != Gate::Keys {
        writing.roll_back().await?;
        return Ok(None);
    }
    let filled = plan.rooms.filled(batch);
    let batch = filled.as_deref().unwrap_or(batch);
    let mut answers = Vec::with_capacity(batch.len());
    for (index, new) in batch.iter().enumerate() {
        match plan.decide(new, &writing) {
            Ok(answer) => answers.push(answer),
            Err(refusal) => {
                match plan.lane_of_taken(&refusal) {
                    Some(lane) => {
                        writing.write(put::lasts(lane))?;
                        writing.commit().await?;
                    }
                    None => writing.roll_back().await?,
                }
                return Ok(Some(Enqueued::Refused { index, refusal }));
            }
        }
    }
    let new = new_of(batch.iter().zip(answers.iter().copied()));
    if new.is_empty()
        && let Some(lane) = plan.lane_of_repeated(&answers)
    {
        writing.write(put::lasts(lane))?;
    }
    if gate == Gate::Keys {
        plan.write_one_by_one(&mut writing, new).await?;
    } else {
        plan.write(&mut writing, new).await?;
    }
    writing.commit().await?;
    Ok(Some(Enqueued::Stored(answers)))
}

impl Writing<'_> {
    /// Stores jobs under the lock of the gates, each by itself: one that is there already, or that is refused, is left
    /// out. However many wait in their queues, these come in. Answers how many are new.
    pub(crate) async fn bring(&mut self, batch: &[NewJob]) -> Result<usize, Fault> {
        if batch.is_empty() {
            return Ok(0);
        }
        let reads = reads(&self.memory(), batch);
        let read = self.read(reads).await?;
        let mut plan = Plan::read(self, batch, &read).await?;
        plan.rooms.lift();
        let filled = plan.rooms.filled(batch);
        let batch = filled.as_deref().unwrap_or(batch);
        let mut answers = Vec::with_capacity(batch.len());
        for new in batch {
            if let Ok(answer) = plan.decide(new, self) {
                answers.push((new, answer));
            }
        }
        let new = new_of(answers);
        let count = new.len();
        plan.write_one_by_one(self, new).await?;
        Ok(count)
    }
}

/// Those of these jobs that are new, and what was decided about them.
fn new_of<'a>(answers: impl IntoIterator<Item = (&'a NewJob, Accepted)>) -> Vec<(&'a NewJob, Accepted)> {
    let is_new = |answer: &Accepted| matches!(answer, Accepted::New(_) | Accepted::Replaced { .. });
    answers.into_iter().filter(|(_, answer)| is_new(answer)).collect()
}

/// What has to be known about a batch.
fn reads(memory: &Memory, batch: &[NewJob]) -> Vec<Query> {
    let last_lane = memory.lanes().last();
    let keys: Vec<Vec<u8>> =
        batch.iter().filter_map(|new| new.terms.unique.map(|unique| unique.key.0.to_vec())).collect();
    let awaited = batch.iter().flat_map(|new| &new.terms.after).flat_map(|after| &after.jobs);
    vec![
        lanes::behind(last_lane),
        Query::new(THERE).with(batch.iter().map(|new| value::of_job(new.id)).collect::<Vec<_>>()),
        Query::new(HOLDERS).with(keys),
        rooms::read(batch),
        rooms::count(batch),
        Query::new(THERE).with(awaited.map(|id| value::of_job(*id)).collect::<Vec<_>>()),
    ]
}

impl<'a> Plan<'a> {
    /// What was read about a batch.
    async fn read(writing: &mut Writing<'_>, batch: &[NewJob], read: &[Vec<Row>]) -> Result<Self, Fault> {
        let [new_lanes, there, holders, queues, counts, awaited] = read else {
            return Err(Fault::Broken("the server omitted a result".to_owned()));
        };
        writing.meet(lanes::read(new_lanes));
        let mut plan = Self {
            had: holders.iter().map(|row| value::job_id(row, 1)).collect(),
            holders: self::holders(holders, writing.now.as_micros()),
            ..Self::default()
        };
        plan.look_at_there(writing, there.iter().map(|row| value::job_id(row, 0)).collect()).await?;
        plan.compare(writing, batch).await?;
        plan.awaited = awaited.iter().map(|row| value::job_id(row, 0)).collect();
        plan.fair = rooms::fair(queues)?;
        for queue in &plan.fair {
            writing.memory().lanes().meet_fair(queue.clone());
        }
        plan.rooms = Rooms::of(queues, counts)?;
        plan.rooms.note(&mut writing.memory().lanes(), batch);
        plan.look_at_replaced(writing, batch).await?;
        Ok(plan)
    }

    /// Looks at jobs that are there.
    async fn look_at_there(&mut self, writing: &mut Writing<'_>, ids: Vec<JobId>) -> Result<(), Fault> {
        for ids in writing.batches(ids).await? {
            for row in &writing.read_batch(&ids).await? {
                let stored = rows::stored(row)?;
                self.concerns_keys |= writing.needs_gate(&stored);
                let id = stored.job.id;
                let args = self.there.remove(&id).and_then(|there| there.args);
                self.there.insert(id, There { args, ..There::of(stored) });
            }
        }
        Ok(())
    }

    /// Finds out which jobs of the batch have the same args as those that are there. The server compares them: the client
    /// decides how large the others are.
    async fn compare(&mut self, writing: &mut Writing<'_>, batch: &[NewJob]) -> Result<(), Fault> {
        let known: Vec<&NewJob> = batch.iter().filter(|new| self.there.contains_key(&new.id)).collect();
        for new in known.chunks(COMPARED) {
            let same = Query::new(SAME_ARGS)
                .with(new.iter().map(|new| value::of_job(new.id)).collect::<Vec<_>>())
                .with(new.iter().map(|new| new.args.as_bytes().to_vec()).collect::<Vec<_>>());
            for row in writing.read(vec![same]).await?.iter().flatten() {
                let at = usize::try_from(row.get::<_, i64>(0) - 1).ok();
                let Some(new) = at.and_then(|at| new.get(at)) else { continue };
                if let Some(there) = self.there.get_mut(&new.id) {
                    there.args = Some(new.args.clone());
                }
            }
        }
        Ok(())
    }

    /// Looks at the holders of keys that jobs of the batch may take from them. Everybody locks jobs before keys: so the
    /// holders are locked first, and then it is seen whether they are still the holders.
    async fn look_at_replaced(&mut self, writing: &mut Writing<'_>, batch: &[NewJob]) -> Result<(), Fault> {
        let replacing = batch.iter().filter_map(|new| new.terms.unique);
        let replacing = replacing.filter(|unique| unique.on_conflict == OnConflict::Replace);
        let held = replacing.filter_map(|unique| Some((unique.key, self.holders.get(&unique.key).copied()?)));
        let held: BTreeMap<UniqueKey, JobId> = held.collect();
        if held.is_empty() {
            return Ok(());
        }
        let ids: Vec<JobId> = held.values().copied().collect();
        // Whoever has the lock of the gates finds nothing locked by those who will wait for it.
        for ids in writing.batches(ids.clone()).await? {
            let look = writing.read_batch(&ids).await?;
            if writing.need_gate(&[look])? {
                self.concerns_keys = true;
                return Ok(());
            }
        }
        let mut reads = rows::lock(&ids);
        reads.push(Query::new(HOLDERS).with(held.keys().map(|key| key.0.to_vec()).collect::<Vec<_>>()));
        let mut read = writing.read(reads).await?;
        let now = holders(&read.pop().unwrap_or_default(), writing.now.as_micros());
        if now != held {
            return writing.begin_anew().await;
        }
        self.look_at_there(writing, ids).await
    }

    fn decide(&mut self, new: &'a NewJob, writing: &Writing<'_>) -> Result<Accepted, Refusal> {
        let earlier =
            || self.stored.get(&new.id).map(|earlier| new.repeats(&earlier.accepted(0, writing.now)));
        let repeats = self.there.get(&new.id).map(|there| there.is_repeated_by(new)).or_else(earlier);
        if let Some(repeats) = repeats {
            return if repeats { Ok(Accepted::Repeated(new.id)) } else { Err(Refusal::IdTaken(new.id)) };
        }
        let holder =
            new.terms.unique.and_then(|unique| Some((self.holders.get(&unique.key).copied()?, unique)));
        let answer = match holder {
            None => Accepted::New(new.id),
            Some((holder, unique)) => match unique.on_conflict {
                OnConflict::Return => Accepted::Existing(holder),
                OnConflict::Reject => return Err(Refusal::KeyHeld(holder)),
                OnConflict::Replace if self.waits(holder) => Accepted::Replaced { id: new.id, old: holder },
                OnConflict::Replace => Accepted::Existing(holder),
            },
        };
        if let Accepted::New(_) | Accepted::Replaced { .. } = answer {
            let mut awaited = new.terms.after.iter().flat_map(|after| &after.jobs);
            let is_there = |id: &JobId| self.awaited.contains(id) || self.stored.contains_key(id);
            if let Some(missing) = awaited.find(|id| !is_there(id)) {
                return Err(Refusal::NoSuchJob(*missing));
            }
            let left = match answer {
                Accepted::Replaced { old, .. } => self.queue_of(old),
                Accepted::New(_) | Accepted::Repeated(_) | Accepted::Existing(_) => None,
            };
            // Only a place in the same queue is one that it may take.
            if left.as_ref() != Some(&new.queue) {
                self.rooms.take(&new.queue)?;
                left.iter().for_each(|left| self.rooms.leave(left));
            }
            self.stored.insert(new.id, new);
            self.holders.extend(new.terms.unique.map(|unique| (unique.key, new.id)));
        }
        Ok(answer)
    }

    /// Where one is that was there already, if any was: it may be so young that it would be lost if the server failed, and whoever
    /// is told that it is there relies on it, or gives up because of it.
    fn lane_of_repeated(&self, answers: &[Accepted]) -> Option<i32> {
        let there = |answer: &Accepted| match answer {
            Accepted::Repeated(id) => self.there.get(id).map(|there| there.lane),
            Accepted::New(_) | Accepted::Existing(_) | Accepted::Replaced { .. } => None,
        };
        answers.iter().find_map(there)
    }

    fn lane_of_taken(&self, refusal: &Refusal) -> Option<i32> {
        let Refusal::IdTaken(id) = refusal else { return None };
        self.there.get(id).map(|there| there.lane)
    }

    fn queue_of(&self, id: JobId) -> Option<QueueName> {
        let planned = self.stored.get(&id).map(|new| &new.queue);
        planned.or_else(|| self.there.get(&id).map(|there| &there.queue)).cloned()
    }

    fn waits(&self, id: JobId) -> bool {
        self.stored.contains_key(&id) || self.there.get(&id).is_some_and(|there| there.waits)
    }

    async fn write(&mut self, writing: &mut Writing<'_>, new: Vec<(&NewJob, Accepted)>) -> Result<(), Fault> {
        let (new, answers): (Vec<&NewJob>, Vec<Accepted>) = new.into_iter().unzip();
        if new.is_empty() {
            return Ok(());
        }
        let lanes = lanes_of(writing, &new).await?;
        self.rooms.name_again(writing)?;
        let put = put::put(&new, lanes, Some(writing.now.as_micros()), put::Terms::Asked)?;
        let put = writing.read(vec![put]).await?;
        let seqs: BTreeMap<JobId, i64> =
            put.iter().flatten().map(|row| (value::job_id(row, 0), row.get(1))).collect();
        put::join(&writing.memory(), new.iter().copied());
        writing.news.due = true;
        for job in &new {
            writing.news.note(writing.now, job.id, (&job.queue, &job.kind), || Happening::Enqueued);
        }
        tag(writing, &new, &seqs)?;
        Self::end_replaced(writing, &answers).await?;
        take_keys(writing, &new, &seqs, &self.had)
    }

    /// Stores jobs of which some have keys: each finds what those before it have left.
    async fn write_one_by_one(
        &mut self,
        writing: &mut Writing<'_>,
        new: Vec<(&NewJob, Accepted)>,
    ) -> Result<(), Fault> {
        let (new, answers): (Vec<&NewJob>, Vec<Accepted>) = new.into_iter().unzip();
        if new.is_empty() {
            return Ok(());
        }
        let lanes = lanes_of(writing, &new).await?;
        self.rooms.name_again(writing)?;
        let put = put::put_alone(&new, lanes.clone(), writing.now.as_micros())?;
        let put = writing.read(vec![put]).await?;
        let seqs: BTreeMap<JobId, i64> =
            put.iter().flatten().map(|row| (value::job_id(row, 0), row.get(1))).collect();
        tag(writing, &new, &seqs)?;
        let limits = new.iter().filter_map(|new| Some(new.terms.limit.as_ref()?.key.clone()));
        writing.load_limits(&limits.collect::<Vec<_>>()).await?;
        for ((new, answer), lane) in new.iter().zip(answers).zip(lanes) {
            if let Accepted::Replaced { id, old } = answer
                && let Some(holder) = writing.find(old).await?
            {
                end_replaced(writing, holder, id).await?;
            }
            let seq = seqs.get(&new.id).copied().unwrap_or_default();
            let ties = Ties { fair: self.fair.contains(&new.queue), ..Ties::default() };
            let job = new.accepted(value::seq(seq)?, writing.now);
            let (begun, kept, values) = (false, Kept::Nowhere, Values::Read);
            let stored = Stored { job, lane, begun, kept, ties, values };
            writing.accept(stored).await?;
        }
        take_keys(writing, &new, &seqs, &self.had)
    }

    /// Cancels waiting jobs in favour of others.
    async fn end_replaced(writing: &mut Writing<'_>, answers: &[Accepted]) -> Result<(), Fault> {
        let replaced = |answer: &Accepted| match answer {
            Accepted::Replaced { id, old } => Some((*id, *old)),
            Accepted::New(_) | Accepted::Repeated(_) | Accepted::Existing(_) => None,
        };
        let replaced: Vec<(JobId, JobId)> = answers.iter().filter_map(replaced).collect();
        let by: BTreeMap<JobId, JobId> = replaced.iter().map(|(id, old)| (*old, *id)).collect();
        for ids in writing.batches(replaced.into_iter().map(|(_, old)| old).collect()).await? {
            for row in &writing.read_batch(&ids).await? {
                let holder = rows::stored(row)?;
                if let Some(id) = by.get(&holder.job.id) {
                    end_replaced(writing, holder, *id).await?;
                }
            }
        }
        Ok(())
    }
}

/// Cancels a waiting job in favour of another.
pub(crate) async fn end_replaced(writing: &mut Writing<'_>, holder: Stored, id: JobId) -> Result<(), Fault> {
    if holder.ties.arriving {
        return writing.displace_after_arrival(&holder, id);
    }
    let reason = format!("replaced by job {id}");
    let request = CancelRequest::new(writing.now, std::time::Duration::ZERO, &reason);
    if let Cancel::Ends(transition) = Cancel::decide(&holder.job, request) {
        writing.enter(holder, *transition).await?;
    }
    Ok(())
}

/// The lanes of these jobs; those that are missing are made.
async fn lanes_of(writing: &mut Writing<'_>, new: &[&NewJob]) -> Result<Vec<i32>, Fault> {
    let missing: Vec<_> = new
        .iter()
        .filter(|new| writing.lane(&new.queue, &new.kind).is_none())
        .map(|new| (new.queue.clone(), new.kind.clone()))
        .collect();
    writing.make_lanes(missing).await?;
    let lanes = new.iter().map(|new| writing.lane(&new.queue, &new.kind));
    lanes.collect::<Option<_>>().ok_or_else(|| Fault::Unavailable("could not create a lane".to_owned()))
}

fn tag(writing: &mut Writing<'_>, new: &[&NewJob], seqs: &BTreeMap<JobId, i64>) -> Result<(), Fault> {
    let tags = new.iter().flat_map(|new| new.terms.tags.iter().map(|tag| (tag.as_str().to_owned(), new.id)));
    let (tags, ids): (Vec<String>, Vec<JobId>) = tags.unzip();
    if tags.is_empty() {
        return Ok(());
    }
    let seqs: Vec<Option<i64>> = ids.iter().map(|id| seqs.get(id).copied()).collect();
    let ids: Vec<_> = ids.into_iter().map(value::of_job).collect();
    writing.write(Query::new(TAG).with(tags).with(seqs).with(ids))
}

/// Gives keys, which are free now, to the jobs that have them at last.
fn take_keys(
    writing: &mut Writing<'_>,
    new: &[&NewJob],
    seqs: &BTreeMap<JobId, i64>,
    had: &[JobId],
) -> Result<(), Fault> {
    let mut takers = BTreeMap::new();
    for new in new {
        if let Some(unique) = new.terms.unique {
            takers.insert(unique.key, (new.id, unique.window.until(writing.now)));
        }
    }
    if takers.is_empty() {
        return Ok(());
    }
    let keys: Vec<Vec<u8>> = takers.keys().map(|key| key.0.to_vec()).collect();
    writing.write(
        Query::new(FREE).with(keys.clone()).with(had.iter().copied().map(value::of_job).collect::<Vec<_>>()),
    )?;
    let take = Query::new(TAKE)
        .with(keys)
        .with(takers.values().map(|(id, _)| seqs.get(id).copied()).collect::<Vec<_>>())
        .with(takers.values().map(|(id, _)| value::of_job(*id)).collect::<Vec<_>>())
        .with(takers.values().map(|(_, until)| until.map(|at| at.as_micros())).collect::<Vec<_>>());
    writing.write(take)
}
