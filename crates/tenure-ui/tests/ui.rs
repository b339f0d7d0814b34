//! The dashboard as browsers ask for it: over HTTP, from a server that listens.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]
#![allow(clippy::disallowed_methods, reason = "a server takes real time to end")]

use crate::site;

use std::net::SocketAddr;
use std::time::Duration;

use site::{FORM, ID, Site, token};
use tenure::Tenure;
use tenure_http::{Access, NewAccessToken, Options, Reach, Scope, Server, Tokens};
use tenure_ui::Dashboard;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

#[tokio::test]
async fn each_page_is_served_with_a_strict_policy() {
    let site = Site::open(Options::default()).await;
    site.enqueue("echo").await;
    let job = format!("/ui/jobs/{ID}");
    for page in [
        "/ui/",
        "/ui/jobs",
        &job,
        "/ui/queues",
        "/ui/schedules",
        "/ui/leases",
        "/ui/workers",
        "/ui/kinds",
        "/ui/calendar",
        "/ui/calendar?week=2026-03-25",
        "/ui/calendar?week=nonsense",
        "/ui/events",
        "/ui/events?of=jobs",
        "/ui/audit",
        "/ui/calendar?month=2026-03",
        "/ui/new-schedule",
        "/ui/new-schedule?rule=daily%2002:30",
        "/ui/queues/mail",
        "/ui/kinds/echo",
        "/ui/bulk",
        "/ui/bulk/new?q=kind:echo",
        "/ui/webhooks",
        "/ui/settings",
        "/ui/settings?zone=%3Cb%3E",
        "/ui/sign-in",
    ] {
        let answer = site.get(page).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{page}: {answer}");
        let policy = "content-security-policy: default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
        for said in [
            policy,
            "server-timing: page;dur=",
            "x-robots-tag: noindex",
            "referrer-policy: same-origin",
            "cache-control: no-store",
        ] {
            assert!(answer.contains(said), "{page} lacks {said}");
        }
        for inline in ["<style", " style=", "<script>", " onclick"] {
            assert!(!answer.contains(inline), "{page} has {inline}");
        }
    }
    assert!(site.get("/").await.contains("location: /ui/"));
}

#[tokio::test]
async fn what_a_job_says_is_shown_as_text() {
    let site = Site::open(Options::default()).await;
    site.enqueue("echo").await;
    let page = site.get(&format!("/ui/jobs/{ID}")).await;
    assert!(!page.contains("<img") && !page.contains("<script>alert"), "{page}");
    assert!(page.contains("&lt;img src=x onerror"), "{page}");
    let searched = site.get("/ui/jobs?q=%22%3E%3Cimg%20src=x%3E").await;
    assert!(!searched.contains("<img"), "{searched}");
}

#[tokio::test]
async fn a_job_is_cancelled_by_a_form_and_the_page_says_so() {
    let site = Site::open(Options::default()).await;
    site.enqueue("echo").await;
    let (path, token) = (format!("/ui/jobs/{ID}"), site.token().await);
    let answer = site.act(&format!("{path}/cancel"), "", &format!("token={token}")).await;
    assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
    assert!(answer.contains(&format!("location: {path}?did=cancel")), "{answer}");
    let page = site.get(&format!("{path}?did=cancel")).await;
    assert!(page.contains("state cancelled") && page.contains("role=\"status\""), "{page}");
}

#[tokio::test]
async fn a_form_of_somebody_elses_page_is_refused() {
    let site = Site::open(Options::default()).await;
    site.enqueue("echo").await;
    let (path, token) = (format!("/ui/jobs/{ID}/cancel"), site.token().await);
    let good = format!("token={token}");
    let own = format!("origin: http://{}\r\n", site.at);
    for (headers, body) in [
        ("sec-fetch-site: cross-site\r\n", good.as_str()),
        ("sec-fetch-site: same-site\r\n", &good),
        ("origin: http://elsewhere.example\r\n", &good),
        ("", &good),
        ("sec-fetch-site: same-origin\r\n", "token=guessed"),
        ("sec-fetch-site: same-origin\r\n", ""),
        (&own, "token=guessed"),
    ] {
        let answer = site.ask(&format!("POST {path}"), &format!("{FORM}{headers}"), body).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{headers}{body}: {answer}");
    }
    assert!(site.get(&format!("/ui/jobs/{ID}")).await.contains("state scheduled"));
    let answer = site.ask(&format!("POST {path}"), &format!("{FORM}{own}"), &good).await;
    assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
}

