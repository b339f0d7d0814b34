//! What is the smallest program that runs a job?

use serde::{Deserialize, Serialize};
use tenure::{Failed, Job, Run, Tenure, Worker};

#[derive(Serialize, Deserialize)]
struct Hello {
    name: String,
}

impl Job for Hello {
    const KIND: &'static str = "hello";
    type Output = String;
}

async fn hello(_run: Run<()>, job: Hello) -> Result<String, Failed> {
    Ok(format!("Hello, {}!", job.name))
}

#[tokio::main]
async fn main() -> Result<(), tenure::Error> {
    let tenure = Tenure::open("memory:").await?; // or sqlite://jobs.db
    let id = tenure.enqueue(Hello { name: "world".into() }).await?.id();

    // The worker runs until this future ends. A service passes `tenure::shutdown_signal()`.
    let greeted = async { println!("{:?}", tenure.wait_for::<Hello>(id).await) };
    Worker::new(&tenure, ()).queue("default", 8).job(hello).run(greeted).await?;
    Ok(())
}
