//! What args have to be like: a JSON Schema whose check has an end that can be told beforehand.
//!
//! A schema comes from whoever may manage, and is checked against whatever anybody sends. So it is read before it is
//! compiled, with all that it refers to written out: it has no more than so many parts, and is no deeper than so. What
//! refers to itself is never done with that, and is refused by it. Nothing is fetched from anywhere, and patterns are of
//! the sort that takes a time in proportion to the text.

use jsonschema::{PatternOptions, ValidationError, Validator};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use tenure::{Invalid, json_value, limits};

/// Parts of a schema at most, with what it refers to written out.
const PARTS: usize = 2_000;
/// Patterns among them.
const PATTERNS: usize = 50;
/// Bytes of a compiled pattern, from the usual to the largest.
const PATTERN_BYTES: [usize; 3] = [8 * 1024, 32 * 1024, 256 * 1024];
/// Bytes of all compiled patterns of a schema.
const ALL_PATTERN_BYTES: usize = 2 * 1024 * 1024;
/// Estimate of the memory of a part, and of the copies that a pattern needs to be matched by several threads.
const PART_BYTES: usize = 1024;
const PATTERN_COPIES: usize = 4;
/// Comparisons of a value with a part that one check of args may need.
pub(super) const MOST_CHECKS: usize = 50_000_000;
/// Estimate of the bytes of a pattern's state.
const STATE_BYTES: usize = 32;
/// Steps that all patterns of one check may need, if each takes a step for each of its states at each byte of the text.
pub(super) const MOST_STEPS: usize = 500_000_000;
/// Checks up to which broken rules are listed. The validator makes an error in memory for each of them.
const LISTED_CHECKS: usize = 20_000;
/// Parts times bytes of text up to which broken rules are listed. Errors of alternatives have copies of the value.
const LISTED_BYTES: usize = 2 * 1024 * 1024;
/// Checks and steps of patterns that take a few milliseconds at most.
pub(super) const SHORT: usize = 200_000;
/// Parts that a `multipleOf` with a fraction counts as: the validator divides numbers of a thousand bits.
const FRACTION_PARTS: usize = 1_000;
/// Bytes of text that count as a value: keywords such as `maxLength` read all of a string.
const VALUE_BYTES: usize = 64;
/// Broken rules that are told at once.
const TOLD: usize = 20;
/// Characters of what is told of one.
const DETAIL_CHARS: usize = 300;
/// The dialects that are understood.
const DIALECTS: [&str; 2] =
    ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema"];
/// What a part may refer to.
const REFERENCES: [&str; 2] = ["#/$defs/", "#/definitions/"];

/// A schema rule that args violate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "BrokenRule")]
pub(crate) struct Broken {
    /// JSON pointer into the args; empty for the whole value.
    pub pointer: String,
    /// Schema keyword, such as `required`.
    pub rule: String,
    /// Explanation. It does not repeat the value, which may be a secret.
    pub detail: String,
}

/// A schema, compiled.
pub(crate) struct Schema {
    rules: Validator,
    /// Parts, with the values of enumerations.
    parts: usize,
    /// Parts by the time that each takes.
    weight: usize,
    /// Bytes that all compiled patterns take at most.
    pattern_bytes: usize,
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// What is no schema, what refers elsewhere or to itself, and what could take too long.
    pub(crate) fn new(schema: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut reader = Reader { root: schema, parts: 0, fractions: 0, patterns: 0 };
        reader.part(schema, 0)?;
        let (parts, patterns) = (reader.parts, reader.patterns);
        let weight = parts + reader.fractions * FRACTION_PARTS;
        let most = ALL_PATTERN_BYTES / patterns.max(1);
        let document = Value::Object(schema.clone());
        let mut built = compiled(&document, most.min(PATTERN_BYTES[0]));
        // Most patterns are small. The limit under which all of them compile tells how large they can be.
        let mut limit = PATTERN_BYTES[0];
        for larger in &PATTERN_BYTES[1..] {
            if built.is_ok() || patterns == 0 {
                break;
            }
            limit = *larger.min(&most);
            built = compiled(&document, limit);
        }
        let rules = built.map_err(|wrong| {
            let found: String = wrong.to_string().chars().take(DETAIL_CHARS).collect();
            Invalid::new(format!("schema{}", wrong.instance_path()), found, "a JSON Schema")
        })?;
        Ok(Self { rules, parts, weight, pattern_bytes: patterns * limit })
    }

