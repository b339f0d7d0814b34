//! One life of many jobs, and what each part of it cost.

use std::error::Error;

use crate::cluster::Cluster;
use crate::driver::Driver;
use crate::meter::{Cost, Meter};
use crate::shape::Shape;

/// How a shape is driven.
#[derive(Clone, Copy)]
pub struct Drive {
    pub jobs: usize,
    /// Jobs in an enqueue, and in a claim and its settlement.
    pub put: usize,
    pub take: usize,
    /// Bring statistics up to date and checkpoint between enqueueing and claiming, as one does before comparing peers.
    pub rest: bool,
}

#[derive(Clone, Copy, Default)]
pub struct Costs {
    pub enqueue: Cost,
    pub claim: Cost,
    pub settle: Cost,
    pub vacuum: Cost,
}

/// How many batches are claimed before they are settled: enough for the meters.
const BATCHES_AT_ONCE: usize = 20;

/// Empties the server and makes the tables of this shape.
pub async fn lay_out(shape: &Shape, cluster: &Cluster) -> Result<(), Box<dyn Error>> {
    let client = cluster.connect().await?;
    client
        .batch_execute(&format!(
            "DROP SCHEMA IF EXISTS bench CASCADE; CREATE SCHEMA bench; SET search_path = bench; {}",
            shape.schema
        ))
        .await?;
    client.batch_execute("CHECKPOINT").await?;
    Ok(())
}

/// A whole life in empty tables.
pub async fn live(
    shape: &Shape,
    cluster: &Cluster,
    meter: &Meter,
    drive: Drive,
) -> Result<Costs, Box<dyn Error>> {
    lay_out(shape, cluster).await?;
    let mut driver = Driver::open(shape, cluster.connect().await?, 1).await?;
    let mut costs = Costs::default();
    // Plans are made on the first few uses.
    for _ in 0..6 {
        driver.enqueue(1).await?;
        let claimed = driver.claim(1, (0, 0)).await?;
        driver.settle(&claimed).await?;
    }
    let before = meter.read().await?;
    for _ in 0..drive.jobs / drive.put {
        driver.enqueue(drive.put).await?;
    }
    costs.enqueue = meter.since(before).await?;
    if drive.rest {
        driver.client.batch_execute("VACUUM ANALYZE").await?;
        driver.client.batch_execute("CHECKPOINT").await?;
    }
    drain(&driver, meter, drive, &mut costs).await?;
    let before = meter.read().await?;
    driver.client.batch_execute(&format!("VACUUM {}", shape.tables.join(", "))).await?;
    costs.vacuum = meter.since(before).await?;
    Ok(costs)
}

async fn drain(
    driver: &Driver<'_>,
    meter: &Meter,
    drive: Drive,
    costs: &mut Costs,
) -> Result<(), Box<dyn Error>> {
    let mut done = 0;
    while done < drive.jobs {
        let mut batches = Vec::new();
        let before = meter.read().await?;
        while batches.len() < BATCHES_AT_ONCE.min((drive.jobs - done).div_ceil(drive.take)) {
            let claimed = driver.claim(drive.take, (0, 0)).await?;
            if claimed.seqs.is_empty() {
                return Err("a claim came back empty".into());
            }
            batches.push(claimed);
        }
        costs.claim.add(meter.since(before).await?);
        let before = meter.read().await?;
        for claimed in &batches {
            let settled = driver.settle(claimed).await?;
            if settled != claimed.seqs.len() {
                return Err("a settlement was refused".into());
            }
            done += settled;
        }
        costs.settle.add(meter.since(before).await?);
        if driver.is_guarded() && driver.settle(&batches[0]).await? != 0 {
            return Err("a second settlement was let in".into());
        }
    }
    Ok(())
}
