//! What a program costs its database that has nothing to do.

use std::time::Duration;

use own_postgres::Server;
use tenure::{Clock, OpenOptions, Run, SystemClock, Worker};
use tokio_postgres::NoTls;

use super::common::Plain;
use super::number;

/// The pace is the program's own, so real time passes.
const SECONDS: u64 = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_has_nothing_to_do_asks_once_a_second_at_most_however_many_queues_it_serves() {
    let server = quiet_server();
    idle(&server, &server.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_pooler_it_does_not_ask_more_often() {
    let server = quiet_server();
    // What the pooler asks for itself is not the program's.
    let pooler = server.pooler(&["default_pool_size=4", "server_check_delay=3600"]).unwrap();
    idle(&server, &pooler.url()).await;
}

/// A server that asks itself nothing: its own tidying up is counted as anybody's.
fn quiet_server() -> Server {
    let server = Server::start_hasty().unwrap();
    server.set("autovacuum=off").unwrap();
    server
}

/// Has a worker wait for jobs of twenty queues, and fails if the program asks more than once a second for it.
async fn idle(server: &Server, url: &str) {
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let tenure = OpenOptions::new().open(url).await.unwrap();
    let handler = async |_run: Run<()>, job: Plain| Ok(job.number);
    let worker = (0..20).fold(Worker::new(&tenure, ()).job(handler), |worker, number| {
        worker.queue(&format!("queue-{number}"), 10)
    });
    // What was asked of the database so far.
    let asked =
        "SELECT (xact_commit + xact_rollback)::bigint FROM pg_stat_database WHERE datname = 'postgres'";
    let watch = async {
        // What comes with the start is over: a connection that has nothing more to do tells after ten seconds what it did.
        SystemClock.sleep(Duration::from_secs(12)).await;
        let mut told = Vec::new();
        // What was done before may be told late on a machine that does other things as well, but not again and again.
        for _ in 0..5 {
            let (before, begun) = (number(&client, asked).await, SystemClock.moment());
            SystemClock.sleep(Duration::from_secs(SECONDS)).await;
            let asked = number(&client, asked).await - before;
            let took = SystemClock.moment().since(begun).as_secs_f64();
            // Who looks here asks as well, before and after.
            if asked as f64 <= took + 2.0 {
                return;
            }
            told.push(format!("{asked} transactions in {took:.1} seconds"));
        }
        panic!("{told:?}");
    };
    worker.run(watch).await.unwrap();
    tenure.close().await.unwrap();
}
