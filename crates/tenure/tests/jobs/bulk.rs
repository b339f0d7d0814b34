//! Something done with all jobs that a filter means, as a job of its own.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::records::{Document, NewValue, Only, Put, RecordKey, Writes};
use tenure::testing::Lab;
use tenure::{
    Bulk, BulkAct, Draft, Failed, Filter, Job, JobId, Name, Order, PageAsk, QueueName, Run, StateName, Tally,
    Tenure, Worker, search,
};

#[derive(Serialize, Deserialize)]
struct Charge {
    cents: u64,
}

impl Job for Charge {
    const KIND: &'static str = "charge";
    type Output = ();
}

async fn charge(_run: Run<()>, job: Charge) -> Result<(), Failed> {
    if job.cents.is_multiple_of(2) {
        Ok(())
    } else {
        Err(Failed::for_good(format!("no card for {}", job.cents)))
    }
}

fn lab() -> Lab<()> {
    Lab::new(|tenure| Worker::new(tenure, ()).queue("default", 5_000).job(charge).bulk_operations(2))
}

async fn charges(tenure: &Tenure, count: u64) {
    let drafts = (0..count).map(|cents| Draft::of(&Charge { cents }));
    tenure.enqueue_all(drafts).await.unwrap();
}

async fn asked(tenure: &Tenure, act: BulkAct, words: &str) -> JobId {
    let filter = search(words, tenure.now()).unwrap();
    tenure.bulk(act, filter).await.unwrap().await.unwrap().id()
}

async fn tally(tenure: &Tenure, id: JobId) -> Tally {
    let job = tenure.jobs().get(id).await.unwrap();
    assert_eq!(job.state.name(tenure.now()), StateName::Succeeded, "{:?}", job.failure);
    serde_json::from_slice(&job.output.unwrap().value).unwrap()
}

async fn count(tenure: &Tenure, words: &str) -> usize {
    let filter = search(words, tenure.now()).unwrap();
    usize::try_from(tenure.jobs().meant(&filter).await.unwrap().jobs).unwrap()
}

#[tokio::test]
async fn all_that_failed_with_one_error_are_done_again_and_no_others() {
    let mut lab = lab();
    charges(lab.tenure(), 2_500).await;
    lab.drain().await.unwrap();
    assert_eq!(count(lab.tenure(), "state:failed").await, 1_250);
    lab.advance(Duration::from_secs(60));
    let id = asked(lab.tenure(), BulkAct::Retry, "state:failed error:\"no card for 1\"").await;
    lab.turn().await.unwrap();
    // 1, 1x, 1xx and 1xxx, as far as they are odd.
    let again = 1 + 5 + 50 + 500;
    assert_eq!(tally(lab.tenure(), id).await, Tally { done: again, ..Tally::default() });
    assert_eq!(count(lab.tenure(), "kind:charge state:queued").await as u64, again);
    let job = lab.tenure().jobs().get(id).await.unwrap();
    assert_eq!(
        job.progress.map(|progress| (progress.fraction, progress.message)),
        Some((1.0, format!("{again} done")))
    );
}

#[tokio::test]
async fn what_comes_later_and_the_operation_itself_are_left_alone() {
    let mut lab = lab();
    lab.tenure().queues().pause("default").await.unwrap();
    charges(lab.tenure(), 10).await;
    let act = BulkAct::Cancel { grace: Duration::ZERO, reason: "closed".into() };
    let id = asked(lab.tenure(), act, "").await;
    lab.advance(Duration::from_secs(1));
    charges(lab.tenure(), 3).await;
    lab.drain().await.unwrap();
    assert_eq!(tally(lab.tenure(), id).await, Tally { done: 10, ..Tally::default() });
    assert_eq!(count(lab.tenure(), "state:queued").await, 3);
    assert_eq!(count(lab.tenure(), "state:cancelled error:closed").await, 10);
}

