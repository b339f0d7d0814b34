//! Answers of the API as trees of values. A tree can take 128 times the memory of its text. So JSON that clients choose
//! stays text if its tree would be large, and the memory of each tree is counted.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};
use tenure::json_value;

/// Fields whose JSON clients choose.
const CHOSEN: [&str; 2] = ["args", "result"];
/// Largest tree of such a field in a document, besides the bytes of its text.
const LARGEST: usize = 1024 * 1024;
/// Largest tree of such a field in a list. A bulk operation with the most IDs fits into it.
const LARGEST_IN_LIST: usize = 128 * 1024;
/// Largest trees of all such fields of one answer, besides the bytes of their text.
const LARGEST_ALL: usize = 4 * 1024 * 1024;
/// Letters of a text that a list shows in place of a tree.
const CUT_CHARS: usize = 200;

/// An answer of the API.
pub(crate) struct Tree {
    pub value: Value,
    /// Estimate of the memory that the tree takes.
    pub bytes: usize,
}

/// Reads an answer. One that is no JSON becomes `null`.
pub(crate) fn read(text: &[u8]) -> Tree {
    let mut budget = Budget { spared: 0, left: LARGEST_ALL };
    let answer = Answer { in_list: false, budget: &mut budget };
    let value = answer.deserialize(&mut serde_json::Deserializer::from_slice(text)).unwrap_or_default();
    Tree { value, bytes: weight(text).saturating_sub(budget.spared) }
}

/// Returns the JSON of a field as text, also if it is too large for a tree.
pub(crate) fn written<'a>(document: &'a Value, field: &str) -> Cow<'a, str> {
    large(document, field).map_or_else(|| document[field].to_string().into(), Cow::Borrowed)
}

/// Returns the JSON of a field that is too large for a tree.
pub(crate) fn large<'a>(document: &'a Value, field: &str) -> Option<&'a str> {
    document[text_of(field)].as_str()
}

/// Returns an object as text, with one more field whose JSON is text. The object has fields already.
pub(crate) fn with(object: &Value, field: &str, json: &str) -> String {
    let object = object.to_string();
    format!("{},\"{field}\":{json}}}", object.strip_suffix('}').unwrap_or(&object))
}

/// Returns the name under which a document keeps the text of a field.
fn text_of(field: &str) -> String {
    format!("{field}_text")
}

/// Estimates the memory of the tree of a JSON text. An object has room for eleven entries, and an array for four.
fn weight(text: &[u8]) -> usize {
    let (mut bytes, mut in_string, mut is_escaped) = (text.len(), false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' => bytes += 640,
            b'[' => bytes += 128,
            b':' => bytes += 64,
            b',' => bytes += 48,
            _ => {}
        }
    }
    bytes
}

/// Memory for the JSON of one answer that clients have chosen.
struct Budget {
    /// Memory that no tree takes, because its text was kept.
    spared: usize,
    /// Memory that further trees can take.
    left: usize,
}

/// Reads a value of an answer.
struct Answer<'b> {
    in_list: bool,
    budget: &'b mut Budget,
}

impl Answer<'_> {
    /// Reads JSON that a client has chosen into a document. Text that is no tree, such as a number beyond a double, stays text.
    fn choose(&mut self, all: &mut Map<String, Value>, name: String, text: &str) {
        let tree = weight(text.as_bytes());
        let more = tree - text.len();
        let is_large = more > self.budget.left
            || match self.in_list {
                true => tree > LARGEST_IN_LIST,
                false => more > LARGEST,
            };
        if !is_large && let Ok(value) = json_value(text) {
            self.budget.left -= more;
            all.insert(name, value);
            return;
        }
        let kept = if self.in_list { text.chars().take(CUT_CHARS).collect() } else { text.to_owned() };
        self.budget.spared += tree - kept.len();
        all.insert(text_of(&name), Value::String(kept));
    }
}

impl<'de> DeserializeSeed<'de> for Answer<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Answer<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(value) = values.next_element_seed(Answer { in_list: true, budget: self.budget })? {
            all.push(value);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            if CHOSEN.contains(&name.as_str()) {
                let text: &RawValue = map.next_value()?;
                self.choose(&mut all, name, text.get());
            } else {
                let value = map.next_value_seed(Answer { in_list: self.in_list, budget: self.budget })?;
                all.insert(name, value);
            }
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns 256 KiB of JSON whose tree takes 32 MiB.
    fn hostile() -> String {
        let one = format!("{}0{}", "{\"\":".repeat(60), "}".repeat(60));
        format!("[{}0]", format!("{one},").repeat(256 * 1024 / (one.len() + 1) - 1))
    }

