//! Attacks on reserved kinds and queues by roles that may call some of the SQL functions.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use tenure_core::{JobId, Kind, NewJob, QueueName};
use tenure_store::{Jobs, Store};
use tokio_postgres::error::SqlState;

use crate::given::jobs::new_job;
use crate::given::{number, schema, server, user};
use crate::granted::{TRANSACTIONS, is_done, login, opened, refused};

/// IDs of lanes count up, so a role could guess the one that the next reserved kind gets.
#[tokio::test]
async fn a_granted_role_adds_no_job_to_a_lane_that_does_not_exist() {
    let s = schema();
    let store = opened(&s).await;
    store.enqueue(vec![new_job(1)]).await.unwrap();
    let admin = user(&server().url()).await;
    let shop = login(&admin, &s, "shop", &TRANSACTIONS).await;
    for lane in 0..9 {
        let job = format!(r#"{{"id":"{}","lane":0,"priority":0,"bytes":2}}"#, new_job(2).id);
        let asked =
            format!(r#"{{"plain":true,"lanes":[{{"id":{lane},"queue":null,"kind":null}}],"jobs":[{job}]}}"#);
        let code = refused(&shop, &format!("SELECT {s}.accept_all('{asked}', '{{}}')")).await;
        assert_eq!(code, SqlState::INVALID_PARAMETER_VALUE, "{lane}");
    }
    assert_eq!(number(&admin, &format!("SELECT count(*) FROM {s}.job")).await, 1);
    store.close().await.unwrap();
}

/// Any caller can compute the ID of a run of a schedule.
#[tokio::test]
async fn a_granted_role_cancels_no_job_that_no_client_enqueued() {
    let s = schema();
    let store = opened(&s).await;
    let admin = user(&server().url()).await;
    let shop = login(&admin, &s, "shop", &["cancel"]).await;
    let id = |text: &str| text.parse::<JobId>().unwrap();
    let bulk = NewJob { kind: Kind::new("tenure.bulk").unwrap(), ..new_job(1) };
    let program = NewJob { queue: QueueName::new("apps").unwrap(), ..new_job(2) };
    let scheduled = NewJob { id: id("0190f5c2-0000-8000-8000-000000000001"), ..new_job(3) };
    let ids = [bulk.id, program.id, scheduled.id];
    store.enqueue(vec![bulk, program, scheduled, new_job(4)]).await.unwrap();
    for id in ids {
        let code = refused(&shop, &format!("SELECT {s}.cancel('{id}')")).await;
        assert_eq!(code, SqlState::INVALID_PARAMETER_VALUE, "{id}");
        assert!(is_done(&admin, &format!("{s}.cancel('{id}')")).await, "the owner may");
    }
    assert!(is_done(&shop, &format!("{s}.cancel('{}')", new_job(4).id)).await);
    store.close().await.unwrap();
}
