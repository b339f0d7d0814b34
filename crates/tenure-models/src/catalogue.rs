//! All searches: those of every test run, the deep ones, and those that have to find a planted bug.

use std::fmt::Debug;
use std::hash::Hash;

use tenure_core::Invalid;

use crate::check::{Found, Told, search};
use crate::{job, keys, lease, timer};

/// A search by its name.
pub struct Search {
    /// The name.
    pub name: String,
    /// The promises of which it has to find one broken; none if no bug is planted.
    pub breaks: Vec<&'static str>,
    run: Box<dyn FnOnce(usize, Option<usize>) -> Result<Found, Invalid>>,
}

impl Search {
    /// Searches all states on so many threads.
    ///
    /// # Errors
    /// None: the models' names are within the limits.
    pub fn run(self, threads: usize) -> Result<Found, Invalid> {
        (self.run)(threads, None)
    }

    /// Searches the states that so few steps lead to.
    ///
    /// # Errors
    /// None: the models' names are within the limits.
    pub fn run_to(self, depth: usize, threads: usize) -> Result<Found, Invalid> {
        (self.run)(threads, Some(depth))
    }
}

/// The searches of every test run.
#[must_use]
pub fn usual() -> Vec<Search> {
    of_all(lease::Setting::usual(), job::Setting::usual(), keys::Setting::usual(), timer::Setting::usual())
}

/// Larger searches, for those who have an hour: first those that take minutes.
#[must_use]
pub fn deep() -> Vec<Search> {
    let large = of_all(lease::Setting::large(), job::Setting::large(), keys::Setting::large(), Vec::new());
    let deep =
        of_all(lease::Setting::deep(), job::Setting::deep(), keys::Setting::deep(), timer::Setting::deep());
    large.into_iter().chain(deep).collect()
}

/// Models with a bug in each, which has to be found.
#[must_use]
pub fn planted() -> Vec<Search> {
    let leases = lease::Bug::ALL.map(|bug| Search {
        breaks: bug.breaks().iter().map(|promise| promise.words()).collect(),
        ..of_leases(&format!("{bug:?}"), bug.setting())
    });
    let jobs = job::Bug::ALL.map(|bug| Search {
        breaks: bug.breaks().iter().map(|promise| promise.words()).collect(),
        ..of_jobs(&format!("{bug:?}"), bug.setting())
    });
    let keys = keys::Bug::ALL.map(|bug| Search {
        breaks: bug.breaks().iter().map(|promise| promise.words()).collect(),
        ..of_keys(&format!("{bug:?}"), bug.setting())
    });
    let timers = timer::Bug::ALL.map(|bug| Search {
        breaks: bug.breaks().iter().map(|promise| promise.words()).collect(),
        ..of_timers(&format!("{bug:?}"), bug.setting())
    });
    leases.into_iter().chain(jobs).chain(keys).chain(timers).collect()
}

/// The settings in which planted bugs are looked for, without the bugs: each once.
#[must_use]
pub fn controls() -> Vec<Search> {
    let mut leases: Vec<(&str, lease::Setting)> = Vec::new();
    let mut jobs: Vec<(&str, job::Setting)> = Vec::new();
    let mut keys: Vec<(&str, keys::Setting)> = Vec::new();
    let mut timers: Vec<(&str, timer::Setting)> = Vec::new();
    for setting in lease::Bug::ALL.map(|bug| lease::Setting { bug: None, ..bug.setting() }) {
        add("where bugs are planted", setting, &mut leases);
    }
    for setting in job::Bug::ALL.map(|bug| job::Setting { bug: None, ..bug.setting() }) {
        add("where bugs are planted", setting, &mut jobs);
    }
    for setting in keys::Bug::ALL.map(|bug| keys::Setting { bug: None, ..bug.setting() }) {
        add("where bugs are planted", setting, &mut keys);
    }
    for setting in timer::Bug::ALL.map(|bug| timer::Setting { bug: None, ..bug.setting() }) {
        add("where bugs are planted", setting, &mut timers);
    }
    of_all(leases, jobs, keys, timers)
}

fn add<S: PartialEq>(name: &'static str, setting: S, known: &mut Vec<(&'static str, S)>) {
    if known.iter().all(|(_, other)| *other != setting) {
        known.push((name, setting));
    }
}

fn of_all(
    leases: Vec<(&'static str, lease::Setting)>,
    jobs: Vec<(&'static str, job::Setting)>,
    keys: Vec<(&'static str, keys::Setting)>,
    timers: Vec<(&'static str, timer::Setting)>,
) -> Vec<Search> {
    let leases = leases.into_iter().map(|(name, setting)| of_leases(name, setting));
    let jobs = jobs.into_iter().map(|(name, setting)| of_jobs(name, setting));
    let keys = keys.into_iter().map(|(name, setting)| of_keys(name, setting));
    let timers = timers.into_iter().map(|(name, setting)| of_timers(name, setting));
    leases.chain(jobs).chain(keys).chain(timers).collect()
}

fn of_leases(name: &str, setting: lease::Setting) -> Search {
    of("leases", name, move || lease::Leases::new(setting))
}

fn of_jobs(name: &str, setting: job::Setting) -> Search {
    of("jobs", name, move || job::Jobs::new(setting))
}

fn of_keys(name: &str, setting: keys::Setting) -> Search {
    of("keys", name, move || keys::Keys::new(setting))
}

fn of_timers(name: &str, setting: timer::Setting) -> Search {
    of("timers", name, move || timer::Timers::new(setting))
}

fn of<M>(of_what: &str, name: &str, model: impl FnOnce() -> Result<M, Invalid> + 'static) -> Search
where
    M: Told + Send + Sync + 'static,
    M::State: Debug + Hash + Clone + PartialEq + Send + Sync + 'static,
    M::Action: Debug + Clone + PartialEq + Send + Sync + 'static,
{
    Search {
        name: format!("{of_what}: {name}"),
        breaks: Vec::new(),
        run: Box::new(move |threads, depth| Ok(search(model()?, threads, depth))),
    }
}
