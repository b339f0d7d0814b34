//! Asking which apps there are, stopping and starting them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_core::{AppId, Document, Invalid, Name, RecordKey};
use tenure_store::{NewValue, Only, Order, Put, RecordsAsk, Writes};

use super::offer::{HostOffers, Offer, Sort, Standing, check_set, key_of, kind_of};
use crate::{Error, Lock, Mode, Scope, Tenure};

/// Where hosts write down what they offer.
pub(super) const OFFERS: &str = "apps.offers";
/// Where it stands that an app was stopped.
const STOPPED: &str = "apps.stopped";
/// What a host offers is forgotten so long after it was last written.
pub(super) const FORGOTTEN: Duration = Duration::from_secs(60);
/// Pages of records that are looked through.
const PAGES: usize = 100;

/// The apps of one set.
#[derive(Debug, Clone)]
pub struct Apps<'a> {
    pub(super) tenure: &'a Tenure,
    pub(super) set: String,
}

/// An app, as all hosts together offer it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Info {
    /// Which sort it is.
    #[serde(rename = "type")]
    pub sort: Sort,
    /// Its name among those of its sort.
    pub name: String,
    /// The kind of its jobs, for a triggered one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// When it runs by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// Why somebody has stopped it, if somebody has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// How it stands on each host.
    pub hosts: Vec<OnHost>,
}

/// An app on one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OnHost {
    /// The id of the host.
    pub host: String,
    /// Its name for people.
    pub node: String,
    /// The identity of the folder that it runs; empty if it has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// How it stands there.
    #[serde(flatten)]
    pub offer: Offer,
}

#[derive(Serialize, Deserialize)]
struct Stop {
    reason: String,
}

impl Tenure {
    /// The apps of a set, such as all that hosts offer from one folder.
    ///
    /// # Errors
    /// A set that has no proper name.
    pub fn apps(&self, set: &str) -> Result<Apps<'_>, Error> {
        check_set(set)?;
        Ok(Apps { tenure: self, set: set.to_owned() })
    }
}

