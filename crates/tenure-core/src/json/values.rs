//! Reads JSON text as a tree of values, with all names as they are written.
//!
//! `serde_json` replaces an object by the JSON in the text of its value, if the name of that value is
//! `$serde_json::private::RawValue`. The tree would then be another one than the text shows, and a short string could hide
//! a large tree. The reader of each `serde_json::Value` does so; this one does not.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Reads JSON text that a client has chosen, with all names as they are written.
///
/// # Errors
/// Refuses text that is no JSON, and numbers beyond a double.
pub fn json_value(text: impl AsRef<[u8]>) -> serde_json::Result<Value> {
    let mut reader = serde_json::Deserializer::from_slice(text.as_ref());
    let value = Plain.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Reads each value as it is written.
struct Plain;

impl<'de> DeserializeSeed<'de> for Plain {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Plain {
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
        while let Some(value) = values.next_element_seed(Self)? {
            all.push(value);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value_seed(Self)?;
            all.insert(name, value);
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_the_one_that_the_text_shows() {
        for text in [
            r#"{"$serde_json::private::RawValue":"[{},{}]"}"#,
            r#"[{"a":{"$serde_json::private::RawValue":"no JSON"}}]"#,
            r#"{"$serde_json::private::Number":"1"}"#,
            r#"{"a":[1,2.5,-3,null,true,"\"é",18446744073709551615,1e300],"b":{}}"#,
        ] {
            let value = json_value(text).unwrap();
            assert_eq!(value.to_string(), text.replace("1e300", "1e+300"));
        }
        for wrong in ["", "{", "1 2", "[1e400]", r#""\ud800""#] {
            assert!(json_value(wrong).is_err(), "{wrong}");
        }
    }
}
