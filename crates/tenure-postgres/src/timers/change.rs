//! What people want of a timer.

use tenure_core::Name;
use tenure_store::engine::timers::{self, TimerTxn};
use tenure_store::{Fault, TimerAct, TimerOutcome, TimerSeen};

use super::row;
use crate::fault::is_unreadable;
use crate::link::Link;
use crate::transaction::Gate;
use crate::writing::Writing;

/// Performs an action on a timer. Returns `None` if the timer no longer matches `seen`.
pub(super) async fn change(
    link: &mut Link,
    name: &Name,
    act: &TimerAct,
    seen: &TimerSeen,
) -> Result<Option<TimerOutcome>, Fault> {
    let (mut tries, mut records) = (0, Records::Made);
    loop {
        match try_change(link, name, act, (seen, records)).await {
            // It need not be readable for that; nobody knows what it leaves.
            Err(fault)
                if *act == TimerAct::Remove
                    && *seen == TimerSeen::Never
                    && records == Records::Made
                    && is_unreadable(&fault) =>
            {
                tracing::warn!(timer = %name, %fault, "removing an unreadable timer without recording its skipped runs");
                records = Records::LeftOut;
            }
            Err(fault) => {
                if !link.may_try_again(&mut tries).await {
                    return Err(fault);
                }
            }
            done => return done,
        }
    }
}

/// Whether what a removed timer leaves is put on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Records {
    Made,
    LeftOut,
}

async fn try_change(
    link: &mut Link,
    name: &Name,
    act: &TimerAct,
    (seen, records): (&TimerSeen, Records),
) -> Result<Option<TimerOutcome>, Fault> {
    let find = row::lock_and_find(vec![name.as_str().to_owned()]);
    let (mut writing, read) = Writing::begin(link, Gate::Keys, find).await?;
    let found = read.last().and_then(|rows| rows.first());
    if *seen != TimerSeen::Never && !seen.is(found.map(row::read).transpose()?.as_ref()) {
        writing.roll_back().await?;
        return Ok(None);
    }
    let outcome = match found {
        Some(found) if records == Records::Made => {
            timers::act(&mut writing, &row::read(found)?, act).await.map_err(|halt| halt.of_timer(name))?
        }
        // Half a timer is removed, too.
        None | Some(_) if *act == TimerAct::Remove && TimerTxn::remove(&mut writing, name).await? => {
            TimerOutcome::Done
        }
        None | Some(_) => TimerOutcome::NotFound,
    };
    match outcome {
        TimerOutcome::NotFound | TimerOutcome::Busy(_) | TimerOutcome::IdTaken(_) => {
            writing.roll_back().await?
        }
        TimerOutcome::Done | TimerOutcome::Triggered(_) | TimerOutcome::Backfilled { .. } => {
            writing.commit().await?;
        }
    }
    Ok(Some(outcome))
}
