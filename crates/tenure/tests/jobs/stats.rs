//! How things went, minute by minute.

use std::sync::Arc;
use std::time::Duration;

use tenure::{
    Draft, Ending, Failure, Kind, Kinds, ManualClock, OpenOptions, QueueName, Reserve, Tenure, Verdict, Want,
    Went,
};

use crate::common::{pass, settle_down};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

struct Given {
    clock: ManualClock,
    folder: tempfile::TempDir,
}

impl Given {
    fn new() -> Self {
        Self { clock: ManualClock::new(), folder: tempfile::tempdir().unwrap() }
    }

    /// A program on the file.
    async fn program(&self) -> Tenure {
        let url = format!("sqlite://{}", self.folder.path().join("jobs.db").display());
        OpenOptions::new().clock(Arc::new(self.clock.clone())).open(&url).await.unwrap()
    }
}

async fn enqueue(tenure: &Tenure, kind: &str, count: usize) {
    tenure
        .enqueue_all((0..count).map(|_| Draft::raw(kind, &serde_json::json!(null)).queue("mail")))
        .await
        .unwrap();
}

/// Grants all that is due, lets time pass, and ends each of them so.
async fn work(given: &Given, tenure: &Tenure, takes: Duration, verdict: impl Fn(usize) -> Verdict) {
    let queue = QueueName::new("mail").unwrap();
    let want = Want { queue, kinds: Kinds::All, at_most: 100 };
    let holder = tenure.remote().draw_worker();
    let ask = Reserve { holder, ttl: MINUTE, wants: vec![want], at_most: 100 };
    let (_, claimed) = tenure.remote().settle(vec![], Some(ask)).await.unwrap();
    given.clock.advance(takes);
    let endings =
        claimed.jobs.into_iter().enumerate().map(|(index, job)| Ending { job, verdict: verdict(index) });
    tenure.remote().settle(endings.collect(), None).await.unwrap();
}

fn well() -> Verdict {
    Verdict::Succeeded(None)
}

async fn sum(tenure: &Tenure, kind: Option<&str>) -> Went {
    let kind = kind.map(|kind| Kind::new(kind).unwrap());
    let series = tenure.stats().series(None, kind.as_ref(), MINUTE * 60, MINUTE).await.unwrap();
    assert_eq!(series.len(), 60);
    let mut all = Went::default();
    series.iter().for_each(|step| all.join(&step.went));
    all
}

#[tokio::test]
async fn what_came_and_ended_is_counted_with_how_long_it_waited_and_ran() {
    let given = Given::new();
    let tenure = given.program().await;
    enqueue(&tenure, "send", 4).await;
    enqueue(&tenure, "print", 1).await;
    given.clock.advance(SECOND * 2);
    let failure = || Failure::new(tenure::Cause::Error, "no");
    work(&given, &tenure, SECOND * 10, |index| match index {
        0 => Verdict::Failed(failure()),
        1 => Verdict::Retry { failure: failure(), due: None },
        2 => Verdict::Released,
        _ => well(),
    })
    .await;
    let all = sum(&tenure, None).await;
    assert_eq!((all.enqueued, all.succeeded, all.failed, all.retried, all.released), (5, 2, 1, 1, 1));
    let near =
        |span: Option<Duration>, seconds: f64| (1.0..1.27).contains(&(span.unwrap().as_secs_f64() / seconds));
    assert!(near(all.waited.within(0.5), 2.0) && near(all.ran.within(0.95), 10.0), "{all:?}");
    let print = sum(&tenure, Some("print")).await;
    assert_eq!((print.enqueued, print.succeeded + print.failed + print.retried + print.released), (1, 1));
}

#[tokio::test]
async fn every_program_on_the_store_sees_what_all_of_them_counted() {
    let given = Given::new();
    let (one, other) = (given.program().await, given.program().await);
    enqueue(&one, "send", 3).await;
    work(&given, &other, SECOND, |_| well()).await;
    assert_eq!(
        (sum(&one, None).await.enqueued, sum(&one, None).await.succeeded),
        (3, 0),
        "each knows its own at once"
    );
    for tenure in [&one, &other] {
        let mut all = Went::default();
        for _ in 0..5_000 {
            all = sum(tenure, None).await;
            if (all.enqueued, all.succeeded) == (3, 3) {
                break;
            }
            given.clock.advance(Duration::from_millis(100));
        }
        assert_eq!((all.enqueued, all.succeeded), (3, 3), "and what others did when a minute is over");
    }
    enqueue(&one, "send", 2).await;
    one.close().await.unwrap();
    assert_eq!(sum(&other, None).await.enqueued, 5, "whoever ends has written the last minute before");
}

#[tokio::test]
async fn what_was_written_twice_because_an_answer_was_lost_counts_once() {
    let given = Given::new();
    let (one, other) = (given.program().await, given.program().await);
    enqueue(&one, "send", 2).await;
    one.close().await.unwrap();
    let journal = tenure::Name::new("journal", "stats").unwrap();
    let written =
        other.store().entries(tenure::records::EntriesAsk::of(journal.clone())).await.unwrap().entries;
    let again = written.into_iter().map(|entry| tenure::records::Append {
        journal: journal.clone(),
        subject: entry.subject,
        value: entry.value,
        keep: None,
    });
    let writes = tenure::records::Writes { entries: again.collect(), ..Default::default() };
    other.store().write_records(writes).await.unwrap();
    assert_eq!(sum(&other, None).await.enqueued, 2);
}

#[tokio::test]
async fn steps_begin_at_whole_multiples_and_old_ones_are_left_out() {
    let given = Given::new();
    let tenure = given.program().await;
    for _ in 0..4 {
        enqueue(&tenure, "send", 1).await;
        given.clock.advance(MINUTE * 10);
        settle_down().await;
    }
    let steps = tenure.stats().series(None, None, MINUTE * 30, MINUTE * 10).await.unwrap();
    let counts: Vec<u64> = steps.iter().map(|step| step.went.enqueued).collect();
    assert_eq!(counts, [1, 1, 0]);
    assert!(steps.iter().all(|step| step.at.as_micros() % 600_000_000 == 0), "{steps:?}");
    let queue = QueueName::new("other").unwrap();
    let none = tenure.stats().series(Some(&queue), None, MINUTE * 30, MINUTE * 10).await.unwrap();
    assert!(none.iter().all(|step| step.went == Went::default()));
    let refused = tenure.stats().series(None, None, MINUTE * 60 * 24 * 30, MINUTE).await.unwrap_err();
    assert!(refused.to_string().contains("43200 steps"), "{refused}");
}

#[tokio::test]
async fn an_idle_program_writes_nothing() {
    let given = Given::new();
    let tenure = given.program().await;
    pass(&given.clock, MINUTE * 5).await;
    let journal = tenure::records::EntriesAsk::of(tenure::Name::new("journal", "stats").unwrap());
    assert!(tenure.store().entries(journal).await.unwrap().entries.is_empty());
    assert_eq!(sum(&tenure, None).await, Went::default());
}
