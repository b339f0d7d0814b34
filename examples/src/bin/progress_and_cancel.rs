//! How do I watch a job, and cancel it while it runs?

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::{Error, Failed, Happening, Job, JobId, Run, Tenure, Worker};

#[derive(Serialize, Deserialize)]
struct Render {
    frames: u32,
}

impl Job for Render {
    const KIND: &'static str = "render";
    type Output = u32;
}

async fn render(run: Run<()>, job: Render) -> Result<u32, Failed> {
    for frame in 0..job.frames {
        run.progress(f64::from(frame) / f64::from(job.frames), &format!("frame {frame}"))?;
        // `sleep` ends early, with an error, when the attempt should stop.
        if let Err(stopped) = run.sleep(Duration::from_millis(20)).await {
            println!("handler: removing half a film, because {stopped}");
            run.log("removed what was rendered");
            return Err(stopped.into());
        }
    }
    Ok(job.frames)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let tenure = Tenure::open("memory:").await?;
    let id = tenure.enqueue(Render { frames: 100 }).await?.id();

    let worker = Worker::new(&tenure, ()).queue("default", 1).job(render);
    worker.run(async { drop(watch(&tenure, id).await) }).await?;

    let job = tenure.jobs().get(id).await?;
    println!("failure: {}", job.failure.map_or("none".into(), |failure| failure.to_string()));
    for line in tenure.jobs().logs(id, (0, 0), 10).await? {
        println!("log: {}", line.text);
    }
    Ok(())
}

/// Prints the events of the job, cancels it after some progress, and returns when it has ended.
async fn watch(tenure: &Tenure, id: JobId) -> Result<(), Error> {
    let mut events = tenure.events();
    while let Ok(event) = events.recv().await {
        match &event.what {
            Happening::Enqueued => println!("enqueued"),
            Happening::Started { attempt } => println!("attempt {attempt} started"),
            Happening::Progressed { fraction, message } => {
                println!("{:.0} %: {message}", fraction * 100.0);
                if *fraction > 0.1 {
                    tenure.jobs().cancel(id, Duration::from_secs(5), "the customer has left").await?;
                }
            }
            Happening::AskedToStop => println!("asked to stop"),
            Happening::Became { state, .. } => {
                println!("became {state}");
                return Ok(());
            }
            Happening::Deleted => return Ok(()),
        }
    }
    Ok(())
}
