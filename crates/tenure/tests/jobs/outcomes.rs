//! What comes of what handlers do. Jobs run in a lab: in memory, on a clock that is moved.

use std::time::Duration;

use crate::common::Plain;
use serde::{Deserialize, Serialize};
use tenure::testing::Lab;
use tenure::{
    AttemptEnd, Cause, ChangeOutcome, Draft, End, Failed, Job, Run, StateName, UnknownKinds, Worker,
};

/// A job that says what its handler shall do.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Act {
    Succeed,
    Err,
    ErrForGood,
    Panic,
    PanicWithText(String),
    Snooze,
    Release,
    RetryIn(u64),
    Nap(u64),
    HugeOutput,
    Place(String),
    Lines(u32),
}

impl Job for Act {
    const KIND: &'static str = "act";
    type Output = String;
}

async fn act(run: Run<()>, job: Act) -> Result<String, Failed> {
    match job {
        Act::Succeed => Ok("done".into()),
        Act::Err => Err(std::io::Error::other("the disk is on fire").into()),
        Act::ErrForGood => Err(Failed::for_good("no such user")),
        Act::Panic => panic!("oh no"),
        Act::PanicWithText(text) => std::panic::panic_any(text),
        Act::Snooze => Err(Failed::snooze(Duration::from_secs(60))),
        Act::Release => Err(Failed::release()),
        Act::RetryIn(seconds) => Err(Failed::retry_after("try later", Duration::from_secs(seconds))),
        Act::Nap(seconds) => {
            run.sleep(Duration::from_secs(seconds)).await?;
            Ok("rested".into())
        }
        Act::HugeOutput => Ok("x".repeat(300 * 1024)),
        Act::Place(path) => {
            run.place(&path)?;
            Ok("made".into())
        }
        Act::Lines(count) => {
            (0..count).for_each(|n| run.log(&format!("line {n}")));
            run.progress(0.5, "halfway")?;
            Ok("told".into())
        }
    }
}

fn lab() -> Lab<()> {
    Lab::new(|tenure| Worker::new(tenure, ()).queue("default", 100).job(act))
}

/// T114: whatever a handler does is an outcome with a record; the worker goes on.
#[tokio::test]
async fn every_way_to_end_is_an_outcome_with_a_record() {
    let mut lab = lab();
    let acts = [
        Act::Succeed,
        Act::Err,
        Act::ErrForGood,
        Act::Panic,
        Act::PanicWithText("formatted".into()),
        Act::Snooze,
        Act::Release,
        Act::RetryIn(90),
    ];
    for job in acts {
        lab.tenure().enqueue(job).await.unwrap();
    }
    let ran = lab.turn().await.unwrap();
    let told: Vec<_> = ran
        .iter()
        .map(|ran| (ran.state, ran.failure.as_ref().map(ToString::to_string).unwrap_or_default()))
        .collect();
    let expected = [
        (StateName::Succeeded, ""),
        (StateName::Scheduled, "the disk is on fire"),
        (StateName::Failed, "no such user"),
        (StateName::Scheduled, "panic: oh no"),
        (StateName::Scheduled, "panic: formatted"),
        (StateName::Scheduled, ""),
        (StateName::Scheduled, ""),
        (StateName::Scheduled, "try later"),
    ];
    assert_eq!(told.iter().map(|(state, text)| (*state, text.as_str())).collect::<Vec<_>>(), expected);
    let ends = [
        AttemptEnd::Succeeded,
        AttemptEnd::Retried,
        AttemptEnd::Failed,
        AttemptEnd::Retried,
        AttemptEnd::Retried,
        AttemptEnd::Snoozed,
        AttemptEnd::Snoozed,
        AttemptEnd::Retried,
    ];
    for (ran, end) in ran.iter().zip(ends) {
        let attempts = lab.tenure().jobs().attempts(ran.id).await.unwrap();
        assert_eq!(attempts.len(), 1);
        assert_eq!(attempts[0].ended.map(|(_, end)| end), Some(end));
    }
}

/// T145 in part, and Q-4: snoozing and giving back spend no attempt.
#[tokio::test]
async fn snoozing_and_giving_back_spend_no_attempt() {
    for job in [Act::Snooze, Act::Release] {
        let mut lab = lab();
        let id = lab.tenure().enqueue(job).attempts(1).await.unwrap().id();
        for delivery in 1..=5 {
            let ran = lab.turn().await.unwrap();
            assert_eq!(ran[0].attempt, 1);
            let stored = lab.tenure().jobs().get(id).await.unwrap();
            assert_eq!((stored.attempt, stored.delivery), (0, delivery));
            lab.advance(Duration::from_secs(60));
        }
    }
}

