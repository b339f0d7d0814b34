//! JSON that people write, looked through for hidden values without a tree.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Shown in place of a value that is hidden.
pub(crate) const HIDDEN: &str = "(hidden)";

/// Returns true if some text in JSON stands for a hidden value.
pub(crate) fn has_hidden(text: &str) -> serde_json::Result<bool> {
    serde_json::from_str(text).map(|Masked(is_masked)| is_masked)
}

struct Masked(bool);

struct Look;

impl<'de> Deserialize<'de> for Masked {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(Look)
    }
}

impl<'de> Visitor<'de> for Look {
    type Value = Masked;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Masked, E> {
        Ok(Masked(false))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Masked, E> {
        Ok(Masked(false))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Masked, E> {
        Ok(Masked(false))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Masked, E> {
        Ok(Masked(false))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Masked, E> {
        Ok(Masked(false))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Masked, E> {
        Ok(Masked(text == HIDDEN))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Masked, A::Error> {
        let mut is_masked = false;
        while let Some(Masked(one)) = values.next_element()? {
            is_masked |= one;
        }
        Ok(Masked(is_masked))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Masked, A::Error> {
        let mut is_masked = false;
        while let Some((_, Masked(one))) = map.next_entry::<IgnoredAny, Masked>()? {
            is_masked |= one;
        }
        Ok(Masked(is_masked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_value_is_found_at_any_depth_and_a_name_is_none() {
        let found = |text: &str| has_hidden(text).unwrap();
        assert!(found(r#""(hidden)""#) && found(r#"{"a":[1,{"b":"(hidden)"},2.5,null]}"#));
        assert!(!found(r#"{"(hidden)":["(hidden) or not",true,-1]}"#));
        for wrong in ["", "{", "1 2", r#"{"a":1e400}"#] {
            assert!(has_hidden(wrong).is_err(), "{wrong}");
        }
    }
}
