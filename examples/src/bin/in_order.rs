//! How do I run related jobs in order, one at a time?

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::{Draft, Error, Failed, Job, JobId, Run, Tenure, Worker};

#[derive(Serialize, Deserialize)]
struct Edit {
    cart: u32,
    what: String,
}

impl Job for Edit {
    const KIND: &'static str = "edit";
    type Output = ();
}

/// The edits that were done, in order.
type Diary = Arc<Mutex<Vec<(u32, String)>>>;

async fn edit(run: Run<Diary>, job: Edit) -> Result<(), Failed> {
    let fails = job.what == "charge" && run.attempt() == 1;
    let line = if fails { format!("{} failed", job.what) } else { job.what };
    run.app().lock().expect("no handler panics while it holds the lock").push((job.cart, line));
    if fails {
        Err(Failed::retry_after("no answer from the bank", Duration::from_millis(50)))
    } else {
        Ok(())
    }
}

fn draft(cart: u32, what: &str) -> Draft {
    Draft::of(&Edit { cart, what: what.to_owned() })
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let tenure = Tenure::open("memory:").await?;
    let mut last = carts(&tenure).await?;
    last.push(blocking(&tenure).await?);
    last.push(stepping_aside(&tenure).await?);

    let ended = async {
        for id in last {
            drop(tenure.wait(id).await);
        }
    };
    let diary = Diary::default();
    Worker::new(&tenure, Arc::clone(&diary)).queue("default", 8).job(edit).run(ended).await?;
    let diary = diary.lock().expect("no handler panics while it holds the lock").clone();
    for cart in 7..=10 {
        let lines: Vec<&str> =
            diary.iter().filter(|(of, _)| *of == cart).map(|(_, what)| what.as_str()).collect();
        println!("cart {cart}: {}", lines.join(", "));
    }
    Ok(())
}

/// The jobs of one cart run one after the other. Those of another cart run in parallel.
async fn carts(tenure: &Tenure) -> Result<Vec<JobId>, Error> {
    let mut last = Vec::new();
    for cart in [7, 8] {
        let key = format!("cart-{cart}");
        let edits = ["add a pen", "add ink", "check out"].map(|what| draft(cart, what).ordered(&key));
        let accepted = tenure.enqueue_all(edits).await?;
        println!("cart {cart}, ink: {}", tenure.explain(accepted[1].id()).await?);
        last.push(accepted[2].id());
    }
    Ok(last)
}

/// A job that is retried keeps the others waiting: nothing is delivered before the charge has ended.
async fn blocking(tenure: &Tenure) -> Result<JobId, Error> {
    tenure.enqueue_draft(draft(9, "charge").ordered("cart-9")).await?;
    Ok(tenure.enqueue_draft(draft(9, "deliver").ordered("cart-9")).await?.id())
}

/// A job that steps aside lets the others pass while it waits, still one at a time.
async fn stepping_aside(tenure: &Tenure) -> Result<JobId, Error> {
    let charge = tenure.enqueue_draft(draft(10, "charge").ordered_stepping_aside("cart-10")).await?;
    tenure.enqueue_draft(draft(10, "deliver").ordered_stepping_aside("cart-10")).await?;
    Ok(charge.id())
}
