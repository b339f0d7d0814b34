//! Tells pages that are looked at when to look again. It is a hint: a page that is told nothing looks now and then all the
//! same, and what it then shows is asked of the contract like anything else.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use tenure::Moment;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::Ui;
use crate::asking::Trouble;
use crate::layout::failed;
use crate::visit::Visit;

/// Between two hints: nobody reads faster, and a store that does thousands of jobs in a second is not asked for each.
const APART: Duration = Duration::from_millis(500);
/// So often something is sent although nothing has happened, so that nobody takes the connection for dead.
const ALIVE: Duration = Duration::from_secs(15);
/// After so long a page asks again: a server in whose app this is mounted can end meanwhile.
const LASTS: Duration = Duration::from_secs(60);
/// When a page that was cut off comes back.
const RETRY: Duration = Duration::from_secs(1);

/// Pages that look at once.
pub(crate) const MOST: usize = 1_000;

type Happened = Receiver<Arc<tenure::Event>>;

/// Somebody who looks at a page.
struct Looking {
    ui: Ui,
    run: String,
    happened: Happened,
    /// Changes when the program in which the pages are is about to end.
    ending: watch::Receiver<()>,
    end: Moment,
    is_new: bool,
    _place: OwnedSemaphorePermit,
}

/// `GET live`
pub(crate) async fn get(State(ui): State<Ui>, visit: Visit) -> Response {
    // Whoever may not look is not told that something happens either.
    if let Err(trouble) = visit.get("/v1/whoami").await {
        return failed(&visit, trouble).await;
    }
    let Ok(place) = Arc::clone(&ui.looking).try_acquire_owned() else {
        let detail = "The limit of live connections is reached. Pages refresh every few seconds instead.";
        let trouble = Trouble::new(StatusCode::SERVICE_UNAVAILABLE, "Too many open pages", detail);
        return failed(&visit, trouble).await;
    };
    let end = ui.tenure.store().clock().moment().after(LASTS);
    let (happened, ending) = (ui.tenure.events(), ui.tenure.streams_end());
    let looking = Looking { happened, ending, end, is_new: true, ui, run: visit.run, _place: place };
    let mut response = Sse::new(hints(looking)).keep_alive(KeepAlive::new().interval(ALIVE)).into_response();
    // Some intermediaries gather what they pass on.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn hints(looking: Looking) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    stream::unfold(looking, |mut looking: Looking| async move {
        let event = looking.next().await?;
        Some((Ok(event), looking))
    })
}

impl Looking {
    /// The next hint; none when it is time to ask again.
    async fn next(&mut self) -> Option<Event> {
        if self.is_new {
            self.is_new = false;
            // By this a page finds out that it was made by a server whose forms are not taken here.
            return Some(Event::default().event("hello").retry(RETRY).data(&self.run));
        }
        let clock = self.ui.tenure.store().clock();
        clock.sleep(APART).await;
        let left = self.end.since(clock.moment());
        tokio::select! {
            biased;
            _ = self.ending.changed() => None,
            happened = heard(&mut self.happened) => happened.then(|| Event::default().event("change").data("now")),
            () = clock.sleep(left) => None,
        }
    }
}

/// Waits until something has happened, and takes all of it; whether more can come.
async fn heard(happened: &mut Happened) -> bool {
    if matches!(happened.recv().await, Err(RecvError::Closed)) {
        return false;
    }
    loop {
        match happened.try_recv() {
            Ok(_) | Err(TryRecvError::Lagged(_)) => {}
            Err(TryRecvError::Empty) => return true,
            Err(TryRecvError::Closed) => return false,
        }
    }
}
