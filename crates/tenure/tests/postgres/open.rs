//! Opening by a URL.

use std::sync::Arc;
use std::time::Duration;

use tenure::{Clock, Error, ManualClock, OpenOptions, StateName, SystemClock, Tenure, Worker};

use super::common::{Plain, postgres_options, server};
use super::{connect, number};

#[tokio::test]
async fn a_program_that_names_a_database_by_its_url_works_there() {
    let mut options = postgres_options();
    options.application_name = "mailer".to_owned();
    let schema = options.schema.clone();
    let tenure = OpenOptions::new().postgres(options).open(&server().url()).await.unwrap();
    let client = connect().await;
    let seen = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mailer'";
    assert!(number(&client, seen).await > 2);
    let id = tenure.enqueue(Plain { number: 7 }).await.unwrap().id();
    let done = tenure.clone();
    let until = async move { assert_eq!(done.wait_for::<Plain>(id).await.unwrap(), 8) };
    let handler = async |_run: tenure::Run<()>, job: Plain| Ok(job.number + 1);
    Worker::new(&tenure, ()).queue("default", 1).job(handler).run(until).await.unwrap();
    assert_eq!(number(&client, &format!("SELECT count(*) FROM {schema}.job")).await, 1);
    let state = tenure.jobs().get(id).await.unwrap().state.name(tenure.now());
    assert_eq!(state, StateName::Succeeded);
    tenure.close().await.unwrap();
}

#[tokio::test]
async fn time_is_the_servers_unless_a_clock_is_given() {
    let of_server = OpenOptions::new().untended().postgres(postgres_options());
    let tenure = of_server.open(&server().url()).await.unwrap();
    let created = |tenure: Tenure| async move {
        let id = tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
        tenure.jobs().get(id).await.unwrap().created
    };
    let now = number(&connect().await, "SELECT (extract(epoch FROM now()) * 1000000)::bigint").await;
    assert!((created(tenure).await.as_micros() - now).abs() < 60_000_000);
    let clock = ManualClock::new();
    let given = OpenOptions::new().untended().postgres(postgres_options()).clock(Arc::new(clock.clone()));
    let tenure = given.open(&server().url()).await.unwrap();
    assert_eq!(created(tenure).await, clock.now());
}

/// The server's clock is corrected. A program notices that only when it queries the server.
#[tokio::test]
async fn a_job_that_a_server_ahead_accepted_is_due_soon_after_the_correction() {
    let options = postgres_options();
    let micros = |ahead: i64| {
        format!(
            "CREATE OR REPLACE FUNCTION {}.micros() RETURNS bigint LANGUAGE sql VOLATILE
             AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + {ahead} $$",
            options.schema
        )
    };
    let tenure = OpenOptions::new().postgres(options.clone()).open(&server().url()).await.unwrap();
    let client = connect().await;
    client.batch_execute(&micros(3_600_000_000)).await.unwrap();
    let id = tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
    client.batch_execute(&micros(0)).await.unwrap();
    let job = tenure.jobs().get(id).await.unwrap();
    assert_eq!(job.state.due(), Some(job.created));
    let end = SystemClock.moment().after(Duration::from_secs(30));
    while tenure.jobs().get(id).await.unwrap().state.due() == Some(job.created) {
        assert!(SystemClock.moment() < end, "it still waits for an hour");
        SystemClock.sleep(Duration::from_millis(200)).await;
    }
    let of_server = number(&client, "SELECT (extract(epoch FROM now()) * 1000000)::bigint").await;
    let due = tenure.jobs().get(id).await.unwrap().state.due().unwrap();
    assert!(due.as_micros() < of_server + 1_000_000);
    tenure.close().await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_opened_is_told_without_the_password() {
    let port = server().port();
    for (url, told) in [
        ("postgres://me:hunter2@127.0.0.1:1/jobs".to_owned(), "cannot connect"),
        (format!("postgres://nobody:hunter2@127.0.0.1:{port}/postgres"), "nobody"),
        (format!("postgres://postgres:hunter2@127.0.0.1:{port}/nothing"), "nothing"),
        ("postgres://me:hunter2@h/jobs?sslmode=hunter2".to_owned(), "sslmode"),
        ("postgres://me:hunt@er2@h/jobs".to_owned(), "%40"),
    ] {
        let error: Error = OpenOptions::new().open(&url).await.unwrap_err();
        let said = format!("{error} {error:?}");
        assert!(said.contains(told), "{said}");
        assert!(!said.contains("hunt") && !said.contains("er2"), "{said}");
    }
    let tenure = OpenOptions::new().untended().postgres(postgres_options());
    let url = format!("postgres://postgres:hunter2@127.0.0.1:{port}/postgres");
    let tenure = tenure.open(&url).await.unwrap();
    let shown = format!("{tenure:?} {:?} {}", tenure.store().about().place, tenure.store().about().place);
    assert!(!shown.contains("hunter2"), "{shown}");
}
