//! An operation for each kind that has a schema, so that generated clients have types for its args.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::kinds::known::KindSchema;
use crate::plain;

/// The operation that enqueues a job of any kind.
const ANY: &str = "/v1/kinds/{name}/jobs";
/// Kinds with an operation of their own, at most.
const MOST: usize = 200;
/// Total size of their schemas.
const BYTES: usize = 1024 * 1024;
/// Where schemas of the document are.
const PLACE: &str = "#/components/schemas/";

/// Adds the operations of these kinds to a document, and returns how many kinds are left out for its size.
pub(super) fn add(document: &mut Value, kinds: &[KindSchema]) -> usize {
    let mut names = Names::of(document);
    let (mut added, mut bytes) = (0, 0);
    for kind in kinds.iter().take(MOST) {
        bytes += kind.schema.len();
        let Some(schema) = serde_json::from_str(&kind.schema).ok().filter(|_| bytes <= BYTES) else { break };
        add_kind(document, kind, &schema, &mut names);
        added += 1;
    }
    kinds.len() - added
}

fn add_kind(document: &mut Value, kind: &KindSchema, schema: &Map<String, Value>, names: &mut Names) {
    let (args, body) = (names.schema(&kind.kind, "Args"), names.schema(&kind.kind, "Job"));
    let operation = names.operation(&kind.kind);
    let operation = operation_of(document, kind, &operation, &body);
    let body_schema = body_of(document, kind, &args);
    let parts = parts_of(&kind.kind, schema, names);
    let root = Value::Object(schema.clone());
    let mut schemas = vec![(args, translated(&root, &parts)), (body, body_schema)];
    for (place, name) in &parts {
        let part = schema.get(place.0).and_then(|parts| parts.get(&place.1));
        schemas.push((name.clone(), part.map_or_else(|| json!({}), |part| translated(part, &parts))));
    }
    if let Some(all) = document["components"]["schemas"].as_object_mut() {
        all.extend(schemas);
    }
    if let Some(paths) = document["paths"].as_object_mut() {
        paths.insert(ANY.replace("{name}", &kind.kind), json!({ "post": operation }));
    }
}

/// The operation of any kind, for this one.
fn operation_of(document: &Value, kind: &KindSchema, name: &str, body: &str) -> Value {
    let mut operation = document["paths"][ANY]["post"].clone();
    operation["operationId"] = json!(name);
    operation["summary"] = json!(format!("Enqueue a job of kind {}", kind.kind));
    if let Some(parameters) = operation["parameters"].as_array_mut() {
        parameters.retain(|parameter| parameter["in"] != "path");
    }
    let schema = json!({ "$ref": format!("{PLACE}{body}") });
    operation["requestBody"] =
        json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    operation
}

/// The body of any kind, with the args of this one.
fn body_of(document: &Value, kind: &KindSchema, args: &str) -> Value {
    let mut body = document["components"]["schemas"]["KindJob"].clone();
    let about = kind.description.clone().unwrap_or_else(|| format!("A job of kind {}.", kind.kind));
    body["description"] = json!(about);
    body["properties"]["args"] = json!({ "$ref": format!("{PLACE}{args}") });
    body["required"] = json!(["args"]);
    body
}

