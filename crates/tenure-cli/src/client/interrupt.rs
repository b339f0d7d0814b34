//! Work that blocks, and an interruption that ends it at once.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::exit::Failure;
use crate::screen;

/// What goes on without this program, as told to whoever interrupts it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Goes(Arc<Mutex<Option<String>>>);

impl Goes {
    /// From now on this goes on.
    pub(crate) fn on(&self, what: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
    }

    fn said(&self) -> Failure {
        let said = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        said.map_or(Failure::Interrupted, Failure::GoesOn)
    }
}

/// Does it on a thread of its own, so that Ctrl-C need not wait for anybody.
pub(crate) fn interruptible(
    work: impl FnOnce(&Goes) -> Result<(), Failure> + Send + 'static,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Failure::System { what: "cannot start threads", source })?;
    runtime.block_on(async {
        // Before anything is begun: from the first output on an interruption is heard.
        let mut interrupted = signal(SignalKind::interrupt())
            .map_err(|source| Failure::System { what: "cannot listen for signals", source })?;
        let goes = Goes::default();
        let (tell, done) = oneshot::channel();
        let theirs = goes.clone();
        std::thread::spawn(move || {
            // Nobody listens any more once it was interrupted.
            let _ = tell.send(work(&theirs));
        });
        tokio::select! {
            biased;
            done = done => done.unwrap_or_else(|_| Err(Failure::NotWhole("internal error; please report it".to_owned()))),
            _ = interrupted.recv() => {
                // A line that is redrawn in place ends without a newline.
                if std::io::stderr().is_terminal() {
                    screen::tell_over("");
                }
                Err(goes.said())
            }
        }
    })
}
