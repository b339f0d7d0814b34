//! What tending promises.

use tenure_core::{Epoch, IfFailed, Keep, LogLine, NewJob, State, StateName, Verdict, Why, limits};

use super::given::{Given, TTL, cancel_within, failed, held, ids, minutes, seconds};
use super::keyed::after;
use super::{Test, test};
use tenure_store::{Report, Tended};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(tending_an_idle_store_does_nothing),
        test(tending_takes_lapsed_jobs_from_their_holders),
        test(tending_takes_jobs_from_holders_that_did_not_stop),
        test(tending_finds_jobs_that_came_due),
        test(tending_finds_what_came_due_although_an_end_concerns_others),
        test(tending_leaves_alone_what_has_time_left),
        test(tending_removes_finished_jobs_whose_time_is_over),
        test(a_retention_of_nothing_ends_with_the_next_tending),
        test(a_job_that_is_kept_forever_stays),
        test(long_retentions_are_kept_to_the_instant),
        test(tending_never_removes_a_job_that_has_not_finished),
        test(a_job_done_again_does_not_expire),
        test(a_pruned_job_takes_its_attempts_and_its_log_along),
        test(pruning_is_bounded_and_says_that_there_is_more),
        test(sweeping_is_bounded_and_says_that_there_is_more),
        test(a_turn_sweeps_too),
    ]
}

async fn tending_an_idle_store_does_nothing(given: Given) {
    assert_eq!(given.tend().await, Tended::default());
    given.succeeded().await;
    given.enqueue("mail", 2).await;
    given.take("mail").await;
    let before = given.all().await;
    assert_eq!(given.tend().await, Tended::default());
    assert_eq!(given.all().await, before);
}

async fn tending_takes_lapsed_jobs_from_their_holders(given: Given) {
    let reserved = given.running().await;
    let due = given.now();
    given.pass(TTL);
    assert_eq!(given.tend().await, Tended { lapsed: 1, ..Tended::default() });
    let job = given.job(reserved.job().id).await;
    assert_eq!(job.state, State::Waiting { due, why: Why::Lost });
    let transition = tenure_core::lapse(reserved.job(), Epoch::default(), given.now()).unwrap();
    assert_eq!(job, reserved.job().clone().after(transition));
    assert_eq!(given.tend().await, Tended::default());
}

async fn tending_takes_jobs_from_holders_that_did_not_stop(given: Given) {
    let reserved = given.running().await;
    given.change(reserved.job().id, cancel_within(seconds(10))).await;
    given.pass(seconds(10));
    assert_eq!(given.tend().await.lapsed, 1);
    assert_eq!(given.state(reserved.job().id).await, StateName::Cancelled);
}

async fn tending_finds_jobs_that_came_due(given: Given) {
    for after in [10, 20, 30] {
        given.put(given.due_in("mail", seconds(after))).await;
    }
    given.pass(seconds(20));
    assert_eq!(given.tend().await, Tended { due: 2, ..Tended::default() });
    assert_eq!(given.tend().await, Tended::default(), "each is found once");
}

/// A job is taken from its holder for good, which another waits for; what came due at the same time is found all the same.
async fn tending_finds_what_came_due_although_an_end_concerns_others(given: Given) {
    given.put(given.with_attempts("mail", 1)).await;
    let first = given.take("mail").await.job().id;
    given.put(given.on_terms("mail", after(&[first], IfFailed::Run))).await;
    given.put(given.due_in("mail", TTL)).await;
    given.pass(TTL);
    assert_eq!(given.tend().await, Tended { lapsed: 1, due: 1, pruned: 0, more: true });
    assert_eq!(given.tend().await, Tended { due: 1, ..Tended::default() });
}

async fn tending_leaves_alone_what_has_time_left(given: Given) {
    given.running().await;
    given.put(given.due_in("mail", TTL)).await;
    let before = given.all().await;
    given.pass(TTL - seconds(1));
    assert_eq!(given.tend().await, Tended::default());
    assert_eq!(given.all().await, before);
}

async fn finished(given: &Given, keep: Keep, verdict: Verdict) -> tenure_core::JobId {
    let id = given.put(given.kept("mail", keep)).await;
    given.settle(given.take("mail").await, verdict).await;
    id
}

async fn tending_removes_finished_jobs_whose_time_is_over(given: Given) {
    let keep = Keep::For(minutes(60));
    let succeeded = finished(&given, keep, Verdict::Succeeded(None)).await;
    let failed = finished(&given, keep, failed()).await;
    let cancelled = given.put(given.kept("mail", keep)).await;
    given.cancel(cancelled).await;
    given.pass(minutes(60) - seconds(1));
    assert_eq!(given.tend().await.pruned, 0);
    given.pass(seconds(1));
    assert_eq!(given.tend().await, Tended { pruned: 3, ..Tended::default() });
    for id in [succeeded, failed, cancelled] {
        assert!(!given.is_there(id).await);
    }
    assert_eq!(given.store.counts().await.unwrap(), []);
}

/// T144
async fn a_retention_of_nothing_ends_with_the_next_tending(given: Given) {
    let id = finished(&given, Keep::For(seconds(0)), Verdict::Succeeded(None)).await;
    assert!(given.is_there(id).await);
    assert_eq!(given.tend().await.pruned, 1);
    assert!(!given.is_there(id).await);
}

