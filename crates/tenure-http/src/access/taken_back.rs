//! An access token that is taken back, or whose time is over, ends what still goes on for whoever has shown it: a request
//! that waits, and a stream that he follows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::response::Response;
use futures_util::StreamExt;
use tenure::{Error, Tenure};
use tokio::sync::watch;

use super::guard::{Who, is_stored};
use super::tokens::{AccessToken, Tokens};

/// It is looked at so often whether an access token is good still, once for all who have shown it.
const LOOK: Duration = Duration::from_secs(5);

type Found = Arc<(AccessToken, String)>;
type Watched = Arc<Mutex<BTreeMap<String, watch::Sender<bool>>>>;

/// The access tokens for which something goes on.
#[derive(Clone, Default)]
pub(crate) struct Followed {
    watched: Watched,
}

impl Followed {
    /// Ends when whoever asks may not any more.
    pub(crate) async fn taken_back(self, tenure: Tenure, who: Who) {
        let Some(found) = who.0.as_ref().filter(|found| is_stored(found)) else {
            return std::future::pending().await;
        };
        let mut over = self.watch(&tenure, found);
        if over.wait_for(|over| *over).await.is_err() {
            std::future::pending().await
        }
    }

    /// The answer; what of it is still to come ends when whoever asked may not hear it any more.
    pub(super) fn until_taken_back(self, tenure: Tenure, who: Who, response: Response) -> Response {
        // What is whole has been decided on already.
        if who.token().is_none() || response.body().size_hint().exact().is_some() {
            return response;
        }
        let (parts, body) = response.into_parts();
        let over = Box::pin(self.taken_back(tenure, who));
        Response::from_parts(parts, Body::from_stream(body.into_data_stream().take_until(over)))
    }

    fn watch(&self, tenure: &Tenure, found: &Found) -> watch::Receiver<bool> {
        let mut watched = lock(&self.watched);
        if let Some(over) = watched.get(&found.0.id) {
            return over.subscribe();
        }
        let over = watch::Sender::new(false);
        let receiver = over.subscribe();
        watched.insert(found.0.id.clone(), over.clone());
        tokio::spawn(look_after(tenure.clone(), Arc::clone(&self.watched), Arc::clone(found), over));
        receiver
    }
}

fn lock(watched: &Watched) -> MutexGuard<'_, BTreeMap<String, watch::Sender<bool>>> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks after an access token for as long as anything goes on for it.
async fn look_after(tenure: Tenure, watched: Watched, found: Found, over: watch::Sender<bool>) {
    let clock = tenure.store().clock();
    loop {
        clock.sleep(LOOK).await;
        {
            let mut watched = lock(&watched);
            if over.receiver_count() == 0 {
                watched.remove(&found.0.id);
                return;
            }
        }
        match is_good(&tenure, &found).await {
            Ok(true) => {}
            Ok(false) => break,
            // What the store has said last holds until it can be asked again.
            Err(error) => tracing::debug!(%error, "failed to check an access token"),
        }
    }
    lock(&watched).remove(&found.0.id);
    over.send_replace(true);
}

async fn is_good(tenure: &Tenure, found: &Found) -> Result<bool, Error> {
    let there = Tokens::of(tenure).find(&found.0.id).await?;
    Ok(there.is_some_and(|(token, digest)| {
        digest == found.1 && token.expires.is_none_or(|expires| tenure.now() < expires)
    }))
}
