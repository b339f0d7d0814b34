//! Quotas of access tokens, asked for as clients do.

use std::time::Duration;

use serde_json::{Value, json};
use tenure_http::{Access, NewAccessToken, Options, Reach, Scope, Server, TokenQuotas, Tokens};

use crate::asking::{Asker, Service, Told};
use crate::rights::token;

pub async fn ask(asker: &Asker, method: &str, path: &str, token: &str, body: &str) -> Told {
    let token = format!("authorization: Bearer {token}");
    asker.ask(method, path, &[&token, "content-type: application/json"], body).await
}

fn claim(number: usize) -> String {
    json!({"worker_id": format!("01a20591-ffdb-7f3f-9bb1-{number:012x}"), "name": "one of many"}).to_string()
}

#[tokio::test]
async fn a_token_with_too_many_workers_learns_which_setting_raises_its_quota() {
    let service = Service::new();
    let guarded = service.guarded();
    let (one, other) = (token(&service, &[Scope::Work]).await, token(&service, &[Scope::Work]).await);
    for number in 0..1_000 {
        let told = ask(&guarded, "POST", "/v1/claim", &one, &claim(number)).await;
        assert_eq!(told.status, 200, "{}", told.text);
    }
    let refused = ask(&guarded, "POST", "/v1/claim", &one, &claim(1_000)).await;
    assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (429, "90"));
    let problem = refused.json();
    assert_eq!(problem["type"], "urn:tenure:problem:quota-exceeded");
    assert_eq!(problem["quota"], "workers_per_token");
    assert_eq!(problem["limit"], 1_000);
    assert_eq!(problem["setting"], "--workers-per-token");
    // The token's workers go on, a claim without an ID needs no place, and the other token has its own quota.
    for (token, claim) in [(&one, claim(7)), (&one, "{}".to_owned()), (&other, claim(2_000))] {
        assert_eq!(ask(&guarded, "POST", "/v1/claim", token, &claim).await.status, 200);
    }
}

#[tokio::test]
async fn a_claim_of_many_queues_with_many_kinds_is_refused_with_the_bytes_of_the_quota() {
    let service = Service::new();
    let names: Vec<String> = (0..900).map(|number| format!("n{number}")).collect();
    let claim = json!({"worker_id": "01a20591-ffdb-7f3f-9bb1-000000000001", "queues": names, "kinds": names});
    let refused = service.post("/v1/claim", &claim.to_string()).await;
    assert_eq!(refused.status.as_u16(), 429, "{}", refused.text);
    assert_eq!(refused.json()["quota"], "bytes_per_worker");
    assert_eq!(refused.json()["setting"], Value::Null, "it is fixed");
    assert!(!refused.headers.contains_key("retry-after"), "waiting does not help");
}

/// Lists without pages, and the reason why no client can make them long.
const BOUNDED: [(&str, &str); 9] = [
    ("/v1/jobs/{id}/attempts", "a job keeps a bounded number of attempts"),
    ("/v1/jobs/{id}/logs", "pages by `after`, because new lines come at the end"),
    ("/v1/queues/{name}/explain", "a few reasons"),
    ("/v1/schedules/{name}/explain", "a few reasons"),
    ("/v1/schedules/{name}/next", "as many as `count` says"),
    ("/v1/calendar/hours", "as many as its range and step allow"),
    ("/v1/apps/continuous/{name}/lines", "at most 500 entries"),
    ("/v1/apps", "hosts offer programs, clients do not"),
    ("/v1/events", "pages by `after`, because new events come at the end"),
];

/// Checks each GET route against the schema of its response.
#[tokio::test]
async fn every_list_has_pages_or_a_bound() {
    let document = Service::new().get("/openapi.json").await.json();
    let mut without = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        let schema = &operations["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        let named = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next());
        let schema = named.map_or(schema, |name| &document["components"]["schemas"][name]);
        let is_list = schema["type"] == "array" || schema["properties"]["items"]["type"] == "array";
        let parameters = operations["get"]["parameters"].as_array();
        let has = |name: &str| parameters.into_iter().flatten().any(|one| one["name"] == name);
        if is_list && !(has("limit") && has("cursor")) {
            without.push(path.as_str());
        }
    }
    without.sort_unstable();
    let mut bounded: Vec<&str> = BOUNDED.iter().map(|(path, _)| *path).collect();
    bounded.sort_unstable();
    assert_eq!(without, bounded);
}

