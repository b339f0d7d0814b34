//! The body of a request: JSON within its limits, or a problem that says what is wrong with it and where.

use std::ops::Deref;

use axum::body::{Body, HttpBody};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use tenure::{check_portable, limits};

use crate::api::Api;
use crate::bounded::Bounded;
use crate::memory::Loan;
use crate::problem::{Problem, ProblemType};

/// The text of a body. Its memory counts against the client until this is dropped.
#[derive(Debug)]
pub(crate) struct Text {
    bytes: Vec<u8>,
    loan: Option<Loan>,
}

impl Text {
    /// Drops the text and returns its loan, so that the memory still counts while a route waits with values from the text.
    pub(crate) fn into_loan(self) -> Option<Loan> {
        self.loan
    }
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a body of JSON. Keep the loan until the store has the values: their memory counts against the client.
pub(crate) async fn values<T: DeserializeOwned>(
    api: &Api,
    headers: &HeaderMap,
    body: Body,
    most: usize,
) -> Result<(T, Option<Loan>), Problem> {
    let text = read(api, body, most).await?;
    let values = json(headers, &text)?;
    Ok((values, text.into_loan()))
}

/// Reads a body of at most so many bytes, within the bounds of all bodies.
pub(crate) async fn read(api: &Api, body: Body, most: usize) -> Result<Text, Problem> {
    check_announced(&body, most)?;
    let (mut body, mut bytes) = (Bounded::new(api, body), Vec::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if data.len() > most - bytes.len() {
            return Err(too_large(most));
        }
        bytes.extend_from_slice(&data);
    }
    // The client may have collected many unread responses while it sent the body.
    api.transfer().responses.check_debt(api.client())?;
    Ok(Text { bytes, loan: body.into_loan() })
}

/// Refuses a body that is announced as too large before the client has sent it. A client that waits for `100 Continue` does
/// not get it.
fn check_announced(body: &Body, most: usize) -> Result<(), Problem> {
    let announced = body.size_hint().lower();
    if usize::try_from(announced).is_ok_and(|announced| announced <= most) {
        return Ok(());
    }
    Err(too_large(most).header(&("connection", "close")))
}

fn too_large(most: usize) -> Problem {
    let detail = format!("the body is larger than {most} bytes");
    Problem::new(ProblemType::PayloadTooLarge, detail).with("limit_bytes", most)
}

/// Reads JSON of a type. An empty body is what an empty object would be, so that calls that need nothing can send nothing.
pub(crate) fn json<T: DeserializeOwned>(headers: &HeaderMap, body: &[u8]) -> Result<T, Problem> {
    read_json(headers, body, |text| Ok(check_portable("", text)?))
}

/// Reads JSON of a type whose items are accepted or refused one by one: the values in each are checked with it.
pub(crate) fn json_of_items<T: DeserializeOwned>(headers: &HeaderMap, body: &[u8]) -> Result<T, Problem> {
    read_json(headers, body, |_| Ok(()))
}

fn read_json<T: DeserializeOwned>(
    headers: &HeaderMap,
    body: &[u8],
    check_values: impl Fn(&[u8]) -> Result<(), Problem>,
) -> Result<T, Problem> {
    check_encoding(headers)?;
    // Some programs begin every text with a byte order mark.
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    check_type(headers, body)?;
    let text = if body.is_empty() { b"{}" } else { body };
    // Two more than args may have: those are within a job, and that may be within a batch.
    let (depth, most) = (tenure::depth_of(text), limits::JSON_DEPTH + 2);
    if depth > most {
        let detail = format!("the body is nested {depth} levels deep; expected at most {most}");
        return Err(Problem::new(ProblemType::Malformed, detail));
    }
    // An array would be taken for an object without names.
    if text.trim_ascii_start().first().is_some_and(|first| *first == b'[') {
        return Err(Problem::new(ProblemType::Malformed, "the body is an array; expected an object"));
    }
    check_values(text)?;
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let (path, inner) = (error.path().to_string(), error.inner());
        let problem = Problem::new(ProblemType::Malformed, plain(&inner.to_string()));
        let problem = problem.with("line", inner.line()).with("column", inner.column());
        // A part that cannot be named is written as `?`.
        if path == "." || path.contains('?') { problem } else { problem.with("field", path) }
    })?;
    reader.end().map_err(|error| {
        Problem::new(ProblemType::Malformed, format!("unexpected data after the body: {error}"))
    })?;
    Ok(value)
}

