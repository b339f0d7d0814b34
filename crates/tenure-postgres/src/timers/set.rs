//! Setting timers: new ones, and such as are there already.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Edited, Firing, HostId, Name, NewTimer, Timer, edit, start};
use tenure_store::{Brought, Fault, TimerSeen, TimerSet, is_over};

use super::firing::brings_jobs;
use super::row;
use crate::fault::is_unreadable;
use crate::link::Link;
use crate::transaction::Gate;
use crate::writing::Writing;

/// What came of a try.
enum Tried {
    Done(Vec<TimerSet>),
    /// It is not as it was seen.
    Otherwise,
    /// Jobs come of it: it has to be done under the lock of the gates.
    NeedsGate,
    /// It meets what cannot be read, of this timer.
    Odd(Name, Fault),
}

/// What came of one timer.
enum One {
    Done(TimerSet, usize),
    NeedsGate,
}

/// A timer that is there.
struct Known {
    timer: Result<Timer, Fault>,
    revision: u64,
}

/// The timers that a call is about, as they are by now.
struct There {
    known: BTreeMap<String, Known>,
    /// Whether anything was written.
    wrote: bool,
}

/// Sets timers, each by itself.
///
/// A timer that cannot be read is a fault for whoever sets it alone. Among others it stays as it is, like any that a
/// later version has declared.
pub(super) async fn set_timers(
    link: &mut Link,
    timers: &[NewTimer],
    starts: Option<HostId>,
) -> Result<Vec<TimerSet>, Fault> {
    Ok(set_as_seen(link, timers, starts, &TimerSeen::Never).await?.unwrap_or_default())
}

/// The same if the first of them is as it was seen; `None` if it is not.
pub(super) async fn set_as_seen(
    link: &mut Link,
    timers: &[NewTimer],
    starts: Option<HostId>,
    seen: &TimerSeen,
) -> Result<Option<Vec<TimerSet>>, Fault> {
    let (mut tries, mut gate, mut odd) = (0, Gate::Open, BTreeSet::new());
    loop {
        match try_set(link, gate, timers, (starts, seen), &odd).await {
            Ok(Tried::Done(set)) => return Ok(Some(set)),
            Ok(Tried::Otherwise) => return Ok(None),
            Ok(Tried::NeedsGate) => gate = Gate::Keys,
            Ok(Tried::Odd(_, fault)) if timers.len() == 1 => return Err(fault),
            Ok(Tried::Odd(name, fault)) => {
                tracing::error!(timer = %name, %fault, "unreadable timer was not changed; update this program");
                odd.insert(name);
            }
            Err(fault) => {
                if !link.may_try_again(&mut tries).await {
                    return Err(fault);
                }
            }
        }
    }
}

async fn try_set(
    link: &mut Link,
    gate: Gate,
    timers: &[NewTimer],
    (starts, seen): (Option<HostId>, &TimerSeen),
    odd: &BTreeSet<Name>,
) -> Result<Tried, Fault> {
    let names = timers.iter().map(|new| new.name.as_str().to_owned()).collect();
    let (mut writing, read) = Writing::begin(link, gate, row::lock_and_find(names)).await?;
    let known = |found| (row::name(found), Known { timer: row::read(found), revision: row::revision(found) });
    let known: BTreeMap<String, Known> = read.last().into_iter().flatten().map(known).collect();
    if *seen != TimerSeen::Never {
        let first = timers.first().and_then(|new| known.get(new.name.as_str()));
        let first = first.map(|known| known.timer.clone()).transpose()?;
        if !seen.is(first.as_ref()) {
            writing.roll_back().await?;
            return Ok(Tried::Otherwise);
        }
    }
    let mut there = There { known, wrote: false };
    let (mut set, mut brought) = (Vec::with_capacity(timers.len()), Brought::default());
    for new in timers {
        if brought.is_enough() {
            break;
        }
        if let Some(known) = there.known.get(new.name.as_str()).filter(|_| odd.contains(&new.name)) {
            set.push(TimerSet::Outdated { by: known.revision });
            continue;
        }
        match there.set(&mut writing, new, starts).await {
            Ok(One::Done(outcome, jobs)) => {
                set.push(outcome);
                brought.jobs += jobs;
            }
            Ok(One::NeedsGate) => {
                writing.roll_back().await?;
                return Ok(Tried::NeedsGate);
            }
            Err(fault) if is_unreadable(&fault) && !odd.contains(&new.name) => {
                writing.roll_back().await?;
                return Ok(Tried::Odd(new.name.clone(), fault));
            }
            Err(fault) => return Err(fault),
        }
    }
    if !there.wrote {
        writing.roll_back().await?;
        return Ok(Tried::Done(set));
    }
    writing.news.due |= set.iter().any(|set| *set != TimerSet::Same);
    writing.commit().await?;
    Ok(Tried::Done(set))
}

impl There {
    async fn set(
        &mut self,
        writing: &mut Writing<'_>,
        new: &NewTimer,
        starts: Option<HostId>,
    ) -> Result<One, Fault> {
        let mut jobs = 0;
        let there = self.known.get(new.name.as_str()).map(|known| known.timer.clone()).transpose()?;
        if starts.is_none() && is_over(new, there.as_ref(), writing.now) {
            return Ok(One::Done(TimerSet::Over { now: writing.now }, jobs));
        }
        let set = match there {
            None => {
                let timer = Timer::accepted(new.clone(), writing.now);
                row::keep_new(&timer)?.into_iter().try_for_each(|query| writing.write(query))?;
                self.note(timer);
                TimerSet::New
            }
            Some(timer) => {
                let open = writing.open_jobs([&timer]).await?.of(&timer)?;
                match edit(&timer, &open, new.clone(), writing.now) {
                    Edited::Same => TimerSet::Same,
                    Edited::Outdated { by } => return Ok(One::Done(TimerSet::Outdated { by }, jobs)),
                    Edited::Changed(firing) => {
                        writing.write(row::agree(&firing.timer)?)?;
                        match self.write(writing, &timer, *firing).await? {
                            Some(new) => jobs += new,
                            None => return Ok(One::NeedsGate),
                        }
                        TimerSet::Changed
                    }
                }
            }
        };
        let there = self.known.get(new.name.as_str()).map(|known| known.timer.clone()).transpose()?;
        if let (Some(host), Some(timer)) = (starts, there) {
            let open = writing.open_jobs([&timer]).await?.of(&timer)?;
            let firing = start(&timer, &open, host.drawn_at(), writing.now);
            // Each host that starts says so: most find nothing to write.
            if firing.timer != timer || !firing.records.is_empty() {
                match self.write(writing, &timer, firing).await? {
                    Some(new) => jobs += new,
                    None => return Ok(One::NeedsGate),
                }
            }
        }
        Ok(One::Done(set, jobs))
    }

    /// Writes what was decided about a timer; answers how many jobs are new, and `None` if they need the lock of the
    /// gates.
    async fn write(
        &mut self,
        writing: &mut Writing<'_>,
        timer: &Timer,
        firing: Firing,
    ) -> Result<Option<usize>, Fault> {
        if brings_jobs(&firing) && writing.gate != Gate::Keys {
            return Ok(None);
        }
        let (jobs, timer) = writing.write_firing(timer, firing).await?;
        timer.into_iter().for_each(|timer| self.note(timer));
        Ok(Some(jobs))
    }

    /// Notes a timer as it is now.
    fn note(&mut self, timer: Timer) {
        self.wrote = true;
        let (name, revision) = (timer.name().as_str().to_owned(), timer.agreed.revision);
        self.known.insert(name, Known { timer: Ok(timer), revision });
    }
}