/// A place within a schema to which it can refer, such as `$defs` and `month`.
type Place = (&'static str, String);

/// The names of the definitions of a kind's schema.
fn parts_of(kind: &str, schema: &Map<String, Value>, names: &mut Names) -> BTreeMap<Place, String> {
    let mut parts = BTreeMap::new();
    for place in ["$defs", "definitions"] {
        let defined = schema.get(place).and_then(Value::as_object);
        for name in defined.into_iter().flat_map(Map::keys) {
            parts.insert((place, name.clone()), names.schema(kind, &pascal(name)));
        }
    }
    parts
}

/// A schema of a kind as a part of the document: definitions are schemas of the document, and without the words that
/// generators misread. Titles become names of types, and fields with defaults become required.
fn translated(schema: &Value, parts: &BTreeMap<Place, String>) -> Value {
    let Value::Object(fields) = schema else {
        return if *schema == json!(false) { json!({ "not": {} }) } else { json!({}) };
    };
    let mut told = Map::new();
    for (word, value) in fields {
        let value = match word.as_str() {
            "$schema" | "$comment" | "$defs" | "definitions" | "title" | "default" => continue,
            "$ref" => json!(referred(value, parts)),
            "const" | "enum" | "examples" => value.clone(),
            "properties" | "patternProperties" | "dependentSchemas" => under_names(value, parts),
            _ => below(value, parts),
        };
        told.insert(word.clone(), value);
    }
    plain::say_formats(&mut told);
    Value::Object(told)
}

fn under_names(value: &Value, parts: &BTreeMap<Place, String>) -> Value {
    let named = value.as_object().into_iter().flatten();
    named.map(|(name, schema)| (name.clone(), translated(schema, parts))).collect::<Map<_, _>>().into()
}

/// The value of any other word: a schema, a list of them, or neither.
fn below(value: &Value, parts: &BTreeMap<Place, String>) -> Value {
    match value {
        Value::Object(_) => translated(value, parts),
        Value::Array(all) => all.iter().map(|one| below(one, parts)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn referred(to: &Value, parts: &BTreeMap<Place, String>) -> String {
    let to = to.as_str().unwrap_or_default();
    let found = parts
        .iter()
        .find(|((place, name), _)| to.strip_prefix(&format!("#/{place}/")) == Some(name.as_str()));
    found.map_or_else(|| to.to_owned(), |(_, name)| format!("{PLACE}{name}"))
}

/// Names that are in use, in the style of generated clients: without case and separators.
struct Names {
    schemas: BTreeSet<String>,
    operations: BTreeSet<String>,
}

impl Names {
    fn of(document: &Value) -> Self {
        let schemas = document["components"]["schemas"].as_object().into_iter().flat_map(Map::keys);
        let paths = document["paths"].as_object().into_iter().flat_map(Map::values);
        let operations = paths.filter_map(Value::as_object).flat_map(Map::values);
        let operations = operations.filter_map(|operation| operation["operationId"].as_str());
        Self {
            schemas: schemas.map(|name| styled(name)).collect(),
            operations: operations.map(styled).collect(),
        }
    }

    /// A name for a schema of this kind.
    fn schema(&mut self, kind: &str, end: &str) -> String {
        free(&format!("{}{end}", pascal(kind)), "", &mut self.schemas)
    }

    /// A name for the operation of this kind.
    fn operation(&mut self, kind: &str) -> String {
        let words: Vec<String> = words(kind).map(str::to_ascii_lowercase).collect();
        free(&format!("enqueue_{}", words.join("_")), "_", &mut self.operations)
    }
}

/// The name, or with the first number behind it that makes it another one than all others.
fn free(name: &str, before_number: &str, taken: &mut BTreeSet<String>) -> String {
    if taken.insert(styled(name)) {
        return name.to_owned();
    }
    let mut numbered = (2_usize..).map(|number| format!("{name}{before_number}{number}"));
    numbered.find(|name| taken.insert(styled(name))).unwrap_or_default()
}

fn styled(name: &str) -> String {
    name.replace(['_', '-'], "").to_ascii_lowercase()
}

fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
}

/// Returns `build_star` as `BuildStar`; a type's name begins with a letter.
fn pascal(name: &str) -> String {
    let mut told = String::new();
    for word in words(name) {
        told.push_str(&word[..1].to_ascii_uppercase());
        told.push_str(&word[1..]);
    }
    match told.chars().next() {
        Some(first) if first.is_ascii_alphabetic() => told,
        _ => format!("Kind{told}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openapi::{Described, Words, document};

    fn kind(kind: &str, schema: Value) -> KindSchema {
        KindSchema { kind: kind.to_owned(), description: None, schema: schema.to_string().into() }
    }

    fn with(kinds: Vec<KindSchema>) -> Value {
        document(Words::New, &Described { kinds, ..Described::default() })
    }

    #[test]
    fn a_kind_with_a_schema_has_an_operation_with_types() {
        let month = json!({ "type": "integer", "title": "Month", "maximum": 12, "default": 1 });
        let bill = kind(
            "bill.month-end",
            json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Bill", "type": "object",
                "required": ["month"], "additionalProperties": false,
                "properties": { "month": { "$ref": "#/$defs/month" }, "title": { "type": "string" } },
                "$defs": { "month": month } }),
        );
        let document = with(vec![bill]);
        let operation = &document["paths"]["/v1/kinds/bill.month-end/jobs"]["post"];
        assert_eq!(operation["operationId"], "enqueue_bill_month_end");
        assert!(
            operation["parameters"].as_array().unwrap().iter().all(|one| one["in"] != "path"),
            "{operation}"
        );
        assert_eq!(operation["responses"], document["paths"]["/v1/jobs"]["post"]["responses"]);
        let schemas = &document["components"]["schemas"];
        let body = &operation["requestBody"]["content"]["application/json"]["schema"]["$ref"];
        assert_eq!(body, "#/components/schemas/BillMonthEndJob");
        let body = &schemas["BillMonthEndJob"];
        assert_eq!(body["properties"]["args"]["$ref"], "#/components/schemas/BillMonthEndArgs");
        assert_eq!((&body["required"], &body["properties"]["kind"]), (&json!(["args"]), &Value::Null));
        assert_eq!(
            schemas["BillMonthEndArgs"],
            json!({ "type": "object", "required": ["month"], "additionalProperties": false, "properties": {
                "month": { "$ref": "#/components/schemas/BillMonthEndMonth" }, "title": { "type": "string" } } })
        );
        let part = json!({ "type": "integer", "maximum": 12, "format": "int32" });
        assert_eq!(schemas["BillMonthEndMonth"], part);
        assert_eq!(document.get("x-omitted-kinds"), None);
    }

    #[test]
    fn no_two_kinds_have_one_name_and_none_takes_that_of_another_schema() {
        let any = || json!({ "type": "object" });
        let document = with(["a.b", "a_b", "7", "scheduled", "jobs"].map(|name| kind(name, any())).into());
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for name in ["ABArgs", "ABArgs2", "Kind7Job", "ScheduledJob2", "JobsArgs"] {
            assert!(schemas.contains_key(name), "{name}");
        }
        assert!(schemas["ScheduledJob"]["properties"]["kind"].is_object(), "that of schedules stays");
        let name = |path: &str| document["paths"][path]["post"]["operationId"].as_str().unwrap().to_owned();
        assert_eq!(name("/v1/kinds/jobs/jobs"), "enqueue_jobs_2");
        assert_eq!(name("/v1/jobs/batch"), "enqueue_jobs");
    }

    #[test]
    fn a_document_has_a_bounded_number_of_kinds_and_tells_how_many_are_left_out() {
        let named = |number: usize| format!("k{number:03}");
        let many: Vec<_> = (0..MOST + 7).map(|number| kind(&named(number), json!({}))).collect();
        let told = with(many);
        assert_eq!(told["x-omitted-kinds"], 7);
        assert!(told["paths"].get(format!("/v1/kinds/{}/jobs", named(MOST))).is_none());
        let large = |number: usize| kind(&named(number), json!({ "description": "x".repeat(BYTES / 4) }));
        assert_eq!(with((0..5).map(large).collect())["x-omitted-kinds"], 2);
    }

    #[test]
    fn the_old_words_have_no_kinds_for_they_cannot_say_all_of_a_schema() {
        let server = Described { kinds: vec![kind("bill", json!({}))], ..Described::default() };
        assert_eq!(document(Words::Old, &server), document(Words::Old, &Described::default()));
    }
}
