//! What whoever interrupts `tenure exec` ends, and what is given back then.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tenure::{Clock, SystemClock};

use super::Presses;
use super::board::{Post, Why};
use crate::client::{Ask, Client, escaped};

/// How long somebody waits who has interrupted it while no program runs.
pub(super) const LEAVING: Duration = Duration::from_secs(2);

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
    /// Somebody has interrupted it while there was no program: none begins any more.
    is_over: bool,
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

    pub(super) fn post(&self) -> Option<Arc<Post>> {
        self.has().post.clone()
    }

    /// The program that is told; if there is none, none begins any more.
    fn post_or_none_at_all(&self) -> Option<Arc<Post>> {
        let mut has = self.has();
        has.is_over |= has.post.is_none();
        has.post.clone()
    }

    /// Whether a program may begin for this.
    pub(super) fn begin(&self, post: &Arc<Post>) -> bool {
        let mut has = self.has();
        if !has.is_over {
            has.post = Some(Arc::clone(post));
        }
        !has.is_over
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
            let _ = client.ask(&Ask::post(format!("/v1/jobs/{job}/cancel"), &body).within(LEAVING));
        }
        if let Some((name, token)) = lock {
            let _ = client.ask(&release(&name, &token).within(LEAVING));
        }
    }

    /// Ctrl-C is the program's own, the second one kills it; answers whether there is a program.
    pub(super) fn interrupt(&self) -> bool {
        let before = self.presses().press(SystemClock.moment());
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
        let _ = self.presses().press(SystemClock.moment());
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

/// What gives a lock back.
pub(super) fn release(name: &str, token: &str) -> Ask {
    Ask::post(format!("/v1/leases/{}/release", escaped(name)), &json!({ "token": token }))
}