/// T136, T092: attempts are limited, waits grow, the end has the error, and it can be done again.
#[tokio::test]
async fn a_job_that_always_fails_ends_after_its_attempts_and_can_be_done_again() {
    let mut lab = lab();
    let id = lab.tenure().enqueue(Act::Err).attempts(3).await.unwrap().id();
    let mut runs = 0;
    for _ in 0..100 {
        runs += lab.turn().await.unwrap().len();
        lab.advance(Duration::from_secs(10));
    }
    assert_eq!(runs, 3);
    let job = lab.tenure().jobs().get(id).await.unwrap();
    assert_eq!(job.state.name(lab.now()), StateName::Failed);
    assert_eq!(job.failure.unwrap().message, "the disk is on fire");
    assert_eq!(lab.tenure().jobs().redo(id).await.unwrap(), ChangeOutcome::Done);
    assert_eq!(lab.drain().await.unwrap().len(), 1);
}

/// T098: a job that cannot be read fails at once with the reason; others go on.
#[tokio::test]
async fn unreadable_args_fail_for_good_and_block_nobody() {
    let mut lab = lab();
    lab.tenure().enqueue_draft(Draft::raw("act", &serde_json::json!({"Unheard": 1}))).await.unwrap();
    lab.tenure().enqueue(Act::Succeed).await.unwrap();
    let ran = lab.turn().await.unwrap();
    assert_eq!(ran[0].state, StateName::Failed);
    assert_eq!(ran[0].failure.as_ref().unwrap().cause, Cause::Undecodable);
    assert_eq!(ran[1].state, StateName::Succeeded);
}

/// T137, T098: a worker that is told to refuse unknown kinds ends them with a record.
#[tokio::test]
async fn unknown_kinds_are_left_or_failed_as_the_worker_is_told() {
    for (unknown, expected) in
        [(UnknownKinds::Leave, StateName::Queued), (UnknownKinds::Fail, StateName::Failed)]
    {
        let mut lab =
            Lab::new(|tenure| Worker::new(tenure, ()).queue("default", 4).job(act).unknown_kinds(unknown));
        let id =
            lab.tenure().enqueue_draft(Draft::raw("unheard", &serde_json::json!(null))).await.unwrap().id();
        lab.drain().await.unwrap();
        let job = lab.tenure().jobs().get(id).await.unwrap();
        assert_eq!(job.state.name(lab.now()), expected);
        if expected == StateName::Failed {
            assert_eq!(job.failure.unwrap().cause, Cause::UnknownKind);
        }
    }
}

#[tokio::test]
async fn an_attempt_that_takes_too_long_is_dropped_and_tried_again() {
    let mut lab = lab();
    let id = lab.tenure().enqueue(Act::Nap(600)).timeout(Duration::from_secs(60)).await.unwrap().id();
    let before = lab.now();
    let ran = lab.turn().await.unwrap();
    assert_eq!(ran[0].failure.as_ref().unwrap().cause, Cause::TimedOut);
    assert_eq!(lab.now().since(before), Duration::from_secs(60), "it was stopped on time");
    assert_eq!(lab.tenure().jobs().get(id).await.unwrap().attempt, 1);
}

#[tokio::test]
async fn an_output_that_is_too_large_fails_for_good_with_the_limit() {
    let mut lab = lab();
    lab.tenure().enqueue(Act::HugeOutput).await.unwrap();
    let failure = lab.turn().await.unwrap().remove(0).failure.unwrap();
    assert_eq!(failure.cause, Cause::Unstorable);
    assert!(failure.message.contains("262144"), "{failure}");
}

#[tokio::test]
async fn a_result_and_its_place_are_stored() {
    let mut lab = lab();
    let id = lab.tenure().enqueue(Act::Place("/stars/7".into())).await.unwrap().id();
    lab.drain().await.unwrap();
    let output = lab.tenure().jobs().get(id).await.unwrap().output.unwrap();
    assert_eq!((output.place.as_deref(), output.value.as_slice()), (Some("/stars/7"), &b"\"made\""[..]));
    assert_eq!(lab.tenure().wait_for::<Act>(id).await.unwrap(), "made");
}

