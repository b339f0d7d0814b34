//! What values may look like, where a description says it and where they are read.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Deserializer, de};
use serde_json::Number;

/// A name of a queue, kind or tag.
pub(crate) const NAME: &str = "^[A-Za-z0-9._:-]{1,128}$";
/// The id of a job or worker.
pub(crate) const ID: &str = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$";
/// The id of a job that a client chose: version 8 is reserved for derived ids.
pub(crate) const CHOSEN_ID: &str =
    "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-79a-fA-F][0-9a-fA-F]{3}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$";
/// The place of a record of a slot.
pub(crate) const RUN: &str = "^[0-9]{1,17}\\.(schedule|start|trigger|backfill)\\.[A-Za-z0-9._:-]{1,128}$";
/// The years in which instants are understood.
pub(crate) const YEARS: &str = "^(19[7-9][0-9]|[2-8][0-9]{3})-";
/// The longest span in seconds.
pub(crate) const LONGEST: f64 = tenure::limits::LONGEST.as_secs() as f64;

/// Reads a whole number. For JSON 3.0 is one as well as 3.
pub(crate) fn whole<'de, D: Deserializer<'de>, T: TryFrom<i64>>(from: D) -> Result<Option<T>, D::Error> {
    /// Beyond this not every whole number can be told from its neighbours in JSON.
    const SURE: f64 = 9_007_199_254_740_992.0;
    let Some(number) = Option::<Number>::deserialize(from)? else { return Ok(None) };
    let is_whole = |number: &f64| number.fract() == 0.0 && number.abs() < SURE;
    let read = number.as_i64().or_else(|| number.as_f64().filter(is_whole).map(|number| number as i64));
    let read = read.and_then(|read| T::try_from(read).ok());
    read.map(Some).ok_or_else(|| de::Error::custom(format_args!("{number} is not a whole number in range")))
}

/// What has fields with names. An array, which would be taken for one whose names were left out, is none.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Named<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> de::Visitor<'de> for Named<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields))
            }
        }

        from.deserialize_map(Named(PhantomData)).map(Self)
    }
}

/// Reads an object that may be left out.
pub(crate) fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Ok(Option::<Object<T>>::deserialize(from)?.map(|Object(read)| read))
}

/// Reads an object that has to be there.
pub(crate) fn object_there<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Object::deserialize(from).map(|Object(read)| read)
}

/// Reads an object that is there, or `null`.
pub(crate) fn object_or_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<Option<T>>, D::Error> {
    object(from).map(Some)
}

/// Reads a list of objects.
pub(crate) fn objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(Vec::<Object<T>>::deserialize(from)?.into_iter().map(|Object(read)| read).collect())
}

/// Reads a whole number that has to be there.
pub(crate) fn whole_there<'de, D: Deserializer<'de>, T: TryFrom<i64>>(from: D) -> Result<T, D::Error> {
    whole(from)?.ok_or_else(|| de::Error::custom("null is not a whole number"))
}

/// Reads a whole number that is there, or `null`.
pub(crate) fn whole_or_null<'de, D: Deserializer<'de>, T: TryFrom<i64>>(
    from: D,
) -> Result<Option<Option<T>>, D::Error> {
    whole(from).map(Some)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::value::RawValue;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Has {
        #[serde(default, deserialize_with = "whole")]
        number: Option<u32>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Raw {
        #[serde(deserialize_with = "object_there")]
        one: BTreeMap<String, Box<RawValue>>,
    }

    #[test]
    fn what_is_in_an_object_stays_as_it_was_written() {
        let read = |text: &str| serde_json::from_str::<Raw>(text);
        let raw = read(r#"{"one":{"text":{"a":[1, 2]}}}"#).unwrap();
        assert_eq!(raw.one["text"].get(), r#"{"a":[1, 2]}"#);
        for bad in ["[]", "null", "7"] {
            assert!(read(&format!(r#"{{"one":{bad}}}"#)).is_err(), "{bad}");
        }
    }

    #[derive(Debug, Deserialize)]
    struct Around {
        #[serde(default, deserialize_with = "object")]
        one: Option<Has>,
        #[serde(default, deserialize_with = "objects")]
        many: Vec<Has>,
    }

    #[test]
    fn an_array_is_no_object_whose_names_were_left_out() {
        let read = |text: &str| serde_json::from_str::<Around>(text);
        let around = read(r#"{"one":{"number":1},"many":[{"number":2},{}]}"#).unwrap();
        assert_eq!((around.one.unwrap().number, around.many.len()), (Some(1), 2));
        assert!(read(r#"{"one":null}"#).unwrap().one.is_none());
        assert!(read(r#"{"one":[1]}"#).unwrap_err().to_string().contains("an object"));
        assert!(read(r#"{"many":[[1]]}"#).is_err());
    }

    #[test]
    fn a_whole_number_may_have_a_point_and_nothing_behind_it() {
        let read = |text: &str| serde_json::from_str::<Has>(text).map(|has| has.number);
        assert_eq!(read(r#"{"number":3}"#).unwrap(), Some(3));
        assert_eq!(read(r#"{"number":3.0}"#).unwrap(), Some(3));
        assert_eq!(read(r#"{"number":null}"#).unwrap(), None);
        assert_eq!(read("{}").unwrap(), None);
        for bad in ["3.5", "-1", "4294967296", "1e300", "\"3\"", "true"] {
            assert!(read(&format!(r#"{{"number":{bad}}}"#)).is_err(), "{bad}");
        }
    }
}
