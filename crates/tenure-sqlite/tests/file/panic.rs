//! What callers hear when the thread that writes falls over a defect.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenure_core::Timestamp;
use tenure_sqlite::{Options, SqliteStore};
use tenure_store::{Clock, Fault, Jobs, ManualClock, Moment, Sleep, Store, Views};

use crate::given::{file, new_job, runtime};

/// Falls over when the writing thread looks at it, once it is told to.
#[derive(Debug)]
struct Trap {
    clock: ManualClock,
    set: AtomicBool,
}

impl Clock for Trap {
    fn now(&self) -> Timestamp {
        let writes = std::thread::current().name() == Some("tenure-write");
        assert!(!(writes && self.set.load(Ordering::Relaxed)), "a defect, for this test");
        self.clock.now()
    }

    fn moment(&self) -> Moment {
        self.clock.moment()
    }

    fn sleep(&self, span: Duration) -> Sleep {
        self.clock.sleep(span)
    }
}

#[test]
fn a_panic_of_the_writing_thread_leaves_nobody_waiting() {
    let (_directory, file) = file();
    let trap = Arc::new(Trap { clock: ManualClock::new(), set: AtomicBool::new(false) });
    let store = SqliteStore::open(&file, Options::default(), trap.clone()).unwrap();
    runtime().block_on(async {
        store.enqueue(vec![new_job(1)]).await.unwrap();
        trap.set.store(true, Ordering::Relaxed);
        let caught = store.enqueue(vec![new_job(2)]).await.unwrap_err();
        assert!(matches!(&caught, Fault::Unknown(text) if text.contains("open the file again")), "{caught}");
        let later = store.enqueue(vec![new_job(2)]).await.unwrap_err();
        assert!(later.is_passing() && later.to_string().contains("open the file again"), "{later}");
        // Looking goes on, and tells what was written before.
        assert_eq!(store.counts().await.unwrap()[0].jobs, 1);
        store.close().await.unwrap();
        assert_eq!(store.tend().await, Err(Fault::Closed));
    });
    drop(store);
    // Nothing of the interrupted transaction is left, and no lock on the file.
    let store = crate::given::open(&file);
    runtime().block_on(async {
        store.enqueue(vec![new_job(2)]).await.unwrap();
        assert_eq!(store.counts().await.unwrap()[0].jobs, 2);
    });
}
