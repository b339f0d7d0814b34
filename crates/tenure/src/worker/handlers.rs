//! The handlers of a worker, by kind.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Cause, Failure, Invalid, Kind, LeaseName, Output, QueueName, RetryPolicy, Verdict};

use super::beside::Ground;
use super::panic::Body;
use crate::singleton::{Around, Singleton};
use crate::{Error, Failed, Job, Run};

/// What a handler comes to.
pub(crate) type Done = Result<Vec<u8>, Verdict>;

/// An attempt's work, ready to be done.
pub(crate) enum Work {
    /// It waits without blocking.
    Async(Body<Done>),
    /// It blocks, so it gets a thread that nobody else needs.
    Blocking(Box<dyn FnOnce() -> Done + Send>),
}

type Start<App> = Arc<dyn Fn(Run<App>) -> Result<Work, Failure> + Send + Sync>;

/// The handlers of a worker.
pub(crate) struct Handlers<App> {
    by_kind: BTreeMap<Kind, Handler<App>>,
}

struct Handler<App> {
    start: Start<App>,
    policy: Option<RetryPolicy>,
    /// The queue of its kind, if that names one.
    queue: Option<QueueName>,
    keeps: Keeps,
    around: Option<Around>,
}

/// What an attempt holds beside its job.
enum Keeps {
    Nothing,
    /// The lease of a singleton.
    Singleton(Singleton),
    /// This lease, for so long at a time.
    Lease(LeaseName, Duration),
}

/// A role, as a kind of jobs.
pub(crate) struct Role<App> {
    pub(crate) kind: String,
    pub(crate) start: RoleStart<App>,
    pub(crate) lease: LeaseName,
    pub(crate) period: Duration,
    pub(crate) retry: RetryPolicy,
}

/// What a role runs, for which occurrence.
pub(crate) type RoleStart<App> = Arc<dyn Fn(Run<App>, String) -> Body<Result<(), Failed>> + Send + Sync>;

/// The args of the job of a role.
#[derive(serde::Deserialize)]
struct Occurrence {
    occurrence: String,
}