    /// Estimates the memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.parts * PART_BYTES + self.pattern_bytes * PATTERN_COPIES
    }

    /// Estimates the work of checking args from their text.
    pub(super) fn work(&self, text: &str) -> Work {
        let (bytes, values) = (text.len(), values_in_text(text));
        let errors = self.parts.saturating_mul(values);
        let checks = self.weight.saturating_mul(values + bytes / VALUE_BYTES);
        let steps = bytes.saturating_mul(self.pattern_bytes / STATE_BYTES);
        Work {
            checks,
            steps,
            lists: errors <= LISTED_CHECKS && self.parts.saturating_mul(bytes) <= LISTED_BYTES,
        }
    }

    /// Parses args and returns the rules that they break, or the first ones. If the work does not allow a list, the only entry
    /// says that the args break the schema.
    ///
    /// The tree of the args can take 128 times the memory of their text, so call this where nothing waits.
    pub(super) fn broken(&self, text: &str, work: Work) -> serde_json::Result<Vec<Broken>> {
        let args = json_value(text)?;
        if self.rules.is_valid(&args) {
            return Ok(Vec::new());
        }
        if !work.lists {
            let detail = "not valid under the schema; too large to list each violation";
            return Ok(vec![Broken {
                pointer: String::new(),
                rule: "schema".to_owned(),
                detail: detail.to_owned(),
            }]);
        }
        let told = self.rules.iter_errors(&args).take(TOLD).map(|error| Broken {
            pointer: error.instance_path().to_string(),
            rule: error.kind().keyword().to_owned(),
            detail: error.masked().to_string().chars().take(DETAIL_CHARS).collect(),
        });
        Ok(told.collect())
    }
}

/// The work of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Work {
    /// Checks of a value with a part.
    pub checks: usize,
    /// Steps of patterns.
    pub steps: usize,
    /// `true` if a list of all broken rules takes little memory.
    pub lists: bool,
}

impl Work {
    /// Returns `true` if it takes no longer than a check may take.
    pub(super) fn is_allowed(self) -> bool {
        self.checks <= MOST_CHECKS && self.steps <= MOST_STEPS
    }

    pub(super) fn cost(self) -> usize {
        self.checks.saturating_add(self.steps)
    }
}

/// Compiles a schema whose patterns take at most so many bytes each.
fn compiled(schema: &Value, pattern_bytes: usize) -> Result<Validator, ValidationError<'static>> {
    let patterns = PatternOptions::regex().size_limit(pattern_bytes).dfa_size_limit(pattern_bytes);
    let options = jsonschema::options().offline().should_validate_formats(false);
    options.with_pattern_options(patterns).build(schema)
}

/// Counts the values in a value, itself included.
fn values_in(value: &Value) -> usize {
    1 + match value {
        Value::Array(values) => values.iter().map(values_in).sum(),
        Value::Object(fields) => fields.values().map(values_in).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Counts the values in a JSON text without parsing it. An object or array has one value more than commas, unless it is empty.
fn values_in_text(text: &str) -> usize {
    let (mut values, mut in_string, mut is_escaped, mut has_begun) = (1, false, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' if in_string => in_string = false,
            _ if in_string || byte.is_ascii_whitespace() => {}
            b'}' | b']' => has_begun = false,
            _ => {
                values += usize::from(has_begun) + usize::from(byte == b',');
                has_begun = matches!(byte, b'{' | b'[');
                in_string = byte == b'"';
            }
        }
    }
    values
}

/// Reads a schema with all that it refers to.
struct Reader<'a> {
    root: &'a Map<String, Value>,
    parts: usize,
    /// Occurrences of `multipleOf` with a fraction.
    fractions: usize,
    patterns: usize,
}

impl<'a> Reader<'a> {
    fn part(&mut self, part: &'a Map<String, Value>, depth: usize) -> Result<(), Invalid> {
        self.count(1)?;
        if depth > limits::JSON_DEPTH {
            let allowed = format!(
                "at most {} levels and no recursion; a schema cannot refer to itself",
                limits::JSON_DEPTH
            );
            return Err(Invalid::new("schema", "a deeper nesting", allowed));
        }
        for (word, value) in part {
            self.word(word, value, depth)?;
        }
        Ok(())
    }

