//! Saying to a worker what runs once in a fleet.

use std::sync::Arc;

use super::{Duty, Listener, Singleton};
use crate::{Failed, Worker};

impl<App: Send + Sync + 'static> Worker<App> {
    /// Runs this only while the worker's host holds a lease of that name: on one host of the app at a
    /// time. The others stand by. If the lease is lost, the body is told, and dropped after the
    /// [grace](Worker::stop_grace); the worker goes on and stands by again. A body that ends or fails gives
    /// the lease to whoever stands by.
    ///
    /// It needs an [app id](crate::OpenOptions::app). A worker of singletons needs no queue.
    pub fn singleton<F, Fut>(self, name: &str, body: F) -> Self
    where
        F: Fn(Duty<App>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), Failed>> + Send + 'static,
    {
        self.singleton_with(name, Singleton::function(), body)
    }

    /// The same, in more words.
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
