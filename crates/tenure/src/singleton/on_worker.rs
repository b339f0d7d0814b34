//! Saying to a worker what runs once in a fleet.

use std::sync::Arc;

use super::{Duty, Listener, Singleton};
use crate::{Failed, Worker};

impl<App: Send + Sync + 'static> Worker<App> {
    /// Runs a singleton: the body runs on one host of the app at a time, under a lease of this name, and the other
    /// hosts stand by. If the lease is lost, the body is told, and dropped after the [grace
    /// period](Worker::stop_grace); the worker continues and stands by again. When the body ends or fails, a host
    /// that stands by takes over.
    ///
    /// It requires an [app id](crate::OpenOptions::app). A worker with singletons needs no queue.
    pub fn singleton<F, Fut>(self, name: &str, body: F) -> Self
    where
        F: Fn(Duty<App>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), Failed>> + Send + 'static,
    {
        self.singleton_with(name, Singleton::function(), body)
    }

    /// Runs a singleton with options.
    pub fn singleton_with<F, Fut>(self, name: &str, singleton: Singleton, body: F) -> Self
    where
        F: Fn(Duty<App>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), Failed>> + Send + 'static,
    {
        let begin = Arc::new(move |duty: Duty<App>| -> crate::worker::Body<_> { Box::pin(body(duty)) });
        let named = format!("singleton {name} {}", singleton.scope).trim_end().to_owned();
        let listener = Listener { name: name.to_owned(), singleton, begin };
        self.beside(named, Box::new(listener))
    }
}
