//! The programs of the shop: what its hosts offer, what of it runs, and what it says.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tenure::apps::{HostOffers, Offer, Sort, Standing, Wanted};
use tenure::when::cron;
use tenure::{Chance, Error, Tenure, TimerDraft, Timestamp};

pub(super) const SET: &str = "apps";
/// The hosts that have the folder.
const NODES: [&str; 2] = ["app-1", "app-2"];
/// What the continuous ones say, one after the other.
const SAYS: [&str; 6] = [
    "out: looking for new mail",
    "out: \u{1b}[32mok\u{1b}[0m 4 messages, 1 with a picture",
    "out: nothing new",
    "err: \u{1b}[33mslow\u{1b}[0m: the relay took 2.1 s",
    "out: \u{1b}[32mok\u{1b}[0m 11 messages",
    "out: nothing new",
];

/// Names, schedules and what is told of triggered ones; without a schedule on demand.
const TRIGGERED: [(&str, Option<&str>); 4] = [
    ("nightly-backup", Some("0 30 2 * * *")),
    ("rotate-logs", Some("0 */15 * * * *")),
    ("rebuild-search", None),
    ("tax-export", Some("0 0 6 1 * *")),
];

/// What hosts offer of the folder.
pub(super) struct Programs {
    tenure: Tenure,
    since: Timestamp,
}

impl Programs {
    pub(super) fn new(tenure: &Tenure) -> Self {
        Self { tenure: tenure.clone(), since: tenure.now() }
    }

    /// Each host tells once more what it has; what runs all the time says something.
    pub(super) async fn go_on(&self, chance: &Chance) -> Result<(), Error> {
        let apps = self.tenure.apps(SET)?;
        let stopped = apps.stopped().await?;
        for (at, node) in NODES.iter().enumerate() {
            let mut offered = self.offers(at);
            for offer in offered.iter_mut().filter(|offer| offer.sort == Sort::Continuous) {
                if let Some(reason) = stopped.get(&(offer.sort, offer.name.clone())) {
                    (offer.state, offer.detail) = (Standing::Stopped, reason.clone());
                }
            }
            let offers = HostOffers {
                folder: String::new(),
                host: format!("shop-{node}"),
                node: (*node).to_owned(),
                apps: offered,
            };
            apps.offer(&offers).await?;
        }
        if stopped.contains_key(&(Sort::Continuous, "mail-intake".to_owned())) {
            return Ok(());
        }
        let which = usize::try_from(chance.below(SAYS.len() as u64)).unwrap_or(0);
        apps.say("mail-intake", "app-1", &[SAYS.get(which).copied().unwrap_or_default().to_owned()]).await
    }

    /// Sets the schedules of the programs, as their hosts do.
    pub(super) async fn schedule(&self) -> Result<(), Error> {
        let apps = self.tenure.apps(SET)?;
        for (name, rule) in TRIGGERED.iter().filter_map(|(name, rule)| Some((name, (*rule)?))) {
            let job = apps.draft(name, 1, &json!({}))?;
            let when = cron(rule).zone("Europe/Copenhagen");
            self.tenure.timers().set(TimerDraft::of(&apps.kind(name)?, when, job).runs_elsewhere()).await?;
        }
        Ok(())
    }

    /// Starts a run, unless one is active.
    pub(super) async fn run(&self, request: &Request) -> Result<(), Error> {
        let (arguments, by) = (vec!["--all".to_owned()], request.by.to_owned());
        let wanted = Wanted { arguments, by, ..Wanted::default() };
        self.tenure.apps(SET)?.run(request.name, &wanted).await.map(drop)
    }

    fn offers(&self, at: usize) -> Vec<Offer> {
        let triggered = TRIGGERED.iter().map(|(name, schedule)| {
            let mut offer = Offer::new(Sort::Triggered, name, self.since);
            offer.schedule = schedule.map(str::to_owned);
            offer.settings = settings(*schedule, name);
            if *name == "tax-export" && at == 1 {
                (offer.state, offer.detail) =
                    (Standing::Wrong, "No runnable script file was found: php is not installed".to_owned());
            }
            offer
        });
        let continuous = [("mail-intake", true), ("price-feed", false)].map(|(name, is_singleton)| {
            let mut offer = Offer::new(Sort::Continuous, name, self.since);
            (offer.state, offer.restarts) = (Standing::Running, 1);
            if is_singleton && at == 1 {
                (offer.state, offer.restarts) = (Standing::StandingBy, 0);
            }
            if name == "price-feed" && at == 1 {
                (offer.state, offer.restarts) = (Standing::Resting, 7);
                offer.detail = "ended with 1; restarts in 8 min".to_owned();
            }
            offer.settings = BTreeMap::from(
                [
                    ("is_singleton", json!(is_singleton)),
                    ("restart_time", json!(60)),
                    ("stopping_wait_time", json!(5)),
                    ("signal_after", json!(2)),
                    ("is_in_place", json!(false)),
                    ("arguments", json!("0 words")),
                    ("env", json!(["RELAY"])),
                ]
                .map(|(name, value)| (name.to_owned(), value)),
            );
            offer
        });
        triggered.chain(continuous).collect()
    }
}

fn settings(schedule: Option<&str>, name: &str) -> BTreeMap<String, Value> {
    [
        ("schedule", json!(schedule)),
        ("overlap", json!("skip")),
        ("catch_up", json!("one")),
        ("max_lateness", json!(600)),
        ("attempts", json!(1)),
        ("timeout", if name == "nightly-backup" { json!(3600) } else { Value::Null }),
        ("idle_timeout", Value::Null),
        ("history", json!(50)),
        ("stopping_wait_time", json!(30)),
        ("signal_after", json!(15)),
        ("is_in_place", json!(false)),
        ("arguments", json!(if name == "nightly-backup" { "2 words" } else { "0 words" })),
        ("env", json!(if name == "nightly-backup" { vec!["BUCKET", "PGPASSFILE"] } else { Vec::new() })),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into_iter()
    .collect()
}

/// A run that a person or a client requests now and then.
pub(super) struct Request {
    name: &'static str,
    pub by: &'static str,
}

impl Request {
    pub(super) fn drawn(chance: &Chance) -> Option<Self> {
        match chance.below(12) {
            0 => Some(Self { name: "rebuild-search", by: "ada" }),
            1 => Some(Self { name: "tax-export", by: "HTTP" }),
            _ => None,
        }
    }
}
