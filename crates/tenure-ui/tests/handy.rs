//! What makes the dashboard handy: columns and views of the list of jobs, taking back a pause, slots that have passed.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::site;

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use site::{ID, Site, token};
use tenure::{Chance, ManualClock, MemoryStore, Tenure, Timestamp};
use tenure_http::{Access, Options, Scope};

const JSON: &str = "content-type: application/json\r\n";

/// A server whose clock is moved by hand: it is noon.
async fn at_noon() -> (Site, ManualClock) {
    let clock = ManualClock::new();
    let noon: Timestamp = "2026-11-24T12:00:00Z".parse().unwrap();
    clock.advance(noon.since(tenure::Clock::now(&clock)));
    let store = MemoryStore::new(Arc::new(clock.clone()));
    let tenure = Tenure::on(Arc::new(store), Chance::seeded(1));
    (Site::on(tenure, Options::default()).await, clock)
}

fn header<'a>(answer: &'a str, name: &str) -> &'a str {
    let (_, rest) = answer.split_once(&format!("{name}: ")).unwrap_or_else(|| panic!("{answer}"));
    rest.split_once("\r\n").unwrap().0
}

/// What stands in a hidden field of a form.
fn value_of(page: &str, name: &str) -> String {
    let (_, rest) = page.split_once(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("{page}"));
    rest.split_once('"').unwrap().0.to_owned()
}

#[tokio::test]
async fn the_columns_of_the_list_are_those_of_its_address_and_every_way_on_keeps_them() {
    let site = Site::open(Options::default()).await;
    site.enqueue("echo").await;
    let usual = site.get("/ui/jobs").await;
    assert!(
        usual.contains("<th scope=\"col\">Queue</th>") && !usual.contains("<th scope=\"col\">Due</th>"),
        "{usual}"
    );
    let chosen = site.get("/ui/jobs?state=scheduled&col=due&col=args&col=nonsense").await;
    assert!(chosen.contains("<th scope=\"col\">Due</th><th scope=\"col\">Args</th></tr>"), "{chosen}");
    assert!(!chosen.contains("<th scope=\"col\">Queue</th>") && !chosen.contains("<img"), "{chosen}");
    assert!(chosen.contains("jobs?state=failed&amp;q=&amp;col=due&amp;col=args\""), "{chosen}");
    assert!(chosen.contains("<input type=\"hidden\" name=\"col\" value=\"args\">"), "{chosen}");
}

#[tokio::test]
async fn a_view_is_kept_in_the_browser_and_forgotten_and_a_stranger_cannot_send_one() {
    let site = Site::open(Options::default()).await;
    let token = site.token().await;
    let keep = format!("token={token}&name=my+failures&query=q%3Dkind%253Aecho%26state%3Dfailed");
    let answer = site.act("/ui/views", "", &keep).await;
    assert_eq!(header(&answer, "location"), "/ui/jobs?q=kind%3Aecho&state=failed&did=view");
    let cookie = header(&answer, "set-cookie");
    assert!(cookie.contains("HttpOnly; SameSite=Strict") && cookie.contains("Path=/ui/"), "{cookie}");
    let cookie = format!("cookie: {}\r\n", cookie.split_once(';').unwrap().0);
    let page = site.ask("GET /ui/jobs?q=kind:echo&state=failed", &cookie, "").await;
    assert!(
        page.contains("href=\"/ui/jobs?q=kind%3Aecho&amp;state=failed\" aria-current=\"true\">my failures"),
        "{page}"
    );
    for wrong in ["a%0D%0Ab", "a%00", "a%23b"] {
        for to in ["/ui/views", "/ui/views/forget"] {
            let answer =
                site.act(to, &cookie, &format!("token={token}&name=my+failures&query={wrong}")).await;
            assert!(
                answer.starts_with("HTTP/1.1 422") && !answer.contains("set-cookie"),
                "{to} {wrong}: {answer}"
            );
        }
    }
    let forget = format!("token={token}&name=my+failures&query=");
    let answer = site.act("/ui/views/forget", &cookie, &forget).await;
    assert!(header(&answer, "set-cookie").starts_with("tenure_views=;"), "{answer}");
    assert!(site.act("/ui/views", "", "token=guessed&name=x&query=").await.starts_with("HTTP/1.1 403"));
    assert!(
        site.act("/ui/views", "", &format!("token={token}&name=&query=")).await.starts_with("HTTP/1.1 422")
    );
}

