//! Where somebody says who he is.

use axum::response::Response;
use maud::{Markup, html};

use crate::asking::encoded;
use crate::layout::show;
use crate::parts::proof;
use crate::visit::Visit;

/// `GET sign-in`
pub(crate) async fn page(visit: Visit) -> Response {
    let form = form(&visit, None);
    show(&visit, "Sign in", "", form).await
}

pub(crate) fn form(visit: &Visit, wrong: Option<&str>) -> Markup {
    html! {
        section.card.narrow {
            h1 { "Sign in" }
            @if let Some(wrong) = wrong { p #wrong .wrong role="alert" { (wrong) } }
            @if let Some(name) = &visit.turned_away {
                p .wrong { "The proxy has signed you in as " code { (name) } ", which has no access here." }
            }
            @if visit.ui.oidc.is_some() {
                p { a.button href=(visit.at(&format!("sign-in/start{}", returning(visit)))) { "Sign in with your identity provider" } }
                h2 { "Or use an access token" }
            }
            p { "Paste an access token. To create one, run " code { "tenure token create --db …" }
                " on the server's machine. With an " code { "admin" } " token, "
                code { "tenure token create" } " also works through the server." }
            form.stack method="post" action=(visit.at(&format!("sign-in{}", returning(visit)))) {
                (proof(visit))
                label { "Access token" input name="access_token" type="password" required autocomplete="off"; }
                button { "Sign in" }
            }
        }
    }
}

/// Returns the query that names the page to return to.
fn returning(visit: &Visit) -> String {
    let page = visit.return_page();
    if page.is_empty() { page } else { format!("?to={}", encoded(&page)) }
}
