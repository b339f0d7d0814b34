//! What is said in a user's own transaction on the database of a store: statements that do all of it in one round trip,
//! whatever driver sends them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use tenure_core::{Due, HostId, JobId, NewJob, Output};
use tenure_store::{Accepted, Answer, Call, Enqueued, Fault, Held, Joint, Prepared, Refusal, TxnRequest};
use uuid::Uuid;

use crate::enqueue::is_ordinary;
use crate::fault::unreadable;
use crate::store::PostgresStore;
use crate::transaction::Gate;
use crate::value;
use crate::writing::Writing;

impl PostgresStore {
    /// A call of a function of this store: `$1` is a text in JSON, `$2` are bytes.
    fn call(&self, function: &str, mut about: Value, bytes: Vec<u8>) -> Call {
        let (schema, clock) = self.place();
        if let Some(clock) = clock {
            about["now"] = clock.now().as_micros().into();
        }
        // The search path is the user's. It may contain a `->>` operator of another role for two `jsonb`, which PostgreSQL
        // would prefer.
        let function = function.replace("->>", " OPERATOR(pg_catalog.->>) ");
        // What is not used has to have a type all the same.
        let sql = format!(
            "SELECT coalesce((SELECT \"{schema}\".{function}), '') FROM (SELECT $1::text::jsonb AS a, $2::bytea AS b) said"
        );
        Call { sql, text: about.to_string(), bytes }
    }

    /// Says of plain jobs in which lanes they will be, if all of those are known, and that they are plain.
    fn name_lanes(&self, jobs: &[NewJob], about: &mut Value) {
        let lanes = self.memory.lanes();
        let ids: Option<Vec<i32>> = jobs.iter().map(|job| lanes.find(&job.queue, &job.kind)).collect();
        let Some(ids) = ids else { return };
        let mut places = BTreeMap::new();
        let mut named = Vec::new();
        for ((place, job), id) in jobs.iter().enumerate().zip(ids) {
            let of_lane = *places.entry(id).or_insert_with(|| {
                named.push(json!({ "id": id, "queue": job.queue.as_str(), "kind": job.kind.as_str() }));
                named.len() - 1
            });
            about["jobs"][place]["lane"] = of_lane.into();
        }
        about["lanes"] = named.into();
        about["plain"] = true.into();
    }
}

/// What a function is told of a job.
fn asked(job: &NewJob) -> Result<Value, Fault> {
    let mut about = json!({
        "id": value::of_job(job.id),
        "bytes": job.args.as_bytes().len(),
        "kind": job.kind.as_str(),
        "queue": job.queue.as_str(),
        "priority": value::of_priority(job.priority),
    });
    if !job.terms.are_default() {
        about["terms"] = value::to_json(&*job.terms)?.into();
    }
    match job.due {
        Due::Now => {}
        Due::At(at) => about["at"] = at.as_micros().into(),
        Due::In(span) => about["wait"] = value::micros(span).into(),
    }
    Ok(about)
}

/// What became of a job, in the words of a function.
fn read(id: JobId, answer: &str) -> Result<Result<Accepted, Refusal>, Fault> {
    let (word, about) = answer.split_once(' ').unwrap_or((answer, ""));
    let other = || Uuid::parse_str(about).map(|id| JobId::from_bytes(*id.as_bytes())).map_err(unreadable);
    Ok(match word {
        "new" => Ok(Accepted::New(id)),
        "repeated" => Ok(Accepted::Repeated(other()?)),
        "existing" => Ok(Accepted::Existing(other()?)),
        "replaced" => Ok(Accepted::Replaced { id, old: other()? }),
        "id_taken" => Err(Refusal::IdTaken(other()?)),
        "key_held" => Err(Refusal::KeyHeld(other()?)),
        "no_such_job" => Err(Refusal::NoSuchJob(other()?)),
        "queue_full" => Err(Refusal::QueueFull { most: about.parse().map_err(unreadable)? }),
        _ => return Err(unreadable("an answer of its function")),
    })
}

impl PostgresStore {
    /// Creates missing lanes of jobs outside of the caller's transaction. That transaction may be long, and would block
    /// other programs that need the same lanes.
    async fn prepare_lanes(&self, jobs: &[NewJob]) -> Result<(), Fault> {
        let names = {
            let lanes = self.memory.lanes();
            let missing = jobs.iter().filter(|job| lanes.find(&job.queue, &job.kind).is_none());
            let missing: BTreeSet<_> = missing.map(|job| (job.queue.clone(), job.kind.clone())).collect();
            missing.into_iter().collect::<Vec<_>>()
        };
        if names.is_empty() {
            return Ok(());
        }
        self.ask(&self.tasks.others, move |link| {
            Box::pin(async move {
                let (mut writing, _) = Writing::begin(link, Gate::Open, Vec::new()).await?;
                writing.make_lanes(names).await?;
                writing.commit().await
            })
        })
        .await
    }

