//! JSON in one notation, written while it is read. A tree of values would take up to 128 bytes for each byte of the text.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Returns JSON texts, one behind the other, without spaces and with sorted names. Many clients write the fields of an
/// object in another order each time. Other text stays unchanged.
pub(crate) fn canonical(text: &[u8]) -> Cow<'_, [u8]> {
    rewrite(text).map_or(Cow::Borrowed(text), Cow::Owned)
}

fn rewrite(text: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let mut writer = Writer { text: vec![b'['], names: Vec::new() };
    for value in serde_json::Deserializer::from_slice(text).into_iter::<&RawValue>() {
        if writer.text.len() > 1 {
            writer.text.push(b',');
        }
        writer.deserialize(&mut serde_json::Deserializer::from_str(value?.get()))?;
    }
    writer.text.push(b']');
    Ok(writer.text)
}

/// Writes each value as soon as it is read. Its memory is proportional to the text.
struct Writer {
    text: Vec<u8>,
    /// Names of the objects that are not yet complete, the outermost first.
    names: Vec<u8>,
}

/// An entry of an object, as places in the text and in the names.
struct Entry {
    name: Range<u32>,
    value: Range<u32>,
}

impl Writer {
    fn write<E: Error>(&mut self, value: impl Serialize) -> Result<(), E> {
        serde_json::to_writer(&mut self.text, &value).map_err(E::custom)
    }

    /// Replaces the values of an object by its sorted entries. The last of several values with one name counts.
    fn close(&mut self, mut entries: Vec<Entry>, begin: usize) -> Result<(), serde_json::Error> {
        // This sort keeps the order of equal names.
        entries.sort_by(|one, other| self.name(one).cmp(self.name(other)));
        let mut sorted = vec![b'{'];
        for (index, entry) in entries.iter().enumerate() {
            let name = self.name(entry);
            if entries.get(index + 1).is_some_and(|next| self.name(next) == name) {
                continue;
            }
            if sorted.len() > 1 {
                sorted.push(b',');
            }
            serde_json::to_writer(&mut sorted, &String::from_utf8_lossy(name))?;
            sorted.push(b':');
            sorted.extend_from_slice(part(&self.text, &entry.value));
        }
        sorted.push(b'}');
        self.text.truncate(begin);
        self.text.append(&mut sorted);
        Ok(())
    }

    fn name(&self, entry: &Entry) -> &[u8] {
        part(&self.names, &entry.name)
    }
}

fn part<'t>(text: &'t [u8], place: &Range<u32>) -> &'t [u8] {
    text.get(place.start as usize..place.end as usize).unwrap_or_default()
}

fn place<E: Error>(length: usize) -> Result<u32, E> {
    u32::try_from(length).map_err(E::custom)
}

impl<'de> DeserializeSeed<'de> for &mut Writer {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Writer {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.write(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.write(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.write(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.write(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.write(value)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.write(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        self.text.push(b'[');
        let begin = self.text.len();
        loop {
            let end = self.text.len();
            if end > begin {
                self.text.push(b',');
            }
            if values.next_element_seed(&mut *self)?.is_none() {
                self.text.truncate(end);
                break;
            }
        }
        self.text.push(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (begin, first_name, mut entries) = (self.text.len(), self.names.len(), Vec::new());
        loop {
            let (name, value) = (place(self.names.len())?, place(self.text.len())?);
            if map.next_key_seed(Name(&mut self.names))?.is_none() {
                break;
            }
            let name = name..place(self.names.len())?;
            map.next_value_seed(&mut *self)?;
            entries.push(Entry { name, value: value..place(self.text.len())? });
        }
        self.close(entries, begin).map_err(A::Error::custom)?;
        self.names.truncate(first_name);
        Ok(())
    }
}

/// Adds a name of an object to those before it.
struct Name<'w>(&'w mut Vec<u8>);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<(), E> {
        self.0.extend_from_slice(name.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Returns the text that a tree of values would have.
    fn of_tree(text: &[u8]) -> Cow<'_, [u8]> {
        let values = serde_json::Deserializer::from_slice(text).into_iter::<Value>();
        let values: Result<Vec<Value>, _> = values.collect();
        let written = values.and_then(|values| serde_json::to_vec(&values));
        written.map_or(Cow::Borrowed(text), Cow::Owned)
    }

    /// Keys that were stored before must still be found.
    #[test]
    fn the_text_is_that_of_a_tree_of_values() {
        let (nested, too_deep) = (deep(127), deep(128));
        let texts = [
            "",
            " ",
            "null",
            "true false",
            "nulltrue",
            "1 2",
            "POST /v1/jobs",
            "k",
            r#"{"b":1,"a":[{"d":"","c":null},[],{}],"":{"z":[1,2.50,-0,-0.0,1e3,1E-7]}}"#,
            r#"{"a":1,"b":2,"a":{"x":3,"x":4}}"#,
            r#"{"\"":1,"!":2,"\u00e9":"\u00e9\n\u0001\/","é":5,"\\":6,"\u0000":7}"#,
            r#"{"max":18446744073709551615,"min":-9223372036854775808,"more":18446744073709551616,"π":3.14159265358979312}"#,
            "{\"a\":1,\"b\":2}\n{\"c\":3}\n\n[4]5",
            r#"{"a":1e400}"#,
            r#"["\ud800"]"#,
            r#"{"\ud800":1}"#,
            r#"{"a":01}"#,
            r#"{"a":1,}"#,
            "[1,]",
            "{\"a\"",
            "\u{feff}{}",
            &nested,
            &too_deep,
        ];
        for text in texts {
            let (written, expected) = (canonical(text.as_bytes()), of_tree(text.as_bytes()));
            assert_eq!(String::from_utf8_lossy(&written), String::from_utf8_lossy(&expected), "{text}");
        }
        assert_eq!(canonical(b"[\"\xff\"]"), of_tree(b"[\"\xff\"]"));
    }

    fn deep(levels: usize) -> String {
        format!("{}0{}", "{\"\":".repeat(levels), "}".repeat(levels))
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn small_objects_within_each_other_take_memory_in_proportion_to_the_text() {
        let peak = || {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
            kib.trim_end_matches("kB").trim().parse::<usize>().unwrap() / 1024
        };
        let one = deep(64);
        let text = format!("[{}0]", format!("{one},").repeat(8 * 1024 * 1024 / (one.len() + 1)));
        let before = peak();
        assert_eq!(canonical(text.as_bytes()).len(), text.len() + 2);
        // A tree of values takes 1 GiB. Other tests run meanwhile.
        let grown = peak() - before;
        assert!(grown < 300, "{grown} MiB for {} bytes", text.len());
    }
}
