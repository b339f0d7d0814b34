//! Attacks of roles that may enqueue, cancel and complete jobs with SQL: values of another form, and texts without an end.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tenure_core::{
    AfterJobs, Args, Backoff, Head, IfFailed, Keep, Key, LimitKey, Name, OnConflict, OrderingKey, Retention,
    RetryPolicy, StateName, Terms, Unique, UniqueKey, Window, limits,
};
use tenure_postgres::PostgresStore;
use tenure_store::{Jobs, Store, Views};
use tokio_postgres::Client;

use crate::given::jobs::{ask, new_job};
use crate::given::{host, number, options, schema, server, user};
use crate::granted::{HOST_1, TRANSACTIONS, login, refused};

/// A store, a connection of its owner, and one of a role with all that the guide grants.
async fn given(schema: &str) -> (Arc<PostgresStore>, Client, Client) {
    let store = PostgresStore::open(&server().url(), options(schema), None).await.unwrap();
    let admin = user(&server().url()).await;
    let functions = [&TRANSACTIONS[..], &["enqueue_job", "accept", "take_in", "cancel"]].concat();
    let shop = login(&admin, schema, "shop", &functions).await;
    (store, admin, shop)
}

/// The statement that enqueues job `number` with these terms, as the library does in a transaction.
fn enqueue(schema: &str, number: u64, terms: &str) -> String {
    let job = json!({ "id": new_job(number).id.to_string(), "kind": "echo", "queue": "default", "bytes": 2, "terms": terms });
    let jobs = json!({ "jobs": [job] }).to_string().replace('\'', "''");
    format!("SELECT {schema}.accept_all('{jobs}', '{{}}')")
}

