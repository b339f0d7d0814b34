//! Ordering keys, limits, fair shares and waiting for other jobs, as a user of the library says them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Plain, Rig, host, rigs};
use serde::{Deserialize, Serialize};
use tenure::testing::Lab;
use tenure::{
    Draft, Error, Failed, Head, IfFailed, Job, JobId, Key, Limit, LimitKey, OrderingKey, Rate, Reason,
    Refusal, Run, StateName, Terms, Worker,
};
use tenure_core::Verdict;

const SECOND: Duration = Duration::from_secs(1);

fn plain(number: u64) -> Draft {
    Draft::of(&Plain { number })
}

#[tokio::test]
async fn bad_keys_and_numbers_are_refused_with_their_field_and_limit() {
    let long = "k".repeat(257);
    for rig in rigs() {
        let ids: Vec<JobId> = (0..1_001).map(|_| rig.tenure.new_id()).collect();
        let bad = [
            ("ordering_key", plain(1).ordered("")),
            ("ordering_key", plain(1).ordered_stepping_aside(&long)),
            ("ordering_key", plain(1).ordered("a\nb")),
            ("limit_key", plain(1).limit_key("")),
            ("limit_key", plain(1).limited(&long, 1)),
            ("limit_key", plain(1).limited("a\u{7f}", 1)),
            ("limit", plain(1).limited("smtp", 0)),
            ("limit", plain(1).limited("smtp", u32::MAX)),
            ("share_key", plain(1).share("")),
            ("share_key", plain(1).share(&long)),
            ("share_key", plain(1).share("\u{0}")),
            ("after_jobs", plain(1).after_jobs(ids)),
        ];
        for (field, draft) in bad {
            let error = rig.tenure.enqueue_all([plain(0), draft]).await.unwrap_err();
            let Error::Invalid(wrong) = &error else { panic!("{field}: {error}") };
            assert_eq!(wrong.field, format!("jobs[1].{field}"));
        }
        let told = rig.tenure.enqueue_draft(plain(1).ordered(&long)).await.unwrap_err().to_string();
        assert_eq!(told, "ordering_key: 257 bytes; expected 1 to 256 bytes without control characters");
        let told = rig.tenure.enqueue_draft(plain(1).limited("smtp", 0)).await.unwrap_err().to_string();
        assert_eq!(told, "limit: 0; expected 1 to 1000000");
        let told = rig.tenure.limits().set("", Limit::of(1)).await.unwrap_err().to_string();
        assert!(told.starts_with("limit_key: empty"), "{told}");
        let told = rig.tenure.limits().set("smtp", Rate::new(0, SECOND)).await.unwrap_err().to_string();
        assert!(told.starts_with("limit.rate.times: 0"), "{told}");
        let told = rig.tenure.queues().limit("default", Limit::of(0)).await.unwrap_err().to_string();
        assert!(told.starts_with("limit.most: 0"), "{told}");
        assert!(rig.tenure.limits().clear("\t").await.is_err());
        assert_eq!(rig.tenure.counts().await.unwrap(), [], "{}", rig.name);
    }
}

#[tokio::test]
async fn a_draft_says_its_terms() {
    for rig in rigs() {
        let first = rig.tenure.enqueue_draft(plain(1)).await.unwrap().id();
        let second = rig.tenure.enqueue_draft(plain(2)).await.unwrap().id();
        let terms = async |draft: Draft| {
            let id = rig.tenure.enqueue_draft(draft).await.unwrap().id();
            rig.tenure.jobs().get(id).await.unwrap().terms.as_ref().clone()
        };
        let key = |text: &str| text.parse::<Key>().unwrap();
        let all = plain(3).ordered("cart-7").limited("smtp", 3).share("ann").after_jobs([first]);
        let all = terms(all.after_jobs([second])).await;
        assert_eq!(all.ordering, Some(OrderingKey { key: key("cart-7"), head: Head::Block }));
        assert_eq!(all.limit, Some(LimitKey { key: key("smtp"), most: Some(3) }));
        assert_eq!(all.share, Some(key("ann")));
        assert_eq!(all.after.as_ref().map(|after| after.jobs.clone()), Some(vec![first, second]));
        assert_eq!(all.after.map(|after| after.if_failed), Some(IfFailed::Cancel));
        let other = terms(plain(4).ordered_stepping_aside("cart-7").limit_key("smtp")).await;
        assert_eq!(other.ordering.map(|ordering| ordering.head), Some(Head::StepAside));
        assert_eq!(other.limit.and_then(|limit| limit.most), None);
        for draft in
            [plain(5).after_jobs([first]).even_if_failed(), plain(6).even_if_failed().after_jobs([first])]
        {
            assert_eq!(terms(draft).await.after.map(|after| after.if_failed), Some(IfFailed::Run));
        }
        assert!(terms(plain(7).after_jobs([])).await.are_default(), "after nothing is after nothing");
    }
}

