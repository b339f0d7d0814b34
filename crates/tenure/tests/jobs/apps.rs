//! Runs of programs: one at a time whoever brings them, and what is counted of them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tenure::apps::{Began, HostOffers, Offer, Sort, Standing, Wanted, is_run};
use tenure::{
    Clock, Ending, Failure, Filter, JobId, JobRecord, Kinds, Order, Overlap, PageAsk, QueueName, Reserve,
    StateName, TimerDraft, TimerOutcome, Verdict, Want,
};

use crate::common::{Rig, rigs};

const SECOND: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(3_600);

impl Rig {
    /// A host offers the program `work`.
    async fn offers(&self, change: impl FnOnce(&mut Offer)) {
        let mut offer = Offer::new(Sort::Triggered, "work", self.tenure.now());
        change(&mut offer);
        let offers = HostOffers {
            folder: String::new(),
            host: "one".to_owned(),
            node: "one".to_owned(),
            apps: vec![offer],
        };
        self.tenure.apps("apps").unwrap().offer(&offers).await.unwrap();
    }

    async fn asks(&self) -> Began {
        self.tenure.apps("apps").unwrap().run("work", &Wanted::default()).await.unwrap()
    }

    async fn begins(&self) -> JobId {
        let Began::New(id) = self.asks().await else { panic!("{}: it is busy", self.name) };
        id
    }

    /// What a worker is given now.
    async fn given(&self, ttl: Duration) -> Vec<Arc<JobRecord>> {
        let want = Want { queue: QueueName::new("apps").unwrap(), kinds: Kinds::All, at_most: 10 };
        let holder = self.tenure.remote().draw_worker();
        let reserve = Reserve { holder, ttl, wants: vec![want], at_most: 10 };
        let (_, claimed) = self.tenure.remote().settle(Vec::new(), Some(reserve)).await.unwrap();
        claimed.jobs
    }

    async fn ends(&self, job: Arc<JobRecord>, verdict: Verdict) {
        self.tenure.remote().settle(vec![Ending { job, verdict }], None).await.unwrap();
    }

    async fn sets_schedule(&self, overlap: Overlap) {
        let draft = self.tenure.apps("apps").unwrap().draft("work", 1, &json!({})).unwrap();
        let timer = TimerDraft::of("apps.work", "0 * * * * *", draft).overlap(overlap).runs_elsewhere();
        self.tenure.timers().set(timer).await.unwrap();
    }

    async fn slot_comes(&self) {
        self.clock.advance(Duration::from_secs(60));
        self.store.fire(10).await.unwrap();
    }

    async fn kept(&self) -> Vec<JobId> {
        let ask = PageAsk { filter: Filter::default(), order: Order::OldestFirst, ..PageAsk::default() };
        self.tenure.jobs().page(ask).await.unwrap().jobs.iter().map(|job| job.id).collect()
    }
}

#[tokio::test]
async fn a_job_with_the_kind_of_a_program_is_no_run_unless_it_was_asked_for_or_scheduled() {
    for rig in rigs() {
        rig.offers(|_| {}).await;
        let draft = rig.tenure.apps("apps").unwrap().draft("work", 1, &json!({})).unwrap();
        rig.tenure.enqueue_draft(draft).await.unwrap();
        let forged = rig.given(LEASE).await.remove(0);
        assert!(!is_run(&forged), "{}", rig.name);
        rig.ends(forged, Verdict::Succeeded(None)).await;
        rig.begins().await;
        let asked = rig.given(LEASE).await.remove(0);
        assert!(is_run(&asked), "{}", rig.name);
        rig.ends(asked, Verdict::Succeeded(None)).await;
        rig.sets_schedule(Overlap::QueueAll).await;
        rig.slot_comes().await;
        let scheduled = rig.given(LEASE).await.remove(0);
        assert!(is_run(&scheduled), "{}", rig.name);
        rig.ends(scheduled, Verdict::Succeeded(None)).await;
    }
}