    fn word(&mut self, word: &str, value: &'a Value, depth: usize) -> Result<(), Invalid> {
        let field = || format!("schema.{word}");
        match word {
            "$ref" => return self.refer(value, depth),
            "$schema" => {
                let said = value.as_str().unwrap_or_default().trim_end_matches('#');
                if !DIALECTS.contains(&said) {
                    let allowed = format!("{} or {}", DIALECTS[0], DIALECTS[1]);
                    return Err(Invalid::new(field(), "another dialect", allowed));
                }
            }
            "$id" | "$anchor" | "$dynamicAnchor" | "$dynamicRef" | "$recursiveAnchor" | "$recursiveRef"
            | "$vocabulary" => {
                return Err(Invalid::new(field(), "an identifier", "$ref to $defs of the same schema"));
            }
            // What is left over can be known only by looking at all the rest again, within each part anew.
            "unevaluatedProperties" | "unevaluatedItems" => {
                return Err(Invalid::new(field(), "an unsupported keyword", "additionalProperties or items"));
            }
            // Draft 7 decodes and parses each string, once for each of these keywords.
            "contentMediaType" | "contentEncoding" => {
                return Err(Invalid::new(field(), "an unsupported keyword", "type or pattern"));
            }
            "multipleOf" if value.as_f64().is_some_and(|divisor| divisor.fract() != 0.0) => {
                self.fractions += 1;
            }
            // Nothing in these values is a rule, but args are compared with them.
            "const" | "enum" => self.count(values_in(value))?,
            "default" | "examples" => {}
            // Under names of their own.
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
            | "dependencies" => {
                if let Value::Object(named) = value {
                    if word == "patternProperties" {
                        self.pattern(named.len())?;
                    }
                    self.count(named.len())?;
                    named.values().try_for_each(|value| self.below(value, depth))?;
                }
            }
            "pattern" => self.pattern(1)?,
            // Each name is looked for in each object.
            "required" | "dependentRequired" => self.count(values_in(value))?,
            _ => self.below(value, depth)?,
        }
        Ok(())
    }

