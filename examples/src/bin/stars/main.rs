//! How does a service answer at once when the work takes longer than a request?
//!
//! Two instances of a service that builds stars share one store, behind a load balancer. A client requests stars and
//! watches their jobs in three ways; meanwhile one instance is killed. Every star is made once, and every watched path
//! stays valid. The example uses its own SQLite file, or the store in its argument or `DATABASE_URL`.

mod balancer;
mod client;
mod service;

use std::io::{BufRead, BufReader, Error, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use client::{Client, Watch};
use service::Sky;
use tenure::{Chance, Clock, SystemClock, Tenure};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

type Anyway = Box<dyn std::error::Error + Send + Sync>;

const NAMES: [&str; 12] = [
    "Sol", "Vega", "Rigel", "Mira", "Alcor", "Deneb", "Altair", "Capella", "Procyon", "Sirius", "Polaris",
    "Castor",
];
/// The first instance is killed when it begins its third star, while it works on others.
const FATAL: usize = 3;
/// Maximum time until then.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<(), Anyway> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [url, sky] = args.as_slice() {
        return instance(url, sky).await;
    }
    let folder = tempfile::tempdir()?;
    let own = format!("sqlite://{}", folder.path().join("stars.db").display());
    let url = args.into_iter().next().or_else(|| std::env::var("DATABASE_URL").ok()).unwrap_or(own);
    // A database may hold stars of an earlier run, so each run has its own sky.
    let sky = format!("sky-{:016x}", Chance::from_system().bits());

    let (heard, hearing) = mpsc::unbounded_channel();
    let mut instances = [Instance::start(&url, &sky)?, Instance::start(&url, &sky)?];
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let client = Client::of(listener.local_addr()?, &sky);
    let addresses = instances.each_ref().map(|instance| instance.address);
    let balancing = tokio::spawn(balancer::balance(listener, addresses.to_vec()));
    println!("two instances of a service have one store, and a balancer before them");

    let ways = [Watch::Polling, Watch::Waiting, Watch::Events];
    let watching = NAMES.iter().zip(ways.iter().cycle());
    let watching: Vec<_> =
        watching.map(|(name, way)| tokio::spawn(client.clone().has_a_star_made(name, *way))).collect();
    instances[0].report_to(heard);
    let half_built = tokio::select! {
        biased;
        half_built = kill_in_the_middle(&mut instances[0], hearing) => half_built?,
        () = SystemClock.sleep(PATIENCE) => return Err("the first instance was given too little to do".into()),
    };
    println!("the first is killed (kill -9) while it builds {half_built}");

    let mut made = Vec::new();
    for watching in watching {
        made.push(watching.await??);
    }
    let mut again = Vec::new();
    for story in &made {
        let item = client.ask("GET", &format!("{}?redirect=false", story.item), &[], "").await?;
        if item.body.contains(r#""attempt":2,"#) {
            again.push(story.name.as_str());
        }
    }
    println!("the other one began these again: {}", again.join(" and "));
    for way in ways {
        let of_it = made.iter().filter(|story| story.way == way);
        let (stars, answers, cuts) = of_it.fold((0, 0, 0), |(stars, answers, cuts), story| {
            (stars + 1, answers + story.answers, cuts + story.cuts)
        });
        println!(
            "{stars} stars were watched by {way}: all came. {answers} answers, cut off and asked again {cuts} times"
        );
    }
    let all_good = made.iter().all(|story| story.was_always_good);
    println!("every place to watch answered 200 until its star was there, and then 303: {all_good}");

    for story in &made {
        let star = client.ask("GET", &story.star, &[], "").await?;
        if (star.status, &star.body) != (200, &story.name) {
            return Err(format!("{} is not there: {star:?}", story.name).into());
        }
    }
    let tenure = Tenure::open(&url).await?;
    println!(
        "stars asked for: {}; stars in the sky: {}",
        made.len(),
        Sky::of(&tenure, &sky)?.stars().await?.len()
    );
    tenure.close().await?;

    let [first, ..] = made.as_slice() else { return Err("nothing was made".into()) };
    println!(
        "{} when the watcher of {} removes it",
        client.ask("DELETE", &first.item, &[], "").await?.status,
        first.name
    );
    println!("{} from then on", client.ask("GET", &first.item, &[], "").await?.status);
    balancing.abort();
    Ok(())
}

/// Runs one instance of the service until its parent closes its input or is gone.
async fn instance(url: &str, sky: &str) -> Result<(), Anyway> {
    let tenure = Tenure::open(url).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let (closed, is_closed) = oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        closed.send(())
    });
    let sky = Sky::of(&tenure, sky)?;
    let serving = tokio::spawn(axum::serve(listener, service::app(&tenure, sky.clone())).into_future());
    service::worker(&tenure, sky).run(is_closed).await?;
    serving.abort();
    Ok(tenure.close().await?)
}

/// A running instance. It ends with its parent, whatever happens to it.
struct Instance {
    process: Child,
    address: SocketAddr,
    says: Option<BufReader<std::process::ChildStdout>>,
}

impl Instance {
    fn start(url: &str, sky: &str) -> Result<Self, Anyway> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut process = command.args([url, sky]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdout = process.stdout.take().ok_or_else(|| Error::other("it is piped"))?;
        let (mut says, mut address) = (BufReader::new(stdout), String::new());
        says.read_line(&mut address)?;
        Ok(Self { process, address: address.trim().parse()?, says: Some(says) })
    }

    /// Forwards its output, line by line, until it ends.
    fn report_to(&mut self, heard: mpsc::UnboundedSender<String>) {
        let says = self.says.take();
        std::thread::spawn(move || {
            for line in says.into_iter().flat_map(|says| says.lines().map_while(Result::ok)) {
                let _ = heard.send(line);
            }
        });
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Kills an instance while it works, and returns the stars that it was building.
async fn kill_in_the_middle(
    instance: &mut Instance,
    mut says: mpsc::UnboundedReceiver<String>,
) -> Result<String, Anyway> {
    let (mut at_work, mut begun) = (Vec::new(), 0);
    while let Some(line) = says.recv().await {
        match line.split_once(' ') {
            Some(("builds", name)) => {
                at_work.push(name.to_owned());
                begun += 1;
                if begun == FATAL {
                    instance.process.kill()?;
                }
            }
            Some(("made", name)) => at_work.retain(|other| other != name),
            _ => {}
        }
    }
    if begun < FATAL {
        return Err("the first instance ended by itself".into());
    }
    Ok(at_work.join(" and "))
}
