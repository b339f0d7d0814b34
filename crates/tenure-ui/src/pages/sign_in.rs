//! Where somebody says who he is.

use axum::response::Response;
use maud::{Markup, html};

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
            p { "Paste an access token. To create one, run " code { "tenure token create --db …" }
                " on the server's machine. With an " code { "admin" } " token, "
                code { "tenure token create" } " also works through the server." }
            @if let Some(wrong) = wrong { p #wrong .wrong role="alert" { (wrong) } }
            form.stack method="post" action=(visit.at("sign-in")) {
                (proof(visit))
                label { "Access token" input name="access_token" type="password" required autocomplete="off"; }
                button { "Sign in" }
            }
        }
    }
}
