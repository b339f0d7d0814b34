//! Setting timers: new ones, and such as are there already.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{HostId, Name, NewTimer, Timer};
use tenure_store::engine::timers;
use tenure_store::{Brought, Fault, TimerSeen, TimerSet};

use super::row;
use super::txn::Halt;
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

/// A timer that is there.
struct Known {
    timer: Result<Timer, Fault>,
    revision: u64,
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
    let mut known: BTreeMap<String, Known> = read.last().into_iter().flatten().map(known).collect();
    if *seen != TimerSeen::Never {
        let first = timers.first().and_then(|new| known.get(new.name.as_str()));
        let first = first.map(|known| known.timer.clone()).transpose()?;
        if !seen.is(first.as_ref()) {
            writing.roll_back().await?;
            return Ok(Tried::Otherwise);
        }
    }
    let (mut outcomes, mut brought, mut wrote) =
        (Vec::with_capacity(timers.len()), Brought::default(), false);
    for new in timers {
        if brought.is_enough() {
            break;
        }
        let there = known.get(new.name.as_str());
        if let Some(known) = there.filter(|_| odd.contains(&new.name)) {
            outcomes.push(TimerSet::Outdated { by: known.revision });
            continue;
        }
        let set = match there.map(|known| known.timer.clone()).transpose() {
            Ok(before) => timers::set(&mut writing, before, new, starts).await,
            Err(fault) => Err(Halt::Fault(fault)),
        };
        match set.map_err(|halt| halt.of_timer(&new.name)) {
            Ok(set) => {
                outcomes.push(set.outcome);
                brought.jobs += set.brought.jobs;
                brought.records += set.brought.records;
                if let Some(timer) = set.written {
                    wrote = true;
                    let (name, revision) = (timer.name().as_str().to_owned(), timer.agreed.revision);
                    known.insert(name, Known { timer: Ok(timer), revision });
                }
            }
            Err(Halt::NeedsGate) => {
                writing.roll_back().await?;
                return Ok(Tried::NeedsGate);
            }
            Err(Halt::Fault(fault)) if is_unreadable(&fault) && !odd.contains(&new.name) => {
                writing.roll_back().await?;
                return Ok(Tried::Odd(new.name.clone(), fault));
            }
            Err(Halt::Fault(fault)) => return Err(fault),
        }
    }
    if wrote {
        writing.commit().await?
    } else {
        writing.roll_back().await?
    }
    Ok(Tried::Done(outcomes))
}
