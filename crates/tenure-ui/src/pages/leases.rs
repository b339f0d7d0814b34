//! Leases: who holds what, since when, and for how long still.

use axum::response::Response;
use maud::{Markup, html};

use crate::asking::{Trouble, encoded};
use crate::layout;
use crate::parts::{empty, list, text, time};
use crate::visit::Visit;

/// `GET leases`
pub(crate) async fn page(visit: Visit) -> Response {
    let body = body(&visit).await;
    layout::page(&visit, "Leases", "Leases", body).await
}

async fn body(visit: &Visit) -> Result<Markup, Trouble> {
    let mut path = "/v1/leases?limit=100".to_owned();
    for (key, value) in [("prefix", visit.said("prefix")), ("cursor", visit.said("cursor"))] {
        if !value.is_empty() {
            path.push_str(&format!("&{key}={}", encoded(&value)));
        }
    }
    let found = visit.get(&path).await?;
    let leases = list(&found, "items");
    Ok(html! {
        h1 { "Leases" }
        form.search method="get" action=(visit.at("leases")) role="search" {
            label.sr for="q" { "Search by name prefix" }
            input #q name="prefix" type="search" value=(visit.said("prefix")) placeholder="name prefix" autocomplete="off";
            button { "Search" }
        }
        div #list data-live {
            @if leases.is_empty() {
                @if visit.said("prefix").is_empty() { (empty("No leases yet", "A lease appears when a program first acquires it, for example with `tenure lease run`.")) }
                @else { (empty("No matching leases", "Try a shorter prefix.")) }
            } @else {
                div.wide tabindex="0" role="region" aria-label="Leases" {
                    table.rows {
                        caption.sr { "Leases by name" }
                        thead { tr {
                            th scope="col" { "Lease" } th scope="col" { "State" } th scope="col" { "Holder" }
                            th.number scope="col" { "Fencing token" } th scope="col" { "Held since" } th scope="col" { "Expires" }
                            th.number scope="col" { "Waiting" }
                        } }
                        tbody { @for lease in leases {
                            @let name = text(lease, "name");
                            @let held = lease["locked"] == true;
                            tr {
                                th scope="row" { a href=(visit.at(&format!("leases/{}", encoded(name)))) { (name) } }
                                td { span class={ "state " (if held { "running" } else { "cancelled" }) } {
                                    span aria-hidden="true" { (if held { "●" } else { "○" }) } " " (text(lease, "state")) } }
                                td { (text(&lease["holder"], "owner")) }
                                td.number { (text(lease, "fence")) }
                                td { (time(visit, text(lease, "held_since"))) }
                                td { (time(visit, text(lease, "expires_at"))) }
                                td.number { (lease["waiting"]) }
                            }
                        } }
                    }
                }
            }
        }
        @if let Some(next) = found["next_cursor"].as_str() {
            p.more { a rel="next" href=(visit.at(&format!("leases?cursor={}&prefix={}", encoded(next), encoded(&visit.said("prefix"))))) { "More →" } }
        }
    })
}
