//! What stands around each page.

use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{Html, IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

use crate::asking::Trouble;
use crate::assets;
use crate::parts::{button, prose};
use crate::said::{longer_by, upright};
use crate::stays::Credential;
use crate::visit::Visit;

/// Where, name, and the key that leads there after `g`.
type Room = (&'static str, &'static str, &'static str);

/// The rooms.
const ROOMS: [Room; 13] = [
    ("", "Overview", "o"),
    ("jobs", "Jobs", "j"),
    ("queues", "Queues", "q"),
    ("kinds", "Kinds", "k"),
    ("schedules", "Schedules", "s"),
    ("calendar", "Calendar", "c"),
    ("apps", "Apps", "p"),
    ("leases", "Leases", "l"),
    ("workers", "Workers", "w"),
    ("bulk", "Bulk", "b"),
    ("webhooks", "Webhooks", "h"),
    ("events", "Events", "e"),
    ("audit", "Audit", "a"),
];

/// What single keys do beside going to a room.
const KEYS: [(&[&str], &str); 9] = [
    (&["/"], "search"),
    (&["j", "k"], "next, previous row"),
    (&["Enter", "o"], "open the row"),
    (&["x"], "select the row"),
    (&["r"], "focus Retry"),
    (&["c"], "focus Cancel"),
    (&["p"], "pause or resume live updates"),
    (&["Ctrl-K"], "go to a page, or search jobs"),
    (&["?"], "show these shortcuts"),
];

/// What is told after something was done.
const NOTICES: [(&str, &str); 29] = [
    ("cancel", "Job cancelled. If it is running, its worker is asked to stop."),
    ("retry", "Job retried, with a full set of attempts."),
    ("run-now", "Job is due now."),
    ("delete", "Job deleted, or cancelled if it had not finished."),
    ("enqueue", "Job enqueued."),
    ("pause", "Paused. Running jobs continue."),
    ("resume", "Resumed."),
    ("trigger", "Job enqueued."),
    ("break", "Lease broken: its holder has lost it."),
    ("keep", "Settings saved in this browser."),
    ("bulk", "Bulk operation started. It runs as a background job."),
    ("bounds", "Limits saved."),
    ("purge", "Purge started. It runs as a background job."),
    ("add", "Schedule created."),
    ("remove", "Deleted."),
    ("test", "Test event queued for delivery."),
    ("enable", "Webhook enabled."),
    ("disable", "Webhook disabled."),
    ("redeliver", "Redelivery queued."),
    ("run-app", "Run requested. It starts when a host picks it up."),
    ("stop-app", "Stopped on all hosts until you start it again."),
    ("start-app", "Started. Hosts can run it again."),
    ("quiet", "Request sent: the worker will take no new jobs."),
    ("unquiet", "Request sent: the worker will take jobs again."),
    ("terminate", "Request sent: the worker will finish its jobs and exit."),
    ("backfill", "Backfill enqueued. One backfill adds at most 10,000 jobs."),
    ("view", "View saved in this browser."),
    ("forget", "View removed from this browser."),
    ("hook", "Webhook created."),
];

/// What takes back what was done: what was done, and what is done then to the same thing.
const UNDOES: [(&str, &str); 6] = [
    ("pause", "resume"),
    ("resume", "pause"),
    ("disable", "enable"),
    ("enable", "disable"),
    ("quiet", "resume"),
    ("unquiet", "quiet"),
];

/// The rooms that are open to whoever looks: no door is shown that leads to a refusal.
async fn open(visit: &Visit) -> Vec<Room> {
    let mut rooms = Vec::from(ROOMS);
    for (at, needs) in [("webhooks", "manage"), ("audit", "admin")] {
        if !visit.has(needs).await {
            rooms.retain(|(room, _, _)| *room != at);
        }
    }
    rooms
}

/// A page, or what is wrong.
pub(crate) async fn page(visit: &Visit, title: &str, room: &str, body: Result<Markup, Trouble>) -> Response {
    match body {
        Ok(body) => match visit.take(copies(&body.0)) {
            Ok(()) => show(visit, title, room, body).await,
            Err(trouble) => failed(visit, trouble).await,
        },
        Err(trouble) => failed(visit, trouble).await,
    }
}

/// Returns the bytes that the copies of the body take while the page is put together.
fn copies(body: &str) -> usize {
    let longer = longer_by(body);
    let shown = if longer > 0 { body.len() + longer } else { 0 };
    2 * body.len() + shown
}

/// A page that says what is wrong; whoever has to say who he is, is led to where he can.
pub(crate) async fn failed(visit: &Visit, trouble: Trouble) -> Response {
    if trouble.status == StatusCode::UNAUTHORIZED {
        return (StatusCode::SEE_OTHER, [(LOCATION, visit.sign_in())]).into_response();
    }
    let title = if trouble.title.is_empty() { "Request failed" } else { trouble.title.as_str() };
    let body = html! {
        section.empty role="alert" {
            h1 { (title) }
            p { (prose(&trouble.detail)) }
            p { a href=(visit.home) { "Go to the overview" } }
        }
    };
    (trouble.status, show(visit, title, "", body).await).into_response()
}

/// All of a page.
pub(crate) async fn show(visit: &Visit, title: &str, room: &str, body: Markup) -> Response {
    let token = visit.form_token().unwrap_or_default();
    let did = if visit.is_led_here { visit.said("did") } else { String::new() };
    let notice = NOTICES.iter().find(|(what, _)| *what == did).map(|(_, said)| *said);
    let undoes = UNDOES.iter().find(|(what, _)| notice.is_some() && *what == did).map(|(_, undoes)| *undoes);
    let likes = &visit.likes;
    let rooms = open(visit).await;
    let asset = |name| visit.at(&format!("assets/{}", assets::name(name)));
    let page = html! {
        (DOCTYPE)
        html lang="en" data-theme=(likes.theme) data-density=(likes.density) data-keys=(likes.keys) data-live=(likes.live)
            data-home=(visit.home) data-zone=(likes.zone.name()) data-run=(visit.run) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content=(colours(likes.theme));
                title { (title) " · Tenure" }
                link rel="stylesheet" href=(asset("ui.css"));
                link rel="icon" href=(asset("icon.svg"));
                script type="module" src=(asset("ui.js")) {}
            }
            body {
                a.skip href="#main" { "Skip to content" }
                header.top {
                    a.brand href=(visit.home) { "Tenure" }
                    nav aria-label="Main" {
                        @for (at, name, key) in &rooms {
                            @let here = room == *name;
                            a href=(visit.at(at)) data-go=(key) aria-current=[here.then_some("page")] { (name) }
                        }
                    }
                    div.tools {
                        button.quiet #pause type="button" hidden aria-pressed="false" { "Pause updates" }
                        a.quiet href=(visit.at("settings")) aria-current=[(room == "Settings").then_some("page")] { "Settings" }
                        @if let Some(name) = visit.credential.as_ref().and_then(Credential::label) {
                            span.faint title="Signed in" { (name) }
                        }
                        @if matches!(visit.credential, Some(Credential::Token(_) | Credential::Person(_))) {
                            form method="post" action=(visit.at("sign-out")) {
                                input type="hidden" name="token" value=(token);
                                button.quiet { "Sign out" }
                            }
                        }
                    }
                }
                main #main tabindex="-1" data-now=(visit.ui.tenure.now()) {
                    @if visit.ui.read_only { p.notice { "This server is read-only: you can look at everything and change nothing." } }
                    @if let Some(notice) = notice {
                        div.notice role="status" { (notice)
                            @if let Some(undoes) = undoes { (button(visit, &format!("{}/{undoes}", visit.page), "Undo", "quiet")) } }
                    }
                    p.notice.old #old hidden {}
                    p.sr #told aria-live="polite" {}
                    (body)
                }
                footer { p.faint { "Times in " (likes.clocks()) ". "
                    a href=(visit.at("settings")) { "Change time zone, theme or shortcuts" } } }
                (help(&rooms))
                dialog #palette aria-label="Go to" {
                    label { "Go to" input #where type="search" autocomplete="off" placeholder="a page, a job ID or a search"; }
                    ul { @for (at, name, _) in &rooms { li { a href=(visit.at(at)) { (name) } } }
                        @if visit.may("manage").await { li { a href=(visit.at("new-schedule")) { "New schedule" } } }
                        li { a href=(visit.at("settings")) { "Settings" } } }
                }
            }
        }
    };
    Html(upright(page.into_string())).into_response()
}

/// A page that leads on at once, in place of a redirect that the browser would treat as one from another site.
pub(crate) fn onward(text: &str, url: &str) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="refresh" content=(format!("0;url={url}"));
                title { "Sign in · Tenure" }
            }
            body { p { (text) " " a href=(url) { "Continue" } } }
        }
    };
    Html(page.into_string()).into_response()
}

fn colours(theme: &str) -> &str {
    if theme == "system" { "light dark" } else { theme }
}

fn help(rooms: &[Room]) -> Markup {
    html! {
        dialog #help aria-labelledby="keys" {
            h2 #keys { "Keyboard shortcuts" }
            dl.keys {
                @for (keys, does) in KEYS { dt { @for key in keys { kbd { (key) } " " } } dd { (does) } }
                @for (_, name, key) in rooms { dt { kbd { "g" } " " kbd { (key) } } dd { (name) } }
            }
            form method="dialog" { button { "Close" } }
        }
    }
}
