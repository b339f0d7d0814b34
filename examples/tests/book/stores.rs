//! The pages about SQLite, PostgreSQL and the dashboard.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use tenure::{Chance, Draft, OpenOptions, PostgresOptions, SqliteOptions, SqliteStore, SystemClock, Tenure};
use tower::ServiceExt;

use crate::Outcome;

async fn jobs(tenure: &Tenure) -> Result<u64, tenure::Error> {
    Ok(tenure.counts().await?.iter().map(|count| count.jobs).sum())
}

#[tokio::test]
async fn a_backup_of_a_file_holds_its_jobs() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (file, copy) = (folder.path().join("jobs.db"), folder.path().join("jobs.backup.db"));
    let other = Tenure::open(&format!("sqlite://{}", file.display())).await?;
    other.enqueue_draft(Draft::raw("hello", &serde_json::json!({}))).await?;

    let store = SqliteStore::open(&file, SqliteOptions::default(), Arc::new(SystemClock))?;
    let tenure = Tenure::on(store.clone(), Chance::from_system());
    store.backup(&copy).await?;
    assert_eq!(jobs(&tenure).await?, 1);

    let restored = Tenure::open(&format!("sqlite://{}", copy.display())).await?;
    assert_eq!((jobs(&tenure).await?, jobs(&restored).await?), (1, 1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_has_the_schema_that_its_options_name() -> Outcome {
    let server = own_postgres::Server::start_hasty()?;
    let url = &server.url();
    let mut options = PostgresOptions::default();
    options.schema = "mail_jobs".to_owned(); // default: tenure
    options.application_name = "mailer".to_owned(); // default: tenure
    options.readers = 4; // connections for reads; default: 2
    let tenure = OpenOptions::new().postgres(options).open(url).await?;
    assert!(tenure.store().about().place.contains("mail_jobs"));
    Ok(())
}

#[tokio::test]
async fn an_app_can_mount_the_dashboard() -> Outcome {
    let tenure = Tenure::open("memory:").await?;
    let app: Router = Router::new().merge(tenure_ui::at("/admin/jobs", &tenure));
    let answer = app.oneshot(Request::builder().uri("/admin/jobs/").body(Body::empty())?).await?;
    assert_eq!(answer.status(), StatusCode::OK);
    Ok(())
}