/// Says of a value that it is no object without the name of a type of this program.
fn plain(complaint: &str) -> String {
    let Some((before, named)) = complaint.split_once("expected struct ") else { return complaint.to_owned() };
    let end = named.find(|c: char| !c.is_alphanumeric()).unwrap_or(named.len());
    format!("{before}expected an object{}", &named[end..])
}

/// Refuses a body that is compressed: its size could not be limited before it is read.
pub(crate) fn check_encoding(headers: &HeaderMap) -> Result<(), Problem> {
    let mut said = headers.get_all(CONTENT_ENCODING).iter().map(|said| said.to_str().unwrap_or("?"));
    let Some(odd) = said.find(|said| !said.trim().eq_ignore_ascii_case("identity")) else { return Ok(()) };
    let detail = format!("Content-Encoding is {odd:?}; send the body without compression");
    Err(Problem::new(ProblemType::UnsupportedMediaType, detail).header(&("accept-encoding", "identity")))
}

fn check_type(headers: &HeaderMap, body: &[u8]) -> Result<(), Problem> {
    let said = headers.get(CONTENT_TYPE).map(|said| said.to_str().unwrap_or("?"));
    let kind = said.map(|said| said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    let is_json = kind.as_deref().is_some_and(|kind| kind == "application/json" || kind.ends_with("+json"));
    if is_json || (body.is_empty() && said.is_none()) {
        return Ok(());
    }
    let found = said.map_or_else(|| "nothing".to_owned(), |said| format!("{said:?}"));
    let detail = format!("Content-Type is {found}; expected application/json");
    Err(Problem::new(ProblemType::UnsupportedMediaType, detail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Submit;

    fn said(kind: &str) -> HeaderMap {
        HeaderMap::from_iter([(CONTENT_TYPE, kind.parse().unwrap())])
    }

    #[test]
    fn what_is_wrong_with_a_body_is_told_with_its_place() {
        let problem = json::<Submit>(&said("application/json"), b"{\"kind\":\"k\",\n\"priority\":\"high\"}")
            .unwrap_err();
        let told = problem.document();
        assert_eq!((told["field"].as_str(), told["line"].as_u64()), (Some("priority"), Some(2)));
        assert_eq!(told["status"], 400);
        let deep = format!("{{\"kind\":\"k\",\"args\":{}1{}}}", "[".repeat(200), "]".repeat(200));
        assert_eq!(
            json::<Submit>(&said("application/json"), deep.as_bytes()).unwrap_err().problem_type(),
            ProblemType::Malformed
        );
        let array = json::<Submit>(&said("application/json"), b" [\"k\"]").unwrap_err();
        assert!(array.document()["detail"].as_str().unwrap().contains("an object"));
        let twice = json::<Submit>(&said("application/json"), b"{\"kind\":\"k\"} {}").unwrap_err();
        assert!(twice.document()["detail"].as_str().unwrap().contains("after the body"));
    }

    #[tokio::test]
    async fn a_text_counts_for_as_long_as_it_or_its_loan_is_kept() {
        let api = Api::new(&tenure::Tenure::open("memory:").await.unwrap(), crate::api::Rules::default());
        let text = async || read(&api, Body::from(vec![b' '; 100_000]), 200_000).await.unwrap();
        let used = || api.transfer().requests.used();
        let one = text().await;
        assert_eq!((one.len(), used()), (100_000, 100_000 - crate::memory::FREE_BYTES));
        drop(one);
        assert_eq!(used(), 0);
        let loan = text().await.into_loan();
        assert_eq!(used(), 100_000 - crate::memory::FREE_BYTES);
        drop(loan);
        assert_eq!(used(), 0);
        let large = read(&api, Body::from(vec![b' '; 100_000]), 99_999).await.unwrap_err();
        assert_eq!(large.problem_type(), ProblemType::PayloadTooLarge);
    }

    #[tokio::test]
    async fn a_client_that_got_into_debt_while_it_sent_its_body_is_refused() {
        let api = Api::new(
            &tenure::Tenure::open("memory:").await.unwrap(),
            crate::api::Rules { access: crate::access::Access::Tokens, ..crate::api::Rules::default() },
        );
        let api = api.for_client(crate::access::Who::auditor());
        let mut unread = api.transfer().responses.lend(api.client().clone());
        assert!(read(&api, Body::from("{}"), 10).await.is_ok());
        unread.set(100 << 20);
        let refused = read(&api, Body::from("{}"), 10).await.unwrap_err();
        assert_eq!(refused.problem_type().status(), 429);
    }

    #[test]
    fn a_value_that_parsers_refuse_is_named_by_its_path() {
        let told = |text: &str| {
            let problem = json::<Submit>(&said("application/json"), text.as_bytes()).unwrap_err();
            (
                problem.document()["status"].as_u64().unwrap(),
                problem.document()["field"].as_str().unwrap().to_owned(),
            )
        };
        assert_eq!(told(r#"{"kind":"k","args":{"a":[1e400]}}"#), (422, "args.a[0]".to_owned()));
        assert_eq!(told(r#"{"kind":"k","meta":{"a":"\ud800"}}"#), (422, "meta.a".to_owned()));
        assert_eq!(told(r#"{"kind":"k","meta":{"a":"1","a":"2"}}"#), (422, "meta.a".to_owned()));
        assert_eq!(told(r#"{"kind":"k","kind":"l"}"#), (422, "kind".to_owned()));
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_body() {
        let marked = json::<Submit>(&said("application/json"), b"\xEF\xBB\xBF{\"kind\":\"k\"}").unwrap();
        assert_eq!(marked.kind, "k");
    }

    #[test]
    fn what_is_no_object_is_told_without_the_name_of_a_type() {
        let problem = json::<Submit>(&said("application/json"), b"7").unwrap_err().document();
        assert!(problem["detail"].as_str().unwrap().contains("expected an object"), "{problem}");
        assert!(problem.get("field").is_none(), "{problem}");
    }

    #[test]
    fn a_compressed_body_is_an_unsupported_media_type() {
        let mut headers = said("application/json");
        headers.insert(CONTENT_ENCODING, "gzip".parse().unwrap());
        let problem = json::<Submit>(&headers, b"\x1f\x8b").unwrap_err();
        let response = axum::response::IntoResponse::into_response(problem);
        assert_eq!(
            (response.status().as_u16(), &response.headers()["accept-encoding"]),
            (415, &"identity".parse().unwrap())
        );
        headers.insert(CONTENT_ENCODING, "identity".parse().unwrap());
        assert!(json::<Submit>(&headers, b"{\"kind\":\"k\"}").is_ok());
    }

    #[test]
    fn only_json_is_taken_for_json() {
        let kind = |kind: &str| {
            json::<Submit>(&said(kind), b"{\"kind\":\"k\"}").map(drop).map_err(|p| p.problem_type())
        };
        assert_eq!(kind("application/json; charset=utf-8"), Ok(()));
        assert_eq!(kind("application/vnd.tenure+json"), Ok(()));
        assert_eq!(kind("text/plain"), Err(ProblemType::UnsupportedMediaType));
        assert_eq!(
            json::<Submit>(&HeaderMap::new(), b"{}").unwrap_err().problem_type(),
            ProblemType::UnsupportedMediaType
        );
    }
}