#[tokio::test]
async fn a_pause_is_taken_back_where_it_is_told() {
    let site = Site::open(Options::default()).await;
    site.enqueue("echo").await;
    let fields = format!("token={}", site.token().await);
    let answer = site.act("/ui/queues/mail/pause", "", &fields).await;
    let page = site.get(header(&answer, "location")).await;
    let notice = page.split_once("role=\"status\"").unwrap().1.split_once("</div>").unwrap().0;
    assert!(notice.contains("action=\"/ui/queues/mail/resume\"") && notice.contains("Undo"), "{notice}");
    let answer = site.act("/ui/queues/mail/resume", "", &fields).await;
    assert!(!site.get(header(&answer, "location")).await.contains("Ⅱ paused"));
    // Nothing is offered of what cannot be taken back, nor to somebody who was led here.
    let cancelled = site.get(&format!("/ui/jobs/{ID}?did=cancel")).await;
    assert!(!cancelled.contains("Undo"), "{cancelled}");
    let led = site.ask("GET /ui/queues/mail?did=pause", "sec-fetch-site: cross-site\r\n", "").await;
    assert!(!led.contains("Undo"), "{led}");
}

#[tokio::test]
async fn a_job_that_waits_for_its_time_is_called_off_only_after_it_was_said_what_is_meant() {
    let site = Site::open(Options::default()).await;
    site.enqueue("echo").await;
    let page = site.get(&format!("/ui/jobs/{ID}")).await;
    let asks = page.split_once("Cancel…").unwrap().1.split_once("</details>").unwrap().0;
    assert!(asks.contains("echo, due <time") && asks.contains("cannot be undone"), "{asks}");
    assert!(asks.contains("data-does=\"cancel\""), "{asks}");
}

