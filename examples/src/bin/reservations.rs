//! How do several instances divide a few named roles among themselves?
//!
//! Three processes share a roster of two roles in one SQLite file. Two of them take one role each; the third stands
//! by. Then one of them is killed, and the third takes over its role.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tenure::{Clock, Error, Failed, OpenOptions, Reservations, Roster, Run, SystemClock, Tenure};
use tokio::sync::oneshot;

/// A role that goes on until its instance stops, or until it is not this instance's any more.
async fn work(run: Run<u32>, _occurrence: String) -> Result<(), Failed> {
    loop {
        run.sleep(Duration::from_millis(50)).await?;
    }
}

fn roster(tenure: &Tenure, instance: u32) -> Roster<u32> {
    Roster::new(tenure, "post", instance)
        .role("mailer", work)
        .role("importer", work)
        .period(Duration::from_secs(2))
        .named(&format!("instance {instance}"))
}

async fn open() -> Result<Tenure, Error> {
    OpenOptions::new().app("shop").program("shop-service").open("sqlite://shop.db").await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(number) = std::env::args().nth(1) {
        return Ok(instance(number.parse()?).await?);
    }
    let tenure = open().await?;
    let reservations = tenure.reservations();
    match reservations.reserve("stock-taking", Duration::from_secs(60)).await? {
        Ok(held) => held.run(async |pass| println!("stock is taken under fence {}", pass.fence())).await?,
        Err(busy) => println!("not now: {busy}"),
    }

    // A role that shall run for ever runs for an occurrence that never changes.
    let ticked = roster(&tenure, 0).tick("always").await?;
    let again = roster(&tenure, 0).tick("always").await?;
    println!(
        "ticked twice, stored once: {}",
        ticked.iter().zip(&again).all(|(one, other)| one.id() == other.id())
    );

    let mut children = Children(vec![start(1)?, start(2)?, start(3)?]);
    let mailer = until(&reservations, "post/mailer", |_| true).await?;
    let importer = until(&reservations, "post/importer", |_| true).await?;
    println!("two of three have a role: {}", mailer != importer);

    let victim: usize = mailer.rsplit(' ').next().unwrap_or_default().parse()?;
    children.0[victim - 1].kill()?;
    println!("the instance that had the mailer is killed");
    let successor = until(&reservations, "post/mailer", |who| who != mailer).await?;
    println!("the one that stood by has it now: {}", successor != importer && successor != mailer);

    for holding in reservations.reservers("post/mailer").await? {
        let end = holding.end.map_or("has it", |end| end.as_str());
        let which = if holding.by.who == mailer { "the first" } else { "the next" };
        println!("{which} {end}, fence {}", holding.fence);
    }
    drop(children);
    Ok(())
}

/// Runs one instance until its parent closes its input or is gone.
async fn instance(number: u32) -> Result<(), Error> {
    let tenure = open().await?;
    let (closed, is_closed) = oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        closed.send(())
    });
    roster(&tenure, number).run(is_closed).await?;
    Ok(())
}

fn start(number: u32) -> std::io::Result<Child> {
    Command::new(std::env::current_exe()?).arg(number.to_string()).stdin(Stdio::piped()).spawn()
}

/// The child processes. They end with their parent, whatever happens to it.
struct Children(Vec<Child>);

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.0 {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

/// Waits until a holder that matches has a role, and returns its name.
async fn until(
    reservations: &Reservations,
    job: &str,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<String, Box<dyn std::error::Error>> {
    for _ in 0..1_500 {
        let held = reservations.holder(job).await?.and_then(|info| info.lease.held);
        if let Some(who) = held.map(|held| held.by.who).filter(|who| is_wanted(who)) {
            return Ok(who);
        }
        SystemClock.sleep(Duration::from_millis(20)).await;
    }
    Err(format!("no instance took {job}").into())
}
