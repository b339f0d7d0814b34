//! The job that the pages about moving to Tenure show before and after.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::testing::Lab;
use tenure::when::{daily, unix_cron};
use tenure::{Error, Failed, Job, JobId, Only, Overlap, Run, Tenure, TimerDraft, Worker};

use crate::Outcome;

#[derive(Serialize, Deserialize)]
struct SendInvoice {
    invoice: i64,
}

impl Job for SendInvoice {
    const KIND: &'static str = "send_invoice";
    const QUEUE: &'static str = "mail";
    type Output = ();
}

async fn send_invoice(run: Run<Arc<Mailer>>, job: SendInvoice) -> Result<(), Failed> {
    run.app().send(job.invoice, run.id()).await?;
    Ok(())
}

#[derive(Serialize, Deserialize)]
struct RemindDebtors {}

impl Job for RemindDebtors {
    const KIND: &'static str = "remind_debtors";
    const QUEUE: &'static str = "mail";
    type Output = ();
}

async fn remind_debtors(run: Run<Arc<Mailer>>, _job: RemindDebtors) -> Result<(), Failed> {
    for invoice in run.app().unpaid() {
        run.tenure().enqueue(SendInvoice { invoice }).unique_key(format!("remind-{invoice}")).await?;
    }
    Ok(())
}

async fn enqueue(tenure: &Tenure) -> Result<JobId, Error> {
    tenure.enqueue(SendInvoice { invoice: 42 }).attempts(5).await?;

    let in_an_hour = Duration::from_secs(3600);
    let id = tenure.enqueue(SendInvoice { invoice: 43 }).after(in_an_hour).attempts(5).await?.id();

    let once = Only::one("invoice-44").within(Duration::from_secs(24 * 3600));
    tenure.enqueue(SendInvoice { invoice: 44 }).unique_by(once).await?;
    Ok(id)
}

fn worker(tenure: &Tenure, mailer: Arc<Mailer>) -> Worker<Arc<Mailer>> {
    let reminders = unix_cron("0 6 * * 1-5").zone("Europe/Berlin");
    let worker = Worker::new(tenure, mailer).queue("mail", 10).job(send_invoice).job(remind_debtors);
    worker.timer("reminders", reminders, || RemindDebtors {})
}

/// The same as a WebJob that waits for its turn while an earlier run is still there.
fn sweeping(worker: Worker<Arc<Mailer>>) -> Worker<Arc<Mailer>> {
    let daily = TimerDraft::new("sweep", daily(["03:30"]), &RemindDebtors {}).overlap(Overlap::QueueOne);
    worker.timer_with(daily)
}

/// Stands for the mail provider, which sends one mail for each key.
#[derive(Default)]
struct Mailer {
    sent: Mutex<Vec<(i64, JobId)>>,
}

impl Mailer {
    async fn send(&self, invoice: i64, key: JobId) -> Result<(), std::io::Error> {
        self.sent.lock().expect("no test panics with the lock").push((invoice, key));
        Ok(())
    }

    fn unpaid(&self) -> Vec<i64> {
        vec![7]
    }
}

#[tokio::test]
async fn the_job_runs_now_later_once_and_by_schedule() -> Outcome {
    let mailer = Arc::new(Mailer::default());
    let app = Arc::clone(&mailer);
    let mut lab = Lab::new(|tenure| sweeping(worker(tenure, app)));
    let later = enqueue(lab.tenure()).await?;
    assert_eq!(lab.turn().await?.len(), 2);
    lab.advance(Duration::from_secs(3600));
    lab.drain().await?;
    assert!(mailer.sent.lock().unwrap().iter().any(|(invoice, key)| (*invoice, *key) == (43, later)));

    lab.advance(Duration::from_secs(7 * 24 * 3600));
    lab.drain().await?;
    assert!(mailer.sent.lock().unwrap().iter().any(|(invoice, _)| *invoice == 7));
    Ok(())
}
