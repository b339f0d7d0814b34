//! Templates of scopes: `customer-{customer}` names a part of a function by the args of a job.

use serde_json::Value;
use tenure_core::Invalid;

/// A template whose settings are filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Param(String),
}

impl Template {
    /// Reads a template of a function that jobs trigger: `%setting%` is replaced now, `{param}` with the
    /// args of each job, and a doubled brace is one brace.
    pub(crate) fn bound(text: &str, setting: impl Fn(&str) -> Option<String>) -> Result<Self, Invalid> {
        Ok(Self { pieces: pieces(&with_settings(text, setting)?)? })
    }

    /// Reads a template of what has no args: braces are ordinary characters.
    pub(crate) fn literal(text: &str, setting: impl Fn(&str) -> Option<String>) -> Result<Self, Invalid> {
        Ok(Self { pieces: vec![Piece::Text(with_settings(text, setting)?)] })
    }

    /// The scope of a job with these args.
    pub(crate) fn scope(&self, args: &Value) -> Result<String, Invalid> {
        self.pieces.iter().try_fold(String::new(), |scope, piece| match piece {
            Piece::Text(text) => Ok(scope + text),
            Piece::Param(name) => Ok(scope + &value_of(args, name)?),
        })
    }
}

fn refuse(found: impl std::fmt::Display) -> Invalid {
    Invalid::new("singleton.scope", found, "text with {param} and %setting%; write {{ and }} for braces")
}

fn with_settings(text: &str, setting: impl Fn(&str) -> Option<String>) -> Result<String, Invalid> {
    let (mut whole, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once('%') {
        let Some((name, behind)) = behind.split_once('%') else {
            return Err(refuse(format_args!("an unclosed % at {}", text.len() - behind.len() - 1)));
        };
        let Some(value) = setting(name) else {
            return Err(refuse(format_args!("the setting %{name}%, which has no value")));
        };
        whole = whole + before + &value;
        rest = behind;
    }
    Ok(whole + rest)
}

fn pieces(text: &str) -> Result<Vec<Piece>, Invalid> {
    let (mut pieces, mut plain) = (Vec::new(), String::new());
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '{' | '}' if chars.next_if(|(_, next)| *next == c).is_some() => plain.push(c),
            '}' => return Err(refuse(format_args!("an unmatched }} at {at}"))),
            '{' => {
                let name: String =
                    std::iter::from_fn(|| chars.next_if(|(_, c)| !"{}".contains(*c)).map(|(_, c)| c))
                        .collect();
                if chars.next_if(|(_, c)| *c == '}').is_none() {
                    return Err(refuse(format_args!("an unclosed {{ at {at}")));
                }
                if name.trim().is_empty() {
                    return Err(refuse(format_args!("an empty parameter name at {at}")));
                }
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                pieces.push(Piece::Param(name.trim().to_owned()));
            }
            other => plain.push(other),
        }
    }
    pieces.push(Piece::Text(plain));
    Ok(pieces)
}

/// The value at a path such as `order.customer`, whatever the letters of its names.
fn value_of(args: &Value, path: &str) -> Result<String, Invalid> {
    let missing = || refuse(format_args!("No value for named parameter '{path}'."));
    let found = match member(args, path)? {
        Some(found) => found,
        None => path.split('.').try_fold(args, |at, name| member(at, name)?.ok_or_else(missing))?,
    };
    match found {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(is) => Ok(is.to_string()),
        Value::Null => Err(missing()),
        Value::Array(_) | Value::Object(_) => {
            Err(refuse(format_args!("parameter '{path}', which is a list or an object")))
        }
    }
}

/// The member of this name; one that differs only in its letters' case if there is no other.
fn member<'a>(of: &'a Value, name: &str) -> Result<Option<&'a Value>, Invalid> {
    let Value::Object(members) = of else { return Ok(None) };
    if let Some(exact) = members.get(name) {
        return Ok(Some(exact));
    }
    let name = name.to_lowercase();
    let mut alike = members.iter().filter(|(key, _)| key.to_lowercase() == name);
    match (alike.next(), alike.next()) {
        (Some((first, _)), Some((second, _))) => {
            Err(refuse(format_args!("parameter '{name}', which matches both '{first}' and '{second}'")))
        }
        (found, _) => Ok(found.map(|(_, value)| value)),
    }
}
