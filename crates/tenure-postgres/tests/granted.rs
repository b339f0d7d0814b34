//! Attacks of roles that may call some of the SQL functions.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use std::sync::Arc;

use tenure_core::{Job, Kind, NewJob, QueueName, State, Verdict};
use tenure_postgres::{PostgresStore, migration};
use tenure_store::{Jobs, Leases, ManualClock, Store, Views, Want};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::given::jobs::{ask, new_job, settle};
use crate::given::leases::{acquire, granted, name, renew, wish};
use crate::given::{host, number, open, options, schema, server, user};

/// All that the guide grants to a role that takes part, by function.
pub(crate) const TRANSACTIONS: [&str; 4] = ["accept_all", "complete_job_quietly", "check_job", "check_lease"];
pub(crate) const LEASES: [&str; 3] = ["acquire_lease", "renew_lease", "release_lease"];

/// The first host, as SQL names it.
pub(crate) const HOST_1: &str = "00000000-0000-0000-0000-000000000001";

/// A connection of a new role that may call these functions.
pub(crate) async fn login(admin: &Client, schema: &str, who: &str, functions: &[&str]) -> Client {
    let role = format!("{who}_of_{schema}");
    let grants = functions.iter().map(|one| format!("GRANT EXECUTE ON FUNCTION {schema}.{one} TO {role};"));
    let grants = grants.collect::<String>();
    let make = format!("CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role}; {grants}");
    admin.batch_execute(&make).await.unwrap();
    user(&server().url().replace("postgres@", &format!("{role}@"))).await
}

pub(crate) async fn is_done(client: &Client, call: &str) -> bool {
    client.query_one(&format!("SELECT {call}"), &[]).await.unwrap().get(0)
}

async fn fence(client: &Client, call: &str) -> Option<i64> {
    client.query_one(&format!("SELECT {call}"), &[]).await.unwrap().get(0)
}

pub(crate) async fn refused(client: &Client, sql: &str) -> SqlState {
    client.batch_execute(sql).await.unwrap_err().code().unwrap().clone()
}