async fn a_job_that_is_kept_forever_stays(given: Given) {
    let id = finished(&given, Keep::Forever, failed()).await;
    given.pass(limits::LONGEST);
    assert_eq!(given.tend().await.pruned, 0);
    assert!(given.is_there(id).await);
}

/// T144: more than 30 days, and more than fits 32 bits of milliseconds.
async fn long_retentions_are_kept_to_the_instant(given: Given) {
    for days in [31, 50, 400] {
        let span = seconds(days * 24 * 3600);
        let id = finished(&given, Keep::For(span), Verdict::Succeeded(None)).await;
        given.pass(span - seconds(1));
        given.tend().await;
        assert!(given.is_there(id).await, "{days} days");
        given.pass(seconds(1));
        given.tend().await;
        assert!(!given.is_there(id).await, "{days} days");
    }
}

/// T099, S5: retention only removes what has finished; nothing expires unseen.
async fn tending_never_removes_a_job_that_has_not_finished(given: Given) {
    let keep = Keep::For(seconds(0));
    given.put(given.kept("mail", keep)).await;
    given.take("mail").await;
    given.put(given.kept("mail", keep)).await;
    given.put(NewJob { due: tenure_core::Due::In(minutes(1)), ..given.kept("mail", keep) }).await;
    given.pass(minutes(6_000));
    assert_eq!(given.tend().await.pruned, 0);
    assert_eq!(given.all().await.len(), 3);
}

async fn a_job_done_again_does_not_expire(given: Given) {
    let id = finished(&given, Keep::For(seconds(5)), Verdict::Succeeded(None)).await;
    given.change(id, tenure_store::Change::Redo).await;
    given.pass(minutes(60));
    assert_eq!(given.tend().await.pruned, 0);
    assert_eq!(ids(&given.reserve("mail", 9).await), [id]);
}

async fn a_pruned_job_takes_its_attempts_and_its_log_along(given: Given) {
    let job = given.kept("mail", Keep::For(seconds(5)));
    let id = given.put(job.clone()).await;
    let reserved = given.take("mail").await;
    let lines = vec![LogLine::new(1, 1, given.now(), "hello")];
    given.store.report(vec![Report { held: held(&reserved), progress: None, lines }]).await.unwrap();
    given.succeed(reserved).await;
    given.pass(seconds(5));
    given.tend().await;
    assert_eq!(given.attempts(id).await, []);
    assert_eq!(given.store.logs(id, (0, 0), 9).await.unwrap(), []);
    assert_eq!(given.put(job).await, id, "its id is free");
    assert_eq!(given.attempts(id).await, []);
    assert_eq!(given.store.logs(id, (0, 0), 9).await.unwrap(), []);
}

async fn pruning_is_bounded_and_says_that_there_is_more(given: Given) {
    let count = limits::PRUNE_JOBS + 1;
    let batch: Vec<NewJob> = (0..count).map(|_| given.kept("mail", Keep::For(seconds(0)))).collect();
    given.enqueue_all(batch).await;
    given.change_matching(cancel_within(seconds(0)), tenure_store::Filter::default()).await;
    let first = given.tend().await;
    assert!(first.more);
    assert!((1..=limits::PRUNE_JOBS).contains(&first.pruned), "{first:?}");
    assert_eq!(first.pruned + rest(&given, first).await.pruned, count);
    assert_eq!(given.all().await, []);
}

/// Tends until there is no more to do.
async fn rest(given: &Given, mut last: Tended) -> Tended {
    let mut sum = Tended::default();
    for _ in 0..100 {
        if !last.more {
            return sum;
        }
        last = given.tend().await;
        sum.lapsed += last.lapsed;
        sum.due += last.due;
        sum.pruned += last.pruned;
    }
    panic!("tending comes to an end");
}

async fn sweeping_is_bounded_and_says_that_there_is_more(given: Given) {
    let count = limits::SWEEP_ROWS + 1;
    given.enqueue("mail", count).await;
    while !given.reserve("mail", limits::RESERVE_JOBS).await.is_empty() {}
    let batch: Vec<NewJob> = (0..count).map(|_| given.due_in("post", seconds(1))).collect();
    given.enqueue_all(batch).await;
    given.pass(TTL);
    let first = given.tend().await;
    assert!(first.more);
    assert!(first.lapsed <= limits::SWEEP_ROWS && first.due <= limits::SWEEP_ROWS, "{first:?}");
    let rest = rest(&given, first).await;
    assert_eq!((first.lapsed + rest.lapsed, first.due + rest.due), (count, count));
    assert_eq!(given.count("mail", StateName::Queued).await, count as u64);
    assert_eq!(given.count("post", StateName::Queued).await, count as u64);
}

async fn a_turn_sweeps_too(given: Given) {
    let reserved = given.running().await;
    given.put(given.due_in("post", seconds(1))).await;
    given.pass(TTL);
    given.reserve("fax", 1).await;
    assert_eq!(given.tend().await, Tended::default(), "nothing is left to do");
    assert_eq!(given.state(reserved.job().id).await, StateName::Queued);
}
