//! Views of the list of jobs that somebody keeps: kept in a cookie of the browser, like all that somebody likes. Whoever wants
//! others to see one sends them its address.

use axum::Form;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Response};
use percent_encoding::percent_decode_str;

use crate::acts::back;
use crate::asking::{Trouble, encoded};
use crate::guard::{Filled, check};
use crate::layout::failed;
use crate::settings;
use crate::visit::{Visit, cookie};

/// Name of the cookie.
const VIEWS: &str = "tenure_views";
/// Views that are kept.
const MOST: usize = 12;
/// Letters of a name.
const NAME_CHARS: usize = 40;
/// Bytes of all of them: browsers keep no larger cookie.
const BYTES: usize = 3_800;

/// A view: its name, and what stands behind the question mark of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    pub name: String,
    pub query: String,
}

/// Those that a browser keeps, by name.
pub(crate) fn kept(headers: &HeaderMap) -> Vec<View> {
    let all = cookie(headers, VIEWS).unwrap_or_default();
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let views = all.split('&').filter_map(|pair| pair.split_once('='));
    views.map(|(name, query)| View { name: decoded(name), query: decoded(query) }).take(MOST).collect()
}

/// `POST views`
pub(crate) async fn keep(visit: Visit, headers: HeaderMap, Form(filled): Form<Filled>) -> Response {
    let said = |name: &str| filled.get(name).map(|text| text.trim().to_owned()).unwrap_or_default();
    let view = View { name: said("name"), query: said("query") };
    let kept = check(&visit, &headers, &filled).and_then(|()| with(kept(&headers), &view));
    changed(&visit, kept, &view.query, "view").await
}

/// `POST views/forget`
pub(crate) async fn forget(visit: Visit, headers: HeaderMap, Form(filled): Form<Filled>) -> Response {
    let said = |name: &str| filled.get(name).cloned().unwrap_or_default();
    let without = || kept(&headers).into_iter().filter(|view| view.name != said("name")).collect();
    let kept = check(&visit, &headers, &filled).and_then(|()| of_a_list(&said("query"))).map(|()| without());
    changed(&visit, kept, &said("query"), "forget").await
}

async fn changed(visit: &Visit, kept: Result<Vec<View>, Trouble>, query: &str, did: &str) -> Response {
    let written = match kept.and_then(|kept| written(&kept)) {
        Ok(written) => written,
        Err(trouble) => return failed(visit, trouble).await,
    };
    let cookie = [(SET_COOKIE, settings::cookie(visit, VIEWS, &written))];
    let sign = if query.is_empty() { "" } else { "&" };
    (AppendHeaders(cookie), back(&visit.at(&format!("jobs?{query}{sign}did={did}")))).into_response()
}

/// One more, or another one of that name.
fn with(mut views: Vec<View>, view: &View) -> Result<Vec<View>, Trouble> {
    let refuse = |detail: &str| Trouble::new(StatusCode::UNPROCESSABLE_ENTITY, "View not saved", detail);
    if view.name.is_empty() || view.name.chars().count() > NAME_CHARS {
        return Err(refuse("Enter a name of 1 to 40 characters."));
    }
    of_a_list(&view.query)?;
    views.retain(|known| known.name != view.name);
    if views.len() >= MOST {
        return Err(refuse("At most 12 views can be saved; remove one first."));
    }
    views.push(view.clone());
    views.sort_by_key(|view| view.name.to_lowercase());
    Ok(views)
}

/// Refuses what cannot become part of an address of ours.
fn of_a_list(query: &str) -> Result<(), Trouble> {
    if query.chars().any(|letter| letter.is_control() || letter == '#') {
        let detail = "A view cannot contain control characters or `#`.";
        return Err(Trouble::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid view", detail));
    }
    Ok(())
}

fn written(views: &[View]) -> Result<String, Trouble> {
    let pairs: Vec<String> =
        views.iter().map(|view| format!("{}={}", encoded(&view.name), encoded(&view.query))).collect();
    let all = pairs.join("&");
    if all.len() > BYTES {
        let detail = "The saved views do not fit into a cookie; remove one, or shorten its search.";
        return Err(Trouble::new(StatusCode::UNPROCESSABLE_ENTITY, "View not saved", detail));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(name: &str, query: &str) -> View {
        View { name: name.to_owned(), query: query.to_owned() }
    }

    #[test]
    fn what_is_kept_is_read_again_whatever_stands_in_it() {
        let views = with(vec![view("b; c=\"d\"", "q=error%3A%22x%22&state=failed")], &view("ä", "")).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("cookie", format!("{VIEWS}={}", written(&views).unwrap()).parse().unwrap());
        assert_eq!(kept(&headers), views);
    }

    #[test]
    fn a_name_is_kept_once_and_no_more_are_kept_than_a_browser_keeps() {
        let one = with(Vec::new(), &view("mine", "q=a")).unwrap();
        assert_eq!(with(one, &view("mine", "q=b")).unwrap(), [view("mine", "q=b")]);
        let many: Vec<View> = (0..MOST).map(|at| view(&at.to_string(), "")).collect();
        assert!(with(many, &view("one more", "")).is_err());
        assert!(with(Vec::new(), &view("", "q=a")).is_err());
        assert!(written(&[view("long", &"x".repeat(BYTES))]).is_err());
    }
}
