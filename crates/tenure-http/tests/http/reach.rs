//! What an access token reaches that is bound to queues or kinds: every route, and ways around it.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use tenure_http::{NewAccessToken, Reach, Scope, Tokens};

use crate::asking::{Asker, Service, Told};
use crate::rights::{example, routes, token, within};

/// What nobody is told who does not reach the job that has it.
const CANARY: &str = "canary-7f3f";
const BELOW_ADMIN: [Scope; 4] = [Scope::Enqueue, Scope::Work, Scope::Read, Scope::Manage];

async fn bound(service: &Service, scopes: &[Scope], queues: &[&str], kinds: &[&str]) -> String {
    let texts = |said: &[&str]| said.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let reach = Reach::new(&texts(queues), &texts(kinds)).unwrap();
    let new = NewAccessToken {
        name: "bound".to_owned(),
        scopes: scopes.to_vec(),
        reach,
        keep: None,
        quotas: tenure_http::TokenQuotas::default(),
    };
    Tokens::of(service.tenure()).create(new).await.unwrap().1
}

/// Somebody with an access token.
struct Bearer<'a> {
    asker: &'a Asker,
    header: String,
}

impl<'a> Bearer<'a> {
    fn new(asker: &'a Asker, token: &str) -> Self {
        Self { asker, header: format!("authorization: Bearer {token}") }
    }

    async fn ask(&self, method: &str, path: &str, body: &str) -> Told {
        self.asker.ask(method, path, &[&self.header], body).await
    }

    async fn get(&self, path: &str) -> Told {
        self.ask("GET", path, "").await
    }

    async fn post(&self, path: &str, body: &Value) -> Told {
        self.ask("POST", path, &body.to_string()).await
    }
}

/// What belongs to others: a job and a schedule in queue `foreign`.
async fn of_others(all: &Bearer<'_>) -> String {
    let job = json!({ "kind": "other", "queue": "foreign", "args": CANARY, "meta": { "m": CANARY },
        "unique": { "key": "shared", "scope": "any" } });
    let id = all.post("/v1/jobs", &job).await.id();
    let spec = json!({ "spec": { "cron": "0 2 * * *" },
        "job": { "kind": "other", "queue": "foreign", "args": CANARY } });
    let set = all.ask("PUT", "/v1/schedules/foreign", &spec.to_string()).await;
    assert_eq!(set.status, StatusCode::CREATED, "{set:?}");
    id
}

/// All that may be seen of it.
async fn seen(all: &Bearer<'_>, id: &str) -> Vec<String> {
    let paths =
        [format!("/v1/jobs/{id}"), "/v1/schedules/foreign".to_owned(), "/v1/queues/foreign".to_owned()];
    let mut seen = Vec::new();
    for path in paths {
        let told = all.get(&path).await;
        assert_eq!(told.status, StatusCode::OK, "{told:?}");
        seen.push(told.text);
    }
    seen
}

