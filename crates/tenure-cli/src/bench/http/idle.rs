//! What those cost who wait and have nothing to do: half of them long polls for a job to claim, half of them streams of
//! what happens to a job.

use super::server::Server;
use super::wire::{Connection, request, wrong};
use crate::bench::figure::{Figure, rounded};
use crate::bench::ground::Ground;
use crate::bench::meter::{now, rest};
use crate::bench::sizes::Sizes;
use crate::exit::Failure;

/// How an event ends, and the piece of the answer that holds it.
const EVENT_ENDS: &[u8] = b"\n\n\r\n";

/// Who waits: a connection each.
pub(super) async fn measure(ground: &Ground, sizes: &Sizes) -> Result<Figure, Failure> {
    let server = Server::start(&ground.http_url()).await?;
    let alone = server.rss_mib().unwrap_or(f64::NAN);
    let mut one = Connection::open(server.address()).await?;
    let accepted = one.ask(&request("POST", "/v1/jobs", "", r#"{"kind":"k","queue":"nobody"}"#)).await?;
    let told: serde_json::Value =
        serde_json::from_slice(&accepted.body).map_err(|error| wrong(error.to_string()))?;
    let id = told["id"].as_str().ok_or_else(|| wrong("no job was accepted"))?;
    // Of a queue of their own: in a database that was measured before, other jobs wait.
    let claim = request("POST", "/v1/claim", "prefer: wait=55\r\n", r#"{"queues":["idle"]}"#);
    let follow = request("GET", &format!("/v1/jobs/{id}/events"), "", "");
    let (mut claims, mut streams) = (Vec::new(), Vec::new());
    for number in 0..sizes.http_idle {
        let (ask, these) = if number % 2 == 0 { (&claim, &mut claims) } else { (&follow, &mut streams) };
        let mut connection = Connection::open(server.address()).await?;
        connection.send(ask).await?;
        these.push(connection);
    }
    // Each of those who follow is told how the job stands: then it is known that it is heard.
    for stream in &mut streams {
        stream.read_until(EVENT_ENDS).await?;
    }
    // Until all of them are known to the server, it is not idle.
    rest(sizes.idle / 4).await;
    let (before, begun) = (server.cpu_us(), now());
    rest(sizes.idle).await;
    let seconds = now().duration_since(begun).as_secs_f64();
    let spent = server.cpu_us().zip(before).map(|(after, before)| after - before);
    let rss = server.rss_mib().unwrap_or(f64::NAN);
    // Whoever was answered has not been waiting, and neither has a stream that is at its end. That one is alive may be told.
    let claims = claims.iter_mut().filter_map(|claim| claim.is_waiting().then_some(())).count();
    let streams = streams.iter_mut().filter_map(|stream| stream.is_open().then_some(())).count();
    let figure = Figure::bare("http_idle", 0).with("waiting", claims + streams);
    Ok(figure
        .with("long_polls", claims)
        .with("streams", streams)
        .with("rss_mib", rounded(rss))
        .with("rss_mib_alone", rounded(alone))
        .with_some("cpu_percent", spent.map(|spent| rounded(spent / seconds / 1e4))))
}
