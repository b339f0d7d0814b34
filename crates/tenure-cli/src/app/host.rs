//! What all that runs on one host shares.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::apps::{Apps, HostOffers, Offer, Sort, Standing};
use tenure::{Error, Kind, Tenure};
use tenure_apps::{App, Overall};
use tokio::sync::{Notify, watch};
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
    /// The identity of the folder that it runs.
    folder: String,
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
    pub(super) lease: Duration,
    /// All that runs is to be killed.
    pub(super) kill: CancellationToken,
    offers: Mutex<BTreeMap<(Sort, String), Offer>>,
    /// What somebody has stopped on all hosts, and why.
    stopped: watch::Sender<BTreeMap<(Sort, String), String>>,
    /// The kinds of triggered apps among that.
    pub(super) left: watch::Sender<BTreeSet<Kind>>,
    changed: Notify,
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
        (tenure, set, folder): (&Tenure, &str, &str),
        (id, node): (String, String),
        places: Places,
        overall: Overall,
        (as_kudu, lease): (bool, Duration),
        bounds: Bounds,
        kill: CancellationToken,
    ) -> Self {
        Self {
            tenure: tenure.clone(),
            set: set.to_owned(),
            folder: folder.to_owned(),
            id,
            node,
            places,
            overall,
            as_kudu,
            bounds,
            lease,
            kill,
            offers: Mutex::default(),
            stopped: watch::Sender::default(),
            left: watch::Sender::default(),
            changed: Notify::new(),
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
        (offer.state, offer.detail) = stands_first(app, &self.overall);
        if self.overall.is_stopped || self.overall.is_schedule_off {
            offer.schedule = None;
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

    /// A run of a triggered app has ended, in these words.
    pub(super) fn ended(&self, app: &App, words: &str) {
        self.stands(app, Standing::Ready, &when_ready(app, &self.overall, Some(words)));
    }

    /// The fencing token under which an app runs here, as long as it is the only one.
    pub(super) fn holds(&self, app: &App, fence: Option<u64>) {
        if let Some(offer) = lock(&self.offers).get_mut(&(sort_of(app), app.name.clone())) {
            offer.fence = fence;
            self.changed.notify_one();
        }
    }

    /// Why somebody has stopped it on all hosts, if somebody has. What this host's environment says stops it on no other.
    pub(super) fn is_stopped(&self, app: &App) -> Option<String> {
        self.stopped.borrow().get(&(sort_of(app), app.name.clone())).cloned()
    }

    /// Resolves when somebody has stopped it, if that is waited for, or else when somebody has let it run again.
    pub(super) async fn until_it_is(&self, app: &App, is_stopped: bool) {
        let key = (sort_of(app), app.name.clone());
        // The other end lives as long as the host.
        let _ = self.stopped.subscribe().wait_for(|stopped| stopped.contains_key(&key) == is_stopped).await;
    }

    /// Looks what somebody has stopped.
    pub(super) async fn look_what_is_stopped(&self) -> Result<(), Error> {
        let apps = self.apps()?;
        let stopped = apps.stopped().await?;
        let triggered = stopped.keys().filter(|(sort, _)| *sort == Sort::Triggered);
        let left = triggered.filter_map(|(_, name)| Kind::new(&apps.kind(name).ok()?).ok()).collect();
        set(&self.left, left);
        set(&self.stopped, stopped);
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
                    complain(&format!("cannot record the programs of this host: {error}; retrying"));
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
        HostOffers { host: self.id.clone(), node: self.node.clone(), folder: self.folder.clone(), apps }
    }
}

/// How an app stands on a host that begins, and more about that in words.
fn stands_first(app: &App, overall: &Overall) -> (Standing, String) {
    if !app.runs() {
        return (Standing::Wrong, app.wrong.join("; "));
    }
    if overall.is_stopped {
        return (Standing::Stopped, "stopped on this host by WEBJOBS_STOPPED".to_owned());
    }
    if app.is_disabled {
        return (Standing::Stopped, "stopped on this host by disable.job".to_owned());
    }
    (Standing::Ready, when_ready(app, overall, None))
}

/// Returns what there is to say of an app that waits for a run, after one that ended in these words.
fn when_ready(app: &App, overall: &Overall, last: Option<&str>) -> String {
    if !overall.is_schedule_off || app.settings.schedule.is_none() {
        return last.unwrap_or_default().to_owned();
    }
    // Else the first run on demand would hide why no other follows.
    let last = last.map_or_else(String::new, |last| format!("; last run: {last}"));
    format!("schedule off on this host by WEBJOBS_DISABLE_SCHEDULE{last}")
}

/// Tells of it only if it is another one.
fn set<T: PartialEq>(sender: &watch::Sender<T>, to: T) {
    sender.send_if_modified(|value| {
        let is_new = *value != to;
        *value = to;
        is_new
    });
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tenure_apps::{Settings, Sort};

    use super::*;

    #[test]
    fn a_run_on_demand_does_not_hide_that_the_schedule_is_off() {
        let mut app = App {
            name: "tick".to_owned(),
            sort: Sort::Triggered,
            folder: "tick".into(),
            command: Vec::new(),
            settings: Settings::usual(Sort::Triggered),
            wrong: Vec::new(),
            notes: Vec::new(),
            is_disabled: false,
        };
        let off = Overall::of(|name| (name == "WEBJOBS_DISABLE_SCHEDULE").then(|| "1".to_owned()));
        assert_eq!(when_ready(&app, &off, Some("ended with 0")), "ended with 0", "it has no schedule");
        app.settings.schedule = Some(tenure::schedule::Schedule::parse("* * * * * *").unwrap());
        let told = when_ready(&app, &off, Some("ended with 0"));
        assert!(
            told.contains("WEBJOBS_DISABLE_SCHEDULE") && told.ends_with("; last run: ended with 0"),
            "{told}"
        );
        let on = Overall::of(|_| None);
        assert_eq!(when_ready(&app, &on, Some("ended with 0")), "ended with 0");
    }
}
