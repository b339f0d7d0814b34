//! How do I reject a late write of a former lease holder in my own tables?
//!
//! A host is suspended longer than its lease lasts. Another host takes the lease and does the work. Then the first
//! one wakes up and continues. Its transaction checks in and is rejected, whatever its clock says.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use tenure::rusqlite::{Connection, TransactionBehavior};
use tenure::{Error, Held, OpenOptions, Tenure};

const FILE: &str = "jobs.db";

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Writes an entry if the lease is still held at the commit.
fn put(file: &Path, held: &Held, entry: &str) -> Result<(), Failure> {
    let mut conn = Connection::open(file)?;
    conn.busy_timeout(Duration::from_secs(5))?;
    let txn = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    held.check_in(&txn)?;
    txn.execute("INSERT INTO shelf (entry) VALUES (?1)", (entry,))?;
    txn.commit()?;
    Ok(())
}

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    let tenure = runtime.block_on(Tenure::open(&format!("sqlite://{FILE}")))?;
    let file = Path::new(FILE);
    Connection::open(file)?.execute("CREATE TABLE shelf (entry TEXT)", ())?;

    let (begun, has_begun) = channel();
    let (wake, over) = channel();
    let slow = thread::spawn(move || suspended(&begun, &over));
    has_begun.recv()?;

    let held =
        runtime.block_on(async { tenure.leases().hold("shelf").within(Duration::from_secs(20)).await })?;
    put(file, &held, "by host B")?;
    println!("host B writes with fence {}", held.fence());
    wake.send(())?;
    slow.join().map_err(|_| "host A panicked")??;

    let conn = Connection::open(file)?;
    let entry: String = conn.query_row("SELECT group_concat(entry) FROM shelf", (), |row| row.get(0))?;
    println!("on the shelf: {entry}");
    runtime.block_on(held.release())?;
    Ok(())
}

/// A host with a single thread, so that it can be suspended as a whole. A real one renews leases on a separate
/// thread and does not need `leases_on_runtime`.
fn suspended(begun: &Sender<()>, over: &Receiver<()>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let tenure = OpenOptions::new().leases_on_runtime().open(&format!("sqlite://{FILE}")).await?;
        let held = tenure.leases().hold("shelf").ttl(Duration::from_secs(1)).await?;
        held.guard()?;
        begun.send(())?;
        over.recv()?;
        match put(Path::new(FILE), &held, "by host A") {
            Ok(()) => println!("host A writes with fence {}", held.fence()),
            Err(refused) => println!("host A is rejected: {refused}; its fence was {}", held.fence()),
        }
        match held.release().await {
            Err(Error::LeaseLost(lost)) => println!("host A learns: {}", lost.loss),
            other => other?,
        }
        Ok(())
    })
}