#[tokio::test]
async fn progress_and_lines_of_an_attempt_are_kept_and_bounded() {
    let mut lab = lab();
    let id = lab.tenure().enqueue(Act::Lines(1_500)).await.unwrap().id();
    lab.drain().await.unwrap();
    let job = lab.tenure().jobs().get(id).await.unwrap();
    assert_eq!(job.progress.unwrap().fraction, 0.5);
    let lines = lab.tenure().jobs().logs(id, (0, 0), 10_000).await.unwrap();
    assert_eq!(lines.len(), 1_001, "what can run away is bounded");
    assert!(lines[1_000].text.contains("dropped"), "and that is said");
    assert_eq!((lines[0].text.as_str(), lines[0].number), ("line 0", 1));
}

#[tokio::test]
async fn a_blocking_handler_starves_nobody() {
    let tenure = crate::common::in_real_time();
    let blocked = tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
    let act_id = tenure.enqueue(Act::Succeed).await.unwrap().id();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let waiting = tenure.clone();
    Worker::new(&tenure, std::sync::Mutex::new(released))
        .queue("default", 2)
        .blocking_job(|run: Run<std::sync::Mutex<std::sync::mpsc::Receiver<()>>>, job: Plain| {
            run.app().lock().unwrap().recv().map_err(Failed::from)?;
            Ok(job.number)
        })
        .job(|_run, _job: Act| async move { Ok("done".to_owned()) })
        .run(async move {
            assert_eq!(waiting.wait_for::<Act>(act_id).await.unwrap(), "done");
            release.send(()).unwrap();
            assert_eq!(waiting.wait(blocked).await.unwrap().end, End::Succeeded);
        })
        .await
        .unwrap();
}

#[derive(Serialize, Deserialize)]
enum Long {
    Polite,
    Hang,
    Night,
}

impl Job for Long {
    const KIND: &'static str = "long";
    type Output = bool;
}

async fn long(run: Run<tokio::sync::mpsc::UnboundedSender<()>>, job: Long) -> Result<bool, Failed> {
    run.app().send(())?;
    match job {
        Long::Polite => Err(Failed::retry(format!("{:?}", run.stopped().await))),
        Long::Hang => std::future::pending().await,
        Long::Night => {
            run.sleep(Duration::from_secs(8 * 3_600)).await?;
            Ok(run.is_held())
        }
    }
}

/// A lab with a worker for long jobs, and a way to hear that one has begun.
fn long_lab() -> (Lab<tokio::sync::mpsc::UnboundedSender<()>>, tokio::sync::mpsc::UnboundedReceiver<()>) {
    let (began, begun) = tokio::sync::mpsc::unbounded_channel();
    (Lab::new(|tenure| Worker::new(tenure, began).queue("default", 1).job(long)), begun)
}

#[tokio::test(start_paused = true)]
async fn in_a_lab_a_running_handler_hears_that_its_job_was_cancelled() {
    for (job, cause) in [(Long::Polite, Cause::Cancelled), (Long::Hang, Cause::Deaf)] {
        let (mut lab, mut begun) = long_lab();
        let tenure = lab.tenure().clone();
        let id = tenure.enqueue(job).await.unwrap().id();
        let cancelling = async {
            begun.recv().await.unwrap();
            tenure.jobs().cancel(id, Duration::from_secs(10), "page closed").await.unwrap()
        };
        let (ran, cancelled) = tokio::join!(lab.turn(), cancelling);
        assert_eq!(cancelled, ChangeOutcome::Asked);
        let ran = ran.unwrap();
        assert_eq!(ran[0].state, StateName::Cancelled);
        assert_eq!(ran[0].failure.as_ref().unwrap().cause, cause);
    }
}

#[tokio::test(start_paused = true)]
async fn in_a_lab_a_handler_that_hangs_times_out() {
    let (mut lab, _begun) = long_lab();
    let enqueued = lab.now();
    lab.tenure().enqueue(Long::Hang).timeout(Duration::from_secs(60)).await.unwrap();
    let ran = lab.turn().await.unwrap();
    assert_eq!(ran[0].failure.as_ref().unwrap().cause, Cause::TimedOut);
    assert_eq!(lab.now().since(enqueued), Duration::from_secs(60));
}

#[tokio::test]
async fn in_a_lab_a_handler_that_waits_longer_than_its_lease_still_holds_its_job() {
    let (mut lab, _begun) = long_lab();
    let id = lab.tenure().enqueue(Long::Night).await.unwrap().id();
    lab.turn().await.unwrap();
    assert!(lab.tenure().wait_for::<Long>(id).await.unwrap());
}
