//! A check for JSON values that common parsers refuse or read differently.
//!
//! RFC 8259 allows numbers of any size, lone surrogates and repeated names. Python stops at long integers, Go at
//! numbers beyond a double, and each parser picks its own value of a repeated name. One such job would stop every client
//! that lists it. With its feature `raw_value`, `serde_json` reserves the name of a field: it replaces an object with such
//! a field by the JSON in the text of the field.

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;

use crate::{Invalid, invalid, limits};

/// Longest path in a complaint, in bytes.
const PATH_BYTES: usize = 256;
/// Objects with more names are sorted to find a repeated one.
const FEW: usize = 16;
/// Beginning of the names that `serde_json` does not read as names.
const RESERVED: &str = "$serde_json::private::";

/// Refuses numbers beyond a double or longer than [`limits::NUMBER_BYTES`], lone surrogates, names that occur twice in
/// one object, and names that begin with `$serde_json::private::`.
///
/// The field of the error is the path of the value below `root`, such as `args.items[2]`. The text is not parsed: other
/// errors in it are left to its reader.
///
/// # Errors
/// Names the first such value.
pub fn check_portable(root: &str, text: &[u8]) -> Result<(), Invalid> {
    Scan { root, text, at: 0, within: Vec::new(), names: Vec::new() }.run()
}

/// An object or array around the current position.
enum Within {
    /// Its first name in the list of names, and whether the next string is a name.
    Object { first: usize, expects_name: bool },
    /// The index of the current item.
    Array { index: usize },
}

struct Scan<'t> {
    root: &'t str,
    text: &'t [u8],
    at: usize,
    within: Vec<Within>,
    /// The names of all objects around the current position, without their quotes.
    names: Vec<Range<usize>>,
}

impl Scan<'_> {
    fn run(mut self) -> Result<(), Invalid> {
        while let Some(byte) = self.text.get(self.at) {
            match byte {
                b'{' => self.within.push(Within::Object { first: self.names.len(), expects_name: true }),
                b'[' => self.within.push(Within::Array { index: 0 }),
                b'}' | b']' => self.leave()?,
                b',' => match self.within.last_mut() {
                    Some(Within::Object { expects_name, .. }) => *expects_name = true,
                    Some(Within::Array { index }) => *index += 1,
                    None => {}
                },
                b'"' => self.string()?,
                b'-' | b'0'..=b'9' => self.number()?,
                _ => {}
            }
            self.at += 1;
        }
        Ok(())
    }

    /// Leaves an object or array, and refuses an object with a repeated name.
    fn leave(&mut self) -> Result<(), Invalid> {
        let Some(Within::Object { first, .. }) = self.within.pop() else { return Ok(()) };
        let twice = repeated(self.text, &self.names[first..]);
        self.names.truncate(first);
        let Some(name) = twice else { return Ok(()) };
        let mut path = self.path();
        push_name(&mut path, &name);
        Err(refused(path, "the name occurs twice in its object", "each name once"))
    }

    /// Passes a string. It ends at its closing quote.
    fn string(&mut self) -> Result<(), Invalid> {
        let start = self.at + 1;
        let mut end = start;
        let mut lone = None;
        while let Some(byte) = self.text.get(end) {
            match byte {
                b'"' => break,
                b'\\' => match surrogate(&self.text[end..]) {
                    Surrogate::None => end += 2,
                    Surrogate::Pair => end += 12,
                    Surrogate::Lone => {
                        lone = lone.or_else(|| self.text.get(end..end + 6));
                        end += 6;
                    }
                },
                _ => end += 1,
            }
        }
        let end = end.min(self.text.len());
        self.at = end;
        let mut is_name = false;
        if let Some(Within::Object { expects_name, .. }) = self.within.last_mut()
            && *expects_name
        {
            *expects_name = false;
            is_name = true;
            self.names.push(start..end);
        }
        if let Some(lone) = lone {
            let found = format!("the lone surrogate {}", String::from_utf8_lossy(lone));
            return Err(refused(self.path(), &found, "text in Unicode"));
        }
        if is_name && is_reserved(&self.text[start..end]) {
            return Err(refused(
                self.path(),
                "a reserved name",
                &format!("no name that begins with {RESERVED}"),
            ));
        }
        Ok(())
    }

    /// Passes a number. It ends at its last byte.
    fn number(&mut self) -> Result<(), Invalid> {
        let is_of_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| !is_of_number(byte)).unwrap_or(rest.len());
        let number = &rest[..length];
        self.at += length - 1;
        if length > limits::NUMBER_BYTES {
            let allowed = format!("at most {} characters", limits::NUMBER_BYTES);
            return Err(refused(self.path(), &format!("a number of {length} characters"), &allowed));
        }
        if is_finite(number) {
            return Ok(());
        }
        let found = invalid::cut(&String::from_utf8_lossy(number), 40);
        Err(refused(self.path(), &found, "a number within the range of a double"))
    }

    /// The path of the current value.
    fn path(&self) -> String {
        let mut path = self.root.to_owned();
        let mut objects = self.within.iter().filter_map(|within| match within {
            Within::Object { first, .. } => Some(*first),
            Within::Array { .. } => None,
        });
        objects.next();
        for within in &self.within {
            match within {
                Within::Array { index } => _ = write!(path, "[{index}]"),
                Within::Object { first, .. } => {
                    // The last name before those of the next object is the one on the path.
                    let end = objects.next().unwrap_or(self.names.len());
                    if let Some(name) = self.names[*first..end].last() {
                        push_name(&mut path, &decoded(&self.text[name.clone()]));
                    }
                }
            }
        }
        path
    }
}

