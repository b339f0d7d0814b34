//! A store with one of everything that nobody uses at the moment.

use tenure_core::{
    Due, Head, IfFailed, JobId, Limit, LogLine, OnConflict, Policies, Progress, QueueTerms, Terms, Verdict,
    Window,
};

use super::super::given::{Given, TTL, failed, held, host, minutes, output, priority, queue, retry, seconds};
use super::super::keyed::{after, key, limited, ordered, per_second, shared};
use super::super::timers::{name, timer};
use super::super::wishes::{acquire, break_within, forget, renew};
use tenure_store::{Change, QueueEdit, Report, TimerAct};

impl Given {
    /// Jobs in every state but running, of every sort of key; leases, the ledger, timers and their slots; queues with
    /// settings, limits, app ids.
    pub(in super::super) async fn fill(&self) {
        self.fill_plain().await;
        self.fill_keyed().await;
        self.fill_leases().await;
        self.fill_timers().await;
        let app = tenure_core::AppId::new("shop").unwrap();
        self.store.claim_app(&app, "shop-server", host(3)).await.unwrap().unwrap();
        self.store.set_paused(&queue("paused"), true).await.unwrap();
        self.store.set_queue_limit(&queue("narrow"), Limit::of(3)).await.unwrap();
        let retention = Some(tenure_core::Retention::always(tenure_core::Keep::Forever));
        let terms = QueueTerms { max_depth: Some(9), retention, ..QueueTerms::default() };
        let edit = QueueEdit { terms: Some(terms), ..QueueEdit::default() };
        self.store.edit_queue(&queue("shallow"), edit).await.unwrap();
        // Whatever time and others' ends have brought is found now.
        while self.tend().await.more {}
    }

    async fn fill_plain(&self) {
        self.enqueue("mail", 3).await;
        self.put(tenure_core::NewJob { priority: priority(-5), ..self.new_job("mail") }).await;
        self.put(self.due_in("mail", minutes(60))).await;
        self.put(self.new_job("paused")).await;
        let tags = vec![tenure_core::Name::new("tag", "urgent").unwrap()];
        let meta = [("user".to_owned(), "7, ø".to_owned())].into();
        self.put(self.on_terms("mail", Terms { tags, meta, ..Terms::default() })).await;
        let done = self.put(self.new_job("done")).await;
        self.log_of(done, Verdict::Succeeded(Some(output("{\"sent\":true}")))).await;
        self.put(self.new_job("done")).await;
        let reserved = self.take("done").await;
        self.fail(reserved).await;
        let waiting = self.put(self.new_job("done")).await;
        self.cancel(waiting).await;
        let tried = self.put(self.with_attempts("tried", 5)).await;
        self.log_of(tried, retry()).await;
        self.pass(minutes(2));
        self.log_of(tried, Verdict::Released).await;
        let snoozed = self.put(self.new_job("snoozed")).await;
        self.log_of(snoozed, Verdict::Snoozed(Due::In(minutes(9)))).await;
        let lost = self.put(self.new_job("lost")).await;
        self.take("lost").await;
        self.pass(TTL);
        self.tend().await;
        assert!(self.job(lost).await.failure.is_some());
        let again = self.put(self.new_job("again")).await;
        let reserved = self.take("again").await;
        self.succeed(reserved).await;
        self.change(again, Change::Redo).await;
    }

    /// Runs a job that tells how far it has come, and writes two lines.
    async fn log_of(&self, id: JobId, verdict: Verdict) {
        let queue = self.job(id).await.queue;
        let reserved = self.take(queue.as_str()).await;
        assert_eq!(reserved.job().id, id);
        let (delivery, at) = (reserved.job().delivery, self.now());
        let lines = (1..=2).map(|number| LogLine::new(delivery, number, at, "half of it, ø")).collect();
        let progress = Some(Progress::new(0.5, "halfway").unwrap());
        self.store.report(vec![Report { held: held(&reserved), progress, lines }]).await.unwrap();
        self.pass(seconds(1));
        self.settle(reserved, verdict).await;
    }

    async fn fill_keyed(&self) {
        self.put(self.only(1, Window::WhileUnfinished, OnConflict::Return)).await;
        self.put(self.only(2, Window::For(minutes(600)), OnConflict::Reject)).await;
        let first = self.put(self.new_job("first")).await;
        let second = self.put(self.on_terms("second", after(&[first], IfFailed::Cancel))).await;
        self.put(self.on_terms("second", after(&[first, second], IfFailed::Run))).await;
        self.put_on("cart", &ordered(Head::Block), 3).await;
        self.put_on("smtp", &limited(Some(2)), 4).await;
        for tenant in ["a", "a", "b", "a", "c"] {
            self.put(self.on_terms("fair", shared(tenant))).await;
        }
        self.store.set_limit(&key("sms"), Some(per_second(5, 2))).await.unwrap();
        self.put(self.only(3, Window::For(minutes(600)), OnConflict::Reject)).await;
    }

    async fn fill_leases(&self) {
        let free = self.hold("free", 1).await;
        self.wish("free", acquire(2)).await;
        self.pass(seconds(3));
        self.wish("free", renew(free)).await;
        self.give_back("free", free).await;
        let gone = self.hold("gone", 1).await;
        self.give_back("gone", gone).await;
        self.wish("gone", forget()).await;
        self.hold("broken", 1).await;
        self.wish("broken", break_within(None)).await;
        self.hold("lapsed", 1).await;
        self.pass(TTL);
    }

    async fn fill_timers(&self) {
        self.set(timer("often", "0 * * * * *", Policies::default())).await;
        self.set(timer("daily", "0 0 3 * * * in Europe/Berlin", Policies::default())).await;
        self.set(timer("still", "every 10m", Policies::default())).await;
        let reason = "for the night, ø".to_owned();
        self.store.change_timer(&name("still"), TimerAct::Pause { reason }).await.unwrap();
        for _ in 0..3 {
            self.pass(minutes(1));
            self.fire().await;
        }
        self.set(timer("ended", "every 10m", Policies::default())).await;
        self.pass(minutes(11));
        self.fire().await;
        self.store.change_timer(&name("ended"), TimerAct::Remove).await.unwrap();
        let reserved = self.take("mail").await;
        self.settle(reserved, failed()).await;
    }
}