impl<App: Send + Sync + 'static> Handlers<App> {
    pub(crate) fn new() -> Self {
        Self { by_kind: BTreeMap::new() }
    }

    pub(crate) fn add_async<J, F, Fut>(&mut self, handler: F) -> Result<(), Invalid>
    where
        J: Job,
        F: Fn(Run<App>, J) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<J::Output, Failed>> + Send + 'static,
    {
        self.add::<J>(Arc::new(move |run: Run<App>| {
            let job: J = read(run.job().args.as_bytes())?;
            let work = handler(run, job);
            Ok(Work::Async(Box::pin(async move { written::<J>(work.await) })))
        }))
    }

    pub(crate) fn add_blocking<J, F>(&mut self, handler: F) -> Result<(), Invalid>
    where
        J: Job,
        F: Fn(Run<App>, J) -> Result<J::Output, Failed> + Send + Sync + 'static,
    {
        let handler = Arc::new(handler);
        self.add::<J>(Arc::new(move |run: Run<App>| {
            let job: J = read(run.job().args.as_bytes())?;
            let handler = Arc::clone(&handler);
            Ok(Work::Blocking(Box::new(move || written::<J>(handler(run, job)))))
        }))
    }

    pub(crate) fn add_raw<F, Fut>(&mut self, kind: &str, handler: F) -> Result<(), Invalid>
    where
        F: Fn(Run<App>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<serde_json::Value, Failed>> + Send + 'static,
    {
        let start: Start<App> = Arc::new(move |run: Run<App>| {
            let work = handler(run);
            Ok(Work::Async(Box::pin(async move { stored(work.await) })))
        });
        let handler = Handler { start, policy: None, queue: None, keeps: Keeps::Nothing, around: None };
        self.insert(Kind::new(kind)?, handler)
    }

    fn add<J: Job>(&mut self, start: Start<App>) -> Result<(), Invalid> {
        let kind = Kind::new(J::KIND)?;
        let keeps = J::singleton().map_or(Keeps::Nothing, Keeps::Singleton);
        let queue = (J::QUEUE != QueueName::DEFAULT).then(|| QueueName::new(J::QUEUE)).transpose()?;
        let handler = Handler { start, policy: J::terms().retry, queue, keeps, around: None };
        self.insert(kind, handler)
    }

    pub(crate) fn add_role(&mut self, role: Role<App>) -> Result<(), Invalid> {
        let Role { kind, start: body, lease, period, retry } = role;
        let start: Start<App> = Arc::new(move |run: Run<App>| {
            let Occurrence { occurrence } = serde_json::from_slice(run.job().args.as_bytes())
                .map_err(|error| Failure::new(Cause::Undecodable, &error.to_string()))?;
            let work = body(run, occurrence);
            Ok(Work::Async(Box::pin(
                async move { work.await.map(|()| Vec::new()).map_err(Failed::into_verdict) },
            )))
        });
        let keeps = Keeps::Lease(lease, period);
        let handler = Handler { start, policy: Some(retry), queue: None, keeps, around: None };
        self.insert(Kind::new(&kind)?, handler)
    }

    fn insert(&mut self, kind: Kind, handler: Handler<App>) -> Result<(), Invalid> {
        if self.by_kind.insert(kind.clone(), handler).is_some() {
            let twice = format_args!("a second handler for {kind}");
            return Err(Invalid::new("kind", twice, "one handler per kind"));
        }
        Ok(())
    }

    /// Makes the singletons among them ready.
    pub(crate) fn prepare(&mut self, ground: &Ground<App>) -> Result<(), Error> {
        for (kind, handler) in &mut self.by_kind {
            handler.around = match &handler.keeps {
                Keeps::Nothing => None,
                Keeps::Singleton(singleton) => Some(Around::new(singleton, kind.as_str(), ground)?),
                Keeps::Lease(lease, ttl) => Some(Around::always(lease.clone(), *ttl, ground)),
            };
        }
        Ok(())
    }

    /// Kinds that name a queue, and the queue.
    pub(crate) fn queues(&self) -> impl Iterator<Item = (&Kind, &QueueName)> {
        self.by_kind.iter().filter_map(|(kind, handler)| Some((kind, handler.queue.as_ref()?)))
    }

    /// How an attempt of this kind takes its lease, if it is a singleton.
    pub(crate) fn around(&self, kind: &Kind) -> Option<&Around> {
        self.by_kind.get(kind).and_then(|handler| handler.around.as_ref())
    }

    pub(crate) fn kinds(&self) -> Vec<Kind> {
        self.by_kind.keys().cloned().collect()
    }

    /// The retry policy of a kind, for jobs that have none of their own.
    pub(crate) fn policy(&self, kind: &Kind) -> RetryPolicy {
        self.by_kind.get(kind).and_then(|handler| handler.policy.clone()).unwrap_or_default()
    }

    /// Reads the job and makes its work ready.
    pub(crate) fn start(&self, run: Run<App>) -> Result<Work, Failure> {
        let kind = run.job().kind.clone();
        let Some(handler) = self.by_kind.get(&kind) else {
            return Err(Failure::new(
                Cause::UnknownKind,
                &format!("this worker has no handler for kind {kind}"),
            ));
        };
        (handler.start)(run)
    }
}

fn read<J: Job>(args: &[u8]) -> Result<J, Failure> {
    serde_json::from_slice(args).map_err(|error| Failure::new(Cause::Undecodable, &error.to_string()))
}

/// What a handler returned, as it is stored. An output that cannot be stored is a failure for good:
/// doing the work again would not make it smaller.
fn written<J: Job>(result: Result<J::Output, Failed>) -> Done {
    stored(result)
}

fn stored<T: serde::Serialize>(result: Result<T, Failed>) -> Done {
    let unstorable = |why: String| Verdict::Failed(Failure::new(Cause::Unstorable, &why));
    let output = result.map_err(Failed::into_verdict)?;
    let value = serde_json::to_vec(&output).map_err(|error| unstorable(error.to_string()))?;
    // `null` says nothing that its absence does not.
    let value = if value == b"null" { Vec::new() } else { value };
    Output::new(value, None).map(|output| output.value).map_err(|wrong| unstorable(wrong.to_string()))
}
