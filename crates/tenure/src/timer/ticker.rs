//! The ticker of a worker: it sets the timers that the worker declares, and fires whatever is ripe in the store.
//!
//! Every running worker has one, and each of them fires all timers: whoever comes first decides a slot, and the others
//! find it decided. It looks when the next timer is ripe, when somebody calls, and every few seconds by a clock that
//! runs through suspend, so that neither a clock that was set nor a call that was lost hides a slot for long.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{NewTimer, Timestamp, limits};
use tenure_store::{Fault, Fired, TimerSet};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::worker::Backoff;
use crate::{Error, Tenure};

/// It is looked at least so often, whatever the store said about the next slot.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Calls are answered at most so often: every job that is enqueued makes one.
const CALLS_APART: Duration = Duration::from_millis(250);
/// The first wait after a look for something that by this host's clock is ripe and by the store's is not.
const FIRST_VAIN_WAIT: Duration = Duration::from_millis(1);
/// A request without an answer for so long is asked again. What it may have done is not done twice.
const LONGEST_REQUEST: Duration = Duration::from_secs(30);
/// So many declared timers are set at once.
const SET_AT_ONCE: usize = 100;

/// Fires timers while a worker runs.
pub(crate) struct Ticker {
    pub(crate) tenure: Tenure,
    /// What the worker declares.
    pub(crate) declared: Vec<NewTimer>,
    /// Somebody calls out that something may be due.
    pub(crate) calls: Arc<Notify>,
    pub(crate) stop: CancellationToken,
}

impl Ticker {
    /// Goes on until told to stop, or until the store is closed.
    pub(crate) async fn tick(self) -> Result<(), Error> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Ok(()),
            ended = self.go_on() => ended,
        }
    }

    async fn go_on(&self) -> Result<(), Error> {
        let mut faults = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
        let (mut set, mut pace) = (0, Pace::default());
        self.tenure.heart().begins();
        loop {
            match self.look(&mut set).await {
                Ok(fired) => {
                    faults.reset();
                    let now = self.tenure.now();
                    self.tenure.heart().beats(now);
                    self.rest(pace.pause(fired, now)).await;
                }
                Err(fault @ Fault::Closed) => return Err(fault.into()),
                Err(_) if cfg!(feature = "mutant-ticker-gives-up") => return Ok(()),
                // One that does not pass may be mended by a person while this program runs, and its jobs go on.
                Err(fault) => {
                    self.tenure.heart().misses(&fault);
                    let pause = faults.next(self.tenure.chance(), "firing timers", &fault);
                    self.tenure.pause_for(pause).await;
                }
            }
        }
    }

    /// Sets what is declared and not set yet, then fires what is ripe.
    async fn look(&self, set: &mut usize) -> Result<Fired, Fault> {
        while let Some(some) = self.declared.get(*set..).filter(|rest| !rest.is_empty()) {
            let some = &some[..some.len().min(SET_AT_ONCE)];
            let outcomes = self.bounded(self.tenure.store().set_timers(some.to_vec(), true)).await?;
            some.iter().zip(outcomes).for_each(|(timer, outcome)| tell(timer, outcome, self.tenure.now()));
            *set += some.len();
        }
        self.bounded(self.tenure.store().fire(limits::FIRE_TIMERS)).await
    }

    /// Waits for the next look, or until somebody calls.
    async fn rest(&self, pause: Duration) {
        if pause.is_zero() {
            // There is more, and others want to go on as well.
            return tokio::task::yield_now().await;
        }
        let clock = self.tenure.clock();
        let end = clock.moment().after(pause);
        self.tenure.pause_for(pause.min(CALLS_APART)).await;
        // It may have been long: the host may have been suspended.
        let left = end.since(clock.moment());
        if left.is_zero() {
            return;
        }
        tokio::select! {
            biased;
            () = self.calls.notified() => {}
            () = self.tenure.pause_for(left) => {}
        }
    }

    async fn bounded<T>(&self, request: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        tokio::select! {
            biased;
            answer = request => answer,
            () = self.tenure.pause_for(LONGEST_REQUEST) => {
                Err(Fault::Unknown(format!("no answer within {} s", LONGEST_REQUEST.as_secs())))
            }
        }
    }
}

fn tell(timer: &NewTimer, outcome: TimerSet, now: Timestamp) {
    let name = &timer.name;
    let is_news = matches!(outcome, TimerSet::New | TimerSet::Changed);
    if let Some(over) = timer.check_left(now).err().filter(|_| is_news) {
        tracing::warn!(timer = %name, %over, "a timer is over and will not fire");
    }
    match outcome {
        TimerSet::New => tracing::info!(timer = %name, schedule = %timer.schedule, "a timer is there now"),
        TimerSet::Changed => tracing::info!(timer = %name, schedule = %timer.schedule, "a timer has changed"),
        TimerSet::Same => tracing::debug!(timer = %name, "a timer is as it was"),
        TimerSet::Outdated { by } => tracing::warn!(
            timer = %name, revision = timer.revision, by,
            "a timer stays as a later version of this program has declared it"
        ),
    }
}

/// How long to wait for the next look.
#[derive(Debug, Default)]
struct Pace {
    /// Looks in a row that found nothing, though by this host's clock something was ripe.
    vain: u32,
}

impl Pace {
    fn pause(&mut self, fired: Fired, now: Timestamp) -> Duration {
        let until = fired.next.map_or(LOOK_EVERY, |next| next.since(now));
        let is_vain = until.is_zero() && fired.timers == 0;
        self.vain = if is_vain { self.vain.saturating_add(1) } else { 0 };
        let apart = match self.vain {
            0 => Duration::ZERO,
            vain => FIRST_VAIN_WAIT.saturating_mul(1 << (vain - 1).min(16)),
        };
        let longest = if cfg!(feature = "mutant-ticker-trusts-clock") { Duration::MAX } else { LOOK_EVERY };
        until.max(apart).min(longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(secs: u64) -> Timestamp {
        Timestamp::EPOCH.after(Duration::from_secs(secs))
    }

    fn fired(timers: usize, next: Option<Timestamp>) -> Fired {
        Fired { timers, jobs: timers, next }
    }

    /// T060: a wait of any length is taken in short steps, each of them counted anew from the clock.
    #[test]
    fn a_long_wait_is_taken_in_short_steps() {
        let mut pace = Pace::default();
        for days in [25, 40, 60] {
            let next = Some(second(days * 86_400));
            assert_eq!(pace.pause(fired(0, next), second(0)), LOOK_EVERY);
        }
        assert_eq!(pace.pause(fired(0, Some(second(3))), second(1)), Duration::from_secs(2));
        assert_eq!(pace.pause(fired(0, None), second(1)), LOOK_EVERY);
    }

    #[test]
    fn what_was_left_over_is_fired_at_once() {
        assert_eq!(Pace::default().pause(fired(1_000, Some(second(5))), second(5)), Duration::ZERO);
    }

    /// A store whose clock is behind goes on expecting what by this host's clock is long ripe.
    #[test]
    fn a_host_whose_clock_is_ahead_of_the_store_does_not_ask_without_pause() {
        let (mut pace, mut asked, mut spent) = (Pace::default(), 0, Duration::ZERO);
        while spent < Duration::from_secs(60) {
            spent += pace.pause(fired(0, Some(second(100))), second(3_600));
            asked += 1;
        }
        assert!(asked < 30, "{asked} times in a minute");
    }
}
