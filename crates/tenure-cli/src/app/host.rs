//! What all that runs on one host shares.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::apps::{Apps, HostOffers, Offer, Sort, Standing};
use tenure::{Error, Tenure};
use tenure_apps::{App, Overall};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::bounds::Bounds;
use super::place::Places;
use crate::screen::complain;

/// What a host offers is written down at least so often.
const FRESH: Duration = Duration::from_secs(15);
/// Between two looks at what somebody has stopped, and two writings.
const LOOK: Duration = Duration::from_secs(1);

/// What all that runs on one host shares.
pub(super) struct Host {
    pub(super) tenure: Tenure,
    pub(super) set: String,
    /// Its id among the hosts that offer something.
    pub(super) id: String,
    pub(super) node: String,
    pub(super) places: Places,
    pub(super) overall: Overall,
    /// Whether lines are limited as Kudu does it.
    pub(super) as_kudu: bool,
    /// What programs find of it, and what they may use.
    pub(super) bounds: Bounds,
    /// For how long it holds what it runs.
    lease: Duration,
    offers: Mutex<BTreeMap<(Sort, String), Offer>>,
    stopped: Mutex<BTreeMap<(Sort, String), String>>,
    changed: Notify,
    /// Called when somebody has stopped something, or let it run again.
    pub(super) switched: Notify,
}

/// The sort in the words of the store.
pub(super) fn sort_of(app: &App) -> Sort {
    match app.sort {
        tenure_apps::Sort::Triggered => Sort::Triggered,
        tenure_apps::Sort::Continuous => Sort::Continuous,
    }
}

impl Host {
    pub(super) fn new(
        (tenure, set): (&Tenure, &str),
        (id, node): (String, String),
        places: Places,
        overall: Overall,
        (as_kudu, lease): (bool, Duration),
        bounds: Bounds,
    ) -> Self {
        Self {
            tenure: tenure.clone(),
            set: set.to_owned(),
            id,
            node,
            places,
            overall,
            as_kudu,
            bounds,
            lease,
            offers: Mutex::default(),
            stopped: Mutex::default(),
            changed: Notify::new(),
            switched: Notify::new(),
        }
    }

    /// How long a program may take to end that was lost. That it was is told before its lease is over, by more than this.
    pub(super) fn last_words(&self) -> Duration {
        const LONGEST: Duration = Duration::from_secs(2);
        LONGEST.min(self.lease / 10)
    }

    /// The apps of its set in the store.
    pub(super) fn apps(&self) -> Result<Apps<'_>, Error> {
        self.tenure.apps(&self.set)
    }

    /// Offers an app, as it stands now.
    pub(super) fn offers(&self, app: &App) {
        let mut offer = Offer::new(sort_of(app), &app.name, self.tenure.now());
        offer.schedule = app.settings.schedule.as_ref().map(ToString::to_string);
        (offer.at_once, offer.attempts) = (app.settings.at_once(), app.settings.attempts);
        (offer.settings, offer.notes) =
            (super::told::settings(app, &self.overall, &self.bounds), app.notes.clone());
        if !app.runs() {
            (offer.state, offer.detail) = (Standing::Wrong, app.wrong.join("; "));
        }
        lock(&self.offers).insert((offer.sort, offer.name.clone()), offer);
        self.changed.notify_one();
    }

    /// An app stands otherwise from now on.
    pub(super) fn stands(&self, app: &App, state: Standing, detail: &str) {
        let now = self.tenure.now();
        let mut offers = lock(&self.offers);
        let Some(offer) = offers.get_mut(&(sort_of(app), app.name.clone())) else { return };
        if offer.state == Standing::Starting && state == Standing::Running {
            offer.restarts += 1;
        }
        if offer.state != state || offer.detail != detail {
            (offer.state, offer.detail, offer.since) = (state, detail.to_owned(), now);
            self.changed.notify_one();
        }
    }

    /// Why somebody has stopped it, if somebody has.
    pub(super) fn is_stopped(&self, app: &App) -> Option<String> {
        if self.overall.is_stopped {
            return Some("WEBJOBS_STOPPED".to_owned());
        }
        lock(&self.stopped).get(&(sort_of(app), app.name.clone())).cloned()
    }

    /// Looks what somebody has stopped.
    pub(super) async fn look_what_is_stopped(&self) -> Result<(), Error> {
        let stopped = self.apps()?.stopped().await?;
        let mut known = lock(&self.stopped);
        if *known != stopped {
            *known = stopped;
            drop(known);
            self.switched.notify_waiters();
        }
        Ok(())
    }

    /// Keeps what the host offers fresh, and hears what somebody has stopped, until told to stop.
    pub(super) async fn keep_fresh(self: Arc<Self>, stop: CancellationToken) {
        let clock = self.tenure.store().clock();
        let (mut written, mut is_away) = (None, false);
        loop {
            let now = clock.moment();
            let is_old = written.is_none_or(|at| now.since(at) >= FRESH);
            let done = async {
                if is_old {
                    self.offer().await?;
                }
                self.look_what_is_stopped().await
            };
            match done.await {
                Ok(()) => {
                    written = if is_old { Some(now) } else { written };
                    is_away = false;
                }
                Err(error) if !std::mem::replace(&mut is_away, true) => {
                    complain(&format!("what this host offers is not written down: {error}; trying again"));
                }
                Err(_) => {}
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = clock.sleep(LOOK) => {}
            }
            // Changes that come together are written together.
            if self.has_changed().await {
                written = None;
            }
        }
        if let Ok(apps) = self.apps() {
            // What is left is forgotten after a minute.
            let _ = apps.withdraw(&self.id).await;
        }
    }

    /// Writes down what it offers.
    pub(super) async fn offer(&self) -> Result<(), Error> {
        self.apps()?.offer(&self.all()).await
    }

    async fn has_changed(&self) -> bool {
        tokio::select! {
            biased;
            () = self.changed.notified() => true,
            () = std::future::ready(()) => false,
        }
    }

    fn all(&self) -> HostOffers {
        let apps = lock(&self.offers).values().cloned().collect();
        HostOffers { host: self.id.clone(), node: self.node.clone(), apps }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
