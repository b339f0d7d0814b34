//! What each page costs where a great many jobs are kept: run by hand, see CONTRIBUTING.md.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::site;

use std::time::Duration;

use serde_json::{Value, json};
use site::Site;
use tenure::apps::{HostOffers, Offer, Sort};
use tenure::{Cause, Draft, Ending, Failure, Kinds, QueueName, Reserve, Tenure, TimerDraft, Verdict, Want};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Jobs unless `TENURE_COST_JOBS` says otherwise; `TENURE_COST_URL` says another store than a SQLite file.
const JOBS: usize = 1_000_000;
const BATCH: usize = 10_000;
const KINDS: usize = 20;
const QUEUES: usize = 8;
const SCHEDULES: usize = 60;
/// Times that each page is asked for.
const TIMES: usize = 50;
/// The first byte of a page comes within that, 95 of 100 times.
const MOST_MS: f64 = 200.0;
/// An open page that is told nothing asks again after so long, and costs no more than a hundredth of a core.
const AGAIN_MS: f64 = 5_000.0;

fn kind(at: usize) -> String {
    format!("kind_{:02}", at % KINDS)
}

fn queue(at: usize) -> String {
    format!("queue-{}", at % QUEUES)
}

/// Of ten jobs seven have succeeded, one has failed, one waits for its time, and one is due.
async fn fill(tenure: &Tenure, jobs: usize) {
    let known: u64 = tenure.counts().await.unwrap().iter().map(|count| count.jobs).sum();
    let mut left = jobs.saturating_sub(usize::try_from(known).unwrap());
    while left > 0 {
        let some = left.min(BATCH);
        let done = some * 8 / 10;
        let draft = |at: usize| {
            let args = json!({ "user": { "id": at }, "to": "ada@example.com", "template": "order_shipped" });
            Draft::raw(&kind(at), &args).queue(&queue(at / KINDS)).tag(if at.is_multiple_of(50) {
                "vip"
            } else {
                "usual"
            })
        };
        tenure.enqueue_all((0..done).map(draft)).await.unwrap();
        end(tenure, done).await;
        let rest = (done..some).map(|at| match at % 2 {
            0 => draft(at).after(Duration::from_secs(86_400 + at as u64)),
            _ => draft(at).queue("later"),
        });
        tenure.enqueue_all(rest).await.unwrap();
        left -= some;
    }
}

async fn end(tenure: &Tenure, jobs: usize) {
    let (holder, mut ended, mut ends) = (tenure.remote().draw_worker(), 0, Vec::new());
    let want =
        |at: usize| Want { queue: QueueName::new(&queue(at)).unwrap(), kinds: Kinds::All, at_most: 1_000 };
    while ended < jobs {
        let wants = (0..QUEUES).map(want).collect();
        let reserve = Reserve { holder, ttl: Duration::from_secs(600), wants, at_most: 1_000 };
        let (_, claimed) = tenure.remote().settle(ends, Some(reserve)).await.unwrap();
        assert!(!claimed.jobs.is_empty(), "{ended} of {jobs}");
        ends = claimed.jobs.into_iter().enumerate().map(|(at, job)| ending(at, job)).collect();
        ended += ends.len();
    }
    tenure.remote().settle(ends, None).await.unwrap();
}

fn ending(at: usize, job: std::sync::Arc<tenure::JobRecord>) -> Ending {
    let verdict = match at % 8 {
        0 => Verdict::Failed(Failure::new(Cause::Error, &format!("the relay timed out after {} s", at % 97))),
        _ => Verdict::Succeeded(None),
    };
    Ending { job, verdict }
}

