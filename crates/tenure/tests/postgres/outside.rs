//! What any program may do that speaks SQL.

use serde_json::json;
use tenure::{Accepted, Clock, Draft, JobId, Name, Origin, StateName, SystemClock};
use tenure_core::Verdict;
use tokio_postgres::Client;
use uuid::Uuid;

use super::common::Plain;
use super::common::try_reserve;
use super::{connect, number, rig};

async fn call(client: &Client, sql: &str) -> Uuid {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

/// The SQLSTATE of a statement that is refused.
async fn refused(client: &Client, sql: &str) -> String {
    client.query(sql, &[]).await.unwrap_err().code().unwrap().code().to_owned()
}

#[tokio::test]
async fn a_job_that_was_enqueued_by_a_statement_is_like_any_other() {
    let rig = rig();
    let (client, schema) = (connect().await, &rig.options.schema);
    client.batch_execute(&format!("SET search_path = {schema}")).await.unwrap();
    let mine = rig.tenure.enqueue(Plain { number: 1 }).unique_key("u").await.unwrap().id();
    let same = call(&client, r#"SELECT enqueue('plain', '{"number":2}', unique_key => 'u')"#).await;
    assert_eq!(same.to_string(), mine.to_string(), "their keys are the same");
    let first =
        r#"SELECT enqueue('plain', '{"number":3}', ordering_key => 'o', unique_key => 'v', tags => '{red}')"#;
    let first = call(&client, first).await;
    call(&client, r#"SELECT enqueue('plain', '{"number":4}', ordering_key => 'o')"#).await;
    let later = r#"SELECT enqueue('plain', '{"number":5}', run_at => now() + interval '100 years')"#;
    call(&client, later).await;
    let again = rig.tenure.enqueue(Plain { number: 6 }).unique_key("v").await.unwrap();
    assert!(matches!(again, Accepted::Existing(id) if id.to_string() == first.to_string()));
    rig.clock.advance(std::time::Duration::from_secs(40 * 365 * 24 * 3600));
    let numbers: Vec<u64> = try_reserve(&rig.tenure)
        .await
        .iter()
        .map(|job| serde_json::from_slice::<Plain>(job.job().args.as_bytes()).unwrap().number)
        .collect();
    assert!(numbers.contains(&3) && !numbers.contains(&4) && !numbers.contains(&5), "{numbers:?}");
    let running =
        "SELECT count(*) FROM jobs WHERE state = 'running' AND kind = 'plain' AND queue = 'default'";
    assert_eq!(number(&client, running).await, i64::try_from(numbers.len()).unwrap());
}

/// PostgreSQL decides by the types of the arguments which function a call means. None of these calls is ambiguous.
#[tokio::test]
async fn args_may_be_json_or_jsonb_or_a_literal_without_a_type() {
    let rig = rig();
    let (client, schema) = (connect().await, &rig.options.schema);
    client.batch_execute(&format!("SET search_path = {schema}")).await.unwrap();
    let args = async |sql: &str| {
        let id = call(&client, sql).await;
        let look = "SELECT args FROM jobs WHERE id = $1";
        client.query_one(look, &[&id]).await.unwrap().get::<_, String>(0)
    };
    for as_written in ["'{\"b\":1.10,  \"a\":2}'", "'{\"b\":1.10,  \"a\":2}'::json"] {
        for kind in ["'plain'", "'plain'::text", "kind => 'plain'"] {
            let named = if kind.contains('>') { "args => " } else { "" };
            let sql = format!("SELECT enqueue({kind}, {named}{as_written})");
            assert_eq!(args(&sql).await, r#"{"b":1.10,  "a":2}"#, "{sql}");
        }
    }
    for kind in ["'plain'", "'plain'::text", "'plain'::varchar"] {
        let sql = format!(r#"SELECT enqueue({kind}, '{{"b":1.10,  "a":2}}'::jsonb, queue => 'q')"#);
        assert_eq!(args(&sql).await, r#"{"a": 2, "b": 1.10}"#, "{sql}");
    }
    assert_eq!(args("SELECT enqueue('plain', json_build_object('number', 7))").await, r#"{"number" : 7}"#);
    assert_eq!(args("SELECT enqueue('plain', jsonb_build_object('number', 7))").await, r#"{"number": 7}"#);
    assert_eq!(args("SELECT enqueue('plain')").await, "{}");
    let unread = "SELECT enqueue($1::text, $2::text::jsonb)";
    client.query_one(unread, &[&"plain", &"{}"]).await.unwrap();
    let by_driver = client.prepare("SELECT enqueue($1, $2)").await.unwrap();
    assert_eq!(by_driver.params().iter().map(|kind| kind.name()).collect::<Vec<_>>(), ["text", "json"]);
}

#[tokio::test]
async fn a_statement_sets_the_limit_and_the_share_of_a_job() {
    let rig = rig();
    let (client, schema) = (connect().await, &rig.options.schema);
    let enqueue = |args: &str| format!("SELECT {schema}.enqueue('plain', '{{\"number\":1}}', {args})");
    let sql = enqueue("limit_key => 'smtp', limit_max_running => 2, share_key => 'ada'");
    let mut jobs = Vec::new();
    for _ in 0..3 {
        jobs.push(call(&client, &sql).await.to_string());
    }
    // The server's clock is ahead of this one.
    rig.clock.advance(CENTURY);
    assert_eq!(try_reserve(&rig.tenure).await.len(), 2);
    let job = rig.tenure.jobs().get(jobs[0].parse().unwrap()).await.unwrap();
    let limit = job.terms.limit.as_ref().unwrap();
    assert_eq!((limit.key.as_str(), limit.most), ("smtp", Some(2)));
    assert_eq!(job.terms.share.as_ref().unwrap().as_str(), "ada");
    for bad in [
        "limit_max_running => 2",
        "limit_key => 'smtp', limit_max_running => 0",
        "limit_key => ''",
        "limit_key => 'singleton/report'",
        "share_key => E'a\\nb'",
    ] {
        assert_eq!(refused(&client, &enqueue(bad)).await, "22023", "{bad}");
    }
}

#[tokio::test]
async fn a_statement_cancels_a_job_when_its_transaction_commits() {
    let rig = rig();
    let (mut client, schema) = (connect().await, &rig.options.schema);
    let id = rig.tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
    let cancel = format!("SELECT {schema}.cancel('{id}', 'nobody wants it')::int::bigint");
    let tx = client.transaction().await.unwrap();
    tx.query_one(&cancel, &[]).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(number(&client, &cancel).await, 1);
    assert!(try_reserve(&rig.tenure).await.is_empty());
    assert_eq!(rig.tenure.jobs().get(id).await.unwrap().state.name(rig.tenure.now()), StateName::Cancelled);
    assert_eq!(number(&client, &cancel).await, 0, "it has ended");
}

#[tokio::test]
async fn each_function_is_for_those_to_whom_it_was_granted() {
    let rig = rig();
    let (client, schema) = (connect().await, &rig.options.schema);
    let role = format!("shop_of_{schema}");
    let make = format!("CREATE ROLE {role}; GRANT USAGE ON SCHEMA {schema} TO {role};");
    client.batch_execute(&make).await.unwrap();
    let (enqueue, cancel) =
        (format!("SELECT {schema}.enqueue('plain')"), format!("SELECT {schema}.cancel('{}')", Uuid::nil()));
    let look = format!("SELECT FROM {schema}.jobs");
    client.batch_execute(&format!("SET ROLE {role}")).await.unwrap();
    for sql in [&enqueue, &cancel, &look, &format!("SELECT {schema}.accept('{{}}', '')")] {
        assert_eq!(refused(&client, sql).await, "42501");
    }
    let grant =
        format!("RESET ROLE; GRANT EXECUTE ON FUNCTION {schema}.enqueue_job TO {role}; SET ROLE {role}");
    client.batch_execute(&grant).await.unwrap();
    call(&client, &enqueue).await;
    call(&client, &format!("SELECT {schema}.enqueue('plain', '{{}}'::jsonb)")).await;
    assert_eq!(refused(&client, &cancel).await, "42501");
    assert_eq!(refused(&client, &look).await, "42501");
    assert_eq!(refused(&client, &format!("SELECT {schema}.enqueue('a kind')")).await, "22023");
    client.batch_execute("RESET ROLE").await.unwrap();
    assert_eq!(number(&client, &format!("SELECT count(*) FROM {schema}.jobs")).await, 2);
}

/// A role with all that the guide grants enqueues no job that acts for Tenure, and takes no ID that Tenure derives.
#[tokio::test]
async fn a_granted_role_enqueues_nothing_that_is_reserved() {
    let rig = rig();
    let (client, schema) = (connect().await, &rig.options.schema);
    // There is a lane of such a kind, so that the quickest way in is open as well.
    let own = rig.tenure.enqueue_draft(Draft::raw("tenure.bulk", &json!({})).queue("tenure.bulk")).await;
    rig.tenure.jobs().cancel(own.unwrap().id(), std::time::Duration::ZERO, "").await.unwrap();
    let lane = format!("SELECT id::bigint FROM {schema}.lane WHERE kind = 'tenure.bulk'");
    let lane = number(&client, &lane).await;
    let pay = rig.tenure.enqueue_draft(Draft::raw("pay", &json!({}))).await.unwrap().id();
    let jobs = format!("SELECT count(*) FROM {schema}.jobs");
    let before = number(&client, &jobs).await;
    let role = format!("shop_of_{schema}");
    let grants: String = ["enqueue_job", "cancel", "acquire_lease", "renew_lease", "release_lease"]
        .into_iter()
        .chain(["accept", "take_in", "accept_all", "complete_job_quietly", "check_job", "check_lease"])
        .map(|function| format!("GRANT EXECUTE ON FUNCTION {schema}.{function} TO {role};"))
        .collect();
    let make = format!("CREATE ROLE {role}; GRANT USAGE ON SCHEMA {schema} TO {role}; {grants}");
    client.batch_execute(&format!("{make} SET ROLE {role}; SET search_path = {schema}")).await.unwrap();
    let slot = JobId::of_slot(&Name::new("timer", "backup").unwrap(), rig.tenure.now(), Origin::Schedule);
    let delete = r#"{"act":"delete","filter":{"kinds":["pay"]}}"#;
    let with_id = |id: &str| format!("SELECT enqueue('pay', '{{}}', id => '{id}')");
    let mut tried = vec![
        format!("SELECT enqueue('tenure.bulk', '{delete}', 'tenure.bulk')"),
        format!("SELECT enqueue('tenure.bulk', '{delete}'::jsonb, 'tenure.bulk')"),
        format!("SELECT enqueue('tenure.bulk', '{delete}', unique_key => 'k', ordering_key => 'o')"),
        "SELECT enqueue('tenure.deliver', '{}', 'tenure.webhooks')".to_owned(),
        "SELECT enqueue('tenure.callback')".to_owned(),
        "SELECT enqueue('pay', queue => 'tenure.webhooks')".to_owned(),
        "SELECT enqueue('apps.report', queue => 'apps')".to_owned(),
        "SELECT enqueue('apps.report')".to_owned(),
        "SELECT enqueue('pay', queue => 'apps')".to_owned(),
        with_id(&slot.to_string()),
        with_id(&slot.to_string().to_uppercase()),
        with_id(&format!("{{{}}}", slot.to_string().replace('-', ""))),
        "SELECT acquire_lease('singleton/app/x', 'me')".to_owned(),
        "SELECT enqueue('pay', ordering_key => 'timer/backup')".to_owned(),
        "SELECT enqueue('pay', ordering_key => 'tenure.x')".to_owned(),
        "SELECT enqueue('pay', limit_key => 'tenure.webhook.x', limit_max_running => 1)".to_owned(),
        "SELECT enqueue('pay', limit_key => 'timer/backup', limit_max_running => 1000)".to_owned(),
    ];
    let asked = |id: &str, names: &str| format!(r#"{{"id":"{id}","bytes":2,"priority":0,{names}}}"#);
    let free = rig.tenure.new_id().to_string();
    for one in [
        asked(&free, r#""kind":"tenure.bulk","queue":"tenure.bulk""#),
        asked(&free, r#""kind":"pay","queue":"tenure.webhooks""#),
        asked(&free, r#""kind":"apps.report","queue":"apps""#),
        asked(&slot.to_string(), r#""kind":"pay","queue":"default""#),
    ] {
        tried.push(format!("SELECT accept('{one}', '{{}}')"));
        tried.push(format!("SELECT take_in('{one}', '{{}}')"));
        tried.push(format!(r#"SELECT accept_all('{{"jobs":[{one}]}}', '{{}}')"#));
    }
    let plain = |lane: &str, id: &str| {
        format!(
            r#"SELECT accept_all('{{"plain":true,"lanes":[{lane}],"jobs":[{}]}}', '{{}}')"#,
            asked(id, r#""lane":0"#)
        )
    };
    tried.push(plain(&format!(r#"{{"id":{lane},"queue":"tenure.bulk","kind":"tenure.bulk"}}"#), &free));
    for sql in &tried {
        assert_eq!(refused(&client, sql).await, "22023", "{sql}");
    }
    let message = client.query(&tried[0], &[]).await.unwrap_err();
    let message = message.as_db_error().unwrap().message().to_owned();
    let said = "the kind tenure.bulk is reserved: use a kind that does not begin with tenure. or apps.";
    assert_eq!(message, said);
    call(&client, &with_id(&free)).await;
    client.batch_execute("RESET ROLE").await.unwrap();
    assert_eq!(number(&client, &jobs).await, before + 1, "the last one alone");
    let lane = format!("SELECT id::bigint FROM {schema}.lane WHERE kind = 'pay' AND queue = 'default'");
    let lane = number(&client, &lane).await;
    let lane = format!(r#"{{"id":{lane},"queue":"default","kind":"pay"}}"#);
    let taken = format!("SET ROLE {role}; {}", plain(&lane, &slot.to_string()));
    let error = client.batch_execute(&taken).await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "22023");
    assert!(!rig.tenure.jobs().get(pay).await.unwrap().state.is_finished());
}

/// Whatever writes a row has its job, whether it knows of Tenure or not, and nobody has one whose row was taken back.
#[tokio::test]
async fn a_trigger_enqueues_with_the_row_that_it_is_about() {
    let rig = rig();
    let (mut client, schema) = (connect().await, &rig.options.schema);
    let make = format!(
        "CREATE TABLE {schema}.sale (number bigint);
        CREATE FUNCTION {schema}.on_sale() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN PERFORM {schema}.enqueue('plain', json_build_object('number', NEW.number)); RETURN NEW; END $$;
        CREATE TRIGGER on_sale AFTER INSERT ON {schema}.sale FOR EACH ROW EXECUTE FUNCTION {schema}.on_sale()"
    );
    client.batch_execute(&make).await.unwrap();
    let sell = format!("INSERT INTO {schema}.sale SELECT generate_series(1, 3)");
    let tx = client.transaction().await.unwrap();
    tx.batch_execute(&sell).await.unwrap();
    tx.rollback().await.unwrap();
    assert!(try_reserve(&rig.tenure).await.is_empty());
    client.batch_execute(&sell).await.unwrap();
    // The server's clock is ahead of this one.
    rig.clock.advance(CENTURY);
    let mut numbers: Vec<u64> = try_reserve(&rig.tenure)
        .await
        .iter()
        .map(|job| serde_json::from_slice::<Plain>(job.job().args.as_bytes()).unwrap().number)
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3]);
}

/// What somebody calls by name may get more parameters, with defaults, and loses none.
#[tokio::test]
async fn the_signatures_stay() {
    let rig = rig();
    let (client, schema) = (connect().await, &rig.options.schema);
    let look =
        "SELECT p.proname || '(' || pg_get_function_arguments(p.oid) || ') ' || pg_get_function_result(p.oid)
        FROM pg_proc p WHERE p.pronamespace = $1::text::regnamespace AND p.proname IN
            ('enqueue', 'cancel', 'acquire_lease', 'renew_lease', 'release_lease') ORDER BY 1";
    let signatures: Vec<String> =
        client.query(look, &[schema]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(signatures, SIGNATURES);
}

const SIGNATURES: [&str; 6] = [
    "acquire_lease(name text, holder text, ttl interval DEFAULT '00:00:30'::interval, id uuid DEFAULT NULL::uuid) bigint",
    "cancel(id uuid, reason text DEFAULT ''::text) boolean",
    "enqueue(kind character varying, args jsonb, queue text DEFAULT 'default'::text, priority integer DEFAULT 0, \
        run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, unique_key text DEFAULT NULL::text, \
        ordering_key text DEFAULT NULL::text, tags text[] DEFAULT '{}'::text[], id uuid DEFAULT NULL::uuid, \
        limit_key text DEFAULT NULL::text, limit_max_running integer DEFAULT NULL::integer, \
        share_key text DEFAULT NULL::text) uuid",
    "enqueue(kind text, args json DEFAULT '{}'::json, queue text DEFAULT 'default'::text, priority integer DEFAULT 0, \
        run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, unique_key text DEFAULT NULL::text, \
        ordering_key text DEFAULT NULL::text, tags text[] DEFAULT '{}'::text[], id uuid DEFAULT NULL::uuid, \
        limit_key text DEFAULT NULL::text, limit_max_running integer DEFAULT NULL::integer, \
        share_key text DEFAULT NULL::text) uuid",
    "release_lease(name text, fence bigint) boolean",
    "renew_lease(name text, fence bigint, ttl interval DEFAULT NULL::interval) boolean",
];

/// People see each state by its name, and the same as the library says.
#[tokio::test]
async fn the_view_says_of_each_job_what_the_library_says() {
    let rig = rig();
    let (client, schema) = (connect().await, &rig.options.schema);
    let tenure = &rig.tenure;
    let hour = std::time::Duration::from_secs(3600);
    let mut ids = vec![tenure.enqueue(Plain { number: 1 }).ordered("o").await.unwrap().id()];
    ids.push(tenure.enqueue(Plain { number: 2 }).ordered("o").await.unwrap().id());
    ids.push(tenure.enqueue(Plain { number: 3 }).await.unwrap().id());
    let reserved = try_reserve(tenure).await;
    assert_eq!(reserved.len(), 2);
    for (job, verdict) in reserved.into_iter().skip(1).zip([Verdict::Succeeded(None)]) {
        let settlement = job.settle(verdict, &tenure::RetryPolicy::default(), 0.5);
        tenure.store().settle(vec![settlement], None).await.unwrap();
    }
    // The view goes by the clock of the server, and this rig by one of its own: what is due in a hundred years is late for both.
    ids.push(tenure.enqueue(Plain { number: 4 }).after(hour * 24 * 365 * 100).await.unwrap().id());
    let cancelled = tenure.enqueue(Plain { number: 5 }).after(hour).await.unwrap().id();
    tenure.jobs().cancel(cancelled, std::time::Duration::ZERO, "nobody wants it").await.unwrap();
    ids.push(cancelled);
    let mut seen = Vec::new();
    for id in ids {
        let sql = format!("SELECT state FROM {schema}.jobs WHERE id = '{id}'");
        let told = tenure.jobs().get(id).await.unwrap().state.name(tenure.now());
        assert_eq!(client.query_one(&sql, &[]).await.unwrap().get::<_, String>(0), told.to_string(), "{id}");
        seen.push(told);
    }
    use StateName::{Blocked, Cancelled, Running, Scheduled, Succeeded};
    assert_eq!(seen, [Running, Blocked, Succeeded, Scheduled, Cancelled]);
}

/// Who commits very often can do without telling others each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_turns_hints_off_tells_nobody() {
    let rig = rig();
    let (client, schema) = (connect().await, &rig.options.schema);
    let other = rig.another();
    let mut due = other.store().due();
    let mut heard = async |hints: &str| {
        // What was said before has been heard once nothing comes for a while.
        while is_called(&mut due).await {}
        let sql = format!("SET tenure.hints = {hints}; SELECT {schema}.enqueue('plain')");
        client.batch_execute(&sql).await.unwrap();
        is_called(&mut due).await
    };
    assert!(!heard("off").await);
    assert!(heard("on").await);
    assert!(!heard("false").await);
    rig.clock.advance(CENTURY);
    assert_eq!(try_reserve(&other).await.len(), 3, "they are there all the same");
}

/// Whether a hint comes within a while.
async fn is_called(due: &mut tokio::sync::watch::Receiver<u64>) -> bool {
    tokio::select! {
        biased;
        changed = due.changed() => changed.is_ok(),
        () = SystemClock.sleep(QUIET) => false,
    }
}

const QUIET: std::time::Duration = std::time::Duration::from_secs(1);
const CENTURY: std::time::Duration = std::time::Duration::from_secs(100 * 365 * 24 * 3600);
