//! When, where and in which order does a job run?

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::{Failed, Job, Run, Tenure, Worker};

#[derive(Serialize, Deserialize)]
struct Letter {
    to: String,
}

impl Job for Letter {
    const KIND: &'static str = "letter";
    const QUEUE: &'static str = "post";
    type Output = ();
}

async fn letter(run: Run<()>, job: Letter) -> Result<(), Failed> {
    println!("to {} from queue {}", job.to, run.job().queue);
    Ok(())
}

fn to(name: &str) -> Letter {
    Letter { to: name.to_owned() }
}

#[tokio::main]
async fn main() -> Result<(), tenure::Error> {
    let tenure = Tenure::open("memory:").await?;
    let now = tenure.store().clock().now();

    let mut ids = Vec::new();
    ids.push(tenure.enqueue(to("Ann, at noon")).at(now.after(Duration::from_millis(300))).await?.id());
    ids.push(tenure.enqueue(to("Ben, in a while")).after(Duration::from_millis(600)).await?.id());
    ids.push(tenure.enqueue(to("Cleo, any time")).priority(50).await?.id());
    ids.push(tenure.enqueue(to("Dan, in turn")).await?.id());
    ids.push(tenure.enqueue(to("Eve, first of all")).priority(-50).await?.id());
    ids.push(
        tenure.enqueue(to("Fay, by courier")).queue("courier").after(Duration::from_millis(900)).await?.id(),
    );

    let all_done = async {
        for id in ids {
            let _ = tenure.wait(id).await;
        }
    };
    // One slot per queue: its jobs run one after the other, so the order is visible.
    Worker::new(&tenure, ()).queue("post", 1).queue("courier", 1).job(letter).run(all_done).await?;
    Ok(())
}