async fn texts(client: &Client, sql: &str) -> Vec<String> {
    client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

/// PostgreSQL looks for tables in `pg_temp` first, unless the path names it at its end.
#[tokio::test]
async fn temporary_tables_come_last_for_every_function_and_few_functions_are_public() {
    let s = schema();
    let store = open(&s, &ManualClock::new()).await;
    let client = user(&server().url()).await;
    let functions =
        format!("SELECT p.proname::text FROM pg_proc p WHERE p.pronamespace = '{s}'::regnamespace");
    let path =
        "EXISTS (SELECT FROM unnest(p.proconfig) c WHERE c LIKE 'search_path=%' AND c LIKE '%, pg_temp')";
    let any = "EXISTS (SELECT FROM unnest(p.proconfig) c WHERE c LIKE 'search_path=%')";
    let odd = format!("{functions} AND NOT {path} AND (p.prosecdef OR {any}) ORDER BY 1");
    assert_eq!(texts(&client, &odd).await, <[String; 0]>::default());
    let names =
        format!("{functions} AND replace(p.prosrc, 'current_schema()::text', '') LIKE '%current_schema()%'");
    assert_eq!(
        texts(&client, &names).await,
        <[String; 0]>::default(),
        "a function that takes a name matches better"
    );
    let safe = format!("SELECT count(*) FROM ({functions} AND {path}) f");
    assert!(number(&client, &safe).await > 15);
    let public = format!("{functions} AND has_function_privilege('public', p.oid, 'EXECUTE') ORDER BY 1");
    let expected = ["are_free", "bit_of", "each_seq", "enqueue", "enqueue", "has_bit", "micros", "surely"];
    assert_eq!(texts(&client, &public).await, expected, "each runs with the rights of its caller");
    let definers = public.replace("ORDER", "AND p.prosecdef ORDER");
    assert_eq!(texts(&client, &definers).await, <[String; 0]>::default());
    store.close().await.unwrap();
}

/// The role puts its own tables in the way of `job` and `granted`, with a trigger on the second.
#[tokio::test]
async fn a_role_that_may_complete_jobs_runs_no_code_as_the_owner() {
    let s = schema();
    let store = open(&s, &ManualClock::new()).await;
    store.enqueue(vec![new_job(1)]).await.unwrap();
    let reserved = store.reserve(ask(host(1), 1)).await.unwrap().jobs.remove(0);
    let admin = user(&server().url()).await;
    let shop = login(&admin, &s, "shop", &[&TRANSACTIONS[..], &["complete_job"]].concat()).await;
    let id = reserved.job().id;
    let (seq, fence) = (reserved.job().seq, reserved.fence().number());
    let trap = format!(
        "CREATE TEMP TABLE seen (who text);
         CREATE TEMP TABLE job (seq bigint, lane int, id uuid);
         INSERT INTO job VALUES ({seq}, 1, '{id}');
         CREATE TEMP TABLE granted (fence bigint, block bigint, started bigint, until bigint, lane int, holder uuid,
             seqs bit(256));
         INSERT INTO granted VALUES ({fence}, {seq} >> 8, 1, 1, 1, '{id}', ~0::bit(256));
         CREATE TEMP TABLE standing (seq bigint, fence bigint, due bigint, started bigint, until bigint, lapse bigint,
             ended bigint, expires bigint, lane int, attempt int, delivery int, why smallint, state smallint,
             holder uuid, failure text, cancel text, progress text, place text, output bytea, awaited boolean);
         GRANT ALL ON seen, job, granted, standing TO PUBLIC;
         CREATE FUNCTION pg_temp.trap() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN INSERT INTO pg_temp.seen VALUES (current_user); RETURN NEW; END $$;
         GRANT EXECUTE ON FUNCTION pg_temp.trap() TO PUBLIC;
         CREATE TRIGGER trap BEFORE UPDATE ON pg_temp.granted FOR EACH ROW EXECUTE FUNCTION pg_temp.trap();
         CREATE TRIGGER trap BEFORE INSERT OR UPDATE ON pg_temp.standing
             FOR EACH ROW EXECUTE FUNCTION pg_temp.trap();"
    );
    shop.batch_execute(&trap).await.unwrap();
    let complete = |function: &str, fence| {
        format!(
            "SELECT {s}.{function}({seq}, '{id}', {fence}, NULL::bigint, ''::bytea, NULL::text, NULL::bigint, '{HOST_1}')"
        )
    };
    for function in ["complete_job", "complete_job_quietly"] {
        let lost = refused(&shop, &complete(function, fence + 1)).await;
        assert_eq!(lost.code(), "TE001", "it does not run under this fence");
    }
    shop.batch_execute(&complete("complete_job_quietly", fence)).await.unwrap();
    assert_eq!(texts(&shop, "SELECT who FROM pg_temp.seen").await, <[String; 0]>::default());
    let settled = store.settle(vec![settle(reserved, Verdict::Succeeded(None))], None).await.unwrap().settled;
    assert_ne!(settled, [tenure_store::Settled::Gone], "the job of the store has ended");
    for call in [format!("{s}.stand_alone('{id}')"), format!("{s}.lane_of('a', 'b')")] {
        assert_eq!(refused(&shop, &format!("SELECT {call}")).await, SqlState::INSUFFICIENT_PRIVILEGE);
    }
    let stranger = login(&admin, &s, "stranger", &[]).await;
    for call in ["stand_alone(NULL)", "check_lease(NULL, NULL, 1)", "check_job(1, NULL, 1)"] {
        let code = refused(&stranger, &format!("SELECT {s}.{call}")).await;
        assert_eq!(code, SqlState::INSUFFICIENT_PRIVILEGE, "{call}");
    }
    store.close().await.unwrap();
}

/// Such a row would stop every worker, or be a job that no program can read.
#[tokio::test]
async fn a_granted_role_plants_no_row_that_stops_the_workers() {
    let s = schema();
    let store = PostgresStore::open(&server().url(), options(&s), None).await.unwrap();
    let admin = user(&server().url()).await;
    let functions = [&TRANSACTIONS[..], &["enqueue_job", "accept", "take_in"]].concat();
    let shop = login(&admin, &s, "shop", &functions).await;
    let one = |about: &str| {
        let id = "0190f5c2-0000-7000-8000-000000000001";
        format!(r#"{{"id":"{id}","kind":"pay","queue":"default","bytes":2,"priority":0{about}}}"#)
    };
    let mut tried: Vec<String> =
        ["20000-01-01", "9999-01-01", "1969-12-31 23:59:59Z", "infinity", "-infinity"]
            .iter()
            .map(|at| format!("SELECT {s}.enqueue('odd', queue => 'q1', run_at => '{at}')"))
            .collect();
    for about in [
        r#","at":253370764800000000"#,
        r#","at":-1"#,
        r#","wait":-9000000000000000"#,
        r#","wait":253370764800000000"#,
        r#","terms":"{\"unique\":{\"key\":[0],\"window\":\"while_unfinished\",\"on_conflict\":\"return\"}}""#,
        r#","priority":101"#,
        r#","kind":"a b""#,
        r#","queue":"a\tb""#,
        r#","terms":"{\"owner\":\"ada\"}""#,
        r#","terms":"{\"slot\":{\"timer\":\"backup\"}}""#,
        r#","bytes":1"#,
    ] {
        tried.push(format!(r#"SELECT {s}.accept_all('{{"jobs":[{}]}}', '{{}}')"#, one(about)));
        if !about.contains("bytes") {
            tried.push(format!("SELECT {s}.accept('{}', '{{}}')", one(about)));
            tried.push(format!("SELECT {s}.take_in('{}', '{{}}')", one(about)));
        }
    }
    for at in [-1_i64, 253_370_764_800_000_000] {
        tried.push(format!(r#"SELECT {s}.accept_all('{{"jobs":[{}]}}', '{{}}', {at})"#, one("")));
    }
    admin.batch_execute(&format!("SELECT {s}.enqueue('pay')")).await.unwrap();
    let lane = number(&admin, &format!("SELECT max(id)::bigint FROM {s}.lane")).await;
    let plain = |about: &str, args: &str, at: &str| {
        let lanes = format!(r#"[{{"id":{lane},"queue":"default","kind":"pay"}}]"#);
        let job = one(&format!(r#","lane":0{about}"#));
        format!(r#"SELECT {s}.accept_all('{{"plain":true,"lanes":{lanes},"jobs":[{job}]}}', '{args}'{at})"#)
    };
    tried.push(plain(r#","priority":101"#, "{}", ""));
    tried.push(plain("", "{\"", ""));
    tried.push(plain("", "\\xff00", ""));
    tried.push(plain("", "{}", ", -1"));
    let before = number(&admin, &format!("SELECT count(*) FROM {s}.job")).await;
    for sql in &tried {
        let code = refused(&shop, sql).await;
        assert!(["22023", "22P02", "22021"].contains(&code.code()), "{sql}: {code:?}");
    }
    assert_eq!(number(&admin, &format!("SELECT count(*) FROM {s}.job")).await, before);
    assert_eq!(number(&admin, &format!("SELECT max(id)::bigint FROM {s}.lane")).await, lane);
    for sql in [
        format!("SELECT {s}.enqueue('pay', queue => 'other', run_at => '9998-12-31 23:59:59.999999Z')"),
        format!("SELECT {s}.enqueue('pay', queue => 'other', run_at => '1970-01-01 00:00:00Z')"),
        plain("", "{}", ""),
    ] {
        shop.batch_execute(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let taken = store.reserve(ask(host(1), 9)).await.unwrap();
    assert_eq!(taken.jobs.len(), 2);
    let job = taken.jobs[0].job();
    for (at, kept_for) in
        [("-1", "NULL::bigint"), ("NULL", "253370764800000000"), ("NULL", "-9000000000000000")]
    {
        let sql = format!(
            "SELECT {s}.complete_job_quietly({}, '{}', {}, {kept_for}, ''::bytea, NULL::text, {at}, '{HOST_1}')",
            job.seq,
            job.id,
            job.fence.number()
        );
        assert_eq!(refused(&shop, &sql).await.code(), "22023", "{sql}");
    }
    let torn = format!(
        "SELECT {s}.complete_job_quietly({}, '{}', {}, NULL, '{{'::bytea, NULL, NULL, '{HOST_1}')",
        job.seq,
        job.id,
        job.fence.number()
    );
    assert_eq!(refused(&shop, &torn).await.code(), "22P02");
    store.close().await.unwrap();
}

/// A caller may know the job ID, and can guess the other two numbers, which count up from one.
#[tokio::test]
async fn a_role_ends_no_job_whose_holder_it_does_not_know() {
    let s = schema();
    let store = opened(&s).await;
    let reserved_kind = NewJob {
        kind: Kind::new("tenure.deliver").unwrap(),
        queue: QueueName::new("tenure.webhooks").unwrap(),
        ..new_job(3)
    };
    store.enqueue(vec![new_job(1), new_job(2), reserved_kind]).await.unwrap();
    let mut ask = ask(host(1), 3);
    ask.wants.push(Want { queue: QueueName::new("tenure.webhooks").unwrap(), ..ask.wants[0].clone() });
    let jobs = store.reserve(ask).await.unwrap().jobs;
    assert_eq!(jobs.len(), 3);
    let admin = user(&server().url()).await;
    let functions = [&TRANSACTIONS[..], &["complete_job"]].concat();
    let shop = login(&admin, &s, "shop", &functions).await;
    let complete = |function: &str, job: &Job, fence: u64, holder: &str| {
        let (seq, id) = (job.seq, job.id);
        format!(
            "SELECT {s}.{function}({seq}, '{id}', {fence}, NULL, '7'::bytea, NULL, job_holder => {holder})"
        )
    };
    let last = jobs.iter().map(|job| job.fence().number()).max().unwrap();
    for reserved in &jobs {
        let job = reserved.job();
        for function in ["complete_job", "complete_job_quietly"] {
            for fence in 1..=last {
                let code = refused(&shop, &complete(function, job, fence, "NULL")).await;
                assert_eq!(code, SqlState::INVALID_PARAMETER_VALUE);
                let guessed = "'00000000-0000-0000-0000-000000000002'";
                let code = refused(&shop, &complete(function, job, fence, guessed)).await;
                assert!(["TE001", "22023"].contains(&code.code()), "{code:?}");
            }
        }
        assert!(matches!(store.job(job.id).await.unwrap().unwrap().state, State::Running { .. }));
    }
    let holder = format!("'{HOST_1}'");
    for reserved in &jobs {
        let (job, fence) = (reserved.job(), reserved.fence().number());
        let sql = complete("complete_job_quietly", job, fence, &holder);
        if job.kind.as_str() == "tenure.deliver" {
            for client in [&shop, &admin] {
                assert_eq!(refused(client, &sql).await, SqlState::INVALID_PARAMETER_VALUE);
            }
        } else if job.id == new_job(1).id {
            shop.batch_execute(&sql).await.unwrap();
        } else {
            // The owner could write to the tables anyway.
            admin.batch_execute(&complete("complete_job", job, fence, "NULL")).await.unwrap();
        }
    }
    store.close().await.unwrap();
}

/// The upgrade extends grants on the functions without a holder to those with one.
#[tokio::test]
async fn roles_that_could_complete_jobs_still_can_after_the_upgrade() {
    let s = schema();
    let admin = user(&server().url()).await;
    let sql = migration(&server().url(), options(&s)).await.unwrap().sql;
    let before = sql.split("\n-- Step 0021_proved").next().unwrap();
    admin.batch_execute(&format!("{before} COMMIT")).await.unwrap();
    let shop = login(&admin, &s, "shop", &TRANSACTIONS).await;
    let store = opened(&s).await;
    store.enqueue(vec![new_job(1)]).await.unwrap();
    let reserved = store.reserve(ask(host(1), 1)).await.unwrap().jobs.remove(0);
    let (job, fence) = (reserved.job(), reserved.fence().number());
    let arguments = format!("{}, '{}', {fence}, NULL, NULL, NULL, NULL, '{HOST_1}'", job.seq, job.id);
    let code = refused(&shop, &format!("SELECT {s}.complete_job({arguments})")).await;
    assert_eq!(code, SqlState::INSUFFICIENT_PRIVILEGE);
    shop.batch_execute(&format!("SELECT {s}.complete_job_quietly({arguments})")).await.unwrap();
    store.close().await.unwrap();
}

/// The caller says whether a job has keys. It is not believed.
#[tokio::test]
async fn a_granted_role_does_not_pass_by_a_limit() {
    let s = schema();
    let store = PostgresStore::open(&server().url(), options(&s), None).await.unwrap();
    let admin = user(&server().url()).await;
    let shop = login(&admin, &s, "shop", &TRANSACTIONS).await;
    for id in 1..=3 {
        let terms = r#"{\"limit\":{\"key\":\"smtp\",\"most\":1}}"#;
        let job = format!(
            r#"{{"id":"0190f5c2-0000-7000-8000-00000000000{id}","kind":"mail","bytes":2,"gated":false,"terms":"{terms}"}}"#
        );
        shop.batch_execute(&format!(r#"SELECT {s}.accept_all('{{"jobs":[{job}]}}', '{{}}')"#)).await.unwrap();
    }
    assert_eq!(store.reserve(ask(host(1), 9)).await.unwrap().jobs.len(), 1);
    store.close().await.unwrap();
}

pub(crate) async fn opened(schema: &str) -> Arc<PostgresStore> {
    PostgresStore::open(&server().url(), options(schema), None).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guessed_fence_neither_renews_nor_releases_the_lease_of_another_holder() {
    let s = schema();
    let store = opened(&s).await;
    let admin = user(&server().url()).await;
    let (shop, mallory) =
        (login(&admin, &s, "shop", &LEASES).await, login(&admin, &s, "mallory", &LEASES).await);
    let mut held = Vec::new();
    for lease in ["billing", "singleton/app/report", "writer/app/w", "reservation/app/r"] {
        held.push((lease, granted(wish(&*store, acquire(lease, 1)).await)));
    }
    let id = "00000000-0000-0000-0000-00000000000a";
    let of_shop = fence(&shop, &format!("{s}.acquire_lease('shop', 'shop', id => '{id}')")).await.unwrap();
    for role in [&shop, &mallory] {
        for guess in 1..=held.len() as i64 + 1 {
            for call in [
                format!("release_lease('billing', {guess})"),
                format!("renew_lease('billing', {guess}, '24 h')"),
            ] {
                assert!(!is_done(role, &format!("{s}.{call}")).await, "{call}");
            }
            for (lease, _) in &held[1..] {
                for call in
                    [format!("release_lease('{lease}', {guess})"), format!("renew_lease('{lease}', {guess})")]
                {
                    let code = refused(role, &format!("SELECT {s}.{call}")).await;
                    assert_eq!(code, SqlState::INVALID_PARAMETER_VALUE, "{call}");
                }
            }
        }
    }
    let theirs = "id => '00000000-0000-0000-0000-000000000001'";
    let taken = fence(&mallory, &format!("{s}.acquire_lease('billing', 'host-1', {theirs})")).await;
    assert_eq!(taken, None, "the ID alone is no proof");
    let again = format!("{s}.acquire_lease('shop', 'shop', '24 h', '{id}')");
    assert_eq!(fence(&mallory, &again).await, None, "the ID alone is no proof");
    for call in [format!("release_lease('shop', {of_shop})"), format!("renew_lease('shop', {of_shop})")] {
        assert!(!is_done(&mallory, &format!("{s}.{call}")).await, "{call}");
    }
    for (lease, fence) in &held {
        wish(&*store, renew(lease, 1, *fence)).await;
        let info = store.lease_info(&name(lease)).await.unwrap().unwrap();
        assert!(info.lease.held.is_some() && info.lease.fence == *fence, "{lease}");
    }
    assert_eq!(fence(&shop, &again).await, Some(of_shop), "the same request");
    assert!(is_done(&shop, &format!("{s}.renew_lease('shop', {of_shop})")).await);
    assert!(is_done(&shop, &format!("{s}.release_lease('shop', {of_shop})")).await);
    // The library takes over: the role of the last ownership counts for nothing.
    let next = granted(wish(&*store, acquire("shop", 1)).await).number();
    for guess in [of_shop as u64, next] {
        assert!(!is_done(&shop, &format!("{s}.release_lease('shop', {guess})")).await);
    }
    store.close().await.unwrap();
}

/// As with a login that serves several roles: each request sets its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_belongs_to_the_role_that_was_set_and_to_its_members() {
    let s = schema();
    let store = opened(&s).await;
    let admin = user(&server().url()).await;
    let web = login(&admin, &s, "web", &[]).await;
    for role in ["anon", "staff"] {
        login(&admin, &s, role, &LEASES).await;
        admin.batch_execute(&format!("GRANT {role}_of_{s} TO web_of_{s}")).await.unwrap();
    }
    let set = |role: &str| format!("SET ROLE {role}_of_{s}");
    web.batch_execute(&set("staff")).await.unwrap();
    let held = fence(&web, &format!("{s}.acquire_lease('desk', 'staff')")).await.unwrap();
    web.batch_execute(&set("anon")).await.unwrap();
    assert!(!is_done(&web, &format!("{s}.release_lease('desk', {held})")).await);
    web.batch_execute("RESET ROLE").await.unwrap();
    assert!(is_done(&web, &format!("{s}.renew_lease('desk', {held})")).await, "it may set that role");
    web.batch_execute(&set("staff")).await.unwrap();
    assert!(is_done(&web, &format!("{s}.release_lease('desk', {held})")).await);
    store.close().await.unwrap();
}

/// An open transaction of a role locks no lease that it does not hold: its holder could not renew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_transaction_keeps_no_other_holder_from_renewing() {
    let s = schema();
    let store = opened(&s).await;
    let admin = user(&server().url()).await;
    let mallory = login(&admin, &s, "mallory", &LEASES).await;
    let held = granted(wish(&*store, acquire("billing", 1)).await);
    let calls = format!(
        "BEGIN; SELECT {s}.renew_lease('billing', {0}); SELECT {s}.release_lease('billing', {0});
         SELECT {s}.acquire_lease('billing', 'mallory');",
        held.number()
    );
    mallory.batch_execute(&calls).await.unwrap();
    let lock =
        format!("SELECT count(*) FROM (SELECT FROM {s}.lease WHERE name = 'billing' FOR UPDATE NOWAIT) l");
    assert_eq!(number(&admin, &lock).await, 1);
    wish(&*store, renew("billing", 1, held)).await;
    mallory.batch_execute("COMMIT").await.unwrap();
    store.close().await.unwrap();
}