fn refused(path: String, found: &str, allowed: &str) -> Invalid {
    let field = if path.is_empty() { "value".to_owned() } else { invalid::cut(&path, PATH_BYTES) };
    Invalid::new(field, found, allowed)
}

fn push_name(path: &mut String, name: &str) {
    let is_plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    match (is_plain, path.is_empty()) {
        (true, true) => path.push_str(name),
        (true, false) => _ = write!(path, ".{name}"),
        (false, _) => _ = write!(path, "[{name:?}]"),
    }
}

/// A name that occurs twice, if any.
fn repeated<'t>(text: &'t [u8], names: &[Range<usize>]) -> Option<Cow<'t, str>> {
    let mut names: Vec<Cow<'t, str>> = match names {
        [] | [_] => return None,
        names => names.iter().map(|name| decoded(&text[name.clone()])).collect(),
    };
    if names.len() > FEW {
        names.sort_unstable();
        return names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone());
    }
    let is_later = |(place, name): &(usize, &Cow<'t, str>)| names[..*place].contains(name);
    names.iter().enumerate().find(is_later).map(|(_, name)| name.clone())
}

fn is_reserved(name: &[u8]) -> bool {
    // Few names begin with a dollar sign or an escape.
    matches!(name.first(), Some(b'$' | b'\\')) && decoded(name).starts_with(RESERVED)
}

/// A name without its escapes.
fn decoded(name: &[u8]) -> Cow<'_, str> {
    if !name.contains(&b'\\') {
        return String::from_utf8_lossy(name);
    }
    let quoted = [b"\"", name, b"\""].concat();
    serde_json::from_slice(&quoted).map_or_else(|_| String::from_utf8_lossy(name), Cow::Owned)
}

/// The surrogates at the beginning of a text that begins with a backslash.
enum Surrogate {
    None,
    Pair,
    Lone,
}

