//! The OpenAPI document: what is served, committed and registered are the same.

use std::collections::BTreeSet;

use rolltop::config::{Config, DEFAULT_FILE, Settings};
use rolltop::http::{Code, ItemCode, openapi, registered};
use serde_json::Value;

use crate::site::Site;

const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi/openapi.json");

#[test]
fn the_committed_document_matches_the_code() {
    let current = openapi(true).to_pretty_json().unwrap() + "\n";
    // Writing it is how it is brought up to date: `ROLLTOP_WRITE_OPENAPI=1 cargo test --test api document`.
    if std::env::var_os("ROLLTOP_WRITE_OPENAPI").is_some() {
        std::fs::write(COMMITTED, &current).unwrap();
    }
    let committed = std::fs::read_to_string(COMMITTED).unwrap_or_default();
    assert!(
        committed == current,
        "openapi/openapi.json is not what the code describes; run `rolltop openapi > openapi/openapi.json`"
    );
}

#[actix_web::test]
async fn the_served_document_matches_the_committed_one() {
    let site = Site::new().await;
    let served = site.client.get("/openapi.json").await.body;
    let committed: Value = serde_json::from_str(&std::fs::read_to_string(COMMITTED).unwrap()).unwrap();
    assert!(served == committed);
}

fn operations(document: &Value) -> impl Iterator<Item = (String, &String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    paths.iter().flat_map(|(path, item)| {
        item.as_object().unwrap().iter().map(move |(method, operation)| (method.to_uppercase(), path, operation))
    })
}

#[test]
fn described_and_registered_routes_are_the_same() {
    for simulated in [false, true] {
        let document = serde_json::to_value(openapi(simulated)).unwrap();
        let described: BTreeSet<_> = operations(&document).map(|(method, path, _)| (method, path.clone())).collect();
        let served: BTreeSet<_> =
            registered(simulated).into_iter().map(|(method, path)| (method.to_string(), path.to_owned())).collect();
        assert_eq!(described, served);
    }
}

#[test]
fn every_operation_has_examples() {
    let document = serde_json::to_value(openapi(true)).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["license"]["name"], "MIT OR Apache-2.0");
    let mut ids = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        let name = format!("{method} {path}");
        assert!(ids.insert(operation["operationId"].as_str().expect(&name)), "{name}: its id is taken");
        for part in ["summary", "description"] {
            assert!(!operation[part].as_str().unwrap_or_default().is_empty(), "{name} has no {part}");
        }
        assert_eq!(operation["tags"].as_array().map(Vec::len), Some(1), "{name}");
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            for part in ["description", "schema"] {
                assert!(parameter.get(part).is_some(), "{name}: {parameter} has no {part}");
            }
            // An example is what the explorer fills in. `from` and `last`, `cursor` and `offset` exclude each other;
            // few boards can be read `as_of` another time, or have keys (`by`); no `source` is defined; the same key again would count nothing;
            // contents continue `after` a line of other contents only.
            let shown = parameter.get("example").or(parameter["schema"].get("enum")).is_some();
            let special = [
                "from",
                "last",
                "cursor",
                "offset",
                "as_of",
                "by",
                "source",
                "after",
                "fill",
                "Idempotency-Key",
                "Last-Event-ID",
            ]
            .iter()
            .any(|name| parameter["name"] == *name);
            assert!(shown || special, "{name}: {parameter} has no example");
        }
        for (kind, content) in operation["requestBody"]["content"].as_object().into_iter().flatten() {
            assert!(content.get("example").or(content.get("examples")).is_some(), "{name}: {kind} has no example");
        }
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.contains_key("500") && responses.keys().any(|status| status.starts_with('2')), "{name}");
        for (status, response) in responses {
            // A 304 has no body.
            assert!(response.get("content").is_some() || status == "304", "{name} {status}");
            for (kind, content) in response["content"].as_object().into_iter().flatten() {
                let problem = status.as_str() >= "400";
                assert_eq!(problem, kind == "application/problem+json", "{name} {status}");
                if problem {
                    assert!(!content["examples"].as_object().unwrap().is_empty(), "{name} {status}");
                }
            }
        }
    }
}