#[tokio::test]
async fn an_operation_that_was_cut_off_goes_on_where_it_was() {
    let mut lab = lab();
    charges(lab.tenure(), 1_500).await;
    let filter = search("kind:charge", lab.now()).unwrap();
    let ask =
        PageAsk { filter: filter.clone(), order: Order::OldestFirst, at_most: 1_000, ..PageAsk::default() };
    let next = lab.tenure().jobs().page(ask).await.unwrap().next.unwrap();
    let act = BulkAct::Move { queue: QueueName::new("later").unwrap() };
    let id = lab.tenure().enqueue(Bulk { act, filter, meant: 1_500, is_cut: false }).await.unwrap().id();
    let place = serde_json::json!({
        "tally": {"done": 1_000, "asked": 0, "already": 0, "refused": 0}, "after": next.to_string(), "has_ended": false
    });
    let value = Document::new(place.to_string().into_bytes()).unwrap();
    let (shelf, key) = (Name::new("shelf", "bulk").unwrap(), RecordKey::new(&id.to_string()).unwrap());
    let put = Put { shelf, key, only: Only::Absent, to: Some(NewValue { value, keep: None }) };
    lab.tenure().store().write_records(Writes { records: vec![put], ..Writes::default() }).await.unwrap();
    lab.tenure().queues().pause("default").await.unwrap();
    lab.turn().await.unwrap();
    assert_eq!(tally(lab.tenure(), id).await, Tally { done: 1_500, ..Tally::default() });
    assert_eq!(count(lab.tenure(), "queue:later").await, 500, "the first thousand were done before");
}

#[tokio::test]
async fn what_jobs_are_counted_by_is_told_whole_and_all_else_up_to_a_bound() {
    let lab = lab();
    let tenure = lab.tenure();
    charges(tenure, 10_500).await;
    let meant = async |words: &str| tenure.jobs().meant(&search(words, tenure.now()).unwrap()).await.unwrap();
    let by_counters = meant("kind:charge state:queued").await;
    assert_eq!((by_counters.jobs, by_counters.is_cut, by_counters.some.len()), (10_500, false, 10));
    assert_eq!(meant("queue:none").await.jobs, 0);
    let by_looking = meant("kind:charge created:>-1h").await;
    assert_eq!((by_looking.jobs, by_looking.is_cut, by_looking.some.len()), (10_000, true, 10));
    assert_eq!(by_looking.some, by_counters.some);
}

/// A page looks at the newest jobs only, and a preview of one page denied the jobs behind it.
#[tokio::test]
async fn a_rare_job_behind_very_many_others_is_found_by_looking_further() {
    let lab = lab();
    for _ in 0..3 {
        charges(lab.tenure(), 10_000).await;
    }
    lab.tenure().enqueue(Charge { cents: 77_777 }).await.unwrap();
    for _ in 0..3 {
        charges(lab.tenure(), 10_000).await;
    }
    let filter = search("args.cents:77777", lab.now()).unwrap();
    let found = lab.tenure().jobs().meant(&filter).await.unwrap();
    assert_eq!((found.jobs, found.some.len()), (1, 1), "{found:?}");
}

#[tokio::test]
async fn an_operation_says_of_how_many_it_was_asked_for_as_they_were_told_before() {
    let lab = lab();
    charges(lab.tenure(), 10_500).await;
    for (words, jobs, is_cut) in [("kind:charge", 10_500, false), ("created:>-1h", 10_000, true)] {
        let filter = search(words, lab.now()).unwrap();
        let told = lab.tenure().jobs().meant(&filter).await.unwrap();
        for act in [BulkAct::Retry, BulkAct::RunNow] {
            let id = asked(lab.tenure(), act, words).await;
            let job = lab.tenure().jobs().get(id).await.unwrap();
            let bulk: Bulk = serde_json::from_slice(job.args.as_bytes()).unwrap();
            assert_eq!((bulk.meant, bulk.is_cut), (jobs, is_cut), "{words}");
            assert_eq!((bulk.meant, bulk.is_cut), (told.jobs, told.is_cut), "{words}");
        }
    }
}