fn surrogate(text: &[u8]) -> Surrogate {
    match (unit(text), text.get(6..).and_then(unit)) {
        (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => Surrogate::Pair,
        (Some(0xD800..=0xDFFF), _) => Surrogate::Lone,
        _ => Surrogate::None,
    }
}

/// The UTF-16 unit that a text begins with as an escape.
fn unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Returns false for a number beyond a double. What is no number is left to the reader.
fn is_finite(number: &[u8]) -> bool {
    // Without an exponent it takes more than 308 digits to get there.
    if number.len() <= 308 && !number.iter().any(|byte| matches!(byte, b'e' | b'E')) {
        return true;
    }
    let number = std::str::from_utf8(number).ok().and_then(|number| number.parse::<f64>().ok());
    number.is_none_or(f64::is_finite)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> Option<(String, String)> {
        check_portable("args", text.as_bytes()).err().map(|wrong| (wrong.field, wrong.found))
    }

    fn path(text: &str) -> String {
        refusal(text).map(|(field, _)| field).unwrap_or_default()
    }

    #[test]
    fn values_that_every_parser_reads_pass() {
        let long = format!("[{}]", "9".repeat(308));
        for text in [
            "null",
            r#"{"a":1,"b":{"a":1},"c":[{"a":1},{"a":2}]}"#,
            r#"[1e308,-1e-400,0,-0.5,18446744073709551615]"#,
            r#"["\ud83d\ude00","\\ud800","a\"b","\u0041"]"#,
            r#"{"1e400":"1e400","a":"{\"a\":1,\"a\":2}"}"#,
            &long,
        ] {
            assert_eq!(refusal(text), None, "{text}");
        }
    }

    #[test]
    fn a_number_beyond_a_double_or_too_long_is_refused_with_its_path() {
        assert_eq!(refusal("[1e400]"), Some(("args[0]".to_owned(), "1e400".to_owned())));
        assert_eq!(path(r#"{"a":[1,{"b":-1e999}]}"#), "args.a[1].b");
        assert_eq!(path(&format!(r#"{{"n":{}}}"#, "9".repeat(5_000))), "args.n");
        assert_eq!(path(&format!("[0,{}]", "9".repeat(310))), "args[1]");
        assert_eq!(path(&format!("0.{}", "1".repeat(500))), "args");
    }

    #[test]
    fn a_lone_surrogate_is_refused_with_its_path() {
        assert_eq!(
            refusal(r#"{"a":1,"x y":["\ud800"]}"#),
            Some((r#"args["x y"][0]"#.to_owned(), r"the lone surrogate \ud800".to_owned()))
        );
        assert_eq!(path(r#"["\udc00\ud800"]"#), "args[0]");
        assert_eq!(path(r#"["ok","\ud83dx"]"#), "args[1]");
    }

    #[test]
    fn a_name_that_occurs_twice_is_refused_however_it_is_written() {
        assert_eq!(path(r#"{"a":{"b":1,"c":[{"b":1}],"b":2}}"#), "args.a.b");
        assert_eq!(path(r#"[{},{"a":1,"\u0061":2}]"#), "args[1].a");
        let many: Vec<String> = (0..40).chain([7]).map(|name| format!("\"n{name}\":0")).collect();
        assert_eq!(path(&format!("{{{}}}", many.join(","))), "args.n7");
        assert_eq!(check_portable("", br#"{"kind":1,"kind":2}"#).unwrap_err().field, "kind");
    }

    #[test]
    fn a_name_that_serde_json_does_not_read_as_one_is_refused() {
        let raw = r#"{"a":[{"$serde_json::private::RawValue":"{}"}]}"#;
        assert_eq!(path(raw), r#"args.a[0]["$serde_json::private::RawValue"]"#);
        assert!(refusal(r#"{"b":1,"\u0024serde_json::private\u003a:Number":"1"}"#).is_some());
        let value = r#"{"$ref":"$serde_json::private::RawValue","\\a":["$serde_json::private::Number"]}"#;
        assert_eq!(refusal(value), None);
    }

    #[test]
    fn broken_text_is_left_to_its_reader() {
        for text in ["", "{", "\"", "\"\\", "\"\\u12", "]}", "[,", "1-2e+", "{\"a\"", "-", "{\"a\":\"\\ud8"] {
            assert_eq!(refusal(text), None, "{text}");
        }
    }
}