#[tokio::test]
async fn a_schedule_that_appears_while_a_run_lasts_brings_none_beside_it() {
    for rig in rigs() {
        rig.offers(|_| {}).await;
        let asked = rig.begins().await;
        let running = rig.given(LEASE).await.remove(0);
        rig.sets_schedule(Overlap::Skip).await;
        rig.slot_comes().await;
        assert!(rig.given(LEASE).await.is_empty(), "{}: one at a time", rig.name);
        rig.ends(running, Verdict::Succeeded(None)).await;
        let next = rig.given(LEASE).await;
        assert!(next.len() == 1 && next[0].id != asked, "{}", rig.name);
    }
}

#[tokio::test]
async fn a_schedule_that_goes_while_a_run_lasts_leaves_it_the_only_one() {
    for rig in rigs() {
        rig.offers(|_| {}).await;
        rig.sets_schedule(Overlap::Skip).await;
        rig.slot_comes().await;
        let running = rig.given(LEASE).await.remove(0);
        assert_eq!(rig.tenure.timers().remove("apps.work").await.unwrap(), TimerOutcome::Done);
        rig.offers(|_| {}).await;
        assert_eq!(rig.asks().await, Began::Busy(running.id), "{}", rig.name);
        rig.ends(running, Verdict::Succeeded(None)).await;
        assert_eq!(rig.begins().await, rig.given(LEASE).await[0].id, "{}", rig.name);
    }
}

#[tokio::test]
async fn a_program_that_may_no_longer_overlap_waits_for_all_that_did() {
    for rig in rigs() {
        rig.offers(|offer| offer.at_once = 2).await;
        rig.begins().await;
        rig.begins().await;
        let mut running = rig.given(LEASE).await;
        assert_eq!(running.len(), 2, "{}", rig.name);
        rig.sets_schedule(Overlap::QueueOne).await;
        rig.slot_comes().await;
        for job in running.drain(..) {
            assert!(rig.given(LEASE).await.is_empty(), "{}", rig.name);
            rig.ends(job, Verdict::Succeeded(None)).await;
        }
        assert_eq!(rig.given(LEASE).await.len(), 1, "{}", rig.name);
    }
}

/// KD-12: as many as it says, with a schedule and without.
#[tokio::test]
async fn kd12_without_a_schedule_as_many_run_as_are_allowed_and_no_more() {
    for rig in rigs() {
        rig.offers(|offer| offer.at_once = 2).await;
        let first = rig.begins().await;
        rig.begins().await;
        assert_eq!(rig.asks().await, Began::Busy(first), "{}", rig.name);
        let again = Wanted { id: Some(first), ..Wanted::default() };
        let began = rig.tenure.apps("apps").unwrap().run("work", &again).await.unwrap();
        assert_eq!(began, Began::New(first), "{}: it is there already", rig.name);
        // Whoever asks at the same instant is not seen by the look, and is held up by the limit that they share.
        let draft = rig.tenure.apps("apps").unwrap().draft("work", 1, &json!({})).unwrap();
        rig.tenure.enqueue_draft(draft.limited("timer/apps.work", 2)).await.unwrap();
        assert_eq!(rig.given(LEASE).await.len(), 2, "{}", rig.name);
    }
}

#[tokio::test]
async fn a_program_that_no_host_can_run_is_not_begun_and_it_is_told_why() {
    for rig in rigs() {
        rig.offers(|offer| (offer.state, offer.detail) = (Standing::Wrong, "no php".to_owned())).await;
        assert_eq!(rig.asks().await, Began::Wrong("no php".to_owned()), "{}", rig.name);
        assert!(rig.kept().await.is_empty(), "{}", rig.name);
        rig.offers(|_| {}).await;
        rig.begins().await;
    }
}

#[tokio::test]
async fn where_every_host_is_stopped_by_its_environment_nobody_can_ask_for_a_run() {
    for rig in rigs() {
        rig.offers(|offer| offer.state = Standing::Stopped).await;
        assert_eq!(rig.asks().await, Began::Stopped, "{}", rig.name);
    }
}