impl Apps<'_> {
    /// The name of the set.
    #[must_use]
    pub fn set(&self) -> &str {
        &self.set
    }

    /// The name of a triggered app's kind, which is that of its timer as well.
    ///
    /// # Errors
    /// A name that is none.
    pub fn kind(&self, name: &str) -> Result<String, Error> {
        Ok(kind_of(&self.set, name)?.as_str().to_owned())
    }

    /// All apps that hosts offer, or that somebody has stopped, by sort and name.
    ///
    /// # Errors
    /// A fault.
    pub async fn list(&self) -> Result<Vec<Info>, Error> {
        let mut all: BTreeMap<(Sort, String), Info> = BTreeMap::new();
        let stopped = self.stopped().await?;
        let mut offered = self.offered().await?;
        self.mark_lost(&mut offered).await?;
        for mut offers in offered {
            for offer in std::mem::take(&mut offers.apps) {
                let app = all.entry((offer.sort, offer.name.clone()));
                let info = app.or_insert_with(|| self.info(offer.sort, &offer.name, &stopped));
                info.schedule = info.schedule.take().or_else(|| offer.schedule.clone());
                let HostOffers { host, node, folder, .. } = &offers;
                let (host, node, folder) = (host.clone(), node.clone(), folder.clone());
                info.hosts.push(OnHost { host, node, folder, offer });
            }
        }
        for (sort, name) in stopped.keys() {
            all.entry((*sort, name.clone())).or_insert_with(|| self.info(*sort, name, &stopped));
        }
        Ok(all.into_values().collect())
    }

    /// Marks programs whose host said that it runs them under a lease, and holds that lease no longer.
    async fn mark_lost(&self, offered: &mut [HostOffers]) -> Result<(), Error> {
        let under_lease = offered.iter_mut().flat_map(|offers| &mut offers.apps);
        for offer in under_lease {
            let Some(fence) = offer.fence else { continue };
            let scope = Scope::Function { function: offer.name.clone(), part: String::new() };
            let Ok(lock) = Lock::new(AppId::new(&self.set)?, scope, Mode::Listener) else { continue };
            let lease = self.tenure.store().lease_info(lock.name()).await?;
            if !lease.is_some_and(|info| info.state.is_locked() && info.lease.fence.number() == fence) {
                offer.state = Standing::Lost;
            }
        }
        Ok(())
    }

    /// One app; none if nobody offers it.
    ///
    /// # Errors
    /// A fault.
    pub async fn get(&self, sort: Sort, name: &str) -> Result<Option<Info>, Error> {
        Ok(self.list().await?.into_iter().find(|info| info.sort == sort && info.name == name))
    }

    fn info(&self, sort: Sort, name: &str, stopped: &BTreeMap<(Sort, String), String>) -> Info {
        let kind = (sort == Sort::Triggered).then(|| format!("{}.{name}", self.set));
        let stopped = stopped.get(&(sort, name.to_owned())).cloned();
        Info { sort, name: name.to_owned(), kind, schedule: None, stopped, hosts: Vec::new() }
    }

    /// Which apps somebody has stopped, each with the reason.
    ///
    /// # Errors
    /// A fault.
    pub async fn stopped(&self) -> Result<BTreeMap<(Sort, String), String>, Error> {
        let mut stopped = BTreeMap::new();
        for (key, text) in self.records(STOPPED).await? {
            let mut parts = key.splitn(3, '/').skip(1);
            let sort = match parts.next() {
                Some("triggered") => Sort::Triggered,
                Some("continuous") => Sort::Continuous,
                Some(_) | None => continue,
            };
            let Some(name) = parts.next() else { continue };
            let reason = serde_json::from_slice(&text).map_or_else(|_| String::new(), |it: Stop| it.reason);
            stopped.insert((sort, name.to_owned()), reason);
        }
        Ok(stopped)
    }

    /// Stops an app on all hosts, until it is started. A triggered one fires no more and takes no wish to run; what runs of it
    /// goes on, and what waits is kept until it is started. A continuous one is told to stop. Answers whether that is new.
    ///
    /// # Errors
    /// A name or a reason that is none, or a fault.
    pub async fn stop(&self, sort: Sort, name: &str, reason: &str) -> Result<bool, Error> {
        kind_of(&self.set, name)?;
        if reason.len() > tenure_core::limits::REASON_BYTES {
            let allowed = format!("{} bytes", tenure_core::limits::REASON_BYTES);
            return Err(Invalid::new("reason", format_args!("{} bytes", reason.len()), allowed).into());
        }
        let value = Document::new(encoded(&Stop { reason: reason.to_owned() })?)?;
        let key = key_of(&self.set, sort, name)?;
        let shelf = Name::new("shelf", STOPPED)?;
        let is_new = self.tenure.store().record(&shelf, &key).await?.is_none();
        self.put(STOPPED, key, Some(NewValue { value, keep: None })).await?;
        if sort == Sort::Triggered {
            self.tenure.timers().pause(&self.kind(name)?, reason).await?;
        }
        Ok(is_new)
    }

    /// Lets an app run again. Answers whether it was stopped.
    ///
    /// # Errors
    /// A name that is none, or a fault.
    pub async fn start(&self, sort: Sort, name: &str) -> Result<bool, Error> {
        kind_of(&self.set, name)?;
        let key = key_of(&self.set, sort, name)?;
        let shelf = Name::new("shelf", STOPPED)?;
        let was_stopped = self.tenure.store().record(&shelf, &key).await?.is_some();
        self.put(STOPPED, key, None).await?;
        if sort == Sort::Triggered {
            self.tenure.timers().resume(&self.kind(name)?).await?;
        }
        Ok(was_stopped)
    }

    /// Ends timers of the set whose apps nobody offers any more, this host included. Answers their names.
    ///
    /// # Errors
    /// A fault.
    pub async fn end_timers_but(&self, of_this_host: &[String]) -> Result<Vec<String>, Error> {
        let offered: BTreeSet<String> = self
            .list()
            .await?
            .into_iter()
            .filter_map(|info| {
                let is_offered = !info.hosts.is_empty();
                info.kind.filter(|_| is_offered)
            })
            .collect();
        let ask = tenure_store::TimersAsk { prefix: format!("{}.", self.set), behind: None, at_most: 1_000 };
        let mut ended = Vec::new();
        for timer in self.tenure.timers().list(ask).await?.timers {
            let name = timer.name().as_str().to_owned();
            // One that somebody has set for something else is his.
            let job = &timer.agreed.job;
            if job.kind.as_str() != name || job.queue.as_str() != self.set {
                continue;
            }
            if !offered.contains(&name) && !of_this_host.contains(&name) {
                self.tenure.timers().remove(&name).await?;
                ended.push(name);
            }
        }
        Ok(ended)
    }

    pub(super) async fn put(&self, shelf: &str, key: RecordKey, to: Option<NewValue>) -> Result<(), Error> {
        let put = Put { shelf: Name::new("shelf", shelf)?, key, only: Only::Any, to };
        self.tenure.store().write_records(Writes { records: vec![put], ..Writes::default() }).await?;
        Ok(())
    }

    /// All records of this set on a shelf, as their keys and texts.
    pub(super) async fn records(&self, shelf: &str) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let mut ask = RecordsAsk::of(Name::new("shelf", shelf)?);
        ask.prefix = format!("{}/", self.set);
        let mut found = Vec::new();
        for _ in 0..PAGES {
            let page = self.tenure.store().records(ask.clone()).await?;
            found.extend(
                page.records
                    .into_iter()
                    .map(|record| (record.key.as_str().to_owned(), record.value.as_bytes().to_vec())),
            );
            ask.behind = page.next;
            if ask.behind.is_none() {
                break;
            }
        }
        Ok(found)
    }
}

pub(super) fn encoded(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value).map_err(|source| Error::Json { what: "program record", source })
}

/// The newest first.
pub(super) const NEWEST: Order = Order::NewestFirst;
