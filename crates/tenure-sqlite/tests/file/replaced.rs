//! A file that is replaced, or loses its log, while it is open: within a second nothing more is acknowledged.

use std::path::Path;
use std::time::Duration;

use tenure_sqlite::Options;
use tenure_store::{Fault, Jobs, Store, Views};

use crate::given::{file, new_jobs, open_live, runtime};

/// Waits until a call is refused, and returns the words.
fn refused_after(damage: impl FnOnce(&Path)) -> String {
    let (_folder, file) = file();
    runtime().block_on(async {
        let store = open_live(&file, Options::default());
        store.enqueue(new_jobs(1, 3)).await.unwrap();
        damage(&file);
        let (clock, limit) = (store.clock(), Duration::from_secs(1));
        let damaged = clock.moment();
        for number in 10.. {
            match store.enqueue(new_jobs(number, 1)).await {
                Ok(_) => assert!(clock.moment().since(damaged) < limit, "it goes on unnoticed"),
                Err(Fault::Broken(told)) => {
                    assert!(matches!(store.counts().await, Err(Fault::Broken(_))), "reads are refused, too");
                    store.close().await.unwrap_or(());
                    return told;
                }
                Err(other) => panic!("{other}"),
            }
            tokio::task::yield_now().await;
        }
        unreachable!("it was refused");
    })
}

#[test]
#[cfg(unix)]
fn a_file_that_is_replaced_is_noticed() {
    let told = refused_after(|file| {
        let copy = file.with_extension("copy");
        std::fs::copy(file, &copy).unwrap();
        std::fs::rename(copy, file).unwrap();
    });
    assert!(told.contains("replaced or removed") && told.contains("restart this program"), "{told}");
}

#[test]
#[cfg(unix)]
fn a_log_that_is_removed_is_noticed() {
    let told = refused_after(|file| {
        let log = format!("{}-wal", file.display());
        std::fs::remove_file(log).unwrap();
    });
    assert!(told.contains("-wal log"), "{told}");
}