    #[test]
    fn an_answer_of_usual_size_is_read_as_a_whole() {
        let text = r#"{"items":[{"id":"7","args":{"a":[1,2.5,-3,null,true]},"result":null}],"args":"x","next_cursor":"é"}"#;
        let Tree { value, bytes } = read(text.as_bytes());
        assert_eq!(value, serde_json::from_str::<Value>(text).unwrap());
        assert!((2_000..4_000).contains(&bytes), "{bytes}");
        assert_eq!(written(&value["items"][0], "args"), r#"{"a":[1,2.5,-3,null,true]}"#);
        assert_eq!(with(&serde_json::json!({ "a": {} }), "args", "[1]"), r#"{"a":{},"args":[1]}"#);
        assert_eq!((read(b"no JSON").value, read(b"").value), (Value::Null, Value::Null));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_list_of_jobs_with_hostile_args_takes_no_more_memory_than_its_text() {
        let peak = || {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
            kib.trim_end_matches("kB").trim().parse::<usize>().unwrap() / 1024
        };
        let job = format!(r#"{{"id":"7","args":{},"result":"{}"}}"#, hostile(), "x".repeat(200 * 1024));
        let list = format!(r#"{{"items":[{}]}}"#, vec![job; 32].join(","));
        let before = peak();
        let Tree { value, bytes } = read(list.as_bytes());
        assert!(bytes < list.len() && peak() - before < 200, "{bytes} bytes, {} MiB", peak() - before);
        let job = &value["items"][31];
        assert_eq!(job["id"], "7");
        assert_eq!(written(job, "args"), hostile().get(..CUT_CHARS).unwrap());
    }

    #[test]
    fn args_with_a_name_that_serde_json_reserves_are_read_as_they_are_written() {
        let inner = Value::String(hostile()).to_string();
        for inner in [inner.as_str(), "\"x\""] {
            let args = format!(r#"{{"$serde_json::private::RawValue":{inner}}}"#);
            let list = format!(r#"{{"items":[{{"args":{{"a":1}}}},{{"args":{args}}}]}}"#);
            let items = &read(list.as_bytes()).value["items"];
            assert_eq!(items[0]["args"]["a"], 1);
            let shown: String = args.chars().take(CUT_CHARS).collect();
            assert!(written(&items[1], "args").starts_with(&shown), "{}", items[1]);
            let job = read(format!(r#"{{"args":{args}}}"#).as_bytes()).value;
            assert_eq!(written(&job, "args"), args);
        }
    }

    #[test]
    fn args_that_cannot_be_read_stay_text() {
        for args in ["[1e400]", r#"{"a":"\ud800"}"#] {
            let list = format!(r#"{{"items":[{{"id":"6"}},{{"id":"7","args":{args}}}]}}"#);
            let items = &read(list.as_bytes()).value["items"];
            assert_eq!((&items[0]["id"], written(&items[1], "args")), (&"6".into(), args.into()));
        }
    }

    #[test]
    fn the_trees_of_one_answer_have_a_bound_together() {
        let one = format!("{}0{}", "{\"\":".repeat(60), "}".repeat(60));
        let args = format!("[{}0]", format!("{one},").repeat(2));
        assert!((80_000..LARGEST_IN_LIST).contains(&weight(args.as_bytes())), "{}", weight(args.as_bytes()));
        let list = format!(r#"{{"items":[{}]}}"#, vec![format!(r#"{{"args":{args}}}"#); 1_000].join(","));
        let Tree { value, bytes } = read(list.as_bytes());
        assert!((LARGEST_ALL..2 * LARGEST_ALL).contains(&bytes), "{bytes}");
        assert_eq!(written(&value["items"][0], "args"), args);
        assert_eq!(written(&value["items"][999], "args"), args.get(..CUT_CHARS).unwrap());
    }

    #[test]
    fn one_document_keeps_the_text_of_hostile_args() {
        let job = format!(r#"{{"args":{},"result":"{}"}}"#, hostile(), "x".repeat(200 * 1024));
        let Tree { value, bytes } = read(job.as_bytes());
        assert!(bytes < 2 * job.len(), "{bytes}");
        assert_eq!((written(&value, "args"), large(&value, "result")), (hostile().into(), None));
        assert_eq!(value["result"].as_str().map(str::len), Some(200 * 1024));
    }
}