#[tokio::test]
async fn a_browser_that_tells_nobody_where_it_was_has_its_forms_taken() {
    let site = Site::open(Options::default()).await;
    site.enqueue("echo").await;
    let fields = format!("token={}", site.token().await);
    let path = format!("POST /ui/jobs/{ID}/cancel");
    let secret = "origin: null\r\n";
    let elsewhere = site.ask(&path, &format!("{FORM}{secret}sec-fetch-site: cross-site\r\n"), &fields).await;
    assert!(elsewhere.starts_with("HTTP/1.1 403"), "{elsewhere}");
    let unsaid = site.ask(&path, &format!("{FORM}{secret}"), &fields).await;
    assert!(unsaid.starts_with("HTTP/1.1 403"), "{unsaid}");
    let here = site.ask(&path, &format!("{FORM}{secret}sec-fetch-site: same-origin\r\n"), &fields).await;
    assert!(here.starts_with("HTTP/1.1 303"), "{here}");
}

#[tokio::test]
async fn a_server_that_only_tells_shows_no_actions_and_takes_none() {
    let mut options = Options::default();
    options.read_only = true;
    let site = Site::open(options).await;
    site.tenure.queues().pause("mail").await.unwrap();
    let page = site.get("/ui/queues").await;
    assert!(page.contains("paused") && !page.contains("/resume"), "{page}");
    let body = format!("token={}", site.token().await);
    let answer = site.act("/ui/queues/mail/resume", "", &body).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert!(site.get("/ui/queues").await.contains("paused"));
}

#[tokio::test]
async fn whoever_has_to_say_who_he_is_signs_in_and_sees_what_he_may() {
    let mut options = Options::default();
    options.access = Access::Tokens;
    let site = Site::open(options).await;
    site.tenure.queues().pause("mail").await.unwrap();
    assert!(site.get("/ui/queues").await.contains("location: /ui/sign-in"));
    let wrong = format!("token={}&access_token=guessed", site.token().await);
    assert!(site.act("/ui/sign-in", "", &wrong).await.starts_with("HTTP/1.1 401"));
    for (scope, acts) in [(Scope::Read, false), (Scope::Manage, true)] {
        let new = NewAccessToken {
            name: "a person".to_owned(),
            scopes: vec![scope, Scope::Read],
            reach: Reach::default(),
            keep: None,
            quotas: tenure_http::TokenQuotas::default(),
        };
        let (_, text) = Tokens::of(&site.tenure).create(new).await.unwrap();
        let body = format!("token={}&access_token={text}", site.token().await);
        let answer = site.act("/ui/sign-in", "", &body).await;
        assert!(answer.contains("HttpOnly; SameSite=Strict") && !answer.contains(&text), "{answer}");
        let (_, cookie) = answer.split_once("set-cookie: ").unwrap();
        let cookie = format!("cookie: {}\r\n", cookie.split_once(';').unwrap().0);
        let page = site.ask("GET /ui/queues", &cookie, "").await;
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        assert_eq!(page.contains("/ui/queues/mail/resume"), acts, "{page}");
        let done = site.act("/ui/queues/mail/resume", &cookie, &format!("token={}", token(&page))).await;
        assert_eq!(done.starts_with("HTTP/1.1 303"), acts, "{done}");
        site.act("/ui/sign-out", &cookie, &format!("token={}", token(&page))).await;
        assert!(site.ask("GET /ui/queues", &cookie, "").await.contains("location: /ui/sign-in"));
    }
}

/// The browser keeps one cookie, so nothing could sign the old session out.
#[tokio::test]
async fn a_second_sign_in_ends_the_session_before() {
    let mut options = Options::default();
    options.access = Access::Tokens;
    let site = Site::open(options).await;
    let before = site.signed_in(&[Scope::Read]).await;
    let page = site.ask("GET /ui/queues", &before, "").await;
    let new = NewAccessToken {
        name: "a person".to_owned(),
        scopes: vec![Scope::Read],
        reach: Reach::default(),
        keep: None,
        quotas: tenure_http::TokenQuotas::default(),
    };
    let (_, text) = Tokens::of(&site.tenure).create(new).await.unwrap();
    let body = format!("token={}&access_token={text}", token(&page));
    let answer = site.act("/ui/sign-in", &before, &body).await;
    let (_, cookie) = answer.split_once("set-cookie: ").unwrap();
    let after = format!("cookie: {}\r\n", cookie.split_once(';').unwrap().0);
    assert!(site.ask("GET /ui/queues", &after, "").await.starts_with("HTTP/1.1 200"));
    assert!(site.ask("GET /ui/queues", &before, "").await.contains("location: /ui/sign-in"));
}

#[tokio::test]
async fn a_lease_is_broken_only_by_whoever_writes_its_name() {
    let site = Site::open(Options::default()).await;
    let json = "content-type: application/json\r\n";
    let body = r#"{"owner":"<b>me</b>","ttl_seconds":600}"#;
    let taken = site.ask("POST /v1/leases/reports/acquire", json, body).await;
    assert!(taken.contains("fence"), "{taken}");
    let page = site.get("/ui/leases/reports").await;
    assert!(page.contains("&lt;b&gt;me") && !page.contains("<b>me"), "{page}");
    let token = site.token().await;
    let answer = site.act("/ui/leases/reports/break", "", &format!("token={token}&typed=report")).await;
    assert!(answer.starts_with("HTTP/1.1 422"), "{answer}");
    let answer =
        site.act("/ui/leases/reports/break", "", &format!("token={token}&typed=reports&reason=gone")).await;
    assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
    assert!(site.get("/ui/leases/reports").await.contains("<dt>Holder</dt><dd>none</dd>"));
}

