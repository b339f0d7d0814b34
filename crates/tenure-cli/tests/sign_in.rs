//! Sign-in to the dashboard with a real identity provider, the package `oidc-provider` from the registry of Node's packages.
//! A small browser follows redirects, keeps cookies and submits forms.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::installed::in_node;
use crate::program::{Program, run};
use crate::served::{SOON, ask, json_of};

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use tempfile::{TempDir, tempdir};

const NODE: [&str; 1] = ["oidc-provider@9.13.3"];

/// The folder of the provider's package; `None` without npm.
static IN_NODE: LazyLock<Option<PathBuf>> = LazyLock::new(|| in_node("identity-provider", &NODE));

/// A server and an identity provider that know each other.
struct Site {
    folder: TempDir,
    address: String,
    _server: Program,
    _provider: Program,
}

/// A response to the browser.
#[derive(Debug)]
struct Page {
    url: String,
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

/// A cookie is sent to the server that set it, below its path.
#[derive(Default)]
struct Browser {
    cookies: BTreeMap<(String, String, String), String>,
}

impl Site {
    /// Starts both; `None` without npm.
    fn start(algorithm: &str, place: &str) -> Option<Self> {
        let packages = IN_NODE.as_ref()?;
        let folder = tempdir().unwrap();
        // The provider must know the server's address, and the other way round.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let script = folder.path().join("provider.mjs");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sign_in/provider.mjs");
        fs::copy(source, &script).unwrap();
        std::os::unix::fs::symlink(packages.join("node_modules"), folder.path().join("node_modules"))
            .unwrap();
        let mut node = Command::new("node");
        node.arg(script).arg(format!("http://{address}")).args([algorithm, place]);
        let mut provider = Program::start_command(&mut node);
        let issuer = provider.line_with("provider at ", SOON).split_once(" at ").unwrap().1.to_owned();
        fs::write(folder.path().join("secret"), "hush hush\n").unwrap();
        let made = run(&["db", "migrate", "--db", "jobs.db"], folder.path());
        assert_eq!(made.status.code(), Some(0), "{made:?}");
        let job = run(&["submit", "--db", "jobs.db", "--write", "k", "{}"], folder.path());
        assert_eq!(job.status.code(), Some(0), "{job:?}");
        let url = format!("http://{address}");
        let args = [
            &["serve", "--db", "jobs.db", "--auth", "tokens", "--bind", &address, "--public-url", &url][..],
            &["--oidc-issuer", &issuer, "--oidc-client-id", "tenure", "--oidc-client-secret", "file:secret"],
            &["--oidc-scope", "profile", "--oidc-scope", "email", "--oidc-scope", "groups"],
            &["--grant", "group:ops=manage", "--grant", "group:readers=read"],
            &["--grant", "person:ada@example.com=admin"],
        ]
        .concat();
        let mut server = Program::start(&args, folder.path());
        server.line_with("http://", SOON);
        Some(Self { folder, address, _server: server, _provider: provider })
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/ui/{path}", self.address)
    }

    /// The entries of the audit log, newest first.
    fn audit(&self) -> Vec<serde_json::Value> {
        let args = ["token", "create", "--db", "jobs.db", "--name", "auditor", "--scope", "admin"];
        let token = String::from_utf8(run(&args, self.folder.path()).stdout).unwrap();
        let header = format!("authorization: Bearer {}\r\n", token.trim());
        json_of(&ask(&self.address, "GET", "/v1/audit", &header, ""))["items"].as_array().unwrap().clone()
    }
}

impl Page {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The text between two others.
    fn between(&self, before: &str, after: &str) -> &str {
        let rest = self.body.split_once(before).unwrap_or_else(|| panic!("no {before:?} in {self:?}")).1;
        rest.split_once(after).unwrap().0
    }

    /// The URL to which a page without a form leads on.
    fn onward(&self) -> String {
        self.between("content=\"0;url=", "\"").replace("&amp;", "&")
    }

    fn form_token(&self) -> &str {
        self.between("name=\"token\" value=\"", "\"")
    }
}

impl Browser {
    /// Opens a page, and follows redirects until one is shown.
    fn open(&mut self, url: &str) -> Page {
        self.follow("GET", url, "")
    }

    fn follow(&mut self, method: &str, url: &str, form: &str) -> Page {
        let mut page = self.request(method, url, form);
        for _ in 0..15 {
            let Some(next) = page.header("location").filter(|_| (300..400).contains(&page.status)) else {
                return page;
            };
            let next = resolved(&page.url, next);
            page = self.request("GET", &next, "");
        }
        panic!("redirects without end: {page:?}");
    }

