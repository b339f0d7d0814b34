//! `--jq`: documents, filtered by an expression of jq.

use std::fmt;

use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data};
use jaq_json::{Val, read};

use tenure::depth_of;

use crate::exit::Failure;

/// Deepest document: the parser has no limit of its own, and a deeper one would overflow the stack.
const DEPTH: usize = 128;

/// What an expression has brought.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Brought {
    /// A text, without quotes.
    Text(String),
    /// Anything else.
    Json(String),
}

/// An expression, ready for documents.
pub(super) struct Jq {
    filter: jaq_core::Filter<data::JustLut<Val>>,
}

impl fmt::Debug for Jq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Jq")
    }
}

/// An expression as it is said, if it is one.
pub(super) fn expression(text: &str) -> Result<String, String> {
    Jq::of(text).map(|_| text.to_owned())
}

impl Jq {
    pub(super) fn of(text: &str) -> Result<Self, String> {
        let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
        let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
        let arena = Arena::default();
        let wrong = "expected a jq expression, such as '.items[] | .id'";
        let modules = Loader::new(defs)
            .load(&arena, File { code: text, path: () })
            .map_err(|_| format!("syntax error; {wrong}"))?;
        let filter = Compiler::default().with_funs(funs).compile(modules).map_err(|errors| {
            let unknown = errors.iter().flat_map(|(_, errors)| errors).map(|(name, _)| *name);
            format!("unknown function or variable {}; {wrong}", unknown.collect::<Vec<_>>().join(", "))
        })?;
        Ok(Self { filter })
    }

    /// What it makes of a document.
    pub(super) fn of_document(&self, document: &str) -> Result<Vec<Brought>, Failure> {
        let depth = depth_of(document.as_bytes());
        if depth > DEPTH {
            let refused = format!("--jq: the document is nested {depth} deep; expected at most {DEPTH}");
            return Err(Failure::Invalid(refused));
        }
        let input = read::parse_single(document.as_bytes())
            .map_err(|error| Failure::Invalid(format!("--jq: the document is not JSON: {error}")))?;
        let mut brought = Vec::new();
        let context = Ctx::<data::JustLut<Val>>::new(&self.filter.lut, Vars::new([]));
        for value in self.filter.id.run((context, input)) {
            match value {
                Ok(Val::TStr(text)) => {
                    brought.push(Brought::Text(String::from_utf8_lossy(&text).into_owned()))
                }
                Ok(value) => brought.push(Brought::Json(value.to_string())),
                Err(stopped) => match stopped.get_err() {
                    Ok(error) => return Err(Failure::Invalid(format!("--jq: {error}"))),
                    // `halt` ends it.
                    Err(_) => break,
                },
            }
        }
        Ok(brought)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_filters_a_document_and_numbers_stay_as_they_are() {
        let jq = Jq::of(".items[] | .id, .n").unwrap();
        let brought = jq.of_document(r#"{"items":[{"id":"a","n":12345678901234567890123}]}"#).unwrap();
        assert_eq!(
            brought,
            [Brought::Text("a".to_owned()), Brought::Json("12345678901234567890123".to_owned())]
        );
    }

    #[test]
    fn what_is_no_expression_is_refused_and_one_that_does_not_fit_is_told() {
        assert!(expression(".[").unwrap_err().contains("expected a jq expression"));
        assert!(expression("nonsense").unwrap_err().contains("nonsense"));
        assert_eq!(Jq::of(".a").unwrap().of_document("[1]").unwrap_err().code(), 7);
        let deep = "[".repeat(1_000_000);
        assert!(Jq::of(".").unwrap().of_document(&deep).unwrap_err().to_string().contains("1000000 deep"));
        assert_eq!(Jq::of("1, halt, 2").unwrap().of_document("null").unwrap().len(), 1);
    }
}