/// The library reads a struct from an array as well as from an object, so the names of its members are not needed.
#[tokio::test]
async fn a_granted_role_passes_no_terms_that_the_library_reads_differently_or_not_at_all() {
    let s = schema();
    let (store, admin, shop) = given(&s).await;
    let long = "x".repeat(2_000);
    let span = json!({ "secs": 1, "nanos": 0 });
    let key: Vec<u8> = UniqueKey::RESERVED.into_iter().chain([0; 10]).collect();
    let unique = |key: Value| json!({ "unique": { "key": key, "window": "while_unfinished", "on_conflict": "replace" } });
    let keep = json!({ "retention": { "succeeded": "forever", "failed": "forever" } })["retention"].clone();
    let mut tried: Vec<String> = [
        json!({ "ordering": ["timer/nightly"] }),
        json!({ "limit": ["tenure.webhook.oncall", 1] }),
        json!({ "limit": ["smtp", 1] }),
        json!({ "after": [[new_job(1).id.to_string()]] }),
        json!([null, null, null, keep, [], {}, null, null, null, null, null, null, "ada"]),
        json!({ "owner": "ada" }),
        json!({ "slot": ["nightly", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"] }),
        json!({ "ordering": { "key": "timer/nightly" } }),
        json!({ "limit": { "key": "tenure.webhook.oncall", "most": 1 } }),
        json!({ "limit": { "key": "smtp", "most": 0 } }),
        json!({ "share": { "key": "a" } }),
        json!({ "share": "a\u{9f}b" }),
        json!({ "retry": 5 }),
        json!({ "retry": { "max_attempts": 1.5 } }),
        json!({ "retry": { "backoff": {} } }),
        json!({ "retry": { "backoff": { "fixed": span, "steps": [span] } } }),
        json!({ "retry": { "backoff": { "fixed": { "secs": 1, "nanos": 0, "pad": long } } } }),
        json!({ "retry": { "backoff": { "steps": vec![span.clone(); 101] } } }),
        json!({ "retention": { "succeeded": "forever" } }),
        json!({ "timeout": { "secs": 1, "nanos": 1_000_000_000_u64 } }),
        json!({ "timeout": { "secs": 4_000_000_000_u64, "nanos": 0 } }),
        json!({ "tags": [["a"]] }),
        json!({ "tags": ["a b"] }),
        json!({ "tags": vec!["a"; 33] }),
        json!({ "meta": { "a": long } }),
        json!({ "meta": { long.clone(): "a" } }),
        json!({ "meta": { "a": { "b": "c" } } }),
        json!({ "meta": (0..limits::META_ENTRIES).map(|n| (n.to_string(), "\u{1}".repeat(700))).collect::<Value>() }),
        json!({ "pad": long }),
        json!(null),
        json!("{}"),
        unique(json!(key)),
        unique(json!(vec![0; 15])),
        unique(json!([256, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
    ]
    .iter()
    .map(Value::to_string)
    .collect();
    tried.push("{}".to_owned() + &" ".repeat(2 << 20));
    let mut tried: Vec<String> = tried.iter().map(|terms| enqueue(&s, 1, terms)).collect();
    tried.push(format!("SELECT {s}.enqueue('echo', priority => -100, tags => ARRAY[['a']])"));
    for function in ["accept", "take_in"] {
        tried.push(format!("SELECT {s}.{function}('[\"echo\"]', '{{}}')"));
        tried.push(format!("SELECT {s}.{function}('{{\"id\":\"{}\"}}', '{{}}')", new_job(1).id));
    }
    for sql in &tried {
        assert_eq!(refused(&shop, sql).await.code(), "22023", "{sql:.200}");
    }
    assert_eq!(number(&admin, &format!("SELECT count(*) FROM {s}.job")).await, 0);
    // PostgreSQL keeps the last of two members with one name, and the library refuses both.
    shop.batch_execute(&enqueue(&s, 2, r#"{"attempts":1,"attempts":2}"#)).await.unwrap();
    assert_eq!(store.job(new_job(2).id).await.unwrap().unwrap().terms.attempts, Some(2));
    store.close().await.unwrap();
}

/// Terms that use each option, at its limit.
fn allowed() -> [Terms; 4] {
    let key = |fill: &str| Key::new("key", &fill.repeat(limits::KEY_BYTES / fill.len())).unwrap();
    let long = Duration::new(limits::LONGEST.as_secs() - 1, 999_999_999);
    let retry = |backoff| {
        let (max_attempts, max_deliveries) = (limits::MAX_ATTEMPTS, limits::MAX_DELIVERIES);
        Some(RetryPolicy { backoff, max_attempts, max_deliveries })
    };
    let unique = |byte, window, on_conflict| Some(Unique { key: UniqueKey([byte; 16]), window, on_conflict });
    // Few of the characters take six bytes as JSON, so that the whole has nearly as many bytes as are allowed.
    let text = |n: usize| format!("{n:0>4}{}{}", "\u{1}".repeat(203), "x".repeat(limits::META_BYTES - 207));
    [
        Terms {
            attempts: Some(1),
            retry: retry(Backoff::Exponential { first: Duration::from_nanos(1), ceiling: limits::LONGEST }),
            timeout: Some(long),
            retention: Retention { succeeded: Keep::For(long), failed: Keep::Forever },
            tags: (10..10 + limits::TAGS)
                .map(|n| Name::new("tag", &format!("{n}{}", "a".repeat(126))).unwrap())
                .collect(),
            meta: (0..limits::META_ENTRIES).map(|n| (text(n), text(n))).collect(),
            ..Terms::default()
        },
        Terms {
            retry: retry(Backoff::Steps(vec![long; limits::BACKOFF_STEPS])),
            unique: unique(255, Window::For(Duration::from_micros(90_000_001)), OnConflict::Reject),
            ordering: Some(OrderingKey { key: key("ü"), head: Head::StepAside }),
            limit: Some(LimitKey { key: key("l"), most: Some(limits::LIMIT_MOST) }),
            share: Some(key("\"")),
            ..Terms::default()
        },
        Terms {
            retry: retry(Backoff::Fixed(Duration::ZERO)),
            retention: Retention::always(Keep::Forever),
            meta: BTreeMap::from([(String::new(), String::new())]),
            unique: unique(9, Window::WhileUnfinished, OnConflict::Return),
            ordering: Some(OrderingKey { key: key("o"), head: Head::Block }),
            limit: Some(LimitKey { key: key("l"), most: None }),
            ..Terms::default()
        },
        Terms {
            after: Some(AfterJobs {
                jobs: vec![new_job(1).id; limits::AFTER_JOBS],
                if_failed: IfFailed::Run,
            }),
            unique: unique(0, Window::WhileUnfinished, OnConflict::Replace),
            ..Terms::default()
        },
    ]
}

#[tokio::test]
async fn a_granted_role_passes_all_terms_that_the_library_allows() {
    let s = schema();
    let (store, admin, shop) = given(&s).await;
    for (number, terms) in (1..).zip(allowed()) {
        terms.check().unwrap();
        let sql = enqueue(&s, number, &serde_json::to_string(&terms).unwrap());
        let answer: String = shop.query_one(&sql, &[]).await.unwrap().get(0);
        assert!(answer.starts_with("new"), "{answer}");
        assert_eq!(*store.job(new_job(number).id).await.unwrap().unwrap().terms, terms);
    }
    assert_eq!(number(&admin, &format!("SELECT count(*) FROM {s}.tag")).await, limits::TAGS as i64);
    store.close().await.unwrap();
}

/// The library refuses them, too: such a job would time out at once, or never.
#[tokio::test]
async fn a_span_that_the_library_refuses_is_refused_by_the_name_of_its_field() {
    let s = schema();
    let (store, _admin, shop) = given(&s).await;
    let (none, long) = (json!({ "secs": 0, "nanos": 0 }), limits::LONGEST.as_secs());
    let too_long = [json!({ "secs": long, "nanos": 1 }), json!({ "secs": long + 1, "nanos": 0 })];
    let unique = |span: &Value| json!({ "unique": { "key": vec![1; 16], "window": { "for": span }, "on_conflict": "reject" } });
    let timeout = |span: &Value| json!({ "timeout": span });
    let mut tried = vec![(timeout(&none), "terms.timeout"), (unique(&none), "terms.unique.window")];
    for span in &too_long {
        let keep = json!({ "succeeded": { "for": span }, "failed": "forever" });
        tried.extend([
            (timeout(span), "terms.timeout"),
            (unique(span), "terms.unique.window"),
            (json!({ "retention": keep }), "terms.retention"),
            (json!({ "retry": { "backoff": { "fixed": span } } }), "terms.retry.backoff.fixed"),
        ]);
    }
    for (terms, field) in tried {
        let error = shop.batch_execute(&enqueue(&s, 1, &terms.to_string())).await.unwrap_err();
        let told = error.as_db_error().unwrap();
        assert_eq!(told.code().code(), "22023", "{terms}");
        assert!(told.message().starts_with(&format!("{field} ")), "{terms}: {told}");
    }
    let longest = json!({ "secs": long, "nanos": 0 });
    shop.batch_execute(&enqueue(&s, 2, &timeout(&longest).to_string())).await.unwrap();
    assert_eq!(store.job(new_job(2).id).await.unwrap().unwrap().terms.timeout, Some(limits::LONGEST));
    store.close().await.unwrap();
}

#[tokio::test]
async fn args_in_the_form_of_encrypted_ones_are_refused() {
    let s = schema();
    let (store, _admin, shop) = given(&s).await;
    for form in ["", "::json"] {
        let sql = format!(r#"SELECT {s}.enqueue('x', '{{"$sealed":"VE5SRx"}}'{form})"#);
        assert_eq!(refused(&shop, &sql).await.code(), "22023");
    }
    shop.batch_execute(&format!(r#"SELECT {s}.enqueue('x', '{{"$sealed":"x"}}')"#)).await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_reason_without_an_end_is_cut_and_a_place_without_an_end_is_refused() {
    let s = schema();
    let (store, admin, shop) = given(&s).await;
    store.enqueue(vec![new_job(1), new_job(2)]).await.unwrap();
    let first = new_job(1).id;
    shop.batch_execute(&format!("SELECT {s}.cancel('{first}', repeat('ü', 10000000))")).await.unwrap();
    let length = number(&admin, &format!("SELECT max(octet_length(note))::bigint FROM {s}.arrival")).await;
    assert!(length < 3 * limits::REASON_BYTES as i64, "{length}");
    let job = store.reserve(ask(host(1), 9)).await.unwrap().jobs.remove(0);
    let cancelled = store.job(first).await.unwrap().unwrap();
    let message = cancelled.failure.as_ref().unwrap().message.as_str();
    assert!(
        cancelled.state.name(cancelled.created) == StateName::Cancelled && message.ends_with("(cut)"),
        "{message:.50}"
    );
    for place in ["repeat('x', 10000000)", "''", "E'/a\\nb'"] {
        let (job, fence) = (job.job(), job.fence().number());
        let complete = format!(
            "SELECT {s}.complete_job_quietly({}, '{}', {fence}, NULL, ''::bytea, {place}, NULL, '{HOST_1}')",
            job.seq, job.id
        );
        assert_eq!(refused(&shop, &complete).await.code(), "22023", "{place}");
    }
    store.close().await.unwrap();
}

/// The library refuses them, too: a parser of a handler or client may not read them.
#[tokio::test]
async fn args_that_are_nested_too_deep_are_refused() {
    let s = schema();
    let (store, admin, shop) = given(&s).await;
    let most = limits::JSON_DEPTH;
    let nested = |levels: usize, inner: &str| {
        format!("{}{inner}{}", "[{\"\\\"[\":".repeat(levels / 2), "}]".repeat(levels / 2))
    };
    let enqueue = |args: &str| format!("SELECT {s}.enqueue('echo', $args${args}$args$::json)");
    for args in [nested(most + 2, "1"), nested(most, "[]"), format!("[1,{}]", nested(most, "null"))] {
        assert!(Args::new(args.clone().into_bytes()).is_err());
        let error = refused(&shop, &enqueue(&args)).await;
        assert_eq!(error.code(), "22023", "{args}");
    }
    let brackets = format!("[{:?}, {}]", "[{".repeat(200), vec!["[ 1.5e-3, true ]"; 200].join(", "));
    for args in [nested(most, "1"), nested(most - 2, "[]"), brackets] {
        Args::new(args.clone().into_bytes()).unwrap();
        shop.batch_execute(&enqueue(&args)).await.unwrap();
    }
    assert_eq!(number(&admin, &format!("SELECT count(*) FROM {s}.job")).await, 3);
    store.close().await.unwrap();
}
