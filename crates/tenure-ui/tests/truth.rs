//! What pages tell is so: of many things as of few, of what could not be read, and of who may do what.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::site;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use site::{Site, token};
use tenure::{Chance, Clock, ManualClock, MemoryStore, Moment, Tenure, TimerDraft, Timestamp, when};
use tenure_http::{Access, NewAccessToken, Options, Reach, Scope, Server, Tokens};
use tenure_ui::Dashboard;

const JSON: &str = "content-type: application/json\r\n";

fn guarded() -> Options {
    let mut options = Options::default();
    options.access = Access::Tokens;
    options
}

async fn enqueue(site: &Site, jobs: Vec<Value>) {
    let body = json!({ "jobs": jobs }).to_string();
    let sent = site.ask("POST /v1/jobs/batch", JSON, &body).await;
    assert!(sent.starts_with("HTTP/1.1 20"), "{sent}");
}

/// The cookie of somebody who has signed in with a token that reaches one queue only.
async fn of_one_queue(site: &Site) -> String {
    of_queues(site, "mail").await
}

async fn of_queues(site: &Site, queues: &str) -> String {
    let new = NewAccessToken {
        name: "a person".to_owned(),
        scopes: vec![Scope::Read],
        reach: Reach::new(&[queues.to_owned()], &[]).unwrap(),
        keep: None,
        quotas: tenure_http::TokenQuotas::default(),
    };
    let (_, text) = Tokens::of(&site.tenure).create(new).await.unwrap();
    let answer =
        site.act("/ui/sign-in", "", &format!("token={}&access_token={text}", site.token().await)).await;
    let (_, cookie) = answer.split_once("set-cookie: ").unwrap();
    format!("cookie: {}\r\n", cookie.split_once(';').unwrap().0)
}

#[tokio::test]
async fn who_guesses_tokens_where_people_sign_in_is_held_up_as_anywhere_else() {
    let mut options = guarded();
    options.unknown_tokens_per_minute = 5;
    // All within a minute, however long it takes.
    let store = MemoryStore::new(Arc::new(ManualClock::new()));
    let site = Site::on(Tenure::on(Arc::new(store), Chance::seeded(1)), options).await;
    let form = site.token().await;
    for at in 0..8 {
        let guess = format!("token={form}&access_token=guess{at}");
        let answer = site.act("/ui/sign-in", "", &guess).await;
        let expected = if at < 5 { "HTTP/1.1 401" } else { "HTTP/1.1 429" };
        assert!(answer.starts_with(expected), "{at}: {answer}");
    }
    // It is one count for the pages and the routes of the contract.
    let bearer = "authorization: Bearer guess\r\n";
    let answer = site.ask("GET /v1/whoami", bearer, "").await;
    assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
}