/// What stands on the other pages.
async fn furnish(site: &Site) -> Vec<String> {
    let tenure = &site.tenure;
    for at in 0..SCHEDULES {
        let rule =
            ["0 */5 * * * *", "0 30 2 * * *", "every 20m", "weekly mon-fri 09:30", "daily 06:15"][at % 5];
        let timer = TimerDraft::raw(&format!("schedule-{at:02}"), rule, &kind(at), &json!({})).queue("later");
        tenure.timers().set(timer).await.unwrap();
    }
    offer(tenure).await;
    let said: Vec<String> = (0..500).map(|line| format!("out: line {line}")).collect();
    tenure.apps("apps").unwrap().say("mailer", "app-1", &said).await.unwrap();
    let json = "content-type: application/json\r\n";
    let lease =
        site.ask("POST /v1/leases/by-hand/acquire", json, r#"{"owner":"me","ttl_seconds":3600}"#).await;
    assert!(lease.contains("fence"), "{lease}");
    let hook = site
        .ask("POST /v1/webhooks", json, r#"{"url":"https://192.0.9.1/hook","types":["webhook.test"]}"#)
        .await;
    let hook = id_in(&hook);
    let bulk = site.ask("POST /v1/bulk", json, r#"{"action":"run_now","filter":{"q":"kind:nobody"}}"#).await;
    let claim = r#"{"queues":["later"],"name":"a worker","limit":20,"lease_seconds":3600}"#;
    let claimed = site.ask("POST /v1/claim", json, claim).await;
    let claimed: Value = serde_json::from_str(claimed.split_once("\r\n\r\n").unwrap().1).unwrap();
    let (job, token) = (claimed["jobs"][0]["id"].as_str().unwrap(), &claimed["jobs"][0]["token"]);
    let lines: Vec<String> = (0..500).map(|line| format!("line {line}")).collect();
    let said = json!({ "token": token, "first": 1, "lines": lines });
    site.ask(&format!("POST /v1/jobs/{job}/logs"), json, &said.to_string()).await;
    let worker = claimed["worker_id"].as_str().unwrap().to_owned();
    [
        "",
        "jobs",
        "jobs?state=failed",
        "jobs?state=queued",
        "jobs?state=running",
        "jobs?q=kind%3Akind_03",
        "jobs?q=queue%3Aqueue-3+state%3Asucceeded",
        "jobs?q=tag%3Avip",
        "jobs?q=error%3A%22timed+out%22+state%3Afailed",
        "jobs?q=args.user.id%3A4711",
        "jobs?q=kind_03+created%3A%3E-2h",
        "jobs?q=tag%3Anobody",
        "new-job",
        "queues",
        "queues/queue-3",
        "kinds",
        "kinds/kind_03",
        "schedules",
        "schedules/schedule-01",
        "new-schedule?rule=daily+02%3A30",
        "calendar",
        "calendar?month=2030-03",
        "leases",
        "leases/by-hand",
        "workers",
        "bulk",
        "bulk/new?q=kind%3Akind_03",
        "bulk/new?q=tag%3Avip",
        "webhooks",
        "events",
        "audit",
        "settings",
        "sign-in",
        "apps",
        "apps/triggered/app-07",
        "apps/continuous/mailer",
    ]
    .into_iter()
    .map(str::to_owned)
    .chain([
        format!("jobs/{job}"),
        format!("workers/{worker}"),
        format!("bulk/{}", id_in(&bulk)),
        format!("webhooks/{hook}"),
    ])
    .collect()
}

/// A host with sixty programs; it counts as there for a minute.
async fn offer(tenure: &Tenure) {
    let mut apps: Vec<Offer> =
        (0..60).map(|at| Offer::new(Sort::Triggered, &format!("app-{at:02}"), tenure.now())).collect();
    apps.push(Offer::new(Sort::Continuous, "mailer", tenure.now()));
    let offers = HostOffers { folder: String::new(), host: "one".to_owned(), node: "app-1".to_owned(), apps };
    tenure.apps("apps").unwrap().offer(&offers).await.unwrap();
}

fn id_in(answer: &str) -> String {
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"));
    body["id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// Milliseconds until the first byte of a page, its status, and how long it is.
async fn first_byte(site: &Site, page: &str) -> (f64, String, usize) {
    let clock = site.tenure.store().clock();
    let mut stream = TcpStream::connect(site.at).await.unwrap();
    let at = site.at;
    let request = format!("GET /ui/{page} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\n\r\n");
    let began = clock.moment();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = vec![0; 1];
    stream.read_exact(&mut bytes).await.unwrap();
    let took = clock.moment().since(began).as_secs_f64() * 1_000.0;
    stream.read_to_end(&mut bytes).await.unwrap();
    let status = String::from_utf8_lossy(bytes.get(9..12).unwrap_or_default()).into_owned();
    (took, status, bytes.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes, and it measures: see CONTRIBUTING.md"]
async fn each_page_comes_at_once_where_a_million_jobs_are_kept() {
    let folder = std::env::temp_dir().join(format!("tenure-cost-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let said = |name: &str| std::env::var(name).ok();
    let url =
        said("TENURE_COST_URL").unwrap_or_else(|| format!("sqlite://{}", folder.join("jobs.db").display()));
    let jobs = said("TENURE_COST_JOBS").map_or(JOBS, |jobs| jobs.parse().unwrap());
    let site = Site::on(Tenure::open(&url).await.unwrap(), tenure_http::Options::default()).await;
    let clock = site.tenure.store().clock();
    let began = clock.moment();
    fill(&site.tenure, jobs).await;
    eprintln!("{jobs} jobs are there after {:.0} s", clock.moment().since(began).as_secs_f64());
    let mut slow = Vec::new();
    let pages = furnish(&site).await;
    let only = said("TENURE_COST_ONLY").unwrap_or_default();
    // The overview has no name of its own.
    let is_meant = |page: &&String| page.contains(&only) || (only == "overview" && page.is_empty());
    for page in pages.iter().filter(is_meant) {
        offer(&site.tenure).await;
        let mut took = Vec::new();
        let (mut status, mut bytes) = (String::new(), 0);
        for _ in 0..TIMES {
            let (ms, said, length) = first_byte(&site, page).await;
            took.push(ms);
            (status, bytes) = (said, length);
        }
        took.sort_by(f64::total_cmp);
        let (half, most) = (took[TIMES / 2], took[TIMES * 95 / 100]);
        let rounded = |ms: f64| (ms * 10.0).round() / 10.0;
        let open = (took.iter().sum::<f64>() / TIMES as f64 / AGAIN_MS * 10_000.0).round() / 100.0;
        println!(
            "{}",
            json!({ "page": format!("/ui/{page}"), "status": status, "p50_ms": rounded(half), "p95_ms": rounded(most),
                "open_percent": open, "bytes": bytes })
        );
        assert_eq!(status, "200", "{page}");
        if most >= MOST_MS {
            slow.push(format!("{page}: {most:.0} ms"));
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    assert!(slow.is_empty(), "{slow:?}");
}