#[tokio::test]
async fn hosts_that_a_run_has_lost_are_counted_since_it_was_last_done_anew() {
    for rig in rigs() {
        rig.offers(|_| {}).await;
        let id = rig.begins().await;
        let apps = rig.tenure.apps("apps").unwrap();
        let fail = || Failure::new(tenure::Cause::Error, "no");
        for lost in 0..=2 {
            let given = rig.given(SECOND).await.remove(0);
            assert_eq!((given.attempt, apps.lost_hosts(id).await.unwrap()), (lost + 1, lost), "{}", rig.name);
            rig.clock.advance(SECOND * 2);
        }
        let given = rig.given(LEASE).await.remove(0);
        assert_eq!((given.attempt, apps.lost_hosts(id).await.unwrap()), (4, 3), "{}", rig.name);
        rig.ends(given, Verdict::Snoozed(tenure::Due::Now)).await;
        let given = rig.given(LEASE).await.remove(0);
        assert_eq!((given.attempt, apps.lost_hosts(id).await.unwrap()), (4, 3), "{}", rig.name);
        rig.ends(given, Verdict::Failed(fail())).await;
        rig.tenure.jobs().redo(id).await.unwrap();
        let given = rig.given(SECOND).await.remove(0);
        assert_eq!((given.attempt, apps.lost_hosts(id).await.unwrap()), (1, 0), "{}", rig.name);
        rig.clock.advance(SECOND * 2);
        assert_eq!(rig.given(LEASE).await.len(), 1, "{}", rig.name);
        assert_eq!(apps.lost_hosts(id).await.unwrap(), 1, "{}", rig.name);
    }
}

/// A token that may enqueue into the queue of a set makes jobs that fail before a program starts.
#[tokio::test]
async fn jobs_that_no_route_for_programs_created_push_no_run_out_of_the_history() {
    for rig in rigs() {
        rig.offers(|_| {}).await;
        let apps = rig.tenure.apps("apps").unwrap();
        let forge = async || {
            let draft = apps.draft("work", 1, &json!({})).unwrap();
            let id = rig.tenure.enqueue_draft(draft).await.unwrap().id();
            rig.ends(rig.given(LEASE).await.remove(0), Verdict::Succeeded(None)).await;
            rig.clock.advance(SECOND);
            id
        };
        let run = async || {
            let id = rig.begins().await;
            rig.ends(rig.given(LEASE).await.remove(0), Verdict::Succeeded(None)).await;
            rig.clock.advance(SECOND);
            id
        };
        forge().await;
        let first = run().await;
        for _ in 0..5 {
            forge().await;
        }
        let forged = forge().await;
        let last = run().await;
        let last_forged = forge().await;
        rig.clock.advance(SECOND * 60);
        assert_eq!(apps.forget_runs_but("work", 2).await.unwrap(), 6, "{}: forged ones alone", rig.name);
        assert_eq!(rig.kept().await, [first, forged, last, last_forged], "{}", rig.name);
        assert_eq!(apps.forget_runs_but("work", 1).await.unwrap(), 2, "{}", rig.name);
    }
}

/// T081: the oldest go, the latest stay, and neither what runs nor what somebody may still be waiting for is forgotten.
#[tokio::test]
async fn t081_the_last_runs_are_kept_and_none_that_runs_or_has_only_just_ended_is_forgotten() {
    for rig in rigs() {
        rig.offers(|offer| offer.at_once = 2).await;
        let apps = rig.tenure.apps("apps").unwrap();
        let lasting = rig.begins().await;
        assert_eq!(rig.given(LEASE).await.len(), 1);
        let mut ended = Vec::new();
        for _ in 0..5 {
            ended.push(rig.begins().await);
            let job = rig.given(LEASE).await.remove(0);
            rig.ends(job, Verdict::Succeeded(None)).await;
            rig.clock.advance(SECOND);
        }
        assert_eq!(apps.forget_runs_but("work", 0).await.unwrap(), 0, "{}: who waits finds it", rig.name);
        rig.clock.advance(SECOND * 60);
        assert_eq!(apps.forget_runs_but("work", 3).await.unwrap(), 2, "{}", rig.name);
        assert_eq!(rig.kept().await, [&[lasting], &ended[2..]].concat(), "{}", rig.name);
        assert_eq!(apps.forget_runs_but("work", 3).await.unwrap(), 0, "{}", rig.name);
        assert_eq!(apps.forget_runs_but("work", 0).await.unwrap(), 3, "{}", rig.name);
        let state = rig.tenure.jobs().get(lasting).await.unwrap().state.name(rig.clock.now());
        assert_eq!((rig.kept().await, state), (vec![lasting], StateName::Running), "{}", rig.name);
    }
}
