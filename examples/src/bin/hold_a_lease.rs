//! How do I make sure that only one instance of a program does something?
//!
//! An instance holds the lease until it releases it, or dies and the lease lapses. Everyone can see the current
//! holder and the earlier ones.

use std::time::Duration;

use tenure::{Error, Pass, Tenure};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let tenure = Tenure::open("memory:").await?;
    one_at_a_time(&tenure).await?;
    waiting(&tenure).await?;
    losing(&tenure).await?;
    looking_back(&tenure).await
}

async fn one_at_a_time(tenure: &Tenure) -> Result<(), Error> {
    let ttl = Duration::from_secs(30);
    let Some(held) = tenure.leases().try_hold("month-end", ttl).await? else {
        println!("somebody else closes the month");
        return Ok(());
    };
    println!("held under fence {}", held.fence());

    let again = tenure.leases().try_hold("month-end", ttl).await?;
    println!("a second time: {}", if again.is_none() { "no" } else { "yes" });
    held.release().await
}

/// Awaiting the lease takes a place in line. Dropping the future gives it up.
async fn waiting(tenure: &Tenure) -> Result<(), Error> {
    let first = tenure.leases().hold("month-end").who("web-3").await?;
    let patience = Duration::from_millis(300);
    if let Err(over @ Error::WaitOver { .. }) = tenure.leases().hold("month-end").within(patience).await {
        println!("{over}");
    }

    let next = tenure.leases().hold("month-end").who("web-4");
    let (released, next) = tokio::join!(first.release(), next);
    released?;
    println!("web-4 has it under fence {}", next?.fence());
    Ok(())
}

/// Work under a lease is notified when the lease is lost, and has a grace period to end.
async fn losing(tenure: &Tenure) -> Result<(), Error> {
    let held = tenure.leases().hold("compaction").ttl(Duration::from_secs(1)).await?;
    let (ended, _) = tokio::join!(held.run(compact), async {
        let reason = "the disk is needed";
        tenure.leases().break_it("compaction", Some(Duration::ZERO), reason).await
    });
    if let Err(lost) = ended {
        println!("the work stopped: {}", lost.loss);
    }
    Ok(())
}

async fn compact(pass: Pass) {
    let mut segments = 0;
    // The check at the boundary: before each effect, not once at the beginning.
    while pass.guard().is_ok() {
        segments += 1;
        if pass.sleep(Duration::from_millis(100)).await.is_err() {
            break;
        }
    }
    println!("compacted until told: {}", segments > 0);
}

/// Lists the holders of a lease and how each holding ended.
async fn looking_back(tenure: &Tenure) -> Result<(), Error> {
    for holding in tenure.leases().last("compaction", 10).await? {
        println!(
            "fence {}: ended by {}",
            holding.fence,
            holding.end.map_or("nothing yet", |what| what.as_str())
        );
    }
    let then = tenure.now();
    let holder = tenure.leases().held_at("month-end", then).await?;
    println!("held now: {}", holder.is_some());
    Ok(())
}
