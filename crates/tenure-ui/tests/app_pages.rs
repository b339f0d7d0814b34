//! The pages of apps, as browsers ask for them.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::site;

use serde_json::json;
use site::{HOSTILE, Site};
use tenure::TimerDraft;
use tenure::apps::{HostOffers, Offer, Sort, Standing, Wanted};
use tenure_http::{Access, Options, Scope};

/// Two hosts with a program of each flavour, and one that cannot run on the second.
async fn offered(site: &Site, set: &str) {
    for node in ["app-1", "app-2"] {
        let offer = |sort, name| Offer::new(sort, name, site.tenure.now());
        let mut report = offer(Sort::Triggered, "report");
        report.schedule = Some("0 0 2 * * *".to_owned());
        report.settings.insert("timeout".to_owned(), json!(90));
        report.notes.push("\"tiemout\" has no meaning here".to_owned());
        let mut mailer = offer(Sort::Continuous, "mailer");
        mailer.state = Standing::Running;
        let mut broken = offer(Sort::Triggered, "broken");
        if node == "app-2" {
            (broken.state, broken.detail) = (Standing::Wrong, format!("no script file {HOSTILE}"));
            report.settings.insert("timeout".to_owned(), json!(60));
        }
        let apps = vec![report, mailer, broken];
        let offers =
            HostOffers { folder: String::new(), host: format!("{set}-{node}"), node: node.to_owned(), apps };
        site.tenure.apps(set).unwrap().offer(&offers).await.unwrap();
    }
    let timer =
        TimerDraft::raw(&format!("{set}.report"), "0 0 2 * * *", &format!("{set}.report"), &json!({}));
    site.tenure.timers().set(timer.queue(set)).await.unwrap();
}

#[tokio::test]
async fn apps_are_listed_with_what_makes_them_run_and_what_is_wrong() {
    let site = Site::open(Options::default()).await;
    let nothing = site.get("/ui/apps").await;
    assert!(nothing.contains("No apps yet") && nothing.contains("tenure run ./jobs"), "{nothing}");
    offered(&site, "apps").await;
    let page = site.get("/ui/apps").await;
    for said in [
        "/ui/apps/triggered/report",
        "/ui/apps/continuous/mailer",
        "every day at 02:00",
        "on demand",
        "continuous",
        "app-1, app-2",
        "Cannot run on app-2: no script file",
        "continuous <span class=\"badge\">1</span>",
        "failing <span class=\"badge\">1</span>",
        "data-ago",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }
    assert!(!page.contains("<script>alert") && !page.contains("<img"), "{page}");
    let trouble = site.get("/ui/apps?of=in-trouble").await;
    assert!(trouble.contains("triggered/broken") && !trouble.contains("triggered/report"), "{trouble}");
    let searched = site.get("/ui/apps?q=mail").await;
    assert!(searched.contains("continuous/mailer") && !searched.contains("triggered/report"), "{searched}");
    assert!(site.get("/ui/apps?q=none").await.contains("No matching apps"));
    // Another set has names of its own, and its pages lead to its pages.
    assert!(site.get("/ui/apps?set=night").await.contains("No apps yet"));
    offered(&site, "night").await;
    assert!(site.get("/ui/apps?set=night").await.contains("/ui/apps/triggered/report?set=night"));
    assert!(site.get("/ui/apps?set=No%20Set").await.starts_with("HTTP/1.1 422"));
}

#[tokio::test]
async fn many_apps_are_shown_page_by_page() {
    let site = Site::open(Options::default()).await;
    let now = site.tenure.now();
    let mut apps: Vec<Offer> =
        (0..40).map(|n| Offer::new(Sort::Triggered, &format!("job-{n:02}"), now)).collect();
    apps.extend((0..40).map(|n| Offer::new(Sort::Continuous, &format!("a-{n:02}"), now)));
    let offers = HostOffers { folder: String::new(), host: "one".to_owned(), node: "app-1".to_owned(), apps };
    site.tenure.apps("apps").unwrap().offer(&offers).await.unwrap();
    let first = site.get("/ui/apps").await;
    assert!(first.contains(">job-39<") && first.contains(">a-09<") && !first.contains(">a-10<"), "{first}");
    let (_, next) = first.split_once("rel=\"next\" href=\"").unwrap();
    let second = site.get(&next.split_once('"').unwrap().0.replace("&amp;", "&")).await;
    assert!(second.contains(">a-10<") && second.contains(">a-39<") && !second.contains(">a-09<"), "{second}");
    assert!(!second.contains(">job-00<") && !second.contains("rel=\"next\""), "{second}");
}