#[tokio::test]
async fn slots_that_have_passed_are_shown_and_then_get_their_jobs() {
    let (site, clock) = at_noon().await;
    let hourly = r#"{"spec":{"text":"every 1h"},"overlap":"queue_one","max_lateness_seconds":60,"job":{"kind":"tidy"}}"#;
    assert!(site.ask("PUT /v1/schedules/hourly", JSON, hourly).await.starts_with("HTTP/1.1 201"));
    site.ask("POST /v1/schedules/hourly/pause", JSON, "{}").await;
    clock.advance(Duration::from_secs(5 * 3600));
    let page = site.get("/ui/schedules/hourly").await;
    for said in ["queue one more", "Skip if late by</dt><dd>60 s", "value=\"2026-11-24T17:00\""] {
        assert!(page.contains(said), "{said}: {page}");
    }
    let shown = site.get("/ui/schedules/hourly?from=2026-11-24T12:30&to=2026-11-24T15:30").await;
    assert!(shown.contains("3 runs: 2026-11-24 13:00:00") && shown.contains("Enqueue 3 jobs"), "{shown}");
    // Whoever only looks has done nothing that is written down.
    let audit = site.get("/ui/audit").await;
    assert!(audit.contains("/v1/schedules/hourly/pause") && !audit.contains("/backfill"), "{audit}");
    let (from, to) = ("2026-11-24T12%3A30%3A00Z", "2026-11-24T15%3A30%3A00Z");
    let fields = format!("token={}&from={from}&to={to}", site.token().await);
    let many = site.act("/ui/schedules/hourly/backfill", "", &format!("{fields}&slots=101&typed=1")).await;
    assert!(many.starts_with("HTTP/1.1 422"), "{many}");
    for _ in 0..2 {
        let answer = site.act("/ui/schedules/hourly/backfill", "", &format!("{fields}&slots=3")).await;
        assert_eq!(header(&answer, "location"), "/ui/schedules/hourly?did=backfill");
        let jobs = site.get("/v1/jobs?kind=tidy").await;
        let jobs: Value = serde_json::from_str(jobs.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(jobs["items"].as_array().unwrap().len(), 3, "no slot gets a second job");
    }
    // What became of the jobs stands beside their slots.
    let page = site.get("/ui/schedules/hourly?did=backfill").await;
    assert!(page.contains("state queued") && page.contains("Backfill enqueued"), "{page}");
    let empty = site.get("/ui/schedules/hourly?from=2026-11-24T12:30&to=2026-11-24T12:45").await;
    assert!(empty.contains("No missed runs"), "{empty}");
    let wrong = site.get("/ui/schedules/hourly?from=2026-11-24T15:30&to=2026-11-24T12:30").await;
    assert!(wrong.contains("role=\"alert\""), "{wrong}");
}

#[tokio::test]
async fn a_job_is_filled_in_and_enqueued_once_however_often_the_form_is_sent() {
    let (site, _) = at_noon().await;
    let form = site.get("/ui/new-job?kind=report").await;
    assert!(form.contains("name=\"kind\" value=\"report\""), "{form}");
    let form_id = value_of(&form, "id");
    let filled = format!(
        "token={}&id={form_id}&kind=report&queue=mail&args=%7B%22a%22%3A1%7D&due=2026-11-24T13%3A30&priority=-5&tags=vip+urgent",
        site.token().await
    );
    let mut made = String::new();
    for _ in 0..2 {
        let answer = site.act("/ui/new-job", "", &filled).await;
        let place = header(&answer, "location").to_owned();
        assert!(place.ends_with("?did=enqueue") && (made.is_empty() || made == place), "{made} {place}");
        made = place;
    }
    let id = made.trim_start_matches("/ui/jobs/").split_once('?').unwrap().0.to_owned();
    let jobs = site.get("/v1/jobs").await;
    let jobs: Value = serde_json::from_str(jobs.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(jobs["items"].as_array().unwrap().len(), 1, "{jobs}");
    let job = &jobs["items"][0];
    assert_eq!(
        (&job["kind"], &job["queue"], &job["priority"]),
        (&"report".into(), &"mail".into(), &(-5).into())
    );
    assert_eq!(
        (&job["run_at"], &job["args"]["a"]),
        (&"2026-11-24T13:30:00.000000Z".into(), &1.into()),
        "{job}"
    );
    assert_eq!(job["tags"], serde_json::json!(["vip", "urgent"]));
    // Whoever goes back and writes something else, or less, means another job.
    for (from, to) in
        [("13%3A30", "14%3A30"), ("&tags=vip+urgent", "&tags="), ("&due=2026-11-24T13%3A30", "&due=")]
    {
        let place =
            header(&site.act("/ui/new-job", "", &filled.replace(from, to)).await, "location").to_owned();
        assert!(place.ends_with("?did=enqueue") && place != made, "{to}: {place}");
    }
    // A time that is over is no other time when it is sent again.
    let over = filled.replace("2026-11-24T13%3A30", "2020-01-01T00%3A00");
    let first = header(&site.act("/ui/new-job", "", &over).await, "location").to_owned();
    assert_eq!(header(&site.act("/ui/new-job", "", &over).await, "location"), first);
    // What is written is what is sent, to the last digit.
    let exact = filled.replace("%7B%22a%22%3A1%7D", "12345678901234567890123");
    let place = header(&site.act("/ui/new-job", "", &exact).await, "location").to_owned();
    let sent = site
        .get(&format!("/v1/jobs/{}", place.trim_start_matches("/ui/jobs/").split_once('?').unwrap().0))
        .await;
    assert!(sent.contains("\"args\":12345678901234567890123,"), "{sent}");
    // Another like it begins with what this one has.
    let like = site.get(&format!("/ui/new-job?like={id}")).await;
    assert!(like.contains("&quot;a&quot;: 1") && like.contains("value=\"vip urgent\""), "{like}");
}

#[tokio::test]
async fn what_is_wrong_with_a_job_is_told_where_it_is_filled_in_and_nothing_is_lost() {
    let (site, _) = at_noon().await;
    let token = site.token().await;
    for (fields, says) in [
        ("kind=a&args=%7B", "not valid JSON"),
        ("kind=&args=1", "kind"),
        ("kind=a&args=1&due=tomorrow", "is not a time"),
        ("kind=a&args=1&priority=high", "is not a whole number"),
        ("kind=a&args=1&priority=900", "priority"),
        ("kind=a&args=1&queue=a%20b", "queue"),
        ("kind=a&args=%5B%22(hidden)%22%5D", "Replace it"),
    ] {
        let answer = site.act("/ui/new-job", "", &format!("token={token}&id=&{fields}&tags=kept")).await;
        assert!(answer.starts_with("HTTP/1.1 422"), "{fields}: {answer}");
        let (_, alert) = answer.split_once("role=\"alert\">").unwrap_or_else(|| panic!("{fields}: {answer}"));
        let alert = alert.split_once('<').unwrap().0;
        assert!(alert.contains(says) && answer.contains("value=\"kept\""), "{fields}: {alert}");
        // It is told at its field, which has the keyboard.
        assert!(answer.contains("aria-describedby=\"wrong\" autofocus"), "{fields}: {answer}");
    }
    let berlin = "cookie: tenure_zone=Europe/Berlin\r\n";
    let gap = format!("token={token}&id=&kind=a&args=1&due=2027-03-28T02%3A30");
    assert!(site.act("/ui/new-job", berlin, &gap).await.contains("does not exist in"));
    assert!(site.act("/ui/new-job", "", "token=guessed&id=&kind=a").await.starts_with("HTTP/1.1 403"));
    assert!(site.get("/v1/jobs").await.contains("\"items\":[]"));
}

#[tokio::test]
async fn what_is_hidden_is_revealed_once_to_whoever_may_and_that_is_written_down() {
    let mut options = Options::default();
    options.access = Access::Tokens;
    let site = Site::open(options).await;
    let boss = site.signed_in(&[Scope::Admin]).await;
    let token = token(&site.ask("GET /ui/new-job", &boss, "").await);
    let filled = format!("token={token}&id={ID}&kind=login&args=%7B%22password%22%3A%22sesame%22%7D");
    let made = header(&site.act("/ui/new-job", &boss, &filled).await, "location").to_owned();
    let made = made.trim_start_matches("/ui/jobs/").split_once('?').unwrap().0.to_owned();
    let page = site.ask(&format!("GET /ui/jobs/{made}"), &boss, "").await;
    assert!(page.contains("(hidden)") && page.contains("Reveal") && !page.contains("sesame"), "{page}");
    // What is hidden is not carried over into another job without a word.
    let like = site.ask(&format!("GET /ui/new-job?like={made}"), &boss, "").await;
    assert!(like.contains("Replace them") && !like.contains("sesame"), "{like}");
    let reveal = format!("/ui/jobs/{made}/reveal");
    assert!(site.act(&reveal, &boss, "token=guessed").await.starts_with("HTTP/1.1 403"));
    let shown = site.act(&reveal, &boss, &format!("token={token}")).await;
    // It does not ask for itself again.
    assert!(shown.contains("sesame") && !shown.contains("data-live=\"\""), "{shown}");
    // Whoever loads that page again by its address is led to the job.
    let again = site.ask(&format!("GET {reveal}"), &boss, "").await;
    assert_eq!(header(&again, "location"), format!("/ui/jobs/{made}"));
    let audit = site.ask("GET /ui/audit", &boss, "").await;
    assert_eq!(audit.matches("?reveal=true").count(), 2, "of the job and of its attempts: {audit}");
    let guest = site.signed_in(&[Scope::Read]).await;
    let page = site.ask(&format!("GET /ui/jobs/{made}"), &guest, "").await;
    assert!(page.contains("(hidden)") && !page.contains("Reveal") && !page.contains("new-job"), "{page}");
    let own = site::token(&page_with_token(&site, &guest).await);
    let refused = site.act(&reveal, &guest, &format!("token={own}")).await;
    assert!(refused.starts_with("HTTP/1.1 403") && !refused.contains("sesame"), "{refused}");
}

/// A page with a form for whoever has this cookie.
async fn page_with_token(site: &Site, cookie: &str) -> String {
    site.ask("GET /ui/settings", cookie, "").await
}

#[tokio::test]
async fn events_of_one_job_are_shown_by_themselves() {
    let site = Site::open(Options::default()).await;
    // From now on what happens is written down.
    site.get("/ui/events").await;
    let ids: Vec<String> = (0..3).map(|at| ID.replace("451a", &format!("451{at}"))).collect();
    for id in &ids {
        site.ask(&format!("PUT /v1/jobs/{id}"), JSON, r#"{"kind":"echo","args":null}"#).await;
        site.ask(&format!("POST /v1/jobs/{id}/cancel"), JSON, "{}").await;
    }
    let page = site.get(&format!("/ui/jobs/{}", ids[1])).await;
    assert!(page.contains(&format!("events?of=jobs&amp;about={}", ids[1])), "{page}");
    let mut told = String::new();
    for _ in 0..20_000 {
        told = site.get(&format!("/ui/events?of=jobs&about={}", ids[1])).await;
        if told.contains("job.cancelled") {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!(told.contains("job.cancelled") && told.contains(&format!("jobs/{}", ids[1])), "{told}");
    assert!(
        !told.contains(&format!("jobs/{}", ids[0])) && !told.contains(&format!("jobs/{}", ids[2])),
        "{told}"
    );
}

#[tokio::test]
async fn events_are_narrowed_to_a_queue_and_a_kind() {
    let site = Site::open(Options::default()).await;
    let page = site.get("/ui/events?of=jobs&queue=mail&kind=echo").await;
    assert!(page.contains("events?of=leases&amp;queue=mail&amp;kind=echo"), "{page}");
    assert!(page.contains("name=\"queue\" type=\"search\" value=\"mail\""), "{page}");
}

/// What a browser loads once beside the pages, compressed as a proxy would do it.
const MOST_BYTES: usize = 150 * 1024;
/// Where such files lie.
const ASSETS: &str = "/ui/assets/";

#[tokio::test]
async fn what_is_loaded_beside_a_page_is_small() {
    let site = Site::open(Options::default()).await;
    let mut wanted = BTreeSet::new();
    for page in ["", "jobs", "settings", "calendar", "apps"] {
        let page = site.get(&format!("/ui/{page}")).await;
        let named = page.split(ASSETS).skip(1).filter_map(|rest| rest.split('"').next());
        wanted.extend(named.map(|name| format!("{ASSETS}{name}")));
        // What comes from elsewhere, or within a page, would not be counted.
        assert!(!page.contains("<style") && page.matches("<script").count() == 1, "{page}");
        assert!(!page.contains("src=\"http") && !page.contains("src=\"//"), "{page}");
    }
    let mut all = 0;
    for asset in &wanted {
        let answer = site.get(asset).await;
        let (head, text) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200") && !text.is_empty(), "{asset}: {head}");
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(text.as_bytes()).unwrap();
        all += packed.finish().unwrap().len();
        // They load nothing more, which would not be counted either.
        assert!(
            !text.contains("@import") && !text.contains("url(http") && !text.contains("import("),
            "{asset}"
        );
    }
    assert!(wanted.len() >= 3, "a style sheet, a script and an icon: {wanted:?}");
    println!("{} files of {all} bytes, compressed", wanted.len());
    assert!(all < MOST_BYTES, "{all} bytes, compressed");
}
