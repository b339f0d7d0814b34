//! How a program is brought to its end: it is told, has its grace, and is killed with all that it has started.

use std::time::Duration;

use tenure::Moment;
use tenure_program::{Notice, Reins};

/// How long a program has to stop that runs in front of somebody, once it was told to.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// The way to its end of one program.
pub(crate) struct Brake {
    reins: Reins,
    kill_at: Option<Moment>,
    is_killed: bool,
}

impl Brake {
    /// Of a program that nobody has told anything yet.
    pub(crate) fn new(reins: Reins) -> Self {
        Self { reins, kill_at: None, is_killed: false }
    }

    /// Tells it what Ctrl-C tells.
    pub(crate) fn interrupt(&self) {
        self.reins.tell(Notice::Interrupt);
    }

    /// Tells it to stop, once. It has the shortest of all graces that were said.
    pub(crate) fn stop(&mut self, now: Moment, grace: Duration) {
        if self.kill_at.is_none() {
            self.reins.tell(Notice::Terminate);
        }
        let at = now.after(grace);
        self.kill_at = Some(self.kill_at.map_or(at, |before| before.min(at)));
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        if !std::mem::replace(&mut self.is_killed, true) {
            self.reins.kill();
        }
    }

    /// Kills it if its grace is over.
    pub(crate) fn look(&mut self, now: Moment) {
        if self.kills_at().is_some_and(|at| now >= at) {
            self.kill();
        }
    }

    /// When it is killed, if it was told to stop and was not killed yet.
    pub(crate) fn kills_at(&self) -> Option<Moment> {
        self.kill_at.filter(|_| !self.is_killed)
    }

    /// Whether it was told to stop.
    pub(crate) fn was_told(&self) -> bool {
        self.kill_at.is_some()
    }
}