#[tokio::test]
async fn lists_of_names_come_in_pages_that_follow_each_other() {
    let service = Service::new();
    let jobs: Vec<_> = (0..25)
        .map(|number| json!({"kind": format!("kind-{number}"), "queue": format!("queue-{number}")}))
        .collect();
    service.post("/v1/jobs/batch", &json!({"jobs": jobs}).to_string()).await;
    for (path, field) in [("/v1/queues", "name"), ("/v1/stats", "queue"), ("/v1/kinds", "kind")] {
        let names = |page: &Value| -> Vec<String> {
            let items = page["items"].as_array().unwrap().iter();
            items.map(|item| item[field].as_str().unwrap().to_owned()).collect()
        };
        let whole = names(&service.get(path).await.json());
        assert_eq!(whole.len(), 25, "{path}");
        let (mut met, mut next) = (Vec::new(), format!("{path}?limit=10"));
        loop {
            let told = service.get(&next).await;
            met.push(names(&told.json()));
            let Some(cursor) = told.json()["next_cursor"].as_str().map(str::to_owned) else { break };
            next = format!("{path}?limit=10&cursor={cursor}");
            assert_eq!(told.header("link"), format!("<{next}>; rel=\"next\""));
        }
        assert_eq!(met.iter().map(Vec::len).collect::<Vec<_>>(), [10, 10, 5], "{path}");
        assert_eq!(met.concat(), whole, "{path}");
    }
}

