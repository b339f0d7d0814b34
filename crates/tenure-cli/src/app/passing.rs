//! What a run says, on its way from the desk to the log of its job.

use std::time::Duration;

use tenure::{Run, Stopping};

use super::desk::Desk;

/// How often what a program says is passed on.
pub(super) const PASS_ON: Duration = Duration::from_millis(200);
/// Lines that are passed on in one go: fewer than a run may have waiting.
const LINES: usize = 500;
const BYTES: usize = 256 * 1024;
/// For so long what was said last is passed on while the host stops.
const LAST_LINES: Duration = Duration::from_secs(3);

/// What came of passing on what a program has said.
pub(super) enum Passed {
    Nothing,
    Some,
    NotYet,
}

pub(super) async fn pass_on<App>(run: &Run<App>, desk: &Desk) -> Passed {
    // What the store does not have yet is waited for, so that nothing is dropped for lack of room.
    if !run.logged().await {
        return Passed::NotYet;
    }
    let (lines, progress) = desk.heard(LINES, BYTES);
    if let Some(progress) = progress {
        // It was checked when it was read.
        let _ = run.progress(progress.fraction, &progress.message);
    }
    if lines.is_empty() {
        return Passed::Nothing;
    }
    lines.iter().for_each(|line| run.log(line));
    Passed::Some
}

/// Passes on what it has said last, and answers whether the store has all of it. While the store does not answer it is tried
/// again for as long as the job is held, and for no longer than a lease.
pub(super) async fn has_passed_on_the_last<App>(run: &Run<App>, lease: Duration, desk: &Desk) -> bool {
    let clock = run.tenure().store().clock();
    let lost = async {
        while run.is_held() {
            clock.sleep(PASS_ON).await;
        }
    };
    let passing = async {
        let mut since = clock.moment();
        loop {
            let most = match run.stopping() {
                Some(Stopping::HostStops) => LAST_LINES.min(lease),
                Some(
                    Stopping::Cancelled { .. }
                    | Stopping::Lost
                    | Stopping::SingletonLost
                    | Stopping::TimedOut,
                )
                | None => lease,
            };
            match pass_on(run, desk).await {
                Passed::Nothing => return true,
                Passed::Some => since = clock.moment(),
                Passed::NotYet if clock.moment().since(since) >= most => return false,
                Passed::NotYet => clock.sleep(PASS_ON).await,
            }
        }
    };
    tokio::select! {
        biased;
        has_passed = passing => has_passed,
        () = lost => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tenure::{
        Chance, Clock, Draft, Faults, FaultyStore, ManualClock, MemoryStore, Store, Tenure, Worker,
    };

    use super::*;

    const LEASE: Duration = Duration::from_secs(60);

    /// What the store has of the last lines if it goes away when they are said, for so long, and whether that was told.
    async fn store_is_away_for(span: Duration) -> (Vec<String>, Option<bool>) {
        let clock = ManualClock::new();
        let memory: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
        let way = Arc::new(FaultyStore::new(memory, Faults::none(1)));
        let tenure = Tenure::on(Arc::clone(&way) as Arc<dyn Store>, Chance::seeded(1));
        let id = tenure.enqueue_draft(Draft::raw("work", &true.into()).attempts(1)).await.unwrap().id();
        let told = Arc::new(Mutex::new(None));
        let (theirs, to_go) = (Arc::clone(&told), Arc::clone(&way));
        let worker = Worker::new(&tenure, ()).queue("default", 1).lease(LEASE).keeper_on_runtime();
        let worker = worker.raw_job("work", move |run| {
            let (told, way) = (Arc::clone(&theirs), Arc::clone(&to_go));
            async move {
                way.down(true);
                let desk = Desk::that_has_heard(["one", "two", "the last"]);
                let has_passed = has_passed_on_the_last(&run, LEASE, &desk).await;
                *told.lock().unwrap() = Some(has_passed);
                Ok(true.into())
            }
        });
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let running = tokio::spawn(worker.run(stopped));
        let (mut went, began) = (None, clock.moment());
        for _ in 0..2_000 {
            for _ in 0..40 {
                tokio::task::yield_now().await;
            }
            let now = clock.moment();
            if went.is_none() && way.tally().turned_away > 0 {
                went = Some(now);
            }
            if went.is_some_and(|went| now.since(went) >= span) {
                way.down(false);
            }
            if told.lock().unwrap().is_some() && now.since(began) > span + LEASE {
                break;
            }
            clock.advance(Duration::from_millis(100));
        }
        let lines = tenure.jobs().logs(id, (0, 0), 100).await.unwrap();
        drop(stop);
        running.abort();
        let told = *told.lock().unwrap();
        (lines.into_iter().map(|line| line.text).collect(), told)
    }

    #[tokio::test]
    async fn what_was_said_last_is_passed_on_for_as_long_as_the_job_is_held() {
        for seconds in [1, 8, 30] {
            let (lines, told) = store_is_away_for(Duration::from_secs(seconds)).await;
            assert_eq!(
                (lines, told),
                (["one", "two", "the last"].map(str::to_owned).into(), Some(true)),
                "{seconds}"
            );
        }
    }

    /// Then somebody else may have the job, and whoever looks at the host's log knows why lines are missing.
    #[tokio::test]
    async fn what_cannot_be_passed_on_in_that_time_is_told() {
        let (_, told) = store_is_away_for(LEASE * 2).await;
        assert_eq!(told, Some(false));
    }
}
