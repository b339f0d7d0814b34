//! People whom a trusted proxy names, and the page to which a sign-in returns.

use tenure_http::{Access, Grants, Options, ProxySignIn, Scope};

use crate::site::{Site, token};

fn options(proxy: &str) -> Options {
    let mut options = Options::default();
    options.access = Access::Tokens;
    options.proxy_sign_in = Some(ProxySignIn::new("X-Forwarded-User", Some("X-Forwarded-Groups")).unwrap());
    options.trusted_proxies = vec![proxy.parse().unwrap()];
    let grants = ["person:ada=manage", "group:readers=read", "person:worker=work"];
    options.grants = Grants::new(grants.iter().map(|grant| grant.parse().unwrap()).collect());
    options
}

const ADA: &str = "x-forwarded-user: ada\r\n";
const EVE: &str = "x-forwarded-user: eve\r\nx-forwarded-groups: dev, readers\r\n";

#[tokio::test]
async fn a_person_whom_the_proxy_names_needs_no_session() {
    let site = Site::open(options("127.0.0.1")).await;
    site.tenure.queues().pause("mail").await.unwrap();
    let page = site.ask("GET /ui/queues/mail", ADA, "").await;
    assert!(page.starts_with("HTTP/1.1 200") && page.contains(">ada</span>"), "{page}");
    assert!(!page.contains("Sign out") && !page.contains("set-cookie"), "{page}");
    let form = format!("token={}", token(&page));
    let resumed = site.act("/ui/queues/mail/resume", ADA, &form).await;
    assert!(resumed.starts_with("HTTP/1.1 303"), "{resumed}");
    let admin = site.signed_in(&[Scope::Admin]).await;
    let audit = site.ask("GET /ui/audit", &admin, "").await;
    assert!(audit.contains("proxy:ada"), "{audit}");
    // Eve may only read, even if the browser has the session of an administrator.
    site.tenure.queues().pause("mail").await.unwrap();
    let page = site.ask("GET /ui/queues/mail", EVE, "").await;
    assert!(page.starts_with("HTTP/1.1 200") && !page.contains("queues/mail/resume"), "{page}");
    for session in ["", admin.as_str()] {
        let audit = site.ask("GET /ui/audit", &format!("{EVE}{session}"), "").await;
        assert!(audit.starts_with("HTTP/1.1 403"), "{audit}");
    }
}

#[tokio::test]
async fn a_form_of_another_person_or_another_site_is_refused() {
    let site = Site::open(options("127.0.0.1")).await;
    site.tenure.queues().pause("mail").await.unwrap();
    let form = format!("token={}", token(&site.ask("GET /ui/settings", EVE, "").await));
    let forged = site.act("/ui/queues/mail/resume", ADA, &form).await;
    assert!(forged.starts_with("HTTP/1.1 403"), "Eve knows the secret of her own forms only: {forged}");
    let own = format!("token={}", token(&site.ask("GET /ui/queues/mail", ADA, "").await));
    for site_of in ["sec-fetch-site: cross-site\r\n", "origin: https://evil.example\r\n", ""] {
        let headers = format!("content-type: application/x-www-form-urlencoded\r\n{ADA}{site_of}");
        let forged = site.ask("POST /ui/queues/mail/resume", &headers, &own).await;
        assert!(forged.starts_with("HTTP/1.1 403"), "{site_of}: {forged}");
    }
    let good = site.act("/ui/queues/mail/resume", ADA, &own).await;
    assert!(good.starts_with("HTTP/1.1 303"), "{good}");
}

#[tokio::test]
async fn the_header_counts_for_the_dashboard_and_from_the_proxy_only() {
    let site = Site::open(options("127.0.0.1")).await;
    let api = site.ask("GET /v1/queues", ADA, "").await;
    assert!(api.starts_with("HTTP/1.1 401"), "{api}");
    let twice = site.ask("GET /ui/queues", &format!("{ADA}{ADA}"), "").await;
    assert!(twice.contains("location: /ui/sign-in"), "{twice}");
    let other = Site::open(options("10.0.0.1")).await;
    let forwarded = format!("{ADA}x-forwarded-for: 10.0.0.1\r\n");
    for headers in [ADA, &forwarded] {
        let page = other.ask("GET /ui/queues", headers, "").await;
        assert!(page.contains("location: /ui/sign-in"), "{page}");
    }
}

#[tokio::test]
async fn a_person_without_access_is_told_so_and_can_use_a_token() {
    let site = Site::open(options("127.0.0.1")).await;
    for (person, name) in
        [("x-forwarded-user: bob\r\n", "proxy:bob"), ("x-forwarded-user: worker\r\n", "proxy:worker")]
    {
        let page = site.ask("GET /ui/queues", person, "").await;
        assert!(page.contains("location: /ui/sign-in"), "{page}");
        let page = site.ask("GET /ui/sign-in", person, "").await;
        assert!(page.contains(name) && page.contains("no access here"), "{page}");
        let session = site.signed_in(&[Scope::Read]).await;
        let page = site.ask("GET /ui/queues", &format!("{person}{session}"), "").await;
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    }
}

#[tokio::test]
async fn a_sign_in_returns_to_the_page_that_was_asked_for_and_to_no_other_server() {
    let mut options = Options::default();
    options.access = Access::Tokens;
    let site = Site::open(options).await;
    let page = site.get("/ui/jobs?state=failed").await;
    assert!(page.contains("location: /ui/sign-in?to=jobs%3Fstate%3Dfailed\r\n"), "{page}");
    let start = site.get("/ui/sign-in/start").await;
    assert!(start.starts_with("HTTP/1.1 404"), "no provider is set: {start}");
    for (to, leads_to) in [
        ("jobs%3Fstate%3Dfailed", "/ui/jobs?state=failed"),
        ("%2F%2Fevil.example", "/ui/"),
        ("https%3A%2F%2Fevil.example", "/ui/"),
        ("%5C%5Cevil.example", "/ui/"),
        ("jobs%0D%0Aset-cookie%3A%20a%3Db", "/ui/"),
    ] {
        let body =
            format!("token={}&access_token={}", site.token().await, site.access_token(&[Scope::Read]).await);
        let answer = site.act(&format!("/ui/sign-in?to={to}"), "", &body).await;
        assert!(answer.contains(&format!("location: {leads_to}\r\n")), "{to}: {answer}");
    }
}