#[tokio::test]
async fn servers_of_one_store_take_each_others_forms_and_make_the_same_pages() {
    let tenure = Tenure::open("memory:").await.unwrap();
    let (one, other) =
        (Site::on(tenure.clone(), Options::default()).await, Site::on(tenure, Options::default()).await);
    one.enqueue("echo").await;
    let run = |page: &str| page.split_once("data-run=\"").unwrap().1.split_once('"').unwrap().0.to_owned();
    assert_eq!(run(&one.get("/ui/").await), run(&other.get("/ui/").await));
    let fields = format!("token={}", one.token().await);
    let answer = other.act("/ui/queues/mail/pause", "", &fields).await;
    assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
    // A store of somebody else's has another key.
    let elsewhere = Site::open(Options::default()).await;
    let answer = elsewhere.act("/ui/queues/mail/pause", "", &fields).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

#[tokio::test]
async fn what_fires_next_and_who_holds_what_is_found_among_many() {
    let site = Site::open(Options::default()).await;
    for at in 0..105 {
        let daily = r#"{"spec":{"every_seconds":86400},"job":{"kind":"close"}}"#;
        let answer = site.ask(&format!("PUT /v1/schedules/a-{at:03}"), JSON, daily).await;
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
        let taken = site
            .ask(&format!("POST /v1/leases/a-{at:03}/acquire"), JSON, r#"{"owner":"me","ttl_seconds":600}"#)
            .await;
        let told: Value = serde_json::from_str(taken.split_once("\r\n\r\n").unwrap().1).unwrap();
        let back = json!({ "token": told["token"] }).to_string();
        let freed = site.ask(&format!("POST /v1/leases/a-{at:03}/release"), JSON, &back).await;
        assert!(freed.starts_with("HTTP/1.1 204"), "{freed}");
    }
    let soon = r#"{"spec":{"every_seconds":60},"job":{"kind":"close"}}"#;
    site.ask("PUT /v1/schedules/zz-soon", JSON, soon).await;
    site.ask("POST /v1/leases/zz-held/acquire", JSON, r#"{"owner":"the holder","ttl_seconds":600}"#).await;
    let page = site.get("/ui/").await;
    assert!(page.contains("/ui/schedules/zz-soon"), "{page}");
    assert!(page.contains("/ui/leases/zz-held") && !page.contains("No leases are held"), "{page}");
    let first = site.get("/v1/schedules?order=next&limit=1").await;
    assert!(first.contains("zz-soon") && !first.contains("a-000"), "{first}");
    let held = site.get("/v1/leases?held=true").await;
    assert!(held.contains("the holder") && !held.contains("a-000"), "{held}");
    for wrong in
        ["/v1/schedules?order=last", "/v1/schedules?order=next&cursor=a-000", "/v1/leases?held=perhaps"]
    {
        let answer = site.get(wrong).await;
        assert!(answer.starts_with("HTTP/1.1 4"), "{wrong}: {answer}");
    }
}

/// A clock of a busy server: between one look at it and the next so many milliseconds go by.
#[derive(Debug, Clone, Default)]
struct Busy {
    clock: ManualClock,
    between: Arc<AtomicU64>,
}

impl Busy {
    async fn site(&self) -> Site {
        let store = MemoryStore::new(Arc::new(self.clone()));
        Site::on(Tenure::on(Arc::new(store), Chance::seeded(1)), Options::default()).await
    }

    fn is_so_busy(&self, millis: u64) {
        self.between.store(millis, Ordering::Relaxed);
    }
}

impl Clock for Busy {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn moment(&self) -> Moment {
        self.clock.advance(Duration::from_millis(self.between.load(Ordering::Relaxed)));
        self.clock.moment()
    }

    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.clock.sleep(span)
    }
}

async fn fill(site: &Site, count: u64) {
    let jobs = |from: u64| (from..from + 1_000).map(|n| json!({"kind": "fill", "args": {"n": n}})).collect();
    for begin in (0..count).step_by(1_000) {
        enqueue(site, jobs(begin)).await;
    }
}

#[tokio::test]
async fn a_busy_server_gives_up_a_search_that_no_index_helps_and_says_how_far_it_looked() {
    let busy = Busy::default();
    let site = busy.site().await;
    fill(&site, 22_000).await;
    busy.is_so_busy(150);
    let none = site.get("/ui/jobs?q=args.n:3").await;
    assert!(none.contains("No match among the 10,000 jobs searched, back to "), "{none}");
    assert!(!none.contains("No matching jobs"), "{none}");
    let further = none.split_once("rel=\"next\" href=\"").unwrap().1.split_once('"').unwrap().0;
    let none = site.get(&further.replace("&amp;", "&")).await;
    assert!(none.contains("No match among the 10,000 jobs searched, back to "), "{none}");
    busy.is_so_busy(0);
    let found = site.get("/ui/jobs?q=args.n:3").await;
    assert!(found.contains("data-key=") && !found.contains("jobs searched"), "{found}");
}

#[tokio::test]
async fn a_list_without_a_search_says_nothing_of_searches_and_stays_live() {
    let busy = Busy::default();
    let site = busy.site().await;
    fill(&site, 11_000).await;
    enqueue(&site, vec![json!({"kind": "echo", "queue": "mail-1"})]).await;
    let guarded = Site::on(site.tenure.clone(), guarded()).await;
    let some = of_queues(&guarded, "mail-*").await;
    let page = guarded.ask("GET /ui/jobs", &some, "").await;
    assert!(page.contains("data-key=") && page.contains("Older jobs →"), "{page}");
    assert!(page.contains("id=\"list\" data-hold data-live") && !page.contains("jobs searched"), "{page}");
    let none = of_queues(&guarded, "post-*").await;
    busy.is_so_busy(150);
    let page = guarded.ask("GET /ui/jobs", &none, "").await;
    assert!(
        page.contains("No match among the 10,000 jobs searched") && !page.contains("No index supports"),
        "{page}"
    );
}

#[tokio::test]
async fn what_was_told_to_be_so_many_or_more_is_done_however_busy_the_server_was_then() {
    let busy = Busy::default();
    let site = busy.site().await;
    fill(&site, 3_000).await;
    busy.is_so_busy(100);
    let search = "created%3A%3E-1h";
    let shown = site.get(&format!("/ui/bulk/new?q={search}")).await;
    assert!(shown.contains("1,000 or more jobs match"), "{shown}");
    assert!(shown.contains("name=\"cut\" value=\"true\""), "{shown}");
    busy.is_so_busy(0);
    let fields = format!("token={}&q={search}&ids=&action=cancel&matched=1000&cut=true", site.token().await);
    let unsure = site.act("/ui/bulk/new", "", &fields).await;
    assert!(unsure.starts_with("HTTP/1.1 422"), "{unsure}");
    let whole =
        site.act("/ui/bulk/new", "", &format!("{}&typed=1000", fields.replace("&cut=true", ""))).await;
    assert!(whole.starts_with("HTTP/1.1 409"), "{whole}");
    busy.is_so_busy(100);
    let done = site.act("/ui/bulk/new", "", &format!("{fields}&typed=1000")).await;
    assert!(done.starts_with("HTTP/1.1 303"), "{done}");
    busy.is_so_busy(0);
    let to = done.split_once("location: ").unwrap().1.split_once("\r\n").unwrap().0;
    let page = site.get(to).await;
    assert!(page.contains("<dd>1,000 or more</dd>"), "{page}");
    let done = site.act("/ui/bulk/new", "", &format!("{fields}&typed=1000")).await;
    assert!(done.starts_with("HTTP/1.1 303"), "{done}");
    let list = site.get("/ui/bulk").await;
    assert!(list.contains(">1,000 or more</td>") && list.contains(">3,000</td>"), "{list}");
}

#[tokio::test]
async fn a_search_that_no_index_helps_looks_further_and_says_how_far() {
    let site = Busy::default().site().await;
    fill(&site, 12_000).await;
    let found = site.get("/ui/jobs?q=args.n:3").await;
    assert!(found.contains("data-key=") && !found.contains("No matching jobs"), "{found}");
    let none = site.get("/ui/jobs?q=args.n:99999").await;
    assert!(none.contains("No matching jobs"), "{none}");
    // Some of the latest ten thousand are, and whether others are is not known.
    let partly = site.get("/ui/jobs?q=args.n:11999").await;
    assert!(partly.contains("Matches among the 10,000 jobs searched, back to "), "{partly}");
    assert!(partly.contains("Search further →"), "{partly}");
    assert!(
        !partly.contains("id=\"list\" data-hold data-live"),
        "what costs much is not asked for again: {partly}"
    );
    assert!(site.get("/ui/jobs").await.contains("id=\"list\" data-hold data-live"));
}

#[tokio::test]
async fn what_could_not_be_read_is_not_told_to_be_empty() {
    let site = Site::open(guarded()).await;
    let cookie = of_one_queue(&site).await;
    let page = site.ask("GET /ui/", &cookie, "").await;
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("Could not load this part: "), "{page}");
    assert!(!page.contains("No leases are held") && !page.contains("No upcoming runs"), "{page}");
}

#[tokio::test]
async fn nothing_is_done_with_many_more_jobs_than_were_shown() {
    let site = Site::open(Options::default()).await;
    let later = |jobs: usize| (0..jobs).map(|_| json!({"kind": "echo", "delay_seconds": 3600.0})).collect();
    enqueue(&site, later(150)).await;
    let fields =
        format!("token={}&q=kind%3Aecho&ids=&action=cancel&matched=150&typed=150", site.token().await);
    enqueue(&site, later(100)).await;
    let answer = site.act("/ui/bulk/new", "", &fields).await;
    assert!(answer.starts_with("HTTP/1.1 409"), "{answer}");
    assert!(answer.contains("150 jobs matched when the page was shown, and 250 match now"), "{answer}");
    assert!(site.get("/ui/bulk").await.contains("No bulk operations yet"));
}

#[tokio::test]
async fn to_look_at_what_would_be_done_is_not_written_down_as_done() {
    let site = Site::open(Options::default()).await;
    enqueue(&site, vec![json!({"kind": "echo", "delay_seconds": 3600.0})]).await;
    let looked = site.get("/ui/bulk/new?q=kind%3Aecho").await;
    assert!(looked.starts_with("HTTP/1.1 200"), "{looked}");
    let audit = site.get("/ui/audit").await;
    assert!(!audit.contains("/v1/bulk"), "{audit}");
    let fields = format!("token={}&q=kind%3Aecho&ids=&action=cancel&matched=1", site.token().await);
    let done = site.act("/ui/bulk/new", "", &fields).await;
    assert!(done.starts_with("HTTP/1.1 303"), "{done}");
    let audit = site.get("/ui/audit").await;
    assert!(audit.contains("/v1/bulk") && audit.contains("Dashboard 127.0.0.1"), "{audit}");
    assert!(audit.contains("kind:echo"), "the change shows the filter: {audit}");
}

#[tokio::test]
async fn the_overview_says_what_is_not_well_and_counts_those_who_run_jobs_of_others() {
    let site = Site::open(Options::default()).await;
    let page = site.get("/ui/").await;
    assert!(page.contains("No jobs yet.") && page.contains("tenure submit hello"), "{page}");
    assert!(!page.contains("No problems") && page.contains("Peak: 0 finished in a minute"), "{page}");
    enqueue(&site, vec![json!({"kind": "echo", "queue": "mail"})]).await;
    let claim = async |kind: &str, id: &str| {
        let body =
            json!({"queues": ["mail"], "kinds": [kind], "worker_id": id, "name": kind, "lease_seconds": 60});
        let answer = site.ask("POST /v1/claim", JSON, &body.to_string()).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(site.get("/ui/workers").await.contains(id));
    };
    claim("tenure.bulk", "01a20712-29aa-76d9-85bf-1bfa769b4511").await;
    let page = site.get("/ui/").await;
    assert!(
        page.contains("value failed\">none<") && page.contains("No workers online, 1 job queued"),
        "{page}"
    );
    site.tenure.queues().pause("mail").await.unwrap();
    assert!(site.get("/ui/").await.contains("queue mail is paused, 1 job waiting"));
    claim("another", "01a20712-29aa-76d9-85bf-1bfa769b4512").await;
    assert!(!site.get("/ui/").await.contains("No workers online"));
}

#[tokio::test]
async fn failures_lead_to_those_that_are_counted() {
    let site = Site::open(Options::default()).await;
    let page = site.get("/ui/").await;
    let (_, to) = page.split_once("href=\"/ui/jobs?q=state%3Afailed%20ended").unwrap();
    let to = format!("/ui/jobs?q=state%3Afailed%20ended{}", to.split_once('"').unwrap().0);
    let list = site.get(&to).await;
    assert!(list.starts_with("HTTP/1.1 200") && !list.contains("id=\"wrong\""), "{list}");
}

#[tokio::test]
async fn no_door_is_shown_that_leads_to_a_refusal() {
    let site = Site::open(guarded()).await;
    let viewer = site.signed_in(&[Scope::Read]).await;
    let page = site.ask("GET /ui/new-schedule?rule=daily%2002:30", &viewer, "").await;
    assert!(page.contains("Next runs") && !page.contains("Create schedule"), "{page}");
    assert!(!page.contains("\"/ui/webhooks\"") && !page.contains("\"/ui/audit\""), "{page}");
    let manager = site.signed_in(&[Scope::Manage]).await;
    let page = site.ask("GET /ui/new-schedule", &manager, "").await;
    assert!(page.contains("Create schedule"), "{page}");
    assert!(page.contains("\"/ui/webhooks\"") && !page.contains("\"/ui/audit\""), "{page}");
    let admin = site.signed_in(&[Scope::Admin]).await;
    assert!(site.ask("GET /ui/", &admin, "").await.contains("\"/ui/audit\""));
    for scope in [Scope::Enqueue, Scope::Work] {
        let new = NewAccessToken {
            name: "a program".to_owned(),
            scopes: vec![scope],
            reach: Reach::default(),
            keep: None,
            quotas: tenure_http::TokenQuotas::default(),
        };
        let (_, text) = Tokens::of(&site.tenure).create(new).await.unwrap();
        let form = token(&site.get("/ui/sign-in").await);
        let answer = site.act("/ui/sign-in", "", &format!("token={form}&access_token={text}")).await;
        assert!(
            answer.starts_with("HTTP/1.1 403") && answer.contains("cannot open the dashboard"),
            "{answer}"
        );
        assert!(!answer.contains("set-cookie"), "{answer}");
    }
}

#[tokio::test]
async fn behind_a_proxy_that_takes_a_prefix_off_links_lead_through_it() {
    let tenure = Tenure::open("memory:").await.unwrap();
    let mut options = Options::default();
    options.bind = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let server = Server::bind(&tenure, options).await.unwrap();
    let pages = Dashboard::over(&tenure, server.contract()).behind("/jobs-admin/").mounted();
    let server = server.merge(pages);
    let site = Site { at: server.address(), api: server.contract(), tenure };
    tokio::spawn(server.run(std::future::pending()));
    for at in ["/", "/ui"] {
        assert!(site.get(at).await.contains("location: /jobs-admin/ui/\r\n"), "{at}");
    }
    let page = site.get("/ui/").await;
    assert!(
        page.contains("href=\"/jobs-admin/ui/jobs\"") && page.contains("\"/jobs-admin/ui/assets/"),
        "{page}"
    );
    assert!(page.contains("data-home=\"/jobs-admin/ui/\"") && !page.contains("\"/ui/"), "{page}");
    site.enqueue("echo").await;
    let done = site.act("/ui/queues/mail/pause", "", &format!("token={}", site.token().await)).await;
    assert!(done.contains("location: /jobs-admin/ui/queues/mail?did=pause"), "{done}");
}

/// Of a month to come, whenever this is tried.
#[tokio::test]
async fn a_month_says_what_is_not_counted_and_where_it_stopped() {
    const DAY: u64 = 86_400;
    let site = Site::open(Options::default()).await;
    let timers = site.tenure.timers();
    let every = |seconds: u64| when::every(std::time::Duration::from_secs(seconds));
    let raw = |name: &str, when: when::When| TimerDraft::raw(name, when, "close", &json!({}));
    timers.set(raw("a-few", every(1).times(1_000_000_000))).await.unwrap();
    timers.set(raw("b-daily", every(DAY))).await.unwrap();
    let page = site.get("/ui/calendar?month=2035-03").await;
    assert!(page.contains("never shown as free: a-few."), "{page}");
    assert!(page.contains("not counted</td>") && !page.contains("more than once a minute"), "{page}");
    // What is behind it is counted as if it were alone, and it leaves no hour that is known to be free.
    assert!(
        page.contains("<td class=\"number\">35</td>") && !page.contains("Longest free period: "),
        "{page}"
    );
    timers.remove("a-few").await.unwrap();
    let page = site.get("/ui/calendar?month=2035-03").await;
    assert!(page.contains("Longest free period: ") && !page.contains("not counted"), "{page}");
    for number in 0..2_000 {
        timers.set(raw(&format!("c-{number:04}"), every(DAY))).await.unwrap();
    }
    let page = site.get("/ui/calendar?month=2035-03").await;
    assert!(page.contains("up to c-1998, by name") && !page.contains("Longest free period: "), "{page}");
}
