//! How does a service answer at once when the work takes longer than a request?

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tenure::{Failed, Job, Run, Tenure, Worker};
use tenure_http::{Asked, Problem};

/// The stars that there are.
type Sky = Arc<Mutex<BTreeMap<u64, String>>>;

#[derive(Serialize, Deserialize)]
struct BuildStar {
    name: String,
}

impl Job for BuildStar {
    const KIND: &'static str = "build_star";
    type Output = u64;
}

async fn create_star(
    State(tenure): State<Tenure>,
    asked: Asked,
    Json(star): Json<BuildStar>,
) -> Result<Response, Problem> {
    asked.enqueue(&tenure, star).await
}

fn app(tenure: &Tenure, sky: Sky) -> Router {
    Router::new()
        .route("/stars", post(create_star))
        .with_state(tenure.clone())
        .merge(tenure_http::routes(tenure)) // /queue/{id}: 200 while it runs, then 303
        .merge(Router::new().route("/stars/{number}", get(star)).with_state(sky))
}

async fn star(State(sky): State<Sky>, Path(number): Path<u64>) -> Result<String, StatusCode> {
    let sky = sky.lock().unwrap_or_else(PoisonError::into_inner);
    sky.get(&number).cloned().ok_or(StatusCode::NOT_FOUND)
}

async fn build_star(run: Run<Sky>, job: BuildStar) -> Result<u64, Failed> {
    run.progress(0.5, "heating the core")?;
    // The place in line is unique, and the same in every attempt: who builds it twice has built one star.
    let number = run.job().seq;
    run.app().lock().unwrap_or_else(PoisonError::into_inner).insert(number, job.name);
    run.place(&format!("/stars/{number}"))?;
    Ok(number)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let (tenure, sky) = (Tenure::open("memory:").await?, Sky::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let serving = tokio::spawn(axum::serve(listener, app(&tenure, Arc::clone(&sky))).into_future());

    let asking = async move { tokio::task::spawn_blocking(move || ask_for_a_star(address)).await };
    let (asked, done) = tokio::sync::oneshot::channel();
    let asking = async move { drop(asked.send(asking.await)) };
    Worker::new(&tenure, sky).queue("default", 2).job(build_star).run(asking).await?;
    serving.abort();
    done.await???;
    Ok(())
}

/// A client in any language does the same.
fn ask_for_a_star(address: SocketAddr) -> std::io::Result<()> {
    let accepted = ask(address, "POST", "/stars", r#"{"name": "Sol"}"#)?;
    let item = header(&accepted, "location");
    println!("{} and the place to watch: {}", status(&accepted), item.starts_with("/queue/"));

    let made = ask(address, "GET", item, "")?;
    let star = header(&made, "location");
    println!("{} and the place of the star: {star}", status(&made));

    let seen = ask(address, "GET", star, "")?;
    println!("{} and the star: {}", status(&seen), seen.lines().last().unwrap_or_default());

    println!("{} and nothing to watch any more", status(&ask(address, "DELETE", item, "")?));
    println!("{} from then on", status(&ask(address, "GET", item, "")?));
    Ok(())
}

fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    // Whoever watches would rather wait than look again and again.
    let prefer = if method == "GET" { "prefer: wait=20\r\n" } else { "" };
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\n{prefer}content-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

fn header<'a>(answer: &'a str, name: &str) -> &'a str {
    let named = answer.lines().filter_map(|line| line.split_once(": ")).find(|(found, _)| *found == name);
    named.map_or("", |(_, value)| value)
}
