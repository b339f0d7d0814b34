//! How do I reject a late write of a former job holder outside the store?
//!
//! A host is suspended in the middle of a job, longer than its lease: a sleeping laptop, a moved virtual
//! machine. Another host does the job. Then the first one wakes up and continues as if nothing had happened.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::{Error, Failed, Fence, Job, JobId, Run, Stopped, Tenure, Worker};

/// A resource outside the store. It keeps the largest fence of each job and rejects smaller ones. In a database
/// this is one column and one condition in the `UPDATE`.
#[derive(Default)]
struct Shelf {
    entries: Mutex<HashMap<JobId, (Fence, String)>>,
}

#[derive(Debug, PartialEq)]
enum Put {
    Done,
    TooLate,
}

impl Shelf {
    fn put(&self, job: JobId, fence: Fence, text: &str) -> Put {
        let mut entries = self.entries.lock().expect("no handler panics while it holds the lock");
        if entries.get(&job).is_some_and(|(largest, _)| *largest > fence) {
            return Put::TooLate;
        }
        entries.insert(job, (fence, text.to_owned()));
        Put::Done
    }
}

#[derive(Serialize, Deserialize)]
struct Write {}

impl Job for Write {
    const KIND: &'static str = "write";
    type Output = ();
}

struct App {
    name: &'static str,
    shelf: Arc<Shelf>,
    /// Suspends this host, if it is set.
    suspension: Option<Suspension>,
}

struct Suspension {
    begun: Sender<()>,
    over: Mutex<Receiver<()>>,
}

async fn write(run: Run<App>, _job: Write) -> Result<(), Failed> {
    let app = run.app();
    if let Some(Suspension { begun, over }) = &app.suspension {
        let over = over.lock().expect("no handler panics while it holds the lock");
        let _ = begun.send(());
        // This blocks every task of the host, including the renewal. Never do this in a handler.
        let _ = over.recv();
    }
    let put = app.shelf.put(run.id(), run.fence(), app.name);
    println!("host {} writes with fence {}: {put:?}", app.name, run.fence());
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let tenure = runtime.block_on(Tenure::open("memory:"))?;
    let shelf = Arc::new(Shelf::default());
    let id = runtime.block_on(async { tenure.enqueue(Write {}).await })?.id();

    let (begun, has_begun) = channel();
    let (wake, over) = channel();
    let suspension = Some(Suspension { begun, over: Mutex::new(over) });
    let slow = App { name: "A", shelf: Arc::clone(&shelf), suspension };
    let slow = host(tenure.clone(), id, slow);
    has_begun.recv()?;

    let quick = App { name: "B", shelf: Arc::clone(&shelf), suspension: None };
    let quick = host(tenure.clone(), id, quick);
    quick.join().map_err(|_| "host B panicked")??;

    wake.send(())?;
    let stopped = slow.join().map_err(|_| "host A panicked")??;
    println!("host A learns: {} result rejected", stopped.fenced);

    let entries = shelf.entries.lock().map_err(|_| "a host panicked")?;
    println!("on the shelf: {} entry, by host {}", entries.len(), entries[&id].1);
    Ok(())
}

/// A host with a single thread, so that it can be suspended as a whole. A real one renews leases on a separate
/// thread and does not need `keeper_on_runtime`.
fn host(tenure: Tenure, id: JobId, app: App) -> thread::JoinHandle<Result<Stopped, Error>> {
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Error::Settings(error.to_string()))?;
        let worker = Worker::new(&tenure, app).queue("default", 1).job(write);
        let worker = worker.lease(Duration::from_secs(1)).keeper_on_runtime();
        let ended = async { drop(tenure.wait(id).await) };
        runtime.block_on(worker.run(ended))
    })
}
