//! Headers that routes read.

use std::time::Duration;

use tenure::Draft;

use super::{header_map, target};
use crate::once::{Client, Once};
use crate::prefer::{LONGEST_WAIT, Prefer};
use crate::spans::Context;
use crate::trace::{self, PARENT, STATE, Trace};
use crate::{accept, body};

#[test]
fn headers_are_read_within_their_limits() {
    let words = &[
        "\nprefer: ",
        "wait=",
        "respond-async",
        "return=minimal",
        ", ",
        "; ",
        "\nidempotency-key: ",
        "\"",
        "\ntraceparent: ",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "\ntracestate: ",
        "a=1",
        "\naccept: ",
        "text/plain",
        "*/*",
        ";q=",
        "NaN",
        "\ncontent-type: ",
        "application/json",
        "charset=utf-8",
        "\ncontent-encoding: ",
        "gzip",
        "identity",
    ];
    target("headers").words(words).check_text(|text| {
        let headers = header_map(text.lines());
        let prefer = Prefer::of(&headers);
        assert!(prefer.wait.is_none_or(|wait| wait <= LONGEST_WAIT));
        // A granted preference is itself a preference that is granted.
        let applied = prefer.applied(true);
        let again = Prefer::of(&header_map(
            applied
                .iter()
                .map(|said| format!("prefer: {said}"))
                .collect::<Vec<_>>()
                .iter()
                .map(String::as_str),
        ));
        assert_eq!(again, prefer, "{applied:?}");
        let once = Once::of_client(Client::Anyone, &headers, &[text.as_bytes()]);
        let traced = Trace::of(&headers).map(|trace| {
            let draft = trace.on(Draft::raw("mail", &serde_json::json!({})));
            let parent = draft.note(PARENT).expect("a trace has a parent");
            let context = Context::read(parent).expect("a parent that was accepted");
            let again = Context::read(&context.to_string()).expect("printed");
            assert_eq!(again, context, "{parent}");
            assert!(draft.note(STATE).is_none_or(|state| state.len() <= 512));
            trace::is_parent(parent)
        });
        let form = accept::best(&headers, &[("application/json", 0), ("text/plain", 1)], 2);
        let json = body::json::<serde_json::Value>(&headers, b"{}").is_ok();
        let encoding = body::check_encoding(&headers).is_ok();
        let waits = prefer.wait.map(|wait| wait > Duration::ZERO);
        let once =
            once.map(|once| once.is_some()).map_err(|problem| problem.document()["detail"].to_string());
        format!(
            "{waits:?} {} {} {once:?} {traced:?} {form} {json} {encoding}",
            prefer.minimal, prefer.respond_async
        )
        .replace(['0', '1', '2'], "form")
    });
}
