//! What a worker runs beside its queues: it begins after the worker is announced and stops with it.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{HostId, Serves};
use tenure_store::Fault;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::holding::Holding;
use super::lease::Lease;
use super::panic::Body;
use crate::singleton::SingletonOptions;
use crate::{Error, Tenure};

/// Where the values of settings come from.
pub(crate) type Setting = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Something that runs beside the queues of a worker.
pub(crate) trait Beside<App>: Send {
    /// What it serves of queues.
    fn serves(&self, _ground: &Ground<App>) -> Result<Vec<Serves>, Error> {
        Ok(Vec::new())
    }

    /// Makes it ready to run. What is wrong with it is told here, before anything has begun.
    fn prepare(self: Box<Self>, ground: &Ground<App>) -> Result<Body<Result<(), Error>>, Error>;
}

/// What those have who run beside the queues.
pub(crate) struct Ground<App> {
    pub(crate) tenure: Tenure,
    pub(crate) app: Arc<App>,
    pub(crate) stop: CancellationToken,
    /// How long a body has once it was told to stop.
    pub(crate) grace: Duration,
    /// By which words people know the worker.
    pub(crate) who: String,
    pub(crate) options: SingletonOptions,
    pub(crate) setting: Setting,
    /// As which host it holds jobs, and for how long at a time.
    pub(crate) host: HostId,
    pub(crate) lease: Lease,
    /// What the worker's keeper renews.
    pub(crate) holding: Arc<Holding>,
    /// How often it is looked whether something is due, even if nothing calls.
    pub(crate) poll: Duration,
}

impl<App> Clone for Ground<App> {
    fn clone(&self) -> Self {
        Self {
            tenure: self.tenure.clone(),
            app: Arc::clone(&self.app),
            stop: self.stop.clone(),
            grace: self.grace,
            who: self.who.clone(),
            options: self.options,
            setting: Arc::clone(&self.setting),
            host: self.host,
            lease: self.lease,
            holding: Arc::clone(&self.holding),
            poll: self.poll,
        }
    }
}

/// All that runs beside the queues of one worker. Dropping it drops them.
pub(crate) struct Besides {
    running: JoinSet<Result<(), Error>>,
}

impl Besides {
    pub(crate) fn start(bodies: Vec<Body<Result<(), Error>>>) -> Self {
        let mut running = JoinSet::new();
        for body in bodies {
            running.spawn(body);
        }
        Self { running }
    }

    /// Resolves when one of them cannot go on: the others are to stop then.
    pub(crate) async fn trouble(&mut self) -> Error {
        while let Some(ended) = self.running.join_next().await {
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return error,
                Err(end) => {
                    return Fault::Broken(format!("a background task of the worker failed: {end}")).into();
                }
            }
        }
        std::future::pending().await
    }

    /// Waits until all of them have ended, after they were told to.
    pub(crate) async fn end(&mut self) -> Result<(), Error> {
        let mut first = Ok(());
        while let Some(ended) = self.running.join_next().await {
            if let Ok(Err(error)) = ended
                && first.is_ok()
            {
                first = Err(error);
            }
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T063: what listens, writes or goes on firing timers does not go silent: if it panics, the worker ends with an
    /// error.
    #[tokio::test]
    async fn what_panics_beside_the_queues_is_told() {
        let lives: Body<Result<(), Error>> = Box::pin(std::future::pending());
        let dies: Body<Result<(), Error>> = Box::pin(async { panic!("the ticker has a bug") });
        let mut besides = Besides::start(vec![lives, dies]);
        let Error::Fault(Fault::Broken(told)) = besides.trouble().await else { panic!("another error") };
        assert!(told.contains("background task"), "{told}");
    }
}
