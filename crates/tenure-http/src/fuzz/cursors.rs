//! Cursors, access tokens and query strings.

use std::fmt::Display;
use std::str::FromStr;

use super::target;
use crate::access::parts;
use crate::callbacks::journal::Place as EventPlace;
use crate::jobs::logs::Behind;
use crate::query::Query;
use crate::schedules::cursor;

/// Checks that a cursor prints as one that means the same.
fn printed<T: FromStr + Display>(text: &str) -> &'static str {
    let Ok(cursor) = text.parse::<T>() else { return "invalid " };
    let printed = cursor.to_string();
    let again = printed.parse::<T>().ok().map(|cursor| cursor.to_string());
    assert_eq!(again.as_deref(), Some(printed.as_str()), "{text}");
    "valid "
}

#[test]
fn a_cursor_prints_as_one_that_means_the_same() {
    let words = &["c", "e", ".", "-", "schedule", "trigger", "backfill", "start", "nightly", "0", "ff", "+"];
    target("cursor").words(words).check_text(|text| {
        let slot = text.parse::<cursor::Place>().map_or("invalid ", |cursor::Place(place)| {
            let cursor::Place(again) = cursor::text(&place).parse().expect("printed");
            assert_eq!(again, place);
            "valid "
        });
        [printed::<tenure::Cursor>(text), printed::<EventPlace>(text), printed::<Behind>(text), slot].concat()
    });
}

#[test]
fn an_access_token_has_an_id_and_a_secret_or_is_none() {
    let words = &["tenure_", "_", "0123456789ab", "0123456789abcdef0123456789abcdef", ".", ":"];
    target("token").words(words).check_text(|text| match parts(text) {
        Some((id, secret)) => {
            assert!(text == format!("tenure_{id}_{secret}") && secret.len() == 64, "{id}");
            "valid".to_owned()
        }
        None => "invalid".to_owned(),
    });
}

#[test]
fn a_query_string_is_read_or_refused_by_name() {
    let words = &["limit=", "cursor=", "&", "%00", "%ff", "%2", "+", "=", ",", "wait=true"];
    target("query").words(words).check_text(|text| {
        let query = match Query::read(Some(text), &["limit", "cursor", "wait"]) {
            Ok(query) => query,
            Err(problem) => return problem.document()["detail"].to_string(),
        };
        let limit = query.limit(1_000);
        assert!(limit.as_ref().is_ok_and(|limit| (1..=1_000).contains(limit)) || limit.is_err());
        let told = |problem: crate::Problem| problem.document()["detail"].to_string();
        let limit = limit.map(|_| "limit".to_owned()).unwrap_or_else(told);
        let wait = query.flag("wait").map(|wait| wait.to_string()).unwrap_or_else(told);
        let cursor = query.one::<tenure::Cursor>("cursor").map(|cursor| cursor.is_some().to_string());
        format!("{limit} {wait} {}", cursor.unwrap_or_else(told))
    });
}