    fn request(&mut self, method: &str, url: &str, form: &str) -> Page {
        let (host, path) = parts(url);
        let cookies =
            self.cookies.iter().filter(|((of, below, _), _)| *of == host && path.starts_with(below));
        let cookies: Vec<String> = cookies.map(|((_, _, name), value)| format!("{name}={value}")).collect();
        let mut stream = TcpStream::connect(&host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncookie: {}\r\nsec-fetch-site: same-origin\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
            cookies.join("; "),
            form.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines.map(|line| line.split_once(": ").unwrap());
        let headers: Vec<_> =
            headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        for (_, cookie) in headers.iter().filter(|(name, _)| name == "set-cookie") {
            self.keep(&host, cookie);
        }
        Page { url: url.to_owned(), status, headers, body: body.to_owned() }
    }

    fn keep(&mut self, host: &str, cookie: &str) {
        let mut parts = cookie.split("; ");
        let (name, value) = parts.next().unwrap().split_once('=').unwrap();
        let path = parts.find_map(|part| {
            part.split_once('=').filter(|(key, _)| key.eq_ignore_ascii_case("path")).map(|(_, path)| path)
        });
        let key = (host.to_owned(), path.unwrap_or("/").to_owned(), name.to_owned());
        let is_over = value.is_empty() || cookie.contains("Max-Age=0") || cookie.contains("1970");
        if is_over {
            self.cookies.remove(&key)
        } else {
            self.cookies.insert(key, value.to_owned())
        };
    }

    /// Signs in at the provider, and returns the server's response to the way back.
    fn sign_in(&mut self, start: &str, person: &str) -> Page {
        let login = self.open(start);
        assert!(login.body.contains("name=\"login\""), "{login:?}");
        let submit = login.between("action=\"", "\"").to_owned();
        let consent = self.follow("POST", &submit, &format!("prompt=login&login={person}&password=x"));
        assert!(consent.body.contains("value=\"consent\""), "{consent:?}");
        let submit = consent.between("action=\"", "\"").to_owned();
        self.follow("POST", &submit, "prompt=consent")
    }

    fn cookie(&self, name: &str) -> Option<&String> {
        self.cookies.iter().find(|((_, _, of), _)| of == name).map(|(_, value)| value)
    }
}

/// The host with its port, and the path, of a URL.
fn parts(url: &str) -> (String, String) {
    let rest = url.strip_prefix("http://").unwrap_or_else(|| panic!("{url}"));
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    (host.to_owned(), format!("/{path}"))
}

fn resolved(base: &str, url: &str) -> String {
    if url.starts_with('/') { format!("http://{}{url}", parts(base).0) } else { url.to_owned() }
}

#[test]
fn a_person_signs_in_acts_and_signs_out() {
    let Some(site) = Site::start("RS256", "id_token") else { return };
    let mut browser = Browser::default();
    // The page that was asked for is the page to come back to.
    let page = browser.open(&site.url("jobs?state=failed"));
    assert!(page.url.ends_with("/ui/sign-in?to=jobs%3Fstate%3Dfailed"), "{}", page.url);
    let start = page.between("class=\"button\" href=\"", "\"").to_owned();
    let page = browser.sign_in(&resolved(&page.url, &start), "ada");
    let back = page.url.clone();
    assert_eq!((page.status, page.onward().as_str()), (200, "/ui/jobs?state=failed"), "{page:?}");
    let session = page.headers.iter().find(|(_, value)| value.starts_with("tenure_stay=")).unwrap();
    assert!(session.1.contains("HttpOnly; SameSite=Strict"), "{session:?}");
    let page = browser.open(&resolved(&back, &page.onward()));
    assert!(page.status == 200 && page.body.contains("ada@example.com"), "{page:?}");
    // She may change things, and the audit log names her.
    let queues = browser.open(&site.url("queues/default"));
    let form = format!("token={}", queues.form_token());
    let paused = browser.request("POST", &site.url("queues/default/pause"), &form);
    assert_eq!(paused.status, 303, "{paused:?}");
    let audit = site.audit();
    let of = |path: &str| {
        audit.iter().find(|entry| entry["path"].as_str().unwrap_or_default().ends_with(path)).unwrap()
    };
    assert_eq!(of("/queues/default/pause")["who"], "oidc:ada");
    let signed_in = of("/ui/sign-in/callback");
    assert_eq!((&signed_in["who"], &signed_in["source"]), (&"oidc:ada".into(), &"dashboard".into()));
    assert_eq!(signed_in["after"]["email"], "ada@example.com");
    // The session is for the dashboard, not for the API.
    let session = browser.cookie("tenure_stay").unwrap().clone();
    let api = ask(&site.address, "GET", "/v1/jobs", &format!("cookie: tenure_stay={session}\r\n"), "");
    assert_eq!(api.0, 401);
    // The way back was good for one use.
    let again = browser.request("GET", &back, "");
    assert_eq!(again.status, 400, "{again:?}");
    // Signing out here leads to signing out at the provider.
    let out = browser.request("POST", &site.url("sign-out"), &form);
    let end = out.onward();
    assert!(end.contains("/session/end?client_id=tenure") && end.contains("id_token_hint="), "{end}");
    let confirm = browser.open(&end);
    let secret = confirm.between("name=\"xsrf\" value=\"", "\"").to_owned();
    let action = confirm.between("action=\"", "\"").to_owned();
    let page = browser.follow("POST", &action, &format!("xsrf={secret}&logout=yes"));
    assert_eq!(page.url, site.url("sign-in"), "{page:?}");
    let page = browser.request("GET", &site.url("jobs"), "");
    assert_eq!(page.status, 303, "{page:?}");
    let old = ask(&site.address, "GET", "/ui/jobs", &format!("cookie: tenure_stay={session}\r\n"), "");
    assert_eq!(old.0, 303, "the old cookie is worth nothing");
}

#[test]
fn groups_decide_who_may_enter_and_what_they_may_do() {
    // Here the claims are in the user info, and the tokens are signed with another algorithm.
    let Some(site) = Site::start("ES256", "userinfo") else { return };
    let start = site.url("sign-in/start");
    let page = Browser::default().sign_in(&start, "bob");
    assert_eq!(page.status, 403, "{page:?}");
    assert!(page.body.contains("Bob has no access"), "{page:?}");
    assert!(!page.headers.iter().any(|(_, value)| value.starts_with("tenure_stay=")), "{page:?}");
    // A refusal is recorded by a task of the server.
    let mut entries = (0..100).flat_map(|_| site.audit());
    let refused = entries.find(|entry| entry["path"] == "/ui/sign-in/callback").unwrap();
    assert_eq!((&refused["who"], &refused["status"]), (&"oidc:bob".into(), &403.into()));
    // Eve has entered the address of Ada, but the provider has not verified it: she may only read.
    let mut eve = Browser::default();
    assert_eq!(eve.sign_in(&start, "eve").status, 200);
    let page = eve.open(&site.url("queues/default"));
    assert!(page.status == 200 && !page.body.contains("queues/default/pause"), "{page:?}");
    assert_eq!(eve.open(&site.url("audit")).status, 403);
    let form = format!("token={}", page.form_token());
    assert_eq!(eve.request("POST", &site.url("queues/default/pause"), &form).status, 403);
}

#[test]
fn a_way_back_is_good_for_the_browser_that_went_there() {
    let Some(site) = Site::start("EdDSA", "id_token") else { return };
    let (mut ada, mut other) = (Browser::default(), Browser::default());
    // An attacker must not be able to sign in another browser under the attacker's name.
    let login = ada.open(&site.url("sign-in/start"));
    let submit = login.between("action=\"", "\"").to_owned();
    let consent = ada.follow("POST", &submit, "prompt=login&login=ada&password=x");
    let mut page = ada.request("POST", consent.between("action=\"", "\""), "prompt=consent");
    while !page.header("location").unwrap().contains("/ui/sign-in/callback") {
        let next = resolved(&page.url, page.header("location").unwrap());
        page = ada.request("GET", &next, "");
    }
    let back = page.header("location").unwrap().to_owned();
    assert_eq!(other.request("GET", &back, "").status, 400, "no cookie");
    other.request("GET", &site.url("sign-in/start"), "");
    assert!(other.cookie("tenure_sign_in").is_some());
    assert_eq!(other.request("GET", &back, "").status, 400, "the cookie of another attempt");
    let (address, query) = back.split_once('?').unwrap();
    let denied = ada.request("GET", &format!("{address}?error=access_denied&{query}"), "");
    assert_eq!(denied.status, 403, "{denied:?}");
    assert_eq!(ada.request("GET", &back, "").status, 400, "an attempt ends with the first response");
    // The provider remembers her, and sends the browser straight back.
    assert_eq!(ada.open(&site.url("sign-in/start")).status, 200);
}