#[derive(Serialize, Deserialize)]
struct Change {
    cart: u64,
    what: String,
}

impl Job for Change {
    const KIND: &'static str = "change";
    type Output = ();

    fn terms() -> Terms {
        let limit = LimitKey { key: "warehouse".parse().unwrap(), most: Some(2) };
        Terms { limit: Some(limit), ..Terms::default() }
    }
}

#[derive(Default)]
struct Diary {
    told: Mutex<Vec<String>>,
    tries: AtomicU32,
}

impl Diary {
    fn told(&self) -> Vec<String> {
        std::mem::take(&mut *self.told.lock().unwrap())
    }
}

/// The first try of whatever is called "sticks" fails.
async fn change(run: Run<Arc<Diary>>, job: Change) -> Result<(), Failed> {
    run.app().told.lock().unwrap().push(format!("{} {}", job.cart, job.what));
    if job.what == "sticks" && run.app().tries.fetch_add(1, Ordering::SeqCst) == 0 {
        return Err(Failed::retry("it sticks"));
    }
    Ok(())
}

fn lab() -> (Lab<Arc<Diary>>, Arc<Diary>) {
    let diary = Arc::new(Diary::default());
    let app = Arc::clone(&diary);
    let lab = Lab::new(|tenure| Worker::new(tenure, app).queue("default", 10).job(change));
    (lab, diary)
}

fn of(cart: u64, what: &str) -> Draft {
    Draft::of(&Change { cart, what: what.to_owned() })
}

