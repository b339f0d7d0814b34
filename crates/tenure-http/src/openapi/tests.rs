//! The description is whole, and generators understand it.

use std::collections::BTreeSet;

use super::*;

#[test]
fn every_route_is_described_once_under_a_name_of_its_own() {
    for words in [Words::New, Words::Old] {
        let document = document(words, &Described::default());
        let paths = document["paths"].as_object().unwrap();
        let operations = paths.values().flat_map(|path| path.as_object().unwrap().values());
        let names: Vec<&str> = operations.map(|one| one["operationId"].as_str().unwrap()).collect();
        assert_eq!(names.len(), routes::all().len());
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }
}

/// Generators give fields names in their own style, and Go makes a function `New…` for each schema.
#[test]
fn no_two_names_become_one_in_a_generated_client() {
    let styled = |name: &str| name.replace(['_', '-'], "").to_ascii_lowercase();
    for words in [Words::New, Words::Old] {
        let document = document(words, &Described::default());
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let names: BTreeSet<String> = schemas.keys().map(|name| styled(name)).collect();
        assert_eq!(names.len(), schemas.len());
        for (name, schema) in schemas {
            let made = name.strip_prefix("New").unwrap_or_default();
            assert!(!schemas.contains_key(made), "Go calls the function that makes {made} {name}");
            let Some(fields) = schema["properties"].as_object() else { continue };
            let styled: BTreeSet<String> = fields.keys().map(|name| styled(name)).collect();
            assert_eq!(styled.len(), fields.len(), "{name}");
        }
    }
}

/// Every object within a document.
fn all<'d>(part: &'d Value, found: &mut Vec<&'d Value>) {
    match part {
        Value::Array(parts) => parts.iter().for_each(|part| all(part, found)),
        Value::Object(fields) => {
            found.push(part);
            fields.values().for_each(|part| all(part, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn whole_numbers_beyond_32_bits_say_so_and_job_ids_are_uuids() {
    let document = document(Words::New, &Described::default());
    let schema = |name: &str, field: &str| &document["components"]["schemas"][name]["properties"][field];
    for (name, field) in [("Job", "id"), ("SettleItem", "job_id"), ("BeatItem", "job_id"), ("Submit", "id")] {
        assert_eq!(schema(name, field)["format"], "uuid", "{name}.{field}");
    }
    let mut parts = Vec::new();
    all(&document, &mut parts);
    for part in parts {
        let most = part["maximum"].as_f64().filter(|_| part["type"] == "integer").unwrap_or_default();
        assert!(most <= f64::from(i32::MAX) || part["format"] == "int64", "{part}");
    }
}

#[test]
fn responses_describe_the_headers_that_clients_act_on() {
    let document = document(Words::New, &Described::default());
    let names = |method: &str, path: &str, status: &str| -> Vec<String> {
        let headers = &document["paths"][path][method]["responses"][status]["headers"];
        headers.as_object().unwrap().keys().cloned().collect()
    };
    let job = [
        "ETag",
        "Idempotency-Replayed",
        "Location",
        "Operation-Location",
        "Preference-Applied",
        "Retry-After",
    ];
    for status in ["200", "201", "202"] {
        assert_eq!(names("post", "/v1/jobs", status), job);
    }
    assert_eq!(names("get", "/v1/jobs", "200"), ["ETag", "Link"]);
    assert_eq!(names("get", "/queue/{id}", "303"), ["ETag", "Location", "Retry-After"]);
    assert_eq!(names("get", "/v1/jobs", "429"), ["Retry-After"]);
    let events = &document["paths"]["/v1/jobs/{id}/logs"]["get"]["responses"]["200"]["content"];
    assert!(events.get("text/event-stream").is_some());
    let lines = &document["paths"]["/v1/jobs/batch"]["post"]["requestBody"]["content"];
    assert!(lines.get("application/x-ndjson").is_some());
}

#[test]
fn only_a_server_that_is_open_takes_requests_without_a_token() {
    let security = |access| {
        let server = Described { access, ..Described::default() };
        document(Words::New, &server)["paths"]["/v1/jobs"]["get"]["security"].clone()
    };
    assert_eq!(security(Access::Tokens), json!([{ "access_token": [] }]));
    assert_eq!(security(Access::Open), json!([{ "access_token": [] }, {}]));
}

#[test]
fn summaries_are_short_and_start_with_a_verb_and_responses_are_described() {
    const VERBS: &str = "Acquire Allow Append Apply Break Cancel Check Claim Complete Count Create Delete \
        Enqueue Explain Fail List Pause Preview Quiet Read Redeliver Release Remove Renew \
        Resume Retry Revoke Rotate Run Send Set Settle Show Start Stop Stream Terminate \
        Update";
    let document = document(Words::New, &Described::default());
    let paths = document["paths"].as_object().unwrap();
    for operation in paths.values().flat_map(|path| path.as_object().unwrap().values()) {
        let summary = operation["summary"].as_str().unwrap();
        assert!(summary.chars().count() <= 60, "more than 60 characters: {summary}");
        let first = summary.split(' ').next().unwrap();
        assert!(VERBS.split(' ').any(|verb| verb == first), "no verb at the start: {summary}");
        for response in operation["responses"].as_object().unwrap().values() {
            let description = response["description"].as_str().unwrap();
            assert!(description.split_whitespace().count() >= 2, "{summary}: {description}");
        }
    }
}

/// Generated programs name their types after the schemas, and their parts after the groups.
#[test]
fn every_schema_and_every_group_has_one_name_that_reads_well() {
    for words in [Words::New, Words::Old] {
        let document = document(words, &Described::default());
        for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
            assert!(schema.get("title").is_none_or(|title| title == name.as_str()), "{name}: {schema}");
            assert!(!name.ends_with("Document") && !name.ends_with(|c: char| c.is_ascii_digit()), "{name}");
        }
        let groups: BTreeSet<_> = plain::GROUPS.iter().map(|(name, _)| *name).collect();
        let operations = document["paths"].as_object().unwrap().values();
        let named: BTreeSet<_> = operations
            .flat_map(|path| path.as_object().unwrap().values())
            .map(|operation| operation["tags"][0].as_str().unwrap())
            .collect();
        assert_eq!(named, groups, "no group is empty, and none is missing");
    }
}

#[test]
fn what_is_referred_to_is_there_and_the_old_words_know_no_null() {
    for words in [Words::New, Words::Old] {
        let document = document(words, &Described::default());
        let text = document.to_string();
        assert!(!text.contains("\"required\":[]"), "OpenAPI 3.0 does not allow an empty list");
        for reference in text.split("\"$ref\":\"#/").skip(1) {
            let path = reference.split('"').next().unwrap();
            assert!(document.pointer(&format!("/{path}")).is_some(), "{path}");
        }
        assert_eq!(text.contains("\"null\""), words == Words::New, "{words:?}");
    }
}