#[tokio::test]
async fn what_is_not_there_is_said_on_a_page_and_a_wrong_search_where_it_is_written() {
    let site = Site::open(Options::default()).await;
    // An id of a time to come: of a job that was and is kept no more it would be said that it is gone.
    for path in ["/ui/nowhere", "/ui/jobs/03a20712-29aa-76d9-85bf-1bfa769b451b", "/ui/leases/none"] {
        let answer = site.get(path).await;
        assert!(
            answer.starts_with("HTTP/1.1 404") && answer.contains("Go to the overview"),
            "{path}: {answer}"
        );
    }
    let answer = site.get("/ui/jobs?q=stat:1").await;
    assert!(answer.contains("unknown field") && answer.contains("value=\"stat:1\""), "{answer}");
}

#[tokio::test]
async fn lines_of_a_log_are_sought_by_what_they_say_and_by_their_stream() {
    let site = Site::open(Options::default()).await;
    let json = "content-type: application/json\r\n";
    let job = format!(r#"{{"id":"{ID}","kind":"echo","queue":"mail"}}"#);
    site.ask("POST /v1/jobs", &format!("{json}prefer: respond-async\r\n"), &job).await;
    let claimed =
        site.ask("POST /v1/claim", json, r#"{"queues":["mail"],"name":"w","lease_seconds":60}"#).await;
    let claimed: serde_json::Value = serde_json::from_str(claimed.split_once("\r\n\r\n").unwrap().1).unwrap();
    let mut lines: Vec<String> = (0..300).map(|at| format!("out: line {at}")).collect();
    lines.push("err: <b>the relay</b> TIMED out".to_owned());
    let said = serde_json::json!({ "token": claimed["jobs"][0]["token"], "first": 1, "lines": lines });
    site.ask(&format!("POST /v1/jobs/{ID}/logs"), json, &said.to_string()).await;
    let at = format!("/ui/jobs/{ID}");
    let all = site.get(&at).await;
    assert!(all.contains("line 299") && !all.contains("line 42<") && all.contains("id=\"find\""), "{all}");
    let found = site.get(&format!("{at}?log=1&find=Timed+OUT&stream=")).await;
    assert!(found.contains("1 of 301 lines") && found.contains("&lt;b&gt;the relay"), "{found}");
    assert!(!found.contains("line 299") && found.contains("class=\"l-err\""), "{found}");
    // It looks through all of them, not only through those that a page shows.
    assert!(site.get(&format!("{at}?find=line+42")).await.contains("1 of 301 lines"));
    let errors = site.get(&format!("{at}?stream=err")).await;
    assert!(errors.contains("1 of 301 lines") && errors.contains("selected"), "{errors}");
    let none = site.get(&format!("{at}?find=%22%3E%3Cimg%20src=x%3E")).await;
    assert!(
        none.contains("0 of 301 lines") && !none.contains("<img") && none.contains("All lines"),
        "{none}"
    );
}

/// Options of a server with 16 MiB for the responses of all clients.
fn with_little_memory() -> Options {
    let mut options = Options::default();
    options.transfer_memory_mib = 16;
    options
}

/// A page has room for a part of a long log. A download has all of it.
#[tokio::test]
async fn a_log_of_more_than_the_memory_of_its_client_is_shown_page_by_page() {
    let site = Site::open(with_little_memory()).await;
    let json = "content-type: application/json\r\n";
    let job = format!(r#"{{"id":"{ID}","kind":"echo","queue":"mail"}}"#);
    site.ask("POST /v1/jobs", &format!("{json}prefer: respond-async\r\n"), &job).await;
    let claimed =
        site.ask("POST /v1/claim", json, r#"{"queues":["mail"],"name":"w","lease_seconds":600}"#).await;
    let claimed: serde_json::Value = serde_json::from_str(claimed.split_once("\r\n\r\n").unwrap().1).unwrap();
    let line = "x".repeat(4_000);
    for part in 0..20 {
        let lines = vec![line.as_str(); 250];
        let said = serde_json::json!({ "token": claimed["jobs"][0]["token"], "first": part * 250 + 1, "lines": lines });
        let answer = site.ask(&format!("POST /v1/jobs/{ID}/logs"), json, &said.to_string()).await;
        assert!(answer.starts_with("HTTP/1.1 2"), "{answer}");
    }
    let all = site.get(&format!("/ui/jobs/{ID}?lines=all")).await;
    assert!(all.len() < 3 << 20 && all.contains(">Next lines</a>"), "{}", &all[..all.len().min(2_000)]);
    assert!(site.get(&format!("/ui/jobs/{ID}")).await.contains("xxx"), "the last lines fit");
    let found = site.get(&format!("/ui/jobs/{ID}?find=nothing")).await;
    assert!(found.contains("0 of 5000 lines"), "lines that do not match are not held");
    let file = site.get(&format!("/ui/jobs/{ID}/logs.txt?log=1")).await;
    assert_eq!(file.matches(&line).count(), 5_000);
}

/// A tree of small values takes far more memory than its text.
#[tokio::test]
async fn jobs_with_many_tiny_values_are_listed_and_one_shows_its_args_as_text() {
    let site = Site::open(with_little_memory()).await;
    let json = "content-type: application/json\r\n";
    let one = format!("{}0{}", "{\"\":".repeat(60), "}".repeat(60));
    let args = format!("[{}0]", format!("{one},").repeat(230 * 1024 / (one.len() + 1)));
    for _ in 0..32 {
        let job = format!(r#"{{"kind":"echo","queue":"mail","args":{args}}}"#);
        let answer = site.ask("POST /v1/jobs", &format!("{json}prefer: return=minimal\r\n"), &job).await;
        assert!(answer.starts_with("HTTP/1.1 202"), "{}", &answer[..answer.len().min(2_000)]);
    }
    site.ask(&format!("PUT /v1/jobs/{ID}"), json, &format!(r#"{{"kind":"echo","args":{args}}}"#)).await;
    let list = site.get("/ui/jobs?col=kind&col=args").await;
    assert!(
        list.starts_with("HTTP/1.1 200") && list.contains("echo") && list.len() < 200_000,
        "{}",
        list.len()
    );
    assert!(list.contains("<code>[{&quot;&quot;:{&quot;&quot;:"), "the begin of args");
    let job = site.get(&format!("/ui/jobs/{ID}")).await;
    assert!(job.contains("Too many values to format.") && job.contains(&args.replace('"', "&quot;")));
    let like = site.get(&format!("/ui/new-job?like={ID}")).await;
    assert!(like.contains(&args.replace('"', "&quot;")), "a duplicate has the same args");
}

#[tokio::test]
async fn an_id_is_found_as_it_is_shown_and_copied_as_a_whole() {
    let site = Site::open(Options::default()).await;
    site.enqueue("echo").await;
    let list = site.get("/ui/jobs").await;
    assert!(list.contains("01a20712-29aa<span class=\"cut\">-76d9-85bf-1bfa769b</span>451a</a>"), "{list}");
    let row = format!("data-key=\"{ID}\"");
    for (said, is_there) in [
        ("01a20712-29aa%E2%80%A6451a", true),
        ("id:01A20712-29aa%E2%80%A6451a", true),
        ("id:01a20712-29aa...451a", true),
        ("id:01a20712-29aa%E2%80%A6451b", false),
        ("id:01a20712-29ab%E2%80%A6451a", false),
        ("1bfa769b451a", true),
        ("id:769B451a", true),
        ("01a20712", true),
        ("769b451b", false),
    ] {
        let found = site.get(&format!("/ui/jobs?q={said}")).await;
        assert_eq!(found.contains(&row), is_there, "{said}: {found}");
    }
    let page = site.get(&format!("/ui/jobs/{ID}")).await;
    assert!(
        page.contains(&format!("id=\"job-id\">{ID}</span>")) && page.contains("data-copy=\"job-id\""),
        "{page}"
    );
}

#[tokio::test]
async fn a_job_is_shown_at_the_address_of_a_shortened_id() {
    let site = Site::open(Options::default()).await;
    site.enqueue("echo").await;
    for short in ["769b451a", "01a20712", "01A20712"] {
        let answer = site.get(&format!("/ui/jobs/{short}")).await;
        assert!(answer.contains(&format!("location: /ui/jobs/{ID}\r\n")), "{short}: {answer}");
        let like = site.get(&format!("/ui/new-job?like={short}")).await;
        assert!(like.contains("name=\"kind\" value=\"echo\""), "{short}: {like}");
    }
    let other = ID.replace("451a", "451b");
    let body = r#"{"kind":"echo","delay_seconds":3600}"#;
    let json = "content-type: application/json\r\nprefer: respond-async\r\n";
    site.ask(&format!("PUT /v1/jobs/{other}"), json, body).await;
    // Of two jobs the list is shown.
    assert!(site.get("/ui/jobs/01a20712").await.contains("location: /ui/jobs?q=01a20712\r\n"));
    assert!(site.get("/ui/jobs/769b451b").await.contains(&format!("location: /ui/jobs/{other}\r\n")));
    let unknown = site.get("/ui/jobs/769b451c").await;
    assert!(unknown.starts_with("HTTP/1.1 4"), "{unknown}");
}

#[tokio::test]
async fn a_job_shows_its_limit_and_its_share() {
    let site = Site::open(Options::default()).await;
    let json = "content-type: application/json\r\n";
    let body = r#"{"kind":"echo","queue":"mail","limit_key":"smtp","limit_max_running":2,"share_key":"ada"}"#;
    site.ask(&format!("PUT /v1/jobs/{ID}"), json, body).await;
    let page = site.get(&format!("/ui/jobs/{ID}")).await;
    for shown in ["<dt>Limit key</dt><dd>smtp (at most 2 running)</dd>", "<dt>Share key</dt><dd>ada</dd>"] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
}

#[tokio::test]
async fn why_a_job_waits_is_said_by_the_clocks_that_somebody_likes() {
    let site = Site::open(Options::default()).await;
    site.enqueue("echo").await;
    let page = site.ask(&format!("GET /ui/jobs/{ID}"), "cookie: tenure_zone=Asia/Kolkata\r\n", "").await;
    let (_, why) = page.split_once("<p class=\"why\">").unwrap();
    let why = why.split_once("</p>").unwrap().0;
    assert!(why.starts_with("it is due at 20") && why.contains(" Asia/Kolkata (<time"), "{why}");
    let shown = why.split_once(" (<time").unwrap().0;
    assert!(!shown.contains('Z') && !shown.contains('T') && why.contains("</time>) (enqueued"), "{why}");
}

#[tokio::test]
async fn what_has_ended_is_not_at_it_any_more() {
    let site = Site::open(Options::default()).await;
    let json = "content-type: application/json\r\n";
    let job = format!(r#"{{"id":"{ID}","kind":"echo","queue":"mail"}}"#);
    site.ask("POST /v1/jobs", &format!("{json}prefer: respond-async\r\n"), &job).await;
    let claimed =
        site.ask("POST /v1/claim", json, r#"{"queues":["mail"],"name":"w","lease_seconds":60}"#).await;
    let claimed: serde_json::Value = serde_json::from_str(claimed.split_once("\r\n\r\n").unwrap().1).unwrap();
    let token = &claimed["jobs"][0]["token"];
    let beat =
        serde_json::json!({ "token": token, "progress": { "fraction": 0.97, "message": "settling down" } });
    site.ask(&format!("POST /v1/jobs/{ID}/heartbeat"), json, &beat.to_string()).await;
    let at = format!("/ui/jobs/{ID}");
    let page = site.get(&at).await;
    assert!(page.contains("97 %") && site.get("/ui/jobs").await.contains("settling down"), "{page}");
    let done = serde_json::json!({ "token": token, "result": null });
    let ended = site.ask(&format!("POST /v1/jobs/{ID}/complete"), json, &done.to_string()).await;
    assert!(ended.starts_with("HTTP/1.1 2"), "{ended}");
    let page = site.get(&at).await;
    assert!(page.contains("state succeeded") && !page.contains("97 %"), "{page}");
    assert!(!site.get("/ui/jobs").await.contains("settling down"));
}

#[tokio::test]
async fn signs_that_turn_letters_around_are_shown_and_turn_nothing() {
    let site = Site::open(Options::default()).await;
    let json = "content-type: application/json\r\n";
    let job =
        serde_json::json!({ "id": ID, "kind": "echo", "args": { "text": "abc\u{202e}def" } }).to_string();
    site.ask("POST /v1/jobs", &format!("{json}prefer: respond-async\r\n"), &job).await;
    let page = site.get(&format!("/ui/jobs/{ID}")).await;
    assert!(page.contains("abc⟨U+202E⟩def") && !page.contains('\u{202e}'), "{page}");
}

#[tokio::test]
async fn what_was_done_is_told_to_nobody_who_was_led_there_from_elsewhere() {
    let site = Site::open(Options::default()).await;
    let led = |from: &'static str| format!("sec-fetch-site: {from}\r\n");
    for (headers, is_told) in [
        (led("same-origin"), true),
        (String::new(), true),
        (led("cross-site"), false),
        (led("same-site"), false),
        (led("none"), false),
    ] {
        let page = site.ask("GET /ui/leases?did=break", &headers, "").await;
        assert_eq!(page.contains("Lease broken"), is_told, "{headers}");
    }
}

#[tokio::test]
async fn a_worker_is_told_to_take_no_more_and_to_end() {
    let site = Site::open(Options::default()).await;
    let json = "content-type: application/json\r\n";
    let jobs = r#"{"jobs":[{"kind":"echo","queue":"mail"},{"kind":"echo","queue":"mail"},{"kind":"echo","queue":"mail"}]}"#;
    site.ask("POST /v1/jobs/batch", json, jobs).await;
    let claim = r#"{"queues":["mail"],"name":"a worker","limit":1,"lease_seconds":60}"#;
    let claimed = site.ask("POST /v1/claim", json, claim).await;
    let claimed: serde_json::Value = serde_json::from_str(claimed.split_once("\r\n\r\n").unwrap().1).unwrap();
    let id = claimed["worker_id"].as_str().unwrap();
    let (at, token) = (format!("/ui/workers/{id}"), site.token().await);
    let claim = serde_json::json!({ "queues": ["mail"], "name": "a worker", "worker_id": id }).to_string();
    site.ask("POST /v1/claim", json, &claim).await;
    let mut page = site.get(&at).await;
    // Who works is written down a moment after he has asked.
    for _ in 0..2_000 {
        if page.contains("Take no new jobs") {
            break;
        }
        tokio::task::yield_now().await;
        page = site.get(&at).await;
    }
    assert!(page.contains("Take no new jobs") && page.contains("Stop worker"), "{page}");
    for (act, did, says, button) in [
        ("quiet", "quiet", "take no new jobs", "Take jobs again"),
        ("resume", "unquiet", "", "Take no new jobs"),
        ("terminate", "terminate", "finish running jobs and exit", "Take jobs again"),
    ] {
        let told = site.act(&format!("{at}/{act}"), "", &format!("token={token}")).await;
        assert!(told.contains(&format!("location: {at}?did={did}")), "{told}");
        let audit = site.get("/v1/audit").await;
        assert!(audit.contains(&format!("/v1/workers/{id}/{act}")), "{audit}");
        let (page, list) = (site.get(&at).await, site.get("/ui/workers").await);
        assert!(page.contains(button), "{page}");
        assert_eq!(page.contains("<dt>Command</dt>"), !says.is_empty(), "{page}");
        assert!(page.contains(says) && list.contains(says), "{list}");
        assert_eq!(list.contains("Command: "), !says.is_empty(), "{list}");
    }
    assert!(
        site.act(&format!("{at}/whatever"), "", &format!("token={token}")).await.starts_with("HTTP/1.1 404")
    );
}

#[tokio::test]
async fn what_belongs_to_a_server_has_no_buttons_that_would_do_nothing() {
    let site = Site::open(Options::default()).await;
    let id = site.tenure.remote().draw_worker();
    let minute = std::time::Duration::from_secs(60);
    site.tenure.store().announce(id, "tenure serve", 0, &[], minute).await.unwrap();
    let page = site.get(&format!("/ui/workers/{id}")).await;
    assert!(page.contains("with its server"), "{page}");
    assert!(!page.contains("Take no new jobs") && !page.contains("Stop worker"), "{page}");
}

#[tokio::test]
async fn older_jobs_are_on_the_next_page() {
    let site = Site::open(Options::default()).await;
    let jobs: Vec<_> =
        (0..60).map(|n| serde_json::json!({"kind": format!("kind_{n:02}"), "args": {}})).collect();
    let body = serde_json::json!({ "jobs": jobs }).to_string();
    let sent = site.ask("POST /v1/jobs/batch", "content-type: application/json\r\n", &body).await;
    assert!(sent.starts_with("HTTP/1.1 20"), "{sent}");
    let first = site.get("/ui/jobs").await;
    assert!(first.contains("kind_59") && !first.contains("kind_05"), "{first}");
    let (_, next) = first.split_once("rel=\"next\" href=\"").unwrap();
    let next = next.split_once('"').unwrap().0.replace("&amp;", "&");
    let second = site.get(&next).await;
    assert!(second.contains("kind_05") && !second.contains("kind_59"), "{second}");
}

#[tokio::test]
async fn files_are_named_by_their_content_and_asked_for_once() {
    let site = Site::open(Options::default()).await;
    let page = site.get("/ui/").await;
    let (_, sheet) = page.split_once("rel=\"stylesheet\" href=\"").unwrap();
    let sheet = sheet.split_once('"').unwrap().0;
    let answer = site.get(sheet).await;
    assert!(answer.contains("immutable") && answer.contains("text/css"), "{answer}");
    let (_, etag) = answer.split_once("etag: ").unwrap();
    let known = format!("if-none-match: {}\r\n", etag.split_once('\r').unwrap().0);
    assert!(site.ask(&format!("GET {sheet}"), &known, "").await.starts_with("HTTP/1.1 304"));
}

#[tokio::test]
async fn many_jobs_are_done_with_only_by_whoever_writes_how_many() {
    let site = Site::open(Options::default()).await;
    let jobs: Vec<_> =
        (0..150).map(|_| serde_json::json!({"kind": "echo", "delay_seconds": 3600.0})).collect();
    let body = serde_json::json!({ "jobs": jobs }).to_string();
    site.ask("POST /v1/jobs/batch", "content-type: application/json\r\n", &body).await;
    let preview = site.get("/ui/bulk/new?q=kind%3Aecho").await;
    assert!(preview.contains("150 jobs match") && preview.contains("name=\"typed\""), "{preview}");
    let token = site.token().await;
    let fields = format!("token={token}&q=kind%3Aecho&ids=&action=cancel&matched=150");
    for typed in ["", "&typed=", "&typed=15", "&typed=all"] {
        let answer = site.act("/ui/bulk/new", "", &format!("{fields}{typed}")).await;
        assert!(answer.starts_with("HTTP/1.1 422"), "{typed}: {answer}");
    }
    assert!(site.get("/ui/bulk").await.contains("No bulk operations yet"));
    let answer = site.act("/ui/bulk/new", "", &format!("{fields}&typed=150")).await;
    assert!(answer.starts_with("HTTP/1.1 303") && answer.contains("location: /ui/bulk/"), "{answer}");
    let list = site.get("/ui/bulk").await;
    assert!(list.contains("Cancel") && list.contains("150"), "{list}");
    let nobody = site.get("/ui/bulk/new").await;
    assert!(nobody.contains("No jobs selected"), "{nobody}");
}

#[tokio::test]
async fn what_somebody_likes_is_kept_in_his_browser_and_what_nobody_knows_is_told() {
    let site = Site::open(Options::default()).await;
    site.enqueue("echo").await;
    let token = site.token().await;
    let fields =
        format!("token={token}&theme=dark&clocks=zone&zone=asia/kolkata&density=dense&keys=off&live=on");
    let answer = site.act("/ui/settings", "", &fields).await;
    for said in
        ["tenure_theme=dark;", "tenure_zone=Asia/Kolkata;", "tenure_density=dense;", "tenure_keys=off;"]
    {
        assert!(answer.contains(said), "{said}: {answer}");
    }
    let cookie = "cookie: tenure_theme=dark; tenure_zone=Asia/Kolkata; tenure_keys=off\r\n";
    let page = site.ask(&format!("GET /ui/jobs/{ID}"), cookie, "").await;
    assert!(page.contains("data-theme=\"dark\"") && page.contains("data-keys=\"off\""), "{page}");
    assert!(page.contains("Asia/Kolkata\" data-ago"), "{page}");
    let wrong = site.act("/ui/settings", "", &format!("token={token}&clocks=zone&zone=Mars/Olympus")).await;
    assert!(
        wrong.contains("location: /ui/settings?zone=Mars%2FOlympus") && !wrong.contains("set-cookie"),
        "{wrong}"
    );
    assert!(site.get("/ui/settings?zone=Mars%2FOlympus").await.contains("value=\"Mars/Olympus\""));
}

#[tokio::test]
async fn pages_are_told_when_something_happens_and_by_whom_they_were_made() {
    let site = Site::open(Options::default()).await;
    let page = site.get("/ui/").await;
    let (_, run) = page.split_once("data-run=\"").unwrap();
    let run = run.split_once('"').unwrap().0.to_owned();
    let mut stream = TcpStream::connect(site.at).await.unwrap();
    let ask = format!("GET /ui/live HTTP/1.1\r\nhost: {}\r\n\r\n", site.at);
    stream.write_all(ask.as_bytes()).await.unwrap();
    let mut heard = String::new();
    let mut some = [0; 4096];
    for wanted in [format!("data: {run}"), "event: change".to_owned()] {
        while !heard.contains(&wanted) {
            let length = stream.read(&mut some).await.unwrap();
            assert!(length > 0, "it ended: {heard}");
            heard.push_str(std::str::from_utf8(&some[..length]).unwrap());
        }
        if !heard.contains("event: change") {
            site.enqueue("echo").await;
        }
    }
    assert!(heard.contains("text/event-stream"), "{heard}");
}

/// A page asks again after a minute. Sooner than that, only the end of its server ends its stream.
const BEFORE_IT_ENDS: Duration = Duration::from_secs(50);

#[tokio::test]
async fn a_stream_that_is_listened_to_does_not_keep_the_server() {
    let tenure = Tenure::open("memory:").await.unwrap();
    let mut options = Options::default();
    options.bind = SocketAddr::from(([127, 0, 0, 1], 0));
    options.grace = Duration::from_secs(600);
    let server = Server::bind(&tenure, options).await.unwrap();
    let pages = Dashboard::over(&tenure, server.contract()).mounted();
    let server = server.merge(pages);
    let at = server.address();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let served = tokio::spawn(server.run(async move { drop(stopped.await) }));
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(format!("GET /ui/live HTTP/1.1\r\nhost: {at}\r\n\r\n").as_bytes()).await.unwrap();
    let mut some = [0; 4096];
    assert!(stream.read(&mut some).await.unwrap() > 0);
    stop.send(()).unwrap();
    timeout(BEFORE_IT_ENDS, served).await.expect("the stream keeps the server").unwrap();
}

#[tokio::test]
async fn a_page_that_may_not_be_seen_is_not_told_of_either() {
    let mut options = Options::default();
    options.access = Access::Tokens;
    let site = Site::open(options).await;
    let answer = site.get("/ui/live").await;
    assert!(answer.starts_with("HTTP/1.1 303") && answer.contains("location: /ui/sign-in"), "{answer}");
}

/// Ends with the worker of its service, as `axum::serve` waits for it otherwise.
#[tokio::test]
async fn an_open_page_does_not_keep_a_service_from_shutting_down() {
    let tenure = Tenure::open("memory:").await.unwrap();
    let app: axum::Router = axum::Router::new().merge(tenure_ui::at("/admin/jobs", &tenure));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let told = |mut stopped: tokio::sync::watch::Receiver<bool>| async move {
        drop(stopped.wait_for(|stopped| *stopped).await);
    };
    let server = axum::serve(listener, app).with_graceful_shutdown(told(stopped.clone()));
    let serving = tokio::spawn(server.into_future());
    let working = tokio::spawn(tenure::Worker::new(&tenure, ()).only_timers().run(told(stopped)));
    let mut page = TcpStream::connect(at).await.unwrap();
    page.write_all(b"GET /admin/jobs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut told = String::new();
    page.read_to_string(&mut told).await.unwrap();
    assert!(told.starts_with("HTTP/1.1 303") && told.contains("location: jobs/"), "{told}");
    let mut page = TcpStream::connect(at).await.unwrap();
    page.write_all(b"GET /admin/jobs/live HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains("event: hello") {
        assert!(page.read_buf(&mut read).await.unwrap() > 0, "it ended before");
    }
    stop.send(true).unwrap();
    timeout(BEFORE_IT_ENDS, serving).await.expect("the page keeps the service").unwrap().unwrap();
    working.await.unwrap().unwrap();
}

#[tokio::test]
async fn it_works_under_any_prefix() {
    let tenure = Tenure::open("memory:").await.unwrap();
    let app: axum::Router = axum::Router::new().nest("/admin/work/", tenure_ui::routes(&tenure));
    let server = Server::bind(&tenure, {
        let mut o = Options::default();
        o.bind = SocketAddr::from(([127, 0, 0, 1], 0));
        o
    });
    let server = server.await.unwrap().merge(app);
    let site = Site { at: server.address(), api: server.contract(), tenure };
    tokio::spawn(server.run(std::future::pending()));
    let page = site.get("/admin/work/").await;
    assert!(page.contains("href=\"/admin/work/jobs\"") && page.contains("/admin/work/assets/"), "{page}");
    assert!(!page.contains("\"/ui/"), "{page}");
    assert!(site.get("/admin/work/jobs").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn the_calendar_shows_what_fires_in_a_week_and_marks_where_clocks_change() {
    let site = Site::open(Options::default()).await;
    let json = "content-type: application/json\r\n";
    let nightly = r#"{"spec":{"cron":"30 2 * * *","dialect":"unix"},"time_zone":"Europe/Berlin","job":{"kind":"close"}}"#;
    let answer = site.ask("PUT /v1/schedules/nightly", json, nightly).await;
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    // Of weeks to come, whenever this is tried: the clocks of Berlin change on the last Sunday of March.
    let page = site.get("/ui/calendar?week=2035-03-20").await;
    assert!(page.contains("2035-03-19 to 2035-03-25"), "{page}");
    assert!(page.contains("/ui/schedules/nightly") && page.contains("30 2 * * *"), "{page}");
    assert!(page.contains("Clocks in Europe/Berlin change at 2035-03-25 01:00:00 UTC"), "{page}");
    assert!(page.contains("calendar?week=2035-03-12") && page.contains("calendar?week=2035-03-26"), "{page}");
    // An hour leads to its minutes, and says who fires in them and which are free.
    assert!(
        page.contains("calendar?hour=2035-03-20T01#hour") && page.contains("Tue 20 Mar, 01:00, 1 run"),
        "{page}"
    );
    assert!(page.contains("Longest free period: ") && page.contains("Tue 20 Mar, 02:00, free"), "{page}");
    let hour = site.get("/ui/calendar?hour=2035-03-20T01").await;
    assert!(hour.contains("2035-03-19 to 2035-03-25"), "{hour}");
    assert!(hour.contains("<td class=\"slot\">01:30</td><td><a href=\"/ui/schedules/nightly\">"), "{hour}");
    assert!(hour.contains("Free: 01:00 to 01:30, 01:31 to 02:00."), "{hour}");
    // What is over is not free.
    let past = site.get("/ui/calendar?week=2020-03-16").await;
    assert!(!past.contains(", free") && !past.contains("Longest free period"), "{past}");
}

#[tokio::test]
async fn who_did_what_and_what_happened_is_shown_with_the_latest_first() {
    let site = Site::open(Options::default()).await;
    site.get("/ui/events").await;
    site.enqueue("echo").await;
    let token = site.token().await;
    let fields = format!("token={token}");
    site.act(&format!("/ui/jobs/{ID}/cancel"), "", &fields).await;
    site.act("/ui/queues/mail/pause", "", &fields).await;
    let audit = site.get("/ui/audit").await;
    assert!(audit.contains("/v1/queues/mail/pause") && audit.contains("anonymous"), "{audit}");
    let mut events = site.get("/ui/events?of=jobs").await;
    for _ in 0..20_000 {
        if events.contains("job.cancelled") {
            break;
        }
        tokio::task::yield_now().await;
        events = site.get("/ui/events?of=jobs").await;
    }
    assert!(events.contains("job.cancelled") && events.contains(&format!("/ui/jobs/{ID}")), "{events}");
    assert!(!site.get("/ui/events?of=leases").await.contains("job.cancelled"));
}
