//! Saying to a worker that it writes.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use tenure_core::Serves;

use super::drain::Drain;
use super::message::{Message, Open, open_with};
use super::names::Names;
use super::settings::Writer;
use crate::singleton::{Begin, Post, serve};
use crate::worker::{Beside, Body, Ground};
use crate::{Duty, Error, Failed, Worker};

impl<App: Send + Sync + 'static> Worker<App> {
    /// Runs a writer: it writes the messages of its mailbox in order, on one host of the app at a time, under a
    /// lease. The next host continues exactly where this one stopped.
    ///
    /// A message is written at least once. Guard every effect of `write` with the fence of its [duty](Duty::pass),
    /// because a suspended writer does not know that another one has taken over.
    ///
    /// It requires an [app id](crate::OpenOptions::app). A worker with writers needs no queue.
    pub fn writer<M, F, Fut>(self, writer: Writer, write: F) -> Self
    where
        M: DeserializeOwned + Send + 'static,
        F: Fn(Duty<App>, Vec<Message<M>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), Failed>> + Send + 'static,
    {
        let named = format!("writer {}", writer.name);
        self.beside(named, Box::new(Office { writer, open: open_with(write) }))
    }
}

struct Office<App> {
    writer: Writer,
    open: Open<App>,
}

impl<App: Send + Sync + 'static> Office<App> {
    fn names(&self, ground: &Ground<App>) -> Result<Names, Error> {
        let app = ground.tenure.need_app(&format!("writer {}", self.writer.name))?;
        Ok(Names::new(app, &self.writer.name)?)
    }
}

impl<App: Send + Sync + 'static> Beside<App> for Office<App> {
    fn serves(&self, ground: &Ground<App>) -> Result<Vec<Serves>, Error> {
        let names = self.names(ground)?;
        let slots = u32::try_from(self.writer.batch).unwrap_or(u32::MAX);
        Ok(vec![Serves { queue: names.queue, kinds: Some(vec![names.kind]), slots, all_waiting: false }])
    }

    fn prepare(self: Box<Self>, ground: &Ground<App>) -> Result<Body<Result<(), Error>>, Error> {
        self.writer.check()?;
        let names = self.names(ground)?;
        let post = Post {
            name: names.lease.clone(),
            alias: None,
            ttl: self.writer.lease.unwrap_or(ground.lease.ttl()),
            acquire_within: None,
            ready_within: None,
            recovery: ground.options.listener_lock_recovery_polling_interval,
        };
        let drain = Arc::new(Drain {
            writer: self.writer,
            names,
            open: self.open,
            host: ground.host,
            holding: Arc::clone(&ground.holding),
            lease: ground.lease,
            poll: ground.poll,
            grace: ground.grace,
        });
        let begin: Begin<App> = Arc::new(move |duty| {
            let drain = Arc::clone(&drain);
            Box::pin(async move { drain.write(duty).await })
        });
        Ok(Box::pin(serve(post, begin, ground.clone())))
    }
}