    fn below(&mut self, value: &'a Value, depth: usize) -> Result<(), Invalid> {
        match value {
            Value::Object(part) => self.part(part, depth + 1),
            Value::Array(parts) => parts.iter().try_for_each(|part| match part {
                Value::Object(part) => self.part(part, depth + 1),
                Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                    self.count(1)
                }
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn count(&mut self, more: usize) -> Result<(), Invalid> {
        self.parts += more;
        if self.parts > PARTS {
            let allowed = format!(
                "at most {PARTS} parts, values of enum and names in required, after references are expanded"
            );
            return Err(Invalid::new("schema", "too many parts", allowed));
        }
        Ok(())
    }

    fn pattern(&mut self, more: usize) -> Result<(), Invalid> {
        self.patterns += more;
        if self.patterns > PATTERNS {
            return Err(Invalid::new(
                "schema.pattern",
                "too many patterns",
                format_args!("at most {PATTERNS}"),
            ));
        }
        Ok(())
    }

    fn refer(&mut self, to: &Value, depth: usize) -> Result<(), Invalid> {
        let wrong = |found: &str| {
            Invalid::new(
                "schema.$ref",
                found,
                "#/$defs/ followed by the name, in letters, of an existing definition",
            )
        };
        let to = to.as_str().ok_or_else(|| wrong("not a string"))?;
        let shown: String = to.chars().take(64).collect();
        let below = REFERENCES.iter().find_map(|place| Some((*place, to.strip_prefix(place)?)));
        let (place, name) = below.ok_or_else(|| wrong(&shown))?;
        if name.contains(['/', '~', '%']) {
            return Err(wrong(&shown));
        }
        let parts = self.root.get(place.trim_matches(['#', '/']));
        match parts.and_then(|parts| parts.get(name)) {
            Some(part @ (Value::Object(_) | Value::Bool(_))) => self.below(part, depth),
            Some(_) | None => Err(wrong(&shown)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(schema: &Value) -> Result<Schema, Invalid> {
        Schema::new(schema.as_object().unwrap())
    }

    fn broken_by(schema: &Schema, args: Value) -> Vec<Broken> {
        let text = args.to_string();
        schema.broken(&text, schema.work(&text)).unwrap()
    }

    #[test]
    fn a_broken_rule_is_told_with_its_place_and_without_the_value() {
        let schema = json!({ "type": "object", "required": ["month"], "additionalProperties": false,
            "properties": { "month": { "$ref": "#/$defs/month" }, "id": { "pattern": "^x+$" } },
            "$defs": { "month": { "type": "integer", "maximum": 12 } } });
        let schema = read(&schema).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!(broken_by(&schema, json!({ "month": 12, "id": "xx" })), []);
        let broken = broken_by(&schema, json!({ "month": 4711 }));
        assert_eq!((broken[0].pointer.as_str(), broken[0].rule.as_str()), ("/month", "maximum"));
        assert!(!broken[0].detail.contains("4711"), "{broken:?}");
        let broken = broken_by(&schema, json!({ "month": "secret", "id": "xy" }));
        let mut rules: Vec<_> =
            broken.iter().map(|rule| (rule.pointer.as_str(), rule.rule.as_str())).collect();
        rules.sort_unstable();
        assert_eq!(rules, [("/id", "pattern"), ("/month", "type")]);
        assert_eq!(broken_by(&schema, Value::Null)[0].pointer, "");
    }

    #[test]
    fn a_schema_whose_check_might_not_end_is_refused() {
        // Each refers twice to the next one: a million parts when it is written out.
        let doubling: Map<String, Value> = (0..20)
            .map(|n| {
                let next = json!({ "$ref": format!("#/$defs/a{}", n + 1) });
                (format!("a{n}"), json!({ "allOf": [next, next] }))
            })
            .chain([("a20".to_owned(), json!({}))])
            .collect();
        let many: Vec<Value> = (0..51).map(|_| json!({ "pattern": "x" })).collect();
        for (schema, said) in [
            (json!({ "$ref": "#" }), "$ref"),
            (json!({ "$ref": "https://example.com/x" }), "$ref"),
            (json!({ "$ref": "file:///etc/passwd" }), "$ref"),
            (json!({ "$ref": "#/$defs/x" }), "$ref"),
            (json!({ "$ref": "#/$defs/x", "$defs": { "x": { "$ref": "#/$defs/x" } } }), "itself"),
            (json!({ "$defs": doubling }), "parts"),
            (json!({ "anyOf": many }), "pattern"),
            (json!({ "pattern": "(?=x)" }), "schema"),
            (json!({ "pattern": "(\\w{100}){100}" }), "schema"),
            (
                json!({ "items": { "required": (0..2_000).map(|n| n.to_string()).collect::<Vec<_>>() } }),
                "parts",
            ),
            (json!({ "anyOf": vec![true; 2_000] }), "parts"),
            (json!({ "items": { "enum": (0..2_000).collect::<Vec<_>>() } }), "parts"),
            (json!({ "anyOf": [{ "const": [(0..2_000).collect::<Vec<_>>()] }] }), "parts"),
            // Fifty patterns that are allowed alone, but take too much memory together.
            (json!({ "anyOf": vec![json!({ "pattern": "\\p{L}{3}" }); 50] }), "schema"),
            (json!({ "properties": { "x": { "$id": "https://example.com/y" } } }), "$id"),
            (json!({ "$dynamicRef": "#x" }), "$dynamicRef"),
            (json!({ "unevaluatedProperties": false }), "unevaluated"),
            (json!({ "items": { "contentMediaType": "application/json" } }), "contentMediaType"),
            (json!({ "anyOf": [{ "contentEncoding": "base64" }] }), "contentEncoding"),
            (json!({ "$schema": "https://example.com/dialect" }), "$schema"),
            (json!({ "type": "star" }), "schema"),
        ] {
            let wrong = read(&schema).map(drop).unwrap_err();
            assert!(wrong.to_string().contains(said), "{schema}: {wrong}");
        }
    }

    #[test]
    fn usual_patterns_count_as_little_memory_and_large_ones_as_much() {
        let bytes = |schema: Value| read(&schema).unwrap_or_else(|wrong| panic!("{wrong}")).bytes();
        let usual = json!({ "properties": { "a": { "pattern": "^[a-z0-9-]{1,40}$" }, "b": { "pattern": "^INV-[0-9]+$" } } });
        assert!(bytes(usual) < 100 * 1024);
        assert!(bytes(json!({ "pattern": "\\p{L}{3}" })) > 500 * 1024);
        let unicode = json!({ "anyOf": vec![json!({ "pattern": "^\\d+$" }); 50] });
        assert!(bytes(unicode) < 10 * 1024 * 1024);
    }

    #[test]
    fn the_work_of_a_check_grows_with_the_args_the_parts_and_the_patterns() {
        let schema = json!({ "items": { "enum": (0..1_500).collect::<Vec<_>>() } });
        let schema = read(&schema).unwrap_or_else(|wrong| panic!("{wrong}"));
        let work = |count: usize| schema.work(&json!(vec![7; count]).to_string());
        assert!(work(10).cost() <= SHORT && work(10).is_allowed());
        assert!(work(10_000).cost() > SHORT && work(10_000).is_allowed());
        assert!(!work(131_000).is_allowed());
        let names: Vec<String> = (0..1_900).map(|number| format!("n{number}")).collect();
        for schema in [
            json!({ "items": { "required": names } }),
            json!({ "anyOf": (0..900).map(|most| json!({ "maxLength": most })).collect::<Vec<_>>() }),
            json!({ "items": { "required": ["sku", "qty"] } }),
        ] {
            let schema = read(&schema).unwrap_or_else(|wrong| panic!("{wrong}"));
            for args in [json!(vec![json!({}); 20_000]), json!("x".repeat(200_000))] {
                let found = broken_by(&schema, args);
                assert!(found.len() <= 1 && found.iter().all(|broken| broken.rule == "schema"), "{found:?}");
            }
        }
        let large = json!({ "pattern": "\\p{L}{3}" });
        let large = read(&large).unwrap_or_else(|wrong| panic!("{wrong}"));
        let work = |schema: &Schema, length: usize| schema.work(&json!("x".repeat(length)).to_string());
        assert!(work(&large, 50_000).is_allowed() && !work(&large, 100_000).is_allowed());
        let schema = read(&json!({ "pattern": "^x+$" })).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert!(work(&schema, 500).cost() <= SHORT && work(&schema, 200_000).cost() > SHORT);
    }

    #[test]
    fn keywords_that_take_long_count_as_more_work() {
        let read = |schema: Value| read(&schema).unwrap_or_else(|wrong| panic!("{wrong}"));
        let (cents, whole) =
            (read(json!({ "items": { "multipleOf": 0.01 } })), read(json!({ "items": { "multipleOf": 5 } })));
        let prices = json!(vec![json!(19.99); 1_000]).to_string();
        assert!(cents.work(&prices).cost() > 1_000_000 && cents.work(&prices).lists);
        assert!(whole.work(&prices).cost() < 10_000);
        // Each division of such a number takes as long as a thousand other checks.
        assert!(!cents.work(&json!(vec![1e300; 50_000]).to_string()).is_allowed());
        let lengths = read(json!({ "anyOf": vec![json!({ "minLength": 1 }); 900] }));
        assert!(lengths.work("\"a word\"").cost() <= SHORT);
        assert!(lengths.work(&json!("x".repeat(200_000)).to_string()).cost() > SHORT);
    }

    #[test]
    fn the_values_of_a_text_are_counted_as_in_its_tree() {
        for text in [
            "7",
            "[]",
            " { } ",
            "[ [ ] , { } ]",
            r#"{"a":[1,2.5,-3,null,true,"\"é,[{\\"],"b,":{"c":{}}}"#,
            "[[[[0]]],\n[{\"\":[{}]}]]",
        ] {
            assert_eq!(values_in_text(text), values_in(&json_value(text).unwrap()), "{text}");
        }
    }

    #[test]
    fn names_of_fields_are_no_rules() {
        let schema = json!({ "properties": { "$id": {}, "$ref": { "type": "string" }, "pattern": {} },
            "enum": [{ "$ref": "elsewhere" }, { "$ref": 7 }] });
        let schema = read(&schema).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!(broken_by(&schema, json!({ "$ref": "elsewhere" })), []);
        assert_eq!(broken_by(&schema, json!({ "$ref": 7 }))[0].pointer, "/$ref");
    }
}
