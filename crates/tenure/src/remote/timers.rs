//! Timers that are changed from outside of this program, without being declared anew.

use tenure_core::NewTimer;
use tenure_store::TimerSet;

use super::Remote;
use crate::timer::check_revision;
use crate::{Error, Timers};

impl Remote<'_> {
    /// Sets a timer of which all is said: best one that is there ([`Timers::get`]) with what shall be otherwise. What
    /// nobody speaks of stays so as it is.
    ///
    /// # Errors
    /// As [`Timers::set`].
    pub async fn set_timer(&self, timer: NewTimer) -> Result<TimerSet, Error> {
        timer.check()?;
        check_revision(timer.revision)?;
        let timers: Timers<'_> = self.tenure.timers();
        timers.set_finished(timer).await
    }
}
