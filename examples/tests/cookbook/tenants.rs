//! Tenants that take turns, and none of which takes all slots.

use serde::{Deserialize, Serialize};
use tenure::testing::Lab;
use tenure::{Draft, Failed, Job, Run, Worker};

use crate::Outcome;

#[derive(Serialize, Deserialize)]
struct Resize {
    tenant: String,
    picture: u32,
}

impl Job for Resize {
    const KIND: &'static str = "resize";
    const QUEUE: &'static str = "pictures";
    type Output = String;
}

async fn resize(_run: Run<()>, job: Resize) -> Result<String, Failed> {
    Ok(format!("{} {}", job.tenant, job.picture))
}

fn resize_all(tenant: &str, pictures: u32) -> Vec<Draft> {
    let limit = format!("pictures-{tenant}");
    let draft = |picture| Draft::of(&Resize { tenant: tenant.to_owned(), picture });
    (0..pictures).map(|picture| draft(picture).share(tenant).limited(&limit, 4)).collect()
}

#[tokio::test]
async fn a_backlog_does_not_delay_another_tenant() -> Outcome {
    let mut lab = Lab::new(|tenure| Worker::new(tenure, ()).queue("pictures", 1).job(resize));
    lab.tenure().enqueue_all(resize_all("museum", 1_000)).await?;
    let small = lab.tenure().enqueue_all(resize_all("ann", 3)).await?;

    let mut ran = Vec::new();
    for _ in 0..6 {
        ran.extend(lab.turn().await?);
    }
    let last = small[2].id();
    assert!(ran.iter().any(|ran| ran.id == last), "3 of 6 turns are Ann's");
    Ok(())
}

#[tokio::test]
async fn a_tenant_alone_leaves_slots_free() -> Outcome {
    let mut lab = Lab::new(|tenure| Worker::new(tenure, ()).queue("pictures", 16).job(resize));
    let museum = lab.tenure().enqueue_all(resize_all("museum", 1_000)).await?;
    lab.tenure().enqueue_all(resize_all("ann", 3)).await?;
    assert_eq!(lab.turn().await?.len(), 7, "4 of the museum and 3 of Ann");
    let why = lab.tenure().explain(museum[999].id()).await?.to_string();
    assert!(why.contains("pictures-museum") || why.contains("line"), "{why}");
    Ok(())
}
