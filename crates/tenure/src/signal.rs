//! The operator's signals.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_shutdown;
use tokio::signal::unix::{SignalKind, signal};

/// How a program ends that was interrupted.
const INTERRUPTED: i32 = 130;

/// Resolves with the first SIGINT or SIGTERM. A second signal ends the process at once, with status 130, even if
/// every thread is busy.
///
/// # Panics
/// If the operating system does not let the program listen to signals, because a worker must be stoppable.
pub async fn shutdown_signal() {
    const MUST: &str = "a worker that cannot be stopped must not start";
    let armed = Arc::new(AtomicBool::new(false));
    for number in [SIGINT, SIGTERM] {
        register_conditional_shutdown(number, INTERRUPTED, Arc::clone(&armed)).expect(MUST);
    }
    let mut interrupt = signal(SignalKind::interrupt()).expect(MUST);
    let mut terminate = signal(SignalKind::terminate()).expect(MUST);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    armed.store(true, Ordering::SeqCst);
}
