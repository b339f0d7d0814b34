//! What whoever interrupts `tenure exec` ends, and what is given back then.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tenure::{Clock, Moment, SystemClock};

use super::board::{Board, Post, Why};
use super::{Press, Presses};
use crate::client::{Ask, Client, escaped};
use crate::exit::Failure;
use crate::output::safe;

/// How long somebody waits who has interrupted it while no program runs.
pub(super) const LEAVING: Duration = Duration::from_secs(2);

/// A lock that is held for no longer is as good as lost: nothing begins under it.
pub(super) const ENOUGH: Duration = Duration::from_secs(10);

/// What the signals are for.
#[derive(Default)]
pub(super) struct Hands {
    presses: Mutex<Presses>,
    has: Mutex<Has>,
}

/// What is to be ended, or given back.
#[derive(Default)]
pub(super) struct Has {
    pub(super) post: Option<Arc<Post>>,
    pub(super) job: Option<String>,
    /// Name and token.
    pub(super) lock: Option<(String, String)>,
    /// Why the lock is lost, if it is: no program begins under it any more.
    pub(super) lost: Option<String>,
    /// Until when the lock is surely held, if there is one.
    pub(super) until: Option<Moment>,
    /// Somebody has interrupted it while there was no program: none begins any more.
    is_over: bool,
}

/// Why no program begins any more.
pub(super) enum Ended {
    /// Somebody has interrupted it.
    Interrupted,
    /// The lock is lost.
    Lost(String),
}

impl Ended {
    /// How the run of this job ends then.
    pub(super) fn of(self, id: &str) -> Failure {
        match self {
            Self::Interrupted => Failure::Interrupted,
            Self::Lost(why) => Failure::Conflict(format!("the program of job {id} did not start: {why}")),
        }
    }
}

impl Hands {
    pub(super) fn has(&self) -> MutexGuard<'_, Has> {
        self.has.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn presses(&self) -> MutexGuard<'_, Presses> {
        self.presses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody has asked for an end.
    pub(super) fn was_interrupted(&self) -> bool {
        self.presses().has_any()
    }

    /// The program that is told; if there is none, none begins any more.
    fn post_or_none_at_all(&self) -> Option<Arc<Post>> {
        let mut has = self.has();
        has.is_over |= has.post.is_none();
        has.post.clone()
    }

    /// Begins a program for this, or says why none may begin.
    pub(super) fn begin(&self, post: &Arc<Post>) -> Result<(), Ended> {
        self.lost()?;
        let mut has = self.has();
        if has.is_over {
            return Err(Ended::Interrupted);
        }
        has.post = Some(Arc::clone(post));
        Ok(())
    }

    /// Takes note that the lock is lost, and tells the program, if there is one; if there is none, none begins.
    pub(super) fn lose(&self, why: String) {
        let post = {
            let mut has = self.has();
            has.lost.get_or_insert_with(|| why.clone());
            has.post.clone()
        };
        if let Some(post) = post {
            post.stop(Why::Lost(why));
        }
    }

    /// Whether the lock is lost, by what was heard of it or by the clock.
    pub(super) fn lost(&self) -> Result<(), Ended> {
        let has = self.has();
        if let Some(why) = &has.lost {
            return Err(Ended::Lost(why.clone()));
        }
        let left = has.until.map(|until| until.since(SystemClock.moment()));
        match (left, &has.lock) {
            (Some(left), Some((name, _))) if left <= ENOUGH => {
                Err(Ended::Lost(format!("lock {} was lost: it was not renewed in time", safe::line(name))))
            }
            _ => Ok(()),
        }
    }

    /// Gives back what it has: nobody does the job, and the lock is free.
    fn leave(&self, client: &Client) {
        let (job, lock) = {
            let mut has = self.has();
            (has.job.take(), has.lock.take())
        };
        // What cannot be told now lapses, and the job waits for somebody.
        if let Some(job) = job {
            let body = json!({ "reason": "tenure exec was interrupted" });
            let _ =
                client.ask(&Ask::post(format!("/v1/jobs/{job}/cancel"), &body).repeatable().within(LEAVING));
        }
        if let Some((name, token)) = lock {
            let _ = client.ask(&release(&name, &token).within(LEAVING));
        }
    }

    /// Ctrl-C is the program's own, the second one kills it; answers whether there is a program.
    pub(super) fn interrupt(&self) -> bool {
        let before = self.presses().press(SystemClock.moment(), Press::Interrupt);
        let Some(post) = self.post_or_none_at_all() else { return false };
        match before {
            None => {}
            Some(0) => post.interrupt(),
            Some(_) => post.kill(),
        }
        true
    }

    pub(super) fn terminate(&self) -> bool {
        let Some(post) = self.post_or_none_at_all() else { return false };
        // It kills when its grace is over, however often it comes.
        let _ = self.presses().press(SystemClock.moment(), Press::Terminate);
        post.stop(Why::Stopping);
        true
    }
}

/// Gives back what it has, and waits for that no longer than somebody does who has interrupted it.
pub(super) fn leave(hands: Arc<Hands>, client: Arc<Client>) {
    let (tell, left) = channel();
    std::thread::spawn(move || {
        hands.leave(&client);
        // Nobody listens any more if it took too long.
        let _ = tell.send(());
    });
    let _ = left.recv_timeout(LEAVING);
}

/// Removes this worker from the server's list. If this fails, the server lists the worker as lost for a day.
pub(super) fn sign_off(board: &Board) {
    let ask = Ask::delete(format!("/v1/workers/{}", escaped(&board.worker)));
    let _ = board.client.ask(&ask.repeatable().within(LEAVING));
}

/// What gives a lock back.
pub(super) fn release(name: &str, token: &str) -> Ask {
    Ask::post(format!("/v1/leases/{}/release", escaped(name)), &json!({ "token": token })).repeatable()
}
