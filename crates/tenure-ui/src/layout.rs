//! What stands around each page.

use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{Html, IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

use crate::asking::Trouble;
use crate::assets;
use crate::visit::Visit;

/// The rooms: where, name, and the key that leads there after `g`.
const ROOMS: [(&str, &str, &str); 10] = [
    ("", "Overview", "o"),
    ("jobs", "Jobs", "j"),
    ("queues", "Queues", "q"),
    ("schedules", "Schedules", "s"),
    ("calendar", "Calendar", "c"),
    ("leases", "Leases", "l"),
    ("workers", "Workers", "w"),
    ("kinds", "Kinds", "k"),
    ("events", "Events", "e"),
    ("audit", "Audit", "a"),
];

/// What is told after something was done.
const NOTICES: [(&str, &str); 8] = [
    ("cancel", "The job is cancelled, or its holder was asked to stop."),
    ("retry", "The job is done again, with all its attempts."),
    ("run-now", "The job is due now."),
    ("delete", "The job was removed, or cancelled if it had not ended."),
    ("pause", "Paused. What runs goes on."),
    ("resume", "Goes on."),
    ("trigger", "A job was enqueued now."),
    ("break", "The lease was taken from its holder."),
];

/// A page, or what is wrong.
pub(crate) async fn page(visit: &Visit, title: &str, room: &str, body: Result<Markup, Trouble>) -> Response {
    match body {
        Ok(body) => show(visit, title, room, body).await,
        Err(trouble) => failed(visit, trouble).await,
    }
}

/// A page that says what is wrong; whoever has to say who he is, is led to where he can.
pub(crate) async fn failed(visit: &Visit, trouble: Trouble) -> Response {
    if trouble.status == StatusCode::UNAUTHORIZED {
        return (StatusCode::SEE_OTHER, [(LOCATION, visit.at("sign-in"))]).into_response();
    }
    let title = if trouble.title.is_empty() { "This did not work" } else { trouble.title.as_str() };
    let body = html! {
        section.empty role="alert" {
            h1 { (title) }
            p { (trouble.detail) }
            p { a href=(visit.home) { "To the overview" } }
        }
    };
    (trouble.status, show(visit, title, "", body).await).into_response()
}

/// All of a page.
pub(crate) async fn show(visit: &Visit, title: &str, room: &str, body: Markup) -> Response {
    let token = visit.form_token().unwrap_or_default();
    let did = visit.said("did");
    let notice = NOTICES.iter().find(|(what, _)| *what == did).map(|(_, said)| *said);
    let asset = |name| visit.at(&format!("assets/{}", assets::name(name)));
    let page = html! {
        (DOCTYPE)
        html lang="en" data-theme=(visit.theme) data-home=(visit.home) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content=(colours(visit.theme));
                title { (title) " · Tenure" }
                link rel="stylesheet" href=(asset("ui.css"));
                link rel="icon" href=(asset("icon.svg"));
                script type="module" src=(asset("ui.js")) {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header.top {
                    a.brand href=(visit.home) { "Tenure" }
                    nav aria-label="Rooms" {
                        @for (at, name, key) in ROOMS {
                            @let here = room == name;
                            a href=(visit.at(at)) data-go=(key) aria-current=[here.then_some("page")] { (name) }
                        }
                    }
                    div.tools {
                        button.quiet #pause type="button" hidden aria-pressed="false" { "Pause" }
                        form method="post" action=(visit.at("theme")) {
                            input type="hidden" name="token" value=(token);
                            @let next = following(visit.theme);
                            button.quiet name="theme" value=(next) title={ "Change to " (next) " colours" } {
                                span.sr { "Colours: " } (visit.theme)
                            }
                        }
                        @if visit.access_token.is_some() {
                            form method="post" action=(visit.at("sign-out")) {
                                input type="hidden" name="token" value=(token);
                                button.quiet { "Sign out" }
                            }
                        }
                    }
                }
                main #main tabindex="-1" {
                    @if visit.ui.read_only { p.notice { "Read-only: this server shows everything and changes nothing." } }
                    @if let Some(notice) = notice { p.notice role="status" { (notice) } }
                    (body)
                }
                dialog #help {
                    h2 { "Keys" }
                    dl.keys {
                        dt { kbd { "/" } } dd { "search" }
                        dt { kbd { "j" } " " kbd { "k" } } dd { "next and previous row" }
                        dt { kbd { "Enter" } } dd { "open the row" }
                        dt { kbd { "p" } } dd { "pause or go on with live updates" }
                        @for (_, name, key) in ROOMS { dt { kbd { "g" } " " kbd { (key) } } dd { (name) } }
                    }
                    form method="dialog" { button { "Close" } }
                }
            }
        }
    };
    Html(page.into_string()).into_response()
}

fn colours(theme: &str) -> &str {
    if theme == "system" { "light dark" } else { theme }
}

fn following(theme: &str) -> &'static str {
    match theme {
        "system" => "light",
        "light" => "dark",
        _ => "system",
    }
}