/// The description of a store names its host and database, or its file.
#[tokio::test]
async fn only_clients_that_read_the_whole_store_see_its_location() {
    let folder = std::env::temp_dir().join(format!("tenure-canary-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let url = format!("sqlite://{}", folder.join("jobs.db").display());
    let tenure = tenure::Tenure::open(&url).await.unwrap();
    let guarded = Asker::guarded_on(&tenure);
    let token = async |scopes: &[Scope], queues: &[String]| {
        let new = NewAccessToken {
            name: "looks".to_owned(),
            scopes: scopes.to_vec(),
            reach: Reach::new(queues, &[]).unwrap(),
            keep: None,
            quotas: tenure_http::TokenQuotas::default(),
        };
        Tokens::of(&tenure).create(new).await.unwrap().1
    };
    let mail = ["mail".to_owned()];
    for (scopes, queues, sees) in [
        (&[Scope::Enqueue][..], &[][..], false),
        (&[Scope::Work], &[], false),
        (&[Scope::Read], &mail, false),
        (&[Scope::Manage], &mail, false),
        (&[Scope::Read], &[], true),
        (&[Scope::Admin], &[], true),
    ] {
        let held = token(scopes, queues).await;
        for path in ["/v1/capabilities", "/v1/version"] {
            let told = Bearer::new(&guarded, &held).get(path).await;
            assert_eq!(told.status, StatusCode::OK, "{told:?}");
            assert_eq!(
                told.text.contains("tenure-canary"),
                sees,
                "{path} for {scopes:?}, {queues:?}: {told:?}"
            );
            assert!(sees || told.json()["store"] == "sqlite", "{told:?}");
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
}

/// Each route × each right × what is reached: what is named in the path belongs to others.
#[tokio::test]
async fn no_right_is_of_any_use_beyond_what_an_access_token_reaches() {
    let service = Service::new();
    let guarded = service.guarded();
    let admin = token(&service, &[Scope::Admin]).await;
    let all = Bearer::new(&guarded, &admin);
    let id = of_others(&all).await;
    let before = seen(&all, &id).await;
    let mut tokens = Vec::new();
    for scope in BELOW_ADMIN {
        for (queues, kinds) in [(&["mail"][..], &[][..]), (&["fore", "foreign-*"], &[]), (&[], &["othe"])] {
            tokens.push((scope, queues.is_empty(), bound(&service, &[scope], queues, kinds).await));
        }
    }
    let (routes, within) = (routes(&service).await, within(&service).await);
    let mut asked = 0;
    for ((method, path, needs), within) in routes.into_iter().zip(within) {
        let names_something = path.contains("{id}") || path.contains("{name}");
        let path = example(&path.replace("{id}", &id).replace("{name}", "foreign"));
        for (scope, all_queues, token) in &tokens {
            let bearer = Bearer::new(&guarded, token);
            let told = bearer.ask(&method, &path, "").await;
            let at = format!("{method} {path}, which needs {needs} and {within}: {scope} was told {told:?}");
            assert!(!told.text.contains(CANARY), "{at}");
            let status = told.status.as_u16();
            match within.as_str() {
                "the whole store" => assert_eq!(status, 403, "{at}"),
                // A worker that says that it runs nothing is told nothing.
                "its jobs" if path.starts_with("/v1/workers/") && path.ends_with("/heartbeat") => {
                    assert!([200, 403].contains(&status), "{at}");
                }
                // Who is bound to kinds may enqueue them everywhere, and so may know which queues there are.
                "its jobs" if *all_queues && method == "GET" && path.starts_with("/v1/queues") => {}
                "its jobs" if *all_queues && path == "/v1/stats" => {
                    assert!(!told.text.contains("other"), "{at}");
                }
                "its jobs" if names_something => assert!([400, 403, 404, 422].contains(&status), "{at}"),
                "its jobs" => assert!(!told.text.contains("foreign"), "{at}"),
                "any" => {}
                other => panic!("{other}"),
            }
            asked += 1;
        }
    }
    assert!(asked > 600, "only {asked} were asked");
    assert_eq!(seen(&all, &id).await, before, "nothing has become of it");
}

#[tokio::test]
async fn who_is_bound_to_a_queue_does_there_whatever_his_rights_give() {
    let service = Service::new();
    let guarded = service.guarded();
    let admin = token(&service, &[Scope::Admin]).await;
    let all = Bearer::new(&guarded, &admin);
    of_others(&all).await;
    let own = bound(&service, &BELOW_ADMIN, &["mail", "import-*"], &[]).await;
    let own = Bearer::new(&guarded, &own);
    let who = own.get("/v1/whoami").await.json();
    assert_eq!(who["token"]["queues"], json!(["mail", "import-*"]));
    let id = own.post("/v1/jobs", &json!({ "kind": "k", "queue": "mail" })).await.id();
    own.post("/v1/jobs", &json!({ "kind": "k", "queue": "import-7" })).await;
    assert_eq!(own.get(&format!("/v1/jobs/{id}")).await.status, StatusCode::OK);
    let listed = own.get("/v1/jobs").await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    let names = |told: &Value, field: &str| {
        let names =
            told["items"].as_array().unwrap().iter().map(|item| item[field].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&own.get("/v1/queues").await.json(), "name"), ["import-7", "mail"]);
    assert_eq!(names(&own.get("/v1/stats").await.json(), "queue"), ["import-7", "mail"]);
    assert_eq!(names(&own.get("/v1/kinds").await.json(), "kind"), ["k"]);
    assert_eq!(own.post("/v1/queues/mail/pause", &json!({})).await.status, StatusCode::OK);
    assert_eq!(own.post("/v1/queues/mail/resume", &json!({})).await.status, StatusCode::OK);
    let spec = json!({ "spec": { "cron": "0 2 * * *" }, "job": { "kind": "k", "queue": "mail" } });
    assert_eq!(own.ask("PUT", "/v1/schedules/own", &spec.to_string()).await.status, StatusCode::CREATED);
    assert_eq!(own.post("/v1/schedules/own/trigger", &json!({})).await.status, StatusCode::ACCEPTED);
    let claimed = own.post("/v1/claim", &json!({ "queues": ["*"], "limit": 100 })).await.json();
    let jobs = claimed["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 3, "{claimed}");
    assert!(jobs.iter().all(|job| job["queue"] != "foreign"), "{claimed}");
    let done = format!("/v1/jobs/{}/complete", jobs[0]["id"].as_str().unwrap());
    assert_eq!(own.post(&done, &json!({ "token": jobs[0]["token"] })).await.status, StatusCode::OK);
}

/// Who is bound to kinds is granted these only, whether they are named in full or by their beginning.
#[tokio::test]
async fn who_is_bound_to_kinds_claims_only_these() {
    let service = Service::new();
    let guarded = service.guarded();
    for kind in ["send_mail", "send_sms", "read"] {
        service.post("/v1/jobs", &json!({ "kind": kind, "args": CANARY }).to_string()).await;
    }
    for (kinds, expected) in [(&["send_m*"][..], 1), (&["nothing*"], 0), (&["send_sms", "pay"], 1)] {
        let own = bound(&service, &[Scope::Work, Scope::Read], &[], kinds).await;
        let own = Bearer::new(&guarded, &own);
        let listed = own.get("/v1/jobs").await.json();
        assert_eq!(listed["items"].as_array().unwrap().len(), expected, "{kinds:?}: {listed}");
        let claimed = own.post("/v1/claim", &json!({ "limit": 10 })).await.json();
        assert_eq!(claimed["jobs"].as_array().unwrap().len(), expected, "{kinds:?}: {claimed}");
        let other = own.post("/v1/claim", &json!({ "kinds": ["read"] })).await;
        assert_eq!(other.status, StatusCode::FORBIDDEN, "{other:?}");
    }
}

#[tokio::test]
async fn there_is_no_way_around_what_an_access_token_reaches() {
    let service = Service::new();
    let guarded = service.guarded();
    let admin = token(&service, &[Scope::Admin]).await;
    let all = Bearer::new(&guarded, &admin);
    let id = of_others(&all).await;
    let before = seen(&all, &id).await;
    let own = bound(&service, &BELOW_ADMIN, &["mail"], &[]).await;
    let own = Bearer::new(&guarded, &own);
    let mail = |more: Value| {
        let mut job = json!({ "kind": "other", "queue": "mail", "args": CANARY });
        job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        job
    };
    // A job elsewhere, alone and among others, of which none is stored.
    for job in [
        json!({ "kind": "k" }),
        json!({ "kind": "k", "queue": "foreign" }),
        json!({ "kind": "k", "queue": "mail2" }),
    ] {
        assert_eq!(own.post("/v1/jobs", &job).await.status, StatusCode::FORBIDDEN, "{job}");
        let batch = json!({ "jobs": [{ "kind": "k", "queue": "mail" }, job] });
        let told = own.post("/v1/jobs/batch", &batch).await;
        assert_eq!((told.status, &told.json()["index"]), (StatusCode::FORBIDDEN, &json!(1)), "{told:?}");
    }
    assert!(own.get("/v1/jobs").await.json()["items"].as_array().unwrap().is_empty());
    // The id of a job elsewhere: as it is, in other forms, under which it is put, and waited for.
    let upper = id.to_ascii_uppercase();
    for path in
        [format!("/v1/jobs/{upper}"), format!("/queue/{id}?redirect=false"), format!("/v1/jobs/{id}/events")]
    {
        let told = own.get(&path).await;
        assert!(told.status != StatusCode::OK && !told.text.contains(CANARY), "{path}: {told:?}");
    }
    let put = own.ask("PUT", &format!("/v1/jobs/{id}"), &mail(json!({})).to_string()).await;
    assert_eq!(
        (put.status, put.text.contains(CANARY)),
        (StatusCode::CONFLICT, false),
        "the same job: {put:?}"
    );
    let put = own.post("/v1/jobs", &mail(json!({ "id": id, "args": 1 }))).await;
    assert_eq!(put.status, StatusCode::CONFLICT, "another job: {put:?}");
    let after = own.post("/v1/jobs", &mail(json!({ "after": [id] }))).await;
    assert_eq!((after.status, &after.json()["field"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("after")));
    // The unique key of a job elsewhere.
    for (conflict, status) in [("return", 409), ("reject", 409), ("replace", 403)] {
        let unique = json!({ "unique": { "key": "shared", "scope": "any", "on_conflict": conflict } });
        let told = own.post("/v1/jobs", &mail(unique)).await;
        assert_eq!(
            (told.status.as_u16(), told.text.contains(CANARY)),
            (status, false),
            "{conflict}: {told:?}"
        );
        assert!(!told.text.contains(id.as_str()), "{conflict} tells the ID of the job: {told:?}");
        let batch = json!({ "jobs": [mail(json!({ "unique": { "key": "shared", "scope": "any", "on_conflict": conflict } }))] });
        for atomic in [true, false] {
            let batch = json!({ "jobs": batch["jobs"], "atomic": atomic });
            let told = own.post("/v1/jobs/batch", &batch).await;
            assert!(!told.text.contains(id.as_str()), "{conflict} in a batch: {told:?}");
        }
    }
    // An Idempotency-Key of somebody else's.
    let key = "idempotency-key: order-7";
    let theirs = json!({ "kind": "k", "queue": "foreign" }).to_string();
    let first = guarded.ask("POST", "/v1/jobs", &[&all.header, key], &theirs).await.id();
    let again = guarded.ask("POST", "/v1/jobs", &[&own.header, key], &theirs).await;
    assert!(again.status == StatusCode::FORBIDDEN && !again.text.contains(&first), "{again:?}");
    let mine =
        guarded.ask("POST", "/v1/jobs", &[&own.header, key], &mail(json!({ "args": 2 })).to_string()).await;
    assert!(mine.status == StatusCode::ACCEPTED && mine.id() != first, "{mine:?}");
    // Searches and cursors: what is asked for narrows further down, and never widens.
    for query in
        ["q=queue:foreign", "queue=foreign", "queue=foreign,mail", "q=-queue:mail", "q=other", "limit=1"]
    {
        let told = own.get(&format!("/v1/jobs?{query}")).await;
        assert!(told.status.is_success() && !told.text.contains(CANARY), "{query}: {told:?}");
    }
    let page = all.get("/v1/jobs?limit=1").await.json();
    let cursor = page["next_cursor"].as_str().unwrap();
    let told = own.get(&format!("/v1/jobs?cursor={cursor}")).await;
    assert!(!told.text.contains(CANARY), "{told:?}");
    // Claims, and what was granted to others.
    for claim in [json!({ "queues": ["foreign"] }), json!({}), json!({ "queues": ["mail", "foreign"] })] {
        assert_eq!(own.post("/v1/claim", &claim).await.status, StatusCode::FORBIDDEN, "{claim}");
        let settle = json!({ "items": [], "claim": claim });
        assert_eq!(own.post("/v1/settle", &settle).await.status, StatusCode::FORBIDDEN, "{settle}");
    }
    // A schedule elsewhere: set over, and one's own that would bring jobs there.
    let spec =
        |queue: &str| json!({ "spec": { "cron": "0 2 * * *" }, "job": { "kind": "k", "queue": queue } });
    let over = own.ask("PUT", "/v1/schedules/foreign", &spec("mail").to_string()).await;
    assert!(over.status == StatusCode::FORBIDDEN && !over.text.contains("other"), "{over:?}");
    let there = own.ask("PUT", "/v1/schedules/own", &spec("foreign").to_string()).await;
    assert_eq!(there.status, StatusCode::FORBIDDEN);
    assert_eq!(
        own.ask("PUT", "/v1/schedules/own", &spec("mail").to_string()).await.status,
        StatusCode::CREATED
    );
    let patch = json!({ "job": { "queue": "foreign" } }).to_string();
    assert_eq!(own.ask("PATCH", "/v1/schedules/own", &patch).await.status, StatusCode::FORBIDDEN);
    assert_eq!(own.ask("PUT", "/v1/queues/foreign", "{}").await.status, StatusCode::FORBIDDEN);
    assert_eq!(seen(&all, &id).await, before, "nothing has become of it");
}

/// What was granted to others is settled by them alone, even if their token is known.
#[tokio::test]
async fn a_token_of_a_job_elsewhere_is_of_no_use() {
    let service = Service::new();
    let guarded = service.guarded();
    service.post("/v1/jobs", &json!({ "kind": "k", "queue": "foreign" }).to_string()).await;
    let admin = token(&service, &[Scope::Admin]).await;
    let all = Bearer::new(&guarded, &admin);
    let claimed = all.post("/v1/claim", &json!({ "queues": ["*"] })).await.json();
    let (id, shown) = (claimed["jobs"][0]["id"].as_str().unwrap(), &claimed["jobs"][0]["token"]);
    let own = bound(&service, &BELOW_ADMIN, &["mail"], &[]).await;
    let own = Bearer::new(&guarded, &own);
    for act in ["complete", "fail", "release", "heartbeat"] {
        let told = own.post(&format!("/v1/jobs/{id}/{act}"), &json!({ "token": shown })).await;
        assert_eq!(told.status, StatusCode::NOT_FOUND, "{act}: {told:?}");
    }
    let lines = json!({ "token": shown, "first": 1, "lines": ["x"] });
    assert_eq!(own.post(&format!("/v1/jobs/{id}/logs"), &lines).await.status, StatusCode::NOT_FOUND);
    let item = json!({ "items": [{ "job_id": id, "token": shown, "outcome": "complete" }] });
    let settled = own.post("/v1/settle", &item).await.json();
    assert_eq!(settled["items"][0]["status"], 404, "{settled}");
    let worker = claimed["worker_id"].as_str().unwrap();
    let running = json!({ "running": [{ "job_id": id, "token": shown }] });
    let beat = own.post(&format!("/v1/workers/{worker}/heartbeat"), &running).await.json();
    assert_eq!(beat["lost"], json!([id]), "{beat}");
    let done = all.post(&format!("/v1/jobs/{id}/complete"), &json!({ "token": shown })).await;
    assert_eq!(done.status, StatusCode::OK, "{done:?}");
}

/// Who waits in a line stands there with those who reach the same.
#[tokio::test]
async fn whoever_waits_is_given_nothing_that_another_in_line_reaches() {
    let service = Service::new();
    let wide = bound(&service, &[Scope::Work], &["*"], &[]).await;
    let narrow = bound(&service, &[Scope::Work], &["mail"], &[]).await;
    let wait = |token: String| {
        let asker = service.guarded();
        tokio::spawn(async move {
            let header = format!("authorization: Bearer {token}");
            let body = json!({ "queues": ["*"] }).to_string();
            asker.ask("POST", "/v1/claim", &[&header, "prefer: wait=50"], &body).await
        })
    };
    service
        .post(
            "/v1/jobs",
            &json!({ "kind": "warm", "queue": "mail", "run_at": "2999-01-01T00:00:00Z" }).to_string(),
        )
        .await;
    let (narrow, wide) = (wait(narrow), wait(wide));
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    service.post("/v1/jobs", &json!({ "kind": "k", "queue": "foreign" }).to_string()).await;
    let mut service = service;
    let told = tokio::join!(narrow, async {
        for _ in 0..20 {
            tokio::task::yield_now().await;
            service.advance(Duration::from_secs(3));
        }
        wide.await
    });
    assert!(told.0.unwrap().json()["jobs"].as_array().unwrap().is_empty());
    assert_eq!(told.1.unwrap().json()["jobs"][0]["queue"], "foreign");
}

/// A batch tells which jobs are there instead, but not of those that whoever sent it does not reach.
#[tokio::test]
async fn the_ids_of_others_are_not_told_by_a_batch() {
    let service = Service::new();
    let guarded = service.guarded();
    let admin = token(&service, &[Scope::Admin]).await;
    let all = Bearer::new(&guarded, &admin);
    let id = of_others(&all).await;
    let own = bound(&service, &BELOW_ADMIN, &["mail"], &[]).await;
    let own = Bearer::new(&guarded, &own);
    let unique = json!({ "key": "shared", "scope": "any" });
    let job = json!({ "kind": "k", "queue": "mail" });
    let batch = json!({ "jobs": [{ "kind": "k", "queue": "mail", "unique": unique }, job] });
    let told = own.post("/v1/jobs/batch", &batch).await;
    assert!(told.status == StatusCode::ACCEPTED && !told.text.contains(&id), "{told:?}");
    let items = told.json()["items"].clone();
    assert_eq!((&items[0]["id"], &items[0]["created"]), (&Value::Null, &json!(false)));
    assert!(items[1]["id"].is_string());
    assert!(all.post("/v1/jobs/batch", &batch).await.text.contains(&id), "whoever reaches it is told");
}

/// Whoever claims under the id of a worker that takes other jobs would be taken for it, and could take it off the list.
#[tokio::test]
async fn nobody_passes_for_a_worker_that_takes_jobs_which_he_does_not_reach() {
    let service = Service::new();
    let guarded = service.guarded();
    let admin = token(&service, &[Scope::Admin]).await;
    let all = Bearer::new(&guarded, &admin);
    let theirs = service.tenure().remote().draw_worker();
    let claim = |queue: &str| json!({ "worker_id": theirs.to_string(), "name": "w", "queues": [queue] });
    assert_eq!(all.post("/v1/claim", &claim("foreign")).await.status, StatusCode::OK);
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    let own = bound(&service, &BELOW_ADMIN, &["mail"], &[]).await;
    // At the server that has heard of it, as at one that has not.
    for server in [&guarded, &service.guarded()] {
        let own = Bearer::new(server, &own);
        let told = own.post("/v1/claim", &claim("mail")).await;
        assert_eq!((told.status, &told.json()["field"]), (StatusCode::FORBIDDEN, &json!("worker_id")));
        let settle = json!({ "items": [], "claim": claim("mail") });
        assert_eq!(own.post("/v1/settle", &settle).await.status, StatusCode::FORBIDDEN);
        let gone = own.ask("DELETE", &format!("/v1/workers/{theirs}"), "").await;
        assert!([StatusCode::FORBIDDEN, StatusCode::NOT_FOUND].contains(&gone.status), "{gone:?}");
    }
    let listed = all.get(&format!("/v1/workers/{theirs}")).await.json();
    assert_eq!(listed["serves"][0]["queue"], "foreign", "{listed}");
    assert_eq!(all.post("/v1/claim", &claim("foreign")).await.status, StatusCode::OK);
    // Nor is he told what that one is told.
    all.post(&format!("/v1/workers/{theirs}/quiet"), &json!({})).await;
    for server in [&guarded, &service.guarded()] {
        let told = Bearer::new(server, &own).post("/v1/claim", &claim("mail")).await;
        assert_eq!((told.status, &told.json()["field"]), (StatusCode::FORBIDDEN, &json!("worker_id")));
        let settle = json!({ "items": [], "claim": claim("mail") });
        let told = Bearer::new(server, &own).post("/v1/settle", &settle).await;
        assert_eq!(told.status, StatusCode::FORBIDDEN, "{told:?}");
    }
}

/// The routes for programs need the whole store, and a schedule with a program's name would start it with any args.
#[tokio::test]
async fn a_limited_token_cannot_set_the_job_of_a_programs_schedule() {
    let service = Service::new();
    let guarded = service.guarded();
    let admin = Bearer::new(&guarded, &token(&service, &[Scope::Admin]).await);
    let own = Bearer::new(&guarded, &bound(&service, &BELOW_ADMIN, &["ops", "other"], &[]).await);
    let spec = |queue: &str, kind: &str| {
        json!({ "spec": { "cron": "0 2 * * *" }, "job": { "kind": kind, "queue": queue } }).to_string()
    };
    let path = "/v1/schedules/ops.slow";
    let set = own.ask("PUT", path, &spec("ops", "ops.slow")).await;
    assert_eq!(set.status, StatusCode::FORBIDDEN, "{set:?}");
    assert!(set.text.contains("give the schedule another name"), "{set:?}");
    // The job of such a schedule could be moved to the queue of the program.
    let elsewhere = own.ask("PUT", path, &spec("other", "ops.slow")).await;
    assert_eq!(elsewhere.status, StatusCode::FORBIDDEN, "{elsewhere:?}");
    let mut named: Value = serde_json::from_str(&spec("ops", "ops.slow")).unwrap();
    named["name"] = json!("ops.slow");
    assert_eq!(own.post("/v1/schedules", &named).await.status, StatusCode::FORBIDDEN);
    assert_eq!(admin.ask("PUT", path, &spec("ops", "ops.slow")).await.status, StatusCode::CREATED);
    let args = json!({ "args": ["--erase"] });
    assert_eq!(own.post("/v1/schedules/ops.slow/trigger", &args).await.status, StatusCode::FORBIDDEN);
    let patch = json!({ "job": args });
    assert_eq!(own.ask("PATCH", path, &patch.to_string()).await.status, StatusCode::FORBIDDEN);
    // A limited token may start what the schedule starts anyway, and use other names.
    assert_eq!(own.post("/v1/schedules/ops.slow/trigger", &json!({})).await.status, StatusCode::ACCEPTED);
    for (name, kind) in [("slow", "ops.slow"), ("ops", "ops"), ("ops.fast", "fast")] {
        let set = own.ask("PUT", &format!("/v1/schedules/{name}"), &spec("ops", kind)).await;
        assert_eq!(set.status, StatusCode::CREATED, "{set:?}");
    }
}
