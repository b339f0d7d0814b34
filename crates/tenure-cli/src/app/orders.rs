//! What the operator's signals say to a host of programs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenure::{Clock, Moment, SystemClock};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::exit::Failure;
use crate::program::{Press, Presses};

/// So long a host that has killed its programs tries to tell the store what it has given back.
const LAST: Duration = Duration::from_secs(5);

/// The first signal tells all programs to stop, the second kills them, the third ends the host.
#[derive(Debug, Clone, Default)]
pub(super) struct Orders {
    pub(super) stop: CancellationToken,
    pub(super) kill: CancellationToken,
    leave: CancellationToken,
    has_begun: Arc<AtomicBool>,
}

impl Orders {
    /// Listens from now on.
    ///
    /// # Errors
    /// If the system does not let it: a host that cannot be stopped must not start.
    pub(super) fn listen() -> Result<Self, Failure> {
        let refuse = |source| Failure::System { what: "cannot listen for signals", source };
        let mut interrupt = signal(SignalKind::interrupt()).map_err(refuse)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(refuse)?;
        let orders = Self::default();
        let theirs = orders.clone();
        tokio::spawn(async move {
            let mut presses = Presses::default();
            while !theirs.leave.is_cancelled() {
                let press = tokio::select! {
                    _ = interrupt.recv() => Press::Interrupt,
                    _ = terminate.recv() => Press::Terminate,
                };
                theirs.heard(&mut presses, press, SystemClock.moment());
            }
        });
        Ok(orders)
    }

    /// A signal has come.
    fn heard(&self, presses: &mut Presses, press: Press, now: Moment) {
        match presses.press(now, press) {
            None => {}
            Some(0) => self.stop.cancel(),
            Some(1) => self.kill.cancel(),
            Some(_) => self.leave.cancel(),
        }
    }

    /// From now on there are programs.
    pub(super) fn begin(&self) {
        self.has_begun.store(true, Ordering::SeqCst);
    }

    /// Resolves when nothing is waited for any more, and says why.
    pub(super) async fn are_over(&self) -> &'static str {
        self.kill.cancelled().await;
        if !self.has_begun.load(Ordering::SeqCst) {
            return "it was interrupted twice while starting";
        }
        tokio::select! {
            biased;
            () = self.leave.cancelled() => "it was interrupted a third time",
            () = SystemClock.sleep(LAST) => "the database did not confirm all ends within 5 s after programs were killed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stand(orders: &Orders) -> [bool; 3] {
        [&orders.stop, &orders.kill, &orders.leave].map(CancellationToken::is_cancelled)
    }

    #[test]
    fn a_signal_that_a_parent_passes_on_is_no_second_wish() {
        let (orders, mut presses, now) = (Orders::default(), Presses::default(), SystemClock.moment());
        let mut heard = |millis| {
            orders.heard(&mut presses, Press::Interrupt, now.after(Duration::from_millis(millis)));
            stand(&orders)
        };
        assert_eq!(heard(0), [true, false, false]);
        assert_eq!(heard(20), [true, false, false], "the same wish");
        assert_eq!(heard(400), [true, true, false]);
        assert_eq!(heard(420), [true, true, false], "the same wish");
        assert_eq!(heard(800), [true, true, true]);
    }

    #[tokio::test]
    async fn why_a_host_waits_no_longer_is_what_has_happened() {
        let orders = Orders::default();
        orders.kill.cancel();
        assert!(orders.are_over().await.contains("while starting"));
        orders.begin();
        orders.leave.cancel();
        assert!(orders.are_over().await.contains("a third time"));
    }
}