#[tokio::test]
async fn the_list_of_workers_comes_in_pages_with_lost_workers_at_the_end() {
    let mut service = Service::new();
    for number in 0..3 {
        service.post("/v1/claim", &claim(number)).await;
    }
    tokio::task::yield_now().await;
    service.advance(Duration::from_secs(100));
    for number in 3..6 {
        service.post("/v1/claim", &claim(number)).await;
    }
    tokio::task::yield_now().await;
    let (mut states, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = service.get(&format!("/v1/workers?limit=2{cursor}")).await.json();
        let items = page["items"].as_array().unwrap().clone();
        assert!(items.len() <= 2, "{page}");
        states.extend(items.iter().map(|worker| worker["state"].as_str().unwrap().to_owned()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(states, ["online", "online", "online", "lost", "lost", "lost"]);
}

/// All routes of a server with these options, on the store of a service.
pub async fn served(service: &Service, change: impl FnOnce(&mut Options)) -> Asker {
    let mut options = Options::default();
    options.bind = "127.0.0.1:0".parse().unwrap();
    change(&mut options);
    Asker::to(Server::bind(service.tenure(), options).await.unwrap().contract())
}

#[tokio::test]
async fn beyond_the_quota_no_request_creates_a_queue_and_the_existing_ones_go_on() {
    let service = Service::new();
    let asker = served(&service, |options| options.max_queues = 3).await;
    let json = ["content-type: application/json"];
    let enqueue = |queue: &str| json!({"kind": "k", "queue": queue}).to_string();
    for queue in ["a", "b", "c"] {
        assert_eq!(asker.ask("POST", "/v1/jobs", &json, &enqueue(queue)).await.status, 202);
    }
    let id = asker.ask("POST", "/v1/jobs", &json, &enqueue("a")).await.id();
    let batch = json!({"jobs": [{"kind": "k", "queue": "b"}, {"kind": "k", "queue": "d"}]}).to_string();
    let schedule = json!({"spec": {"every_seconds": 60}, "job": {"kind": "k", "queue": "d"}}).to_string();
    let bulk = json!({"action": "move", "filter": {"q": "kind:k"}, "params": {"queue": "d"}}).to_string();
    for (method, path, body) in [
        ("POST", "/v1/jobs", enqueue("d")),
        ("POST", "/v1/jobs/batch", batch),
        ("PUT", "/v1/queues/d", "{}".to_owned()),
        ("PUT", "/v1/schedules/s", schedule),
        ("POST", "/v1/bulk", bulk),
        ("PATCH", &format!("/v1/jobs/{id}"), json!({"queue": "d"}).to_string()),
    ] {
        let headers = if method == "PATCH" { &[json[0], "if-match: *"][..] } else { &json[..] };
        let refused = asker.ask(method, path, headers, &body).await;
        assert_eq!(refused.status.as_u16(), 429, "{method} {path}: {}", refused.text);
        let problem = refused.json();
        assert_eq!((&problem["quota"], &problem["limit"]), (&json!("queues"), &json!(3)), "{path}");
        assert_eq!(problem["setting"], "--max-queues", "{path}");
    }
    assert_eq!(asker.ask("POST", "/v1/jobs", &json, &enqueue("c")).await.status, 202);
    assert_eq!(service.get("/v1/queues").await.json()["items"].as_array().unwrap().len(), 3);
    // A deleted queue makes room at once.
    asker.ask("PUT", "/v1/queues/c", &json, "{}").await;
    for job in service.get("/v1/jobs?queue=c").await.json()["items"].as_array().unwrap() {
        let path = format!("/v1/jobs/{}", job["id"].as_str().unwrap());
        // The first request cancels the job, the second one deletes it.
        assert_eq!(asker.ask("DELETE", &path, &[], "").await.status, 200);
        assert_eq!(asker.ask("DELETE", &path, &[], "").await.status, 204);
    }
    assert_eq!(asker.ask("DELETE", "/v1/queues/c", &[], "").await.status, 204);
    assert_eq!(asker.ask("POST", "/v1/jobs", &json, &enqueue("d")).await.status, 202);
}

#[tokio::test]
async fn tokens_of_one_name_cannot_use_up_the_queues_of_a_store() {
    let mut service = Service::new();
    let guard = |options: &mut Options| (options.access, options.max_queues) = (Access::Tokens, 20);
    let (first, second) = (served(&service, guard).await, served(&service, guard).await);
    let greedy = token_with(&service, "greedy", Scope::Enqueue, TokenQuotas::default()).await;
    let rotated = token_with(&service, "greedy", Scope::Enqueue, TokenQuotas::default()).await;
    let modest = token_with(&service, "modest", Scope::Enqueue, TokenQuotas::default()).await;
    let enqueue = async |asker: &Asker, token: &str, queue: &str| {
        ask(asker, "POST", "/v1/jobs", token, &json!({"kind": "k", "queue": queue}).to_string()).await
    };
    for queue in ["a", "b", "a"] {
        assert_eq!(enqueue(&first, &greedy, queue).await.status, 202);
    }
    // Neither another server nor another token of the name has more.
    for (asker, token) in [(&first, &greedy), (&second, &greedy), (&second, &rotated)] {
        let refused = enqueue(asker, token, "c").await;
        assert_eq!(refused.status.as_u16(), 429, "{}", refused.text);
        let problem = refused.json();
        assert_eq!((&problem["quota"], &problem["limit"]), (&json!("queues_per_token"), &json!(2)));
        assert_eq!((&problem["setting"], &problem["field"]), (&json!("--queues-per-token"), &json!("queue")));
        assert_eq!(enqueue(asker, token, "b").await.status, 202);
    }
    // A queue that another token creates is open to all, and counts only against its creator.
    for (token, status) in [(&modest, 202), (&greedy, 202)] {
        assert_eq!(enqueue(&second, token, "d").await.status, status);
    }
    service.advance(Duration::from_secs(5));
    assert_eq!(enqueue(&first, &greedy, "d").await.status, 202);
    assert_eq!(enqueue(&first, &greedy, "e").await.status, 429);
}

#[tokio::test]
async fn a_queue_that_is_gone_makes_room_in_the_share_of_its_creator() {
    let mut service = Service::new();
    let guarded = served(&service, |options| {
        (options.access, options.queues_per_token) = (Access::Tokens, Some(1));
    });
    let (guarded, admin) = (guarded.await, token(&service, &[Scope::Manage]).await);
    let put = async |queue: &str| {
        ask(&guarded, "PUT", &format!("/v1/queues/{queue}"), &admin, "{}").await.status.as_u16()
    };
    assert_eq!((put("a").await, put("b").await), (201, 429));
    assert_eq!(ask(&guarded, "DELETE", "/v1/queues/a", &admin, "").await.status, 204);
    assert_eq!(put("b").await, 429, "a queue may come into being after its record");
    service.advance(Duration::from_secs(60));
    assert_eq!((put("b").await, put("c").await), (201, 429));
}

#[tokio::test]
async fn tokens_of_one_name_use_a_bounded_number_of_new_lease_names() {
    let service = Service::new();
    let guard = |options: &mut Options| (options.access, options.lease_names_per_token) = (Access::Tokens, 2);
    let (first, second) = (served(&service, guard).await, served(&service, guard).await);
    let greedy = token_with(&service, "greedy", Scope::Work, TokenQuotas::default()).await;
    let rotated = token_with(&service, "greedy", Scope::Work, TokenQuotas::default()).await;
    let modest = token_with(&service, "modest", Scope::Work, TokenQuotas::default()).await;
    let acquire = async |asker: &Asker, token: &str, lease: &str| {
        let body = json!({"owner": "me", "ttl_seconds": 60}).to_string();
        ask(asker, "POST", &format!("/v1/leases/{lease}/acquire"), token, &body).await
    };
    for (lease, status) in [("a", 200), ("b", 200), ("a", 409)] {
        assert_eq!(acquire(&first, &greedy, lease).await.status, status, "{lease}");
    }
    // Neither another server nor another token of the name has more.
    for (asker, token) in [(&first, &greedy), (&second, &greedy), (&second, &rotated)] {
        let refused = acquire(asker, token, "c").await;
        assert_eq!(refused.status.as_u16(), 429, "{}", refused.text);
        let problem = refused.json();
        assert_eq!((&problem["quota"], &problem["limit"]), (&json!("lease_names_per_token"), &json!(2)));
        assert_eq!(
            (&problem["setting"], &problem["field"]),
            (&json!("--lease-names-per-token"), &json!("name"))
        );
        assert_eq!(acquire(asker, token, "b").await.status, 409, "the name exists");
    }
    assert_eq!(service.get("/v1/leases/c").await.status, 404);
    // A name of another token is open to all, and counts only for the first.
    assert_eq!(acquire(&second, &modest, "c").await.status, 200);
    assert_eq!(acquire(&first, &greedy, "c").await.status, 409);
    assert_eq!(acquire(&first, &modest, "d").await.status, 200);
    assert_eq!(acquire(&first, &modest, "e").await.status, 429);
    // Without access tokens, no name counts.
    for lease in ["f", "g", "h"] {
        assert_eq!(acquire(&service.asker(), "", lease).await.status, 200);
    }
}

#[tokio::test]
async fn a_queue_of_another_server_is_known_within_five_seconds() {
    let mut service = Service::new();
    let quota = |options: &mut Options| options.max_queues = 3;
    let (first, second) = (served(&service, quota).await, served(&service, quota).await);
    let enqueue = async |asker: &Asker, queue: &str| {
        let body = json!({"kind": "k", "queue": queue}).to_string();
        asker.ask("POST", "/v1/jobs", &[], &body).await.status.as_u16()
    };
    assert_eq!(enqueue(&first, "a").await, 202);
    assert_eq!((enqueue(&second, "b").await, enqueue(&second, "c").await), (202, 202));
    assert_eq!(enqueue(&first, "d").await, 202, "this server has not met the queues of the other one");
    service.advance(Duration::from_secs(5));
    assert_eq!((enqueue(&first, "e").await, enqueue(&first, "c").await), (429, 202));
}

#[tokio::test]
async fn metrics_show_the_thousand_busiest_queues_and_count_the_others_together() {
    let service = Service::new();
    for range in [0..1_000, 1_000..1_010] {
        let jobs: Vec<_> =
            range.map(|number| json!({"kind": "k", "queue": format!("q{number:04}")})).collect();
        service.post("/v1/jobs/batch", &json!({"jobs": jobs}).to_string()).await;
    }
    service.post("/v1/jobs", r#"{"kind": "k", "queue": "q1009"}"#).await;
    let text = service.get("/metrics").await.text;
    let series = |metric: &str| text.lines().filter(|line| line.starts_with(&format!("{metric}{{"))).count();
    for (metric, count) in [
        ("tenure_queue_depth", 1_001),
        ("tenure_queue_oldest_age_seconds", 1_001),
        ("tenure_running", 1_001),
        ("tenure_queue_paused", 1_000),
        ("tenure_queue_info", 1_000),
    ] {
        assert_eq!(series(metric), count, "{metric}");
    }
    for line in [
        r#"tenure_queue_depth{queue="q1009",state="queued"} 2"#,
        r#"tenure_queue_depth{queue="(other)",state="queued"} 10"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line}");
    }
    assert!(series("tenure_enqueued_total") <= 1_001);
}

async fn token_with(service: &Service, name: &str, scope: Scope, quotas: TokenQuotas) -> String {
    let new = NewAccessToken {
        name: name.to_owned(),
        scopes: vec![scope],
        reach: Reach::default(),
        keep: None,
        quotas,
    };
    Tokens::of(service.tenure()).create(new).await.unwrap().1
}

#[tokio::test]
async fn a_token_with_a_rate_waits_as_long_as_retry_after_says() {
    let mut service = Service::new();
    let guarded = service.guarded();
    let quotas = TokenQuotas { max_requests_per_second: Some(2), ..TokenQuotas::default() };
    let slow = token_with(&service, "slow", Scope::Read, quotas).await;
    let free = token(&service, &[Scope::Read]).await;
    for _ in 0..2 {
        assert_eq!(ask(&guarded, "GET", "/v1/queues", &slow, "").await.status, 200);
    }
    let refused = ask(&guarded, "GET", "/v1/queues", &slow, "").await;
    assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (429, "1"));
    assert_eq!(refused.json()["quota"], "max_requests_per_second");
    assert_eq!(refused.json()["limit"], 2);
    // A refused scope counts as well, and another token has its own rate.
    assert_eq!(ask(&guarded, "POST", "/v1/claim", &slow, "{}").await.status, 429);
    for _ in 0..5 {
        assert_eq!(ask(&guarded, "GET", "/v1/queues", &free, "").await.status, 200);
    }
    service.advance(Duration::from_secs(1));
    assert_eq!(
        ask(&guarded, "GET", "/v1/whoami", &slow, "").await.json()["token"]["max_requests_per_second"],
        2
    );
}

#[tokio::test]
async fn a_token_with_a_quota_of_waiting_jobs_goes_on_when_its_jobs_have_ended() {
    let mut service = Service::new();
    let guarded = service.guarded();
    let quotas = TokenQuotas { max_waiting_jobs: Some(3), ..TokenQuotas::default() };
    let shop = token_with(&service, "shop", Scope::Enqueue, quotas).await;
    let other = token_with(&service, "other", Scope::Enqueue, TokenQuotas::default()).await;
    let job = r#"{"kind": "fall", "max_attempts": 1}"#;
    for _ in 0..3 {
        assert_eq!(ask(&guarded, "POST", "/v1/jobs", &shop, job).await.status, 202);
        assert_eq!(ask(&guarded, "POST", "/v1/jobs", &other, job).await.status, 202);
    }
    let refused = ask(&guarded, "POST", "/v1/jobs", &shop, job).await;
    assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (429, "1"), "{}", refused.text);
    assert_eq!(refused.json()["quota"], "max_waiting_jobs");
    assert_eq!(refused.json()["limit"], 3);
    let batch = format!("{{\"jobs\": [{job}], \"atomic\": false}}");
    let each = ask(&guarded, "POST", "/v1/jobs/batch", &shop, &batch).await;
    assert_eq!(each.json()["items"][0]["status"], 429);
    assert_eq!(ask(&guarded, "POST", "/v1/jobs", &other, job).await.status, 202);
    // Another server counts the jobs of all tokens of the name: a new token does not help.
    let rotated = token_with(&service, "shop", Scope::Enqueue, quotas).await;
    assert_eq!(ask(&service.guarded(), "POST", "/v1/jobs", &rotated, job).await.status, 429);
    service.work().await;
    service.advance(Duration::from_secs(1));
    for _ in 0..3 {
        assert_eq!(ask(&guarded, "POST", "/v1/jobs", &shop, job).await.status, 202);
    }
    assert_eq!(ask(&guarded, "POST", "/v1/jobs", &shop, job).await.status, 429);
}

#[tokio::test]
async fn a_repeated_request_gets_its_answer_although_the_quota_is_used_up() {
    let service = Service::new();
    let guarded = service.guarded();
    let quotas = TokenQuotas { max_waiting_jobs: Some(1), ..TokenQuotas::default() };
    let shop = token_with(&service, "shop", Scope::Enqueue, quotas).await;
    let (path, other) = (format!("/v1/jobs/{}", service.tenure().new_id()), service.tenure().new_id());
    let job = |args: u32| json!({"kind": "k", "args": args}).to_string();
    assert_eq!(ask(&guarded, "PUT", &path, &shop, &job(1)).await.status, 201);
    assert_eq!(ask(&guarded, "PUT", &format!("/v1/jobs/{other}"), &shop, &job(1)).await.status, 429);
    let again = ask(&guarded, "PUT", &path, &shop, &job(1)).await;
    assert_eq!(again.status, 200, "{}", again.text);
    assert_eq!(
        ask(&guarded, "PUT", &path, &shop, &job(2)).await.status,
        409,
        "another job under the same ID"
    );
    let batch = json!({"jobs": [{"kind": "k", "args": 1, "id": path.trim_start_matches("/v1/jobs/")}]});
    let batch = ask(&guarded, "POST", "/v1/jobs/batch", &shop, &batch.to_string()).await;
    assert_eq!(batch.json()["items"][0]["created"], false, "{}", batch.text);
}

#[tokio::test]
async fn quotas_of_a_token_are_shown_and_stay_when_it_is_rotated() {
    let service = Service::new();
    let owner = Asker::to(tenure_http::owner_api(service.tenure()));
    let json = ["content-type: application/json"];
    let new =
        json!({"name": "shop", "scopes": ["enqueue"], "max_requests_per_second": 50, "max_waiting_jobs": 9});
    let made = owner.ask("POST", "/v1/tokens", &json, &new.to_string()).await;
    let path = format!("/v1/tokens/{}/rotate", made.id());
    let rotated = owner.ask("POST", &path, &json, "{}").await.json();
    for token in [&made.json(), &rotated] {
        assert_eq!((&token["max_requests_per_second"], &token["max_waiting_jobs"]), (&json!(50), &json!(9)));
    }
    let zero = json!({"name": "shop", "scopes": ["enqueue"], "max_waiting_jobs": 0});
    let refused = owner.ask("POST", "/v1/tokens", &json, &zero.to_string()).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["field"]), (422, &json!("max_waiting_jobs")));
}

