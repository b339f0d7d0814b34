//! What editors are told of the file of settings: a JSON Schema.

use serde_json::{Map, Value, json};

use super::known::{KEPT_APART, KNOWN, Kind, NAMED, Setting};

/// What stands below the names of each section of declarations, in the description of the HTTP interface.
const OF_INTERFACE: [(&str, &str); 3] =
    [("queues", "QueuePatch"), ("schedules", "ScheduleSpec"), ("webhooks", "WebhookAsk")];
const POINTS_TO: &str = "#/components/schemas/";

/// The schema of a `tenure.toml`.
pub(crate) fn schema() -> Value {
    let mut sections = Map::new();
    for setting in KNOWN {
        let (section, key) = setting.parts();
        let section = sections
            .entry(section)
            .or_insert_with(|| json!({ "type": "object", "additionalProperties": false, "properties": {} }));
        section["properties"][key] = of_setting(setting);
        if setting.is_secret {
            let about = format!("File that holds this value: {}", setting.about);
            section["properties"][format!("{key}_file")] = json!({ "type": "string", "description": about });
        }
    }
    let description = tenure_http::description(tenure_http::Words::New);
    let known = &description["components"]["schemas"];
    let mut shared = Map::new();
    for (section, _) in NAMED {
        let Some((_, name)) = OF_INTERFACE.iter().find(|(known, _)| known == section) else { continue };
        gather(name, known, &mut shared);
        for key in KEPT_APART.iter().filter(|(of, _)| of == section).map(|(_, key)| key) {
            let about = "File that holds this value, relative to this one";
            shared[*name]["properties"][format!("{key}_file")] =
                json!({ "type": "string", "description": about });
        }
        sections.insert(
            (*section).to_owned(),
            json!({ "type": "object", "additionalProperties": { "$ref": format!("#/$defs/{name}") } }),
        );
    }
    sections.insert("current".to_owned(), json!({ "type": "string" }));
    sections.insert("contexts".to_owned(), json!({ "type": "object" }));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of Tenure",
        "type": "object",
        "additionalProperties": false,
        "properties": sections,
        "$defs": shared,
    })
}

fn of_setting(setting: &Setting) -> Value {
    let text = json!({ "type": "string" });
    let mut schema = match setting.kind {
        Kind::Text | Kind::File | Kind::Urls | Kind::Address | Kind::Span | Kind::Level => text,
        Kind::Url => json!({ "type": "string", "format": "uri" }),
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Choice(allowed) => json!({ "type": "string", "enum": allowed }),
        Kind::Texts | Kind::Networks | Kind::Egress | Kind::Grants => {
            json!({ "type": "array", "items": text })
        }
    };
    schema["description"] = json!(setting.about);
    if let Some(default) = setting.default {
        schema["default"] = match setting.kind {
            Kind::Bool => json!(default == "true"),
            Kind::Text
            | Kind::Url
            | Kind::Urls
            | Kind::Address
            | Kind::Span
            | Kind::Choice(_)
            | Kind::Texts
            | Kind::File
            | Kind::Networks
            | Kind::Egress
            | Kind::Grants
            | Kind::Level => json!(default),
        };
    }
    schema
}

/// A schema of the interface and all that it points to, under names of this document.
fn gather(name: &str, known: &Value, into: &mut Map<String, Value>) {
    if into.contains_key(name) {
        return;
    }
    let mut schema = known[name].clone();
    let mut needs = Vec::new();
    repoint(&mut schema, &mut needs);
    into.insert(name.to_owned(), schema);
    for name in needs {
        gather(&name, known, into);
    }
}

fn repoint(schema: &mut Value, needs: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(to)) = fields.get_mut("$ref")
                && let Some(name) = to.strip_prefix(POINTS_TO).map(str::to_owned)
            {
                *to = format!("#/$defs/{name}");
                needs.push(name);
            }
            fields.values_mut().for_each(|value| repoint(value, needs));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| repoint(value, needs)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
