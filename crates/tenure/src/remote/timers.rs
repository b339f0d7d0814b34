//! Timers that are changed from outside of this program, without being declared anew.

use tenure_core::NewTimer;
use tenure_store::{TimerSeen, TimerSet};

use super::Remote;
use crate::timer::check_revision;
use crate::{Error, Timers};

impl Remote<'_> {
    /// Sets a timer of which all is said: best one that is there ([`Timers::get`]) with what shall be otherwise. What
    /// nobody speaks of stays so as it is.
    ///
    /// It is set if what is there is as it was seen; `None` if it is not.
    ///
    /// # Errors
    /// As [`Timers::set`].
    pub async fn set_timer(&self, timer: NewTimer, seen: TimerSeen) -> Result<Option<TimerSet>, Error> {
        timer.check()?;
        check_revision(timer.revision)?;
        let timers: Timers<'_> = self.tenure.timers();
        timers.set_finished_as_seen(timer, seen).await
    }
}