#[tokio::test]
async fn jobs_that_a_token_makes_by_schedules_count_against_its_quota_of_waiting_jobs() {
    let mut service = Service::new();
    let guarded = service.guarded();
    let quotas = TokenQuotas { max_waiting_jobs: Some(2), ..TokenQuotas::default() };
    let limited = token_with(&service, "shop", Scope::Manage, quotas).await;
    let free = token_with(&service, "other", Scope::Manage, TokenQuotas::default()).await;
    let schedule = json!({"spec": {"every_seconds": 60}, "overlap": "queue_all", "job": {"kind": "k"}});
    let path = "/v1/schedules/minutely";
    assert_eq!(ask(&guarded, "PUT", path, &limited, &schedule.to_string()).await.status, 201);
    let trigger = format!("{path}/trigger");
    let id = service.tenure().new_id();
    let with_id = json!({ "id": id.to_string() }).to_string();
    for body in ["", with_id.as_str()] {
        let told = ask(&guarded, "POST", &trigger, &limited, body).await;
        assert_eq!(
            (told.status.as_u16(), &told.json()["enqueued_by"]),
            (202, &json!("shop")),
            "{}",
            told.text
        );
    }
    let refused = ask(&guarded, "POST", &trigger, &limited, "").await;
    assert_eq!((refused.status.as_u16(), &refused.json()["quota"]), (429, &json!("max_waiting_jobs")));
    assert_eq!(ask(&guarded, "POST", &trigger, &limited, &with_id).await.status, 202, "a repeated request");
    service.advance(Duration::from_secs(3600));
    let (now, backfill) = (service.tenure().now(), format!("{path}/backfill"));
    let from = now.before(Duration::from_secs(3600));
    let span = |dry_run| json!({"from": from, "to": now, "again": true, "dry_run": dry_run}).to_string();
    let refused = ask(&guarded, "POST", &backfill, &limited, &span(false)).await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    assert_eq!(ask(&guarded, "POST", &backfill, &limited, &span(true)).await.status, 200);
    let told = ask(&guarded, "POST", &backfill, &free, &span(false)).await;
    assert_eq!(told.status, 202, "{}", told.text);
}
