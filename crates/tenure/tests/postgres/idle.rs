//! What a program costs its database that has nothing to do.

use std::time::Duration;

use tenure::{Clock, OpenOptions, Run, SystemClock, Worker};

use super::common::{Plain, server};
use super::{connect, number};

/// What was asked of the database so far.
const ASKED: &str =
    "SELECT (xact_commit + xact_rollback)::bigint FROM pg_stat_database WHERE datname = 'idle'";

/// The pace is the server's and the worker's own, so real time passes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_has_nothing_to_do_asks_once_a_second_however_many_queues_it_serves() {
    const SECONDS: u64 = 6;
    let client = connect().await;
    client.batch_execute("CREATE DATABASE idle").await.unwrap();
    let url = format!("postgres://postgres@127.0.0.1:{}/idle", server().port());
    let tenure = OpenOptions::new().untended().open(&url).await.unwrap();
    let handler = async |_run: Run<()>, job: Plain| Ok(job.number);
    let worker = (0..20).fold(Worker::new(&tenure, ()).job(handler), |worker, number| {
        worker.queue(&format!("queue-{number}"), 10)
    });
    let watch = async {
        // What comes with the start is over: a connection that has nothing more to do tells after ten seconds what it did.
        SystemClock.sleep(Duration::from_secs(12)).await;
        let mut told = Vec::new();
        // What was done before may be told late on a machine that does other things as well, but not again and again.
        for _ in 0..5 {
            let (before, begun) = (number(&client, ASKED).await, SystemClock.moment());
            SystemClock.sleep(Duration::from_secs(SECONDS)).await;
            let asked = number(&client, ASKED).await - before;
            let took = SystemClock.moment().since(begun).as_secs_f64();
            if asked as f64 <= took + 4.0 {
                return;
            }
            told.push(format!("{asked} transactions in {took:.1} seconds"));
        }
        panic!("{told:?}");
    };
    worker.run(watch).await.unwrap();
    tenure.close().await.unwrap();
}
