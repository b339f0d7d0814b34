//! Attacks on reserved kinds and queues by roles that may call some of the SQL functions.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use tenure_store::{Jobs, Store};
use tokio_postgres::error::SqlState;

use crate::given::jobs::new_job;
use crate::given::{number, schema, server, user};
use crate::granted::{TRANSACTIONS, login, opened, refused};

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