#[tokio::test]
async fn what_an_operation_leaves_alone_is_not_told_to_be_meant() {
    let lab = lab();
    let tenure = lab.tenure();
    charges(tenure, 3).await;
    let own = asked(tenure, BulkAct::Delete, "kind:none").await;
    let meant = async |words: &str| tenure.jobs().meant(&search(words, tenure.now()).unwrap()).await.unwrap();
    for words in ["", "state:queued", "created:>-1h", "queue:default,tenure.bulk"] {
        let told = meant(words).await;
        assert_eq!((told.jobs, told.some.len(), told.some.contains(&own)), (3, 3, false), "{words}");
    }
    for words in ["kind:tenure.bulk", "kind:tenure.bulk created:>-1h"] {
        assert_eq!(meant(words).await.some, [own], "{words}");
    }
    let by_id = Filter { ids: vec![own], ..Filter::default() };
    assert_eq!(tenure.jobs().meant(&by_id).await.unwrap().some, [own]);
}

#[tokio::test]
async fn a_job_that_has_become_due_is_meant_as_one_that_is_queued_before_anybody_has_found_it() {
    let lab = lab();
    let in_an_hour = Draft::of(&Charge { cents: 2 }).after(Duration::from_secs(3_600));
    lab.tenure().enqueue_draft(in_an_hour).await.unwrap();
    charges(lab.tenure(), 2).await;
    let by_state = async |tenure: &Tenure| {
        let both = count(tenure, "state:queued,scheduled").await;
        (count(tenure, "state:queued").await, count(tenure, "state:scheduled").await, both)
    };
    assert_eq!(by_state(lab.tenure()).await, (2, 1, 3));
    lab.advance(Duration::from_secs(7_200));
    assert_eq!(by_state(lab.tenure()).await, (3, 0, 3));
}

#[tokio::test]
async fn own_jobs_are_meant_only_by_name() {
    let mut lab = lab();
    let all = BulkAct::Cancel { grace: Duration::ZERO, reason: String::new() };
    let first = asked(lab.tenure(), BulkAct::Delete, "kind:none").await;
    let second = asked(lab.tenure(), all.clone(), "").await;
    lab.drain().await.unwrap();
    assert_eq!(tally(lab.tenure(), second).await, Tally::default());
    assert_eq!(tally(lab.tenure(), first).await, Tally::default());
    let third = asked(lab.tenure(), BulkAct::Delete, "kind:tenure.bulk").await;
    lab.drain().await.unwrap();
    assert_eq!(tally(lab.tenure(), third).await, Tally { done: 2, ..Tally::default() });
}

#[tokio::test]
async fn each_act_does_what_it_says() {
    let mut lab = lab();
    lab.tenure().queues().pause("default").await.unwrap();
    let in_an_hour = || Draft::of(&Charge { cents: 2 }).after(Duration::from_secs(3_600));
    let id = lab.tenure().enqueue_draft(in_an_hour().tag("a")).await.unwrap().id();
    asked(lab.tenure(), BulkAct::RunNow, "tag:a").await;
    asked(lab.tenure(), BulkAct::Reprioritise { priority: tenure::Priority::new(-7).unwrap() }, "tag:a")
        .await;
    lab.drain().await.unwrap();
    let job = lab.tenure().jobs().get(id).await.unwrap();
    assert_eq!((job.state.name(lab.now()), job.priority.number()), (StateName::Queued, -7));
    asked(lab.tenure(), BulkAct::Delete, "tag:a").await;
    lab.drain().await.unwrap();
    assert!(lab.tenure().jobs().get(id).await.is_err());
}

#[tokio::test]
async fn an_act_beyond_the_limits_is_refused_at_once() {
    let lab = lab();
    let act = BulkAct::Cancel { grace: Duration::ZERO, reason: "x".repeat(2_000) };
    let refused = lab.tenure().bulk(act, Filter::default()).await.err().unwrap();
    assert!(refused.to_string().contains("reason"), "{refused}");
}