#[tokio::test]
async fn the_page_of_an_app_tells_its_runs_its_lines_and_its_settings_and_leads_there_and_back() {
    let site = Site::open(Options::default()).await;
    offered(&site, "apps").await;
    let apps = site.tenure.apps("apps").unwrap();
    let wanted = Wanted { by: "somebody <b>".to_owned(), ..Wanted::default() };
    apps.run("report", &wanted).await.unwrap();
    let page = site.get("/ui/apps/triggered/report").await;
    for said in [
        "every day at 02:00",
        "/ui/schedules/apps.report",
        "/ui/kinds/apps.report",
        "somebody &lt;b&gt;",
        "/ui/jobs/",
        "Settings on app-1",
        "90 s",
        "60 s",
        "Settings differ between hosts",
        "Ignored: &quot;tiemout&quot; has no meaning here",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }
    let (_, job) = page.split_once("class=\"id\" href=\"").unwrap();
    let job = site.get(job.split_once('"').unwrap().0).await;
    assert!(job.contains("href=\"/ui/apps/triggered/report\""), "{job}");
    assert!(job.contains("href=\"/ui/schedules/apps.report\""), "{job}");
    let schedule = site.get("/ui/schedules/apps.report").await;
    assert!(schedule.contains("href=\"/ui/apps/triggered/report\""), "{schedule}");

    apps.say("mailer", "app-1", &["out: \u{1b}[31mhot\u{1b}[0m".to_owned(), format!("err: {HOSTILE}")])
        .await
        .unwrap();
    let mailer = site.get("/ui/apps/continuous/mailer").await;
    assert!(
        mailer.contains("<span class=\"a31\">hot</span>") && mailer.contains("&lt;img src=x"),
        "{mailer}"
    );
    assert!(!mailer.contains("<img"), "{mailer}");
    assert!(site.get("/ui/apps/continuous/nobody").await.starts_with("HTTP/1.1 404"));
    assert!(site.get("/ui/apps/neither/report").await.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn what_an_app_has_done_is_shown_although_no_host_offers_it_any_more() {
    let site = Site::open(Options::default()).await;
    offered(&site, "apps").await;
    let apps = site.tenure.apps("apps").unwrap();
    apps.run("report", &Wanted::default()).await.unwrap();
    apps.withdraw("apps-app-1").await.unwrap();
    apps.withdraw("apps-app-2").await.unwrap();
    let page = site.get("/ui/apps/triggered/report").await;
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("No host runs this app now"), "{page}");
    assert!(site.get("/ui/apps/triggered/broken").await.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn an_app_is_run_stopped_and_started_by_forms_and_the_audit_has_it() {
    let site = Site::open(Options::default()).await;
    offered(&site, "night").await;
    let (token, at) = (site.token().await, "/ui/apps/triggered/report");
    let form = |more: &str| format!("token={token}&set=night{more}");
    let ran = site.act(&format!("{at}/run"), "", &form("&arguments=--all%0D%0Aa+b%0D%0A")).await;
    assert!(ran.contains("location: /ui/apps/triggered/report?set=night&did=run-app"), "{ran}");
    let jobs = site.get("/v1/jobs?kind=night.report").await;
    assert!(jobs.contains(r#"["--all","a b"]"#), "{jobs}");
    // One at a time: whoever asks again is told which one there is.
    let busy = site.act(&format!("{at}/run"), "", &form("")).await;
    assert!(busy.starts_with("HTTP/1.1 409") && busy.contains("already running"), "{busy}");
    let stopped = site.act(&format!("{at}/stop"), "", &form("&reason=audit+week")).await;
    assert!(stopped.contains("did=stop-app"), "{stopped}");
    let page = site.get("/ui/apps/triggered/report?set=night").await;
    assert!(
        page.contains("Stopped: audit week") && page.contains("Start") && !page.contains("Run…"),
        "{page}"
    );
    assert!(page.contains("none while stopped"), "{page}");
    site.act(&format!("{at}/start"), "", &form("")).await;
    assert!(!site.get("/ui/apps/triggered/report?set=night").await.contains("audit week"));
    let audit = site.get("/ui/audit").await;
    for act in ["stop", "start"] {
        assert!(audit.contains(&format!("/v1/apps/triggered/report/{act}")), "{act}: {audit}");
    }
    for (path, fields) in [("run", "token=guessed&set=night"), ("whatever", form("").as_str())] {
        let refused = site.act(&format!("{at}/{path}"), "", fields).await;
        assert!(refused.starts_with("HTTP/1.1 40"), "{refused}");
    }
}

#[tokio::test]
async fn whoever_may_only_look_sees_apps_and_no_buttons() {
    let mut options = Options::default();
    options.access = Access::Tokens;
    let site = Site::open(options).await;
    offered(&site, "apps").await;
    let at = "/ui/apps/triggered/report";
    for (scopes, runs, stops) in [
        (&[Scope::Read][..], false, false),
        (&[Scope::Read, Scope::Enqueue], true, false),
        (&[Scope::Read, Scope::Manage], true, true),
    ] {
        let cookie = site.signed_in(scopes).await;
        let page = site.ask(&format!("GET {at}"), &cookie, "").await;
        assert_eq!((page.contains("Run…"), page.contains("Stop…")), (runs, stops), "{scopes:?}: {page}");
        let fields = format!("token={}", site::token(&page));
        let done = site.act(&format!("{at}/stop"), &cookie, &fields).await;
        assert_eq!(done.starts_with("HTTP/1.1 303"), stops, "{scopes:?}: {done}");
    }
    let operator = site.signed_in(&[Scope::Manage]).await;
    let fields = format!("token={}", site::token(&site.ask(&format!("GET {at}"), &operator, "").await));
    for act in ["start", "run"] {
        let done = site.act(&format!("{at}/{act}"), &operator, &fields).await;
        assert!(done.starts_with("HTTP/1.1 303"), "{done}");
    }
    let admin = site.signed_in(&[Scope::Admin]).await;
    let audit = site.ask("GET /ui/audit", &admin, "").await;
    assert!(audit.contains("/v1/apps/triggered/report/run") && audit.contains("a person"), "{audit}");
}