#[tokio::test]
async fn in_a_lab_jobs_of_one_key_go_in_order_and_a_failing_head_blocks_or_steps_aside() {
    let (mut lab, diary) = lab();
    for cart in [7, 8] {
        let key = format!("cart-{cart}");
        let draft = |what| match cart {
            7 => of(cart, what).ordered(&key),
            _ => of(cart, what).ordered_stepping_aside(&key),
        };
        lab.tenure().enqueue_all([draft("sticks"), draft("second")]).await.unwrap();
        lab.assert_enqueued::<Change>(|job| job.what == "second").await;
        lab.drain().await.unwrap();
        lab.advance(Duration::from_secs(60));
        lab.drain().await.unwrap();
        let said = diary.told();
        match cart {
            7 => assert_eq!(said, ["7 sticks", "7 sticks", "7 second"]),
            _ => assert_eq!(said, ["8 sticks", "8 second", "8 sticks"]),
        }
        diary.tries.store(0, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn in_a_lab_a_kind_has_its_limit_whoever_enqueues() {
    let (mut lab, _) = lab();
    lab.tenure().enqueue_all((0..5).map(|cart| of(cart, "goes"))).await.unwrap();
    let mut sizes = Vec::new();
    for _ in 0..3 {
        sizes.push(lab.turn().await.unwrap().len());
    }
    assert_eq!(sizes, [2, 2, 1]);
    lab.tenure().limits().set("warehouse", Rate::new(1, SECOND)).await.unwrap();
    lab.tenure().enqueue_all((0..3).map(|cart| of(cart, "goes"))).await.unwrap();
    assert_eq!(lab.drain().await.unwrap().len(), 1);
    lab.advance(SECOND);
    assert_eq!(lab.drain().await.unwrap().len(), 1);
}

#[tokio::test]
async fn in_a_lab_a_chain_is_cancelled_to_its_end_in_one_turn() {
    let (mut lab, diary) = lab();
    let tenure = lab.tenure().clone();
    let first = tenure.enqueue_draft(of(1, "first")).await.unwrap().id();
    let mut chain = vec![first];
    for _ in 0..5 {
        let draft = of(1, "never").after_jobs([*chain.last().unwrap()]);
        chain.push(tenure.enqueue_draft(draft).await.unwrap().id());
    }
    let last = of(1, "anyway").after_jobs(chain.clone()).even_if_failed();
    tenure.enqueue_draft(last).await.unwrap();
    tenure.jobs().cancel(first, SECOND, "not wanted").await.unwrap();
    let ran = lab.drain().await.unwrap();
    assert_eq!(ran.len(), 1);
    assert_eq!(diary.told(), ["1 anyway"]);
    for id in chain {
        let job = tenure.jobs().get(id).await.unwrap();
        assert_eq!(job.state.name(lab.now()), StateName::Cancelled);
    }
}

#[tokio::test]
async fn one_batch_names_its_own_jobs_and_an_unknown_one_refuses_it_all() {
    for rig in rigs() {
        let (first, unknown) = (rig.tenure.new_id(), rig.tenure.new_id());
        let batch = [plain(1).id(first), plain(2).after_jobs([first])];
        assert_eq!(rig.tenure.enqueue_all(batch).await.unwrap().len(), 2);
        let error = rig.tenure.enqueue_all([plain(3), plain(4).after_jobs([unknown])]).await.unwrap_err();
        assert!(
            matches!(&error, Error::Refused { index: 1, refusal: Refusal::NoSuchJob(id) } if *id == unknown)
        );
        let told = format!(
            "job 1 of the batch was refused and nothing was stored: it depends on job {unknown}, which was not found"
        );
        assert_eq!(error.to_string(), told);
        assert_eq!(rig.reserve_all(host(1)).await.len(), 1);
    }
}

#[tokio::test]
async fn limits_are_listed_set_and_cleared() {
    for rig in rigs() {
        let limits = rig.tenure.limits();
        limits.set("api", Limit::of(2).at_rate(Rate::new(10, SECOND).burst(1))).await.unwrap();
        rig.tenure.enqueue_draft(plain(1).limited("smtp", 3)).await.unwrap();
        rig.tenure.enqueue_draft(plain(2).limited("api", 9)).await.unwrap();
        let listed = limits.list().await.unwrap();
        let brief: Vec<_> =
            listed.iter().map(|info| (info.key.as_str(), info.meter.limit.most, info.set)).collect();
        assert_eq!(brief, [("api", Some(2), true), ("smtp", Some(3), false)]);
        let page = limits.page(None, 1).await.unwrap();
        assert_eq!((page.limits.len(), page.next), (1, Some("api".parse().unwrap())));
        limits.clear("api").await.unwrap();
        assert_eq!(limits.list().await.unwrap()[0].meter.limit, Limit::of(9), "its jobs say it again");
        assert!(rig.tenure.queues().limit("default", Limit::of(1)).await.unwrap());
        assert!(!rig.tenure.queues().limit("default", Limit::of(1)).await.unwrap());
        assert_eq!(rig.tenure.queues().list().await.unwrap()[0].limit, Limit::of(1));
        assert_eq!(rig.reserve_all(host(1)).await.len(), 1);
    }
}

#[tokio::test]
async fn the_share_of_a_tenant_does_not_grow_with_its_backlog() {
    for rig in rigs() {
        rig.tenure.enqueue_all((0..50).map(|n| plain(n).share("big"))).await.unwrap();
        rig.tenure.enqueue_all((100..103).map(|n| plain(n).share("small"))).await.unwrap();
        let granted = rig.reserve_all(host(1)).await;
        let order: Vec<u64> = granted
            .iter()
            .map(|one| serde_json::from_slice::<Plain>(one.job().args.as_bytes()).unwrap().number)
            .collect();
        assert_eq!(order[..7], [0, 100, 1, 101, 2, 102, 3]);
    }
}

async fn waits_for(rig: &Rig, id: JobId) -> Reason {
    rig.tenure.explain(id).await.unwrap()
}

#[tokio::test]
async fn explain_tells_what_a_blocked_job_waits_for() {
    for rig in rigs() {
        let first = rig.tenure.enqueue_draft(plain(1).ordered("k").limited("l", 1)).await.unwrap().id();
        let second = rig.tenure.enqueue_draft(plain(2).ordered("k")).await.unwrap().id();
        let third = rig.tenure.enqueue_draft(plain(3).limit_key("l")).await.unwrap().id();
        let fourth = rig.tenure.enqueue_draft(plain(4).after_jobs([second])).await.unwrap().id();
        assert_eq!(rig.reserve_one(host(1)).await.job().id, first);
        assert!(
            matches!(waits_for(&rig, second).await, Reason::NotItsTurn { turn, .. } if turn == Some(first))
        );
        assert!(matches!(waits_for(&rig, third).await, Reason::LimitFull { most: 1, .. }));
        assert_eq!(waits_for(&rig, fourth).await, Reason::AfterJobs { jobs: vec![second] });
        assert_eq!(rig.state(fourth).await, StateName::Blocked);
        let told = waits_for(&rig, second).await.to_string();
        assert_eq!(told, format!("it waits for job {first} with the same ordering key k"));
    }
}

/// Workers in real time: whatever else happens, the promises about keys hold at each instant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_keep_to_orders_and_limits() {
    #[derive(Default)]
    struct Watch {
        running: AtomicU32,
        busy: Mutex<BTreeSet<u64>>,
        seen: Mutex<Vec<u64>>,
    }
    async fn watched(run: Run<Arc<Watch>>, job: Plain) -> Result<u64, Failed> {
        let watch = Arc::clone(run.app());
        assert!(watch.running.fetch_add(1, Ordering::SeqCst) < 3, "more than three at once");
        assert!(watch.busy.lock().unwrap().insert(job.number % 4), "two of one key at once");
        watch.seen.lock().unwrap().push(job.number);
        tokio::task::yield_now().await;
        watch.busy.lock().unwrap().remove(&(job.number % 4));
        watch.running.fetch_sub(1, Ordering::SeqCst);
        Ok(job.number)
    }
    for (tenure, _folder) in crate::common::all_in_real_time() {
        let watch = Arc::new(Watch::default());
        let draft = |n: u64| plain(n).ordered(&format!("key-{}", n % 4)).limited("all", 3);
        let ids: Vec<JobId> =
            tenure.enqueue_all((0..100).map(draft)).await.unwrap().into_iter().map(|a| a.id()).collect();
        let last = tenure.enqueue_draft(plain(104).after_jobs(ids)).await.unwrap().id();
        let waiting = tenure.clone();
        let ended = async move { drop(waiting.wait(last).await) };
        Worker::new(&tenure, Arc::clone(&watch)).queue("default", 8).job(watched).run(ended).await.unwrap();
        let seen = watch.seen.lock().unwrap().clone();
        assert_eq!((seen.len(), seen.last()), (101, Some(&104)));
        for key in 0..4 {
            let of_key: Vec<u64> = seen.iter().copied().filter(|n| *n < 100 && n % 4 == key).collect();
            assert!(of_key.is_sorted(), "{of_key:?}");
        }
        for id in
            tenure.jobs().page(tenure::PageAsk { at_most: 1_000, ..Default::default() }).await.unwrap().jobs
        {
            assert_eq!(id.attempt, 1, "nobody failed, and waiting spends no attempt");
        }
    }
}

/// A job that was released goes back to its place, which may be behind its limit now.
#[tokio::test]
async fn a_job_that_is_given_back_may_be_blocked() {
    for rig in rigs() {
        let id = rig.tenure.enqueue_draft(plain(1).limited("l", 1)).await.unwrap().id();
        let reserved = rig.reserve_one(host(1)).await;
        rig.tenure.enqueue_draft(plain(2).limit_key("l").priority(-1)).await.unwrap();
        rig.settle(reserved, Verdict::Released).await;
        assert_eq!(rig.state(id).await, StateName::Blocked);
    }
}
