//! A payment that is charged once, whatever is repeated and whatever is lost.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::testing::Lab;
use tenure::{Accepted, Error, Failed, Job, JobId, Keep, Refusal, Retention, Run, StateName, Tenure, Worker};

use crate::Outcome;

#[derive(Serialize, Deserialize)]
struct Charge {
    order: u64,
    cents: u64,
}

impl Job for Charge {
    const KIND: &'static str = "charge";
    const QUEUE: &'static str = "payments";
    type Output = String;
}

/// Enqueues the charge of an order. `payment` is stored with the order.
async fn pay(tenure: &Tenure, payment: JobId, order: u64, cents: u64) -> Result<Accepted, Error> {
    let days = |days: u64| Duration::from_secs(days * 24 * 3600);
    let job = tenure.enqueue(Charge { order, cents }).id(payment);
    job.attempts(12).timeout(Duration::from_secs(60)).retain(Retention::always(Keep::For(days(90)))).await
}

async fn charge(run: Run<Arc<Provider>>, job: Charge) -> Result<String, Failed> {
    let key = run.id().to_string(); // the same in every attempt
    match run.app().charge(&key, job.order, job.cents).await {
        Ok(receipt) => Ok(receipt),
        Err(Refused::Declined(why)) => Err(Failed::for_good(why)),
        Err(Refused::Busy { seconds }) => {
            Err(Failed::retry_after("the provider is busy", Duration::from_secs(seconds)))
        }
        Err(Refused::NoAnswer) => Err(Failed::retry("no answer: it may have charged")),
    }
}

/// Why the provider did not return a receipt.
enum Refused {
    Declined(&'static str),
    Busy { seconds: u64 },
    NoAnswer,
}

/// Stands for the payment provider. It returns the same receipt for the same key.
#[derive(Default)]
struct Provider {
    charges: Mutex<BTreeMap<String, (u64, u64)>>,
    calls: Mutex<u32>,
}

impl Provider {
    async fn charge(&self, key: &str, order: u64, cents: u64) -> Result<String, Refused> {
        let mut calls = self.calls.lock().expect("no test panics with the lock");
        *calls += 1;
        if cents > 100_000 {
            return Err(Refused::Declined("the card has no cover"));
        }
        if *calls == 1 {
            return Err(Refused::Busy { seconds: 30 });
        }
        self.charges.lock().expect("no test panics with the lock").insert(key.to_owned(), (order, cents));
        if *calls == 2 { Err(Refused::NoAnswer) } else { Ok(format!("receipt for order {order}")) }
    }
}

#[tokio::test]
async fn an_order_is_charged_once() -> Outcome {
    let provider = Arc::new(Provider::default());
    let app = Arc::clone(&provider);
    let mut lab = Lab::new(|tenure| Worker::new(tenure, app).queue("payments", 4).job(charge));
    let payment = lab.tenure().new_id();

    // The customer clicks twice.
    assert_eq!(pay(lab.tenure(), payment, 7, 995).await?, Accepted::New(payment));
    assert_eq!(pay(lab.tenure(), payment, 7, 995).await?, Accepted::Repeated(payment));
    // Another amount under the same ID is an error.
    let other = pay(lab.tenure(), payment, 7, 9_950).await;
    assert!(matches!(other, Err(Error::Refused { refusal: Refusal::IdTaken(_), .. })), "{other:?}");

    for seconds in [0, 30, 60] {
        lab.advance(Duration::from_secs(seconds));
        lab.turn().await?;
    }
    assert_eq!(lab.tenure().wait_for::<Charge>(payment).await?, "receipt for order 7");
    assert_eq!(*provider.calls.lock().unwrap(), 3);
    assert_eq!(provider.charges.lock().unwrap().len(), 1);

    let declined = lab.tenure().new_id();
    pay(lab.tenure(), declined, 8, 200_000).await?;
    assert_eq!(lab.turn().await?[0].state, StateName::Failed);
    Ok(())
}
