//! Somebody who looks at a page: where the pages are mounted, who he is, and how he likes them.

use std::convert::Infallible;
use std::sync::{Mutex, OnceLock};

use axum::extract::{FromRequestParts, NestedPath, OriginalUri};
use axum::http::header::{COOKIE, HOST};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method};

use serde_json::Value;
use tenure_http::{ClientSlot, ProxiedPerson, PublicOrigin, Remote, ResponseMemory};
use tokio::sync::OnceCell;

use crate::Ui;
use crate::asking::{Held, encoded};
use crate::attempt::safe_page;
use crate::likes::{Likes, by_clock};
use crate::stays::{Credential, Request};
use crate::views::{self, View};

/// Name of the cookie of whoever is signed in, without and with TLS.
pub(crate) const STAY: [&str; 2] = ["tenure_stay", "__Host-tenure_stay"];

/// What a page knows of whoever looks at it.
pub(crate) struct Visit {
    pub ui: Ui,
    /// Where the first page is; ends in a slash.
    pub home: String,
    /// Which page is looked at, named from the first one.
    pub page: String,
    /// What was asked for behind the question mark.
    pub query: String,
    pub likes: Likes,
    /// Views of the list of jobs that his browser keeps.
    pub views: Vec<View>,
    /// By which name the server was asked, with its scheme.
    pub server: String,
    /// The cookie of whoever is signed in; empty if nobody is.
    pub cookie: String,
    /// Proof of who is signed in.
    pub credential: Option<Credential>,
    /// A person whom the proxy names, and who may not look.
    pub turned_away: Option<String>,
    /// `true` if the request opens a page, to which a sign-in can return.
    is_page: bool,
    /// Whether no page of somebody else has led here, as far as the browser tells: what was done is told to nobody who did not do it.
    pub is_led_here: bool,
    /// Whether a browser came over TLS.
    pub is_secure: bool,
    /// Where it came from, if that is known: whoever guesses access tokens here is counted as anywhere else.
    pub remote: Option<Remote>,
    /// Place where the API notes the client, whose memory the form and the page take.
    pub client: Option<ClientSlot>,
    /// ID of the request, which the audit log shows.
    pub request_id: Option<HeaderValue>,
    /// What tells servers that take the forms of this page from others.
    pub run: String,
    /// What stands in each form.
    form_token: Option<String>,
    /// Who looks, once that was asked.
    pub(crate) who: OnceCell<Value>,
    /// Memory of the answers of the API, until the page is made.
    pub(crate) held: Mutex<Vec<Held>>,
    /// Memory that answers and the page take, once the API has said whose it is.
    pub(crate) memory: OnceLock<ResponseMemory>,
}

impl FromRequestParts<Ui> for Visit {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, ui: &Ui) -> Result<Self, Infallible> {
        let nested = NestedPath::from_request_parts(parts, ui).await.ok();
        let mounted = nested.map_or_else(String::new, |nested| nested.as_str().to_owned());
        let mounted = mounted.trim_end_matches('/');
        let home = format!("{}{mounted}/", ui.prefix);
        let Ok(OriginalUri(uri)) = OriginalUri::from_request_parts(parts, ui).await;
        // A server with a public URL shows the path as the client sent it, before the proxy.
        let path = uri.path().strip_prefix(ui.prefix.as_str()).unwrap_or(uri.path());
        let page = path.strip_prefix(mounted).unwrap_or_default().trim_start_matches('/').to_owned();
        let headers = &parts.headers;
        let public = parts.extensions.get::<PublicOrigin>().map(|PublicOrigin(origin)| origin.to_string());
        let is_secure = headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https")
            || public.as_ref().is_some_and(|origin| origin.starts_with("https://"));
        let cookie = cookie(headers, STAY[usize::from(is_secure)]).unwrap_or_default();
        // A script of an open page asks, and not a person who opens one.
        let is_refresh = headers.get("sec-fetch-dest").is_some_and(|wants| wants == "empty");
        let by = if is_refresh { Request::Refresh } else { Request::Person };
        let session = ui.stays.find(&cookie, ui.tenure.now(), by);
        let cookie = if session.is_some() { cookie } else { String::new() };
        // The proxy decides: the session of another person in the same browser must not take precedence.
        let proxied = parts.extensions.get::<ProxiedPerson>().cloned();
        let turned_away = proxied.as_ref().filter(|person| !person.may_look);
        let turned_away = turned_away.map(|person| person.principal.name.clone());
        let proxied = proxied.filter(|person| person.may_look);
        let form_of = proxied.as_ref().map_or_else(|| cookie.clone(), |person| person.principal.name.clone());
        let credential = proxied.map(Credential::Proxied).or(session);
        let keys = ui.keys().await;
        let origin = public.unwrap_or_else(|| {
            let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("127.0.0.1:8368");
            format!("{}://{host}", if is_secure { "https" } else { "http" })
        });
        Ok(Self {
            ui: ui.clone(),
            home,
            page,
            query: uri.query().unwrap_or_default().to_owned(),
            likes: Likes::of(headers),
            views: views::kept(headers),
            server: format!("{origin}{}", ui.prefix),
            remote: parts.extensions.get::<Remote>().copied(),
            client: parts.extensions.get::<ClientSlot>().cloned(),
            request_id: headers.get("x-request-id").cloned(),
            run: keys.run.clone(),
            form_token: keys.form_token(&form_of),
            cookie,
            credential,
            turned_away,
            is_page: parts.method == Method::GET && !is_refresh,
            is_led_here: headers.get("sec-fetch-site").is_none_or(|from| from == "same-origin"),
            is_secure,
            who: OnceCell::new(),
            held: Mutex::default(),
            memory: OnceLock::new(),
        })
    }
}

impl Visit {
    /// The address of a page, named from the first one.
    pub(crate) fn at(&self, page: &str) -> String {
        format!("{}{page}", self.home)
    }

    /// Returns the page for signing in, from which the browser returns to this page.
    pub(crate) fn sign_in(&self) -> String {
        let query = if self.query.is_empty() { String::new() } else { format!("?{}", self.query) };
        let page = format!("{}{query}", self.page);
        match safe_page(&page) {
            page if self.is_page && !page.is_empty() => self.at(&format!("sign-in?to={}", encoded(&page))),
            _ => self.at("sign-in"),
        }
    }

    /// Returns the page to which a sign-in returns.
    pub(crate) fn return_page(&self) -> String {
        safe_page(&self.said("to"))
    }

    /// What stands in each form.
    pub(crate) fn form_token(&self) -> Option<String> {
        self.form_token.clone()
    }

    /// What was said behind the question mark by this name.
    pub(crate) fn said(&self, name: &str) -> String {
        self.all_said(name).into_iter().next().unwrap_or_default()
    }

    /// All that was said there by this name.
    pub(crate) fn all_said(&self, name: &str) -> Vec<String> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        let decoded = |text: &str| {
            let text = text.replace('+', " ");
            percent_encoding::percent_decode_str(&text).decode_utf8_lossy().into_owned()
        };
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| decoded(value)).collect()
    }

    /// An instant to the second, by the clocks that somebody likes.
    pub(crate) fn exact(&self, at: &str) -> String {
        by_clock(&self.likes.zone, at)
    }
}

/// What a cookie of this name holds.
pub(crate) fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let all = headers.get_all(COOKIE).iter().filter_map(|header| header.to_str().ok());
    let mut pairs = all.flat_map(|header| header.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}
