//! Views of the list that somebody keeps: ways to them, and how they are kept and forgotten.

use maud::{Markup, html};

use super::columns;
use crate::asking::encoded;
use crate::parts::proof;
use crate::views::View;
use crate::visit::Visit;

/// What stands behind the question mark of the list as it is looked at, from its first page on.
fn query(visit: &Visit, search: &str, state: &str) -> String {
    let said = [("q", search), ("state", state)];
    let said = said.into_iter().filter(|(_, value)| !value.is_empty());
    let pairs: Vec<String> = said.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    format!("{}{}", pairs.join("&"), columns::kept(visit)).trim_start_matches('&').to_owned()
}

/// The views, and the form that keeps what is looked at as one more.
pub(super) fn shown(visit: &Visit, search: &str, state: &str) -> Markup {
    let here = query(visit, search, state);
    let is_here = |view: &View| view.query == here;
    html! {
        @for view in &visit.views {
            a.tag href=(visit.at(&format!("jobs?{}", view.query))) aria-current=[is_here(view).then_some("true")] { (view.name) }
        }
        details.ask { summary { "Views" } div.pop {
            form.stack method="post" action=(visit.at("views")) {
                (proof(visit))
                input type="hidden" name="query" value=(here);
                label { "Save this search and its columns as" input name="name" maxlength="40" required autocomplete="off"; }
                p.faint { "Saved in this browser. To share a view, copy the address of the page." }
                button { "Save view" }
            }
            @for view in &visit.views {
                form.inline method="post" action=(visit.at("views/forget")) {
                    (proof(visit))
                    input type="hidden" name="query" value=(here);
                    input type="hidden" name="name" value=(view.name);
                    button.quiet { "Remove " (view.name) }
                }
            }
        } }
    }
}