    fn accept(&self, jobs: &[NewJob]) -> Result<Call, Fault> {
        let mut about = json!({ "jobs": jobs.iter().map(asked).collect::<Result<Vec<_>, _>>()? });
        let ids: BTreeSet<_> = jobs.iter().map(|job| job.id).collect();
        if ids.len() == jobs.len() && jobs.iter().all(is_ordinary) {
            self.name_lanes(jobs, &mut about);
        }
        let args = jobs.iter().map(|job| job.args.as_bytes()).collect::<Vec<_>>().concat();
        Ok(self.call("accept_all(a, b, (a->>'now')::bigint)", about, args))
    }

    fn accepted(&self, jobs: &[NewJob], answer: &str) -> Result<Enqueued, Fault> {
        let (mut accepted, mut answers) = (Vec::with_capacity(jobs.len()), answer.split('\n'));
        for (index, job) in jobs.iter().enumerate() {
            let answer = answers.next().ok_or_else(|| unreadable("an answer of its function"))?;
            match read(job.id, answer)? {
                Ok(one) => accepted.push(one),
                Err(refusal) => return Ok(Enqueued::Refused { index, refusal }),
            }
        }
        if let Some(transaction) = answers.next() {
            self.memory.followed.enter(transaction);
        }
        Ok(Enqueued::Stored(accepted))
    }

    fn complete(
        &self,
        held: Held,
        holder: Option<HostId>,
        kept_for: Option<Duration>,
        output: Option<&Output>,
    ) -> Call {
        let about = json!({
            "seq": value::signed(held.seq),
            "id": value::of_job(held.id),
            "fence": value::signed(held.fence.number()),
            "holder": holder.map(value::of_host),
            "kept_for": kept_for.map(value::micros),
            "output": output.is_some(),
            "place": output.and_then(|output| output.place.as_deref()),
        });
        let function = "complete_job_quietly((a->>'seq')::bigint, (a->>'id')::uuid, (a->>'fence')::bigint,
             (a->>'kept_for')::bigint, CASE WHEN (a->>'output')::boolean THEN b END, a->>'place', (a->>'now')::bigint,
             (a->>'holder')::uuid)";
        self.call(function, about, output.map(|output| output.value.clone()).unwrap_or_default())
    }
}

impl Joint for PostgresStore {
    fn prepare(&self, request: TxnRequest) -> Answer<'_, Prepared> {
        Box::pin(async move {
            match &request {
                TxnRequest::Enqueue { jobs, given: _ } => self.prepare_lanes(jobs).await?,
                TxnRequest::Complete { held, .. } => {
                    let held = *held;
                    // Moves the job out of the rows that it shares with other jobs. If that fails, those jobs wait for the
                    // transaction.
                    let _ = self.send(&self.tasks.standing, move |reply| (held, reply)).await;
                }
                TxnRequest::CheckLease { .. } | TxnRequest::CheckJob { .. } => {}
            }
            Ok(Prepared::new(request))
        })
    }

    fn statement(&self, prepared: &Prepared) -> Result<Call, Fault> {
        Ok(match prepared.request() {
            TxnRequest::Enqueue { jobs, given: _ } => self.accept(jobs)?,
            TxnRequest::Complete { held, holder, kept_for, output } => {
                self.complete(*held, *holder, *kept_for, output.as_ref())
            }
            TxnRequest::CheckLease { name, id, fence } => {
                let id = Uuid::from_bytes(*id.as_bytes());
                let about =
                    json!({ "name": name.as_str(), "id": id, "fence": value::signed(fence.number()) });
                let function = "check_lease(a->>'name', (a->>'id')::uuid, (a->>'fence')::bigint,
                     (a->>'now')::bigint)::text";
                self.call(function, about, Vec::new())
            }
            TxnRequest::CheckJob { held } => {
                let (seq, id) = (value::signed(held.seq), value::of_job(held.id));
                let about = json!({ "seq": seq, "id": id, "fence": value::signed(held.fence.number()) });
                let function =
                    "check_job((a->>'seq')::bigint, (a->>'id')::uuid, (a->>'fence')::bigint)::text";
                self.call(function, about, Vec::new())
            }
        })
    }

    fn answered(&self, prepared: &Prepared, answer: &str) -> Result<Enqueued, Fault> {
        match prepared.request() {
            TxnRequest::Enqueue { jobs, given: _ } => return self.accepted(jobs, answer),
            TxnRequest::Complete { .. } if !answer.is_empty() => self.memory.followed.enter(answer),
            TxnRequest::Complete { .. } | TxnRequest::CheckLease { .. } | TxnRequest::CheckJob { .. } => {}
        }
        Ok(Enqueued::Stored(Vec::new()))
    }
}
