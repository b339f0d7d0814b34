//! The operator's signals.

/// Resolves with the first SIGINT or SIGTERM. A second one ends the process at once, with status 130.
///
/// # Panics
/// If the operating system does not let the program listen to signals: a worker that cannot be
/// stopped must not start.
pub async fn shutdown_signal() {
    signal().await;
    tokio::spawn(async {
        signal().await;
        std::process::exit(130);
    });
}

#[cfg(unix)]
async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate =
        signal(SignalKind::terminate()).expect("a worker that cannot be stopped must not start");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

#[cfg(not(unix))]
async fn signal() {
    // Without a console there is nothing to listen to, and waiting for ever is right.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}