/// What the explorer fills in, the first example of each body, works with the boards that are there by default.
#[actix_web::test]
async fn the_first_example_of_every_body_is_accepted() {
    let document = serde_json::to_value(openapi(true)).unwrap();
    let config = Config::from_text("default", DEFAULT_FILE, Settings::default()).unwrap();
    let site = Site::new().await;
    for (board, definition) in &config.boards {
        let answer = site.client.put(&format!("/v1/boards/{board}"), serde_json::to_value(definition).unwrap()).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    let mut taken = 0;
    for (method, path, operation) in operations(&document) {
        let Some(examples) = operation["requestBody"]["content"]["application/json"]["examples"].as_object() else {
            continue;
        };
        let of_path = operation["parameters"].as_array().into_iter().flatten().filter(|p| p["in"] == "path");
        let path = of_path.fold(path.clone(), |path, parameter| {
            let name = format!("{{{}}}", parameter["name"].as_str().unwrap());
            path.replace(&name, parameter["example"].as_str().unwrap())
        });
        // The explorer shows them in the order of the document, which sorts them by name.
        let (name, example) = examples.iter().next().unwrap();
        let body = example["value"].clone();
        let answer =
            if method == "PUT" { site.client.put(&path, body).await } else { site.client.post(&path, body).await };
        assert!(answer.status < 300, "{method} {path}, '{name}': {answer:?}");
        taken += 1;
    }
    assert!(taken >= 6, "{taken}");
}

/// Answers say null or leave a field out, never now the one and now the other. Only an earlier rank says two things: null is
/// that the subject was not among the first lines, and absent that the ranks then are not known.
#[test]
fn nullable_properties_are_required() {
    let document = serde_json::to_value(openapi(true)).unwrap();
    let mut nullable = BTreeSet::new();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    // A schema that contains another one has its own properties in `allOf`.
    let parts = schemas.iter().flat_map(|(name, schema)| {
        let all_of = schema["allOf"].as_array().into_iter().flatten();
        [schema].into_iter().chain(all_of).map(move |part| (name, part))
    });
    for (name, schema) in parts {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (property, described) in schema["properties"].as_object().into_iter().flatten() {
            let types = described["type"].as_array().cloned().unwrap_or_default();
            let is_earlier_rank = property == "from" && name != "WindowBounds";
            if types.contains(&"null".into()) && !is_earlier_rank {
                assert!(
                    required.contains(&property.as_str().into()),
                    "{name}.{property} may be null and is not required"
                );
                nullable.insert(format!("{name}.{property}"));
            }
        }
    }
    for known in ["Evaluations.as_of", "Comparison.left_value", "Standing.score", "Standing.rank", "WindowValue.value"]
    {
        assert!(nullable.contains(known), "{known} may be null");
    }
}

#[test]
fn every_error_code_is_in_the_document() {
    let document = serde_json::to_value(openapi(true)).unwrap();
    let text = document.to_string();
    for code in Code::ALL {
        assert!(text.contains(&format!("\"{}\"", code.as_str())), "{}", code.as_str());
        // Only what no operation can answer, because it is what there is no operation for.
        if *code != Code::MethodNotAllowed {
            assert!(text.contains(&format!("/problems/{}", code.as_str())), "{}", code.as_str());
        }
    }
    for code in ItemCode::ALL {
        assert!(text.contains(&format!("\"{}\"", code.as_str())), "{}", code.as_str());
    }
}

/// The explorer fills them in, and one click executes them.
#[actix_web::test]
async fn examples_of_removals_rollovers_and_audits_name_no_board_that_exists_by_default() {
    let document = serde_json::to_value(openapi(true)).unwrap();
    let boards = Config::from_text("default", DEFAULT_FILE, Settings::default()).unwrap().boards;
    let mut seen = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if method == "get" || operation.get("requestBody").is_some() || !path.contains("{board}") {
                continue;
            }
            let parameters = operation["parameters"].as_array().unwrap();
            let board = parameters.iter().find(|parameter| parameter["name"] == "board").unwrap();
            let example = board["example"].as_str().unwrap();
            assert!(boards.iter().all(|(name, _)| name.as_str() != example), "{method} {path}: {example}");
            seen += 1;
        }
    }
    assert_eq!(
        seen, 17,
        "removals, moderation, attributes, rollover, audit, ends of imports, copies and periods, exchanges and comparison"
    );
}
