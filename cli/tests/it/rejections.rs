//! Tests of `loupe rejections`.

use serde_json::{Value, json};

use crate::stub::{Reply, Stub, run};

const REJECTION_ID: &str = "01980f6e-0000-7000-8000-0000000000e1";
const PROJECT_ID: &str = "01980f6e-0000-7000-8000-000000000001";

fn stub() -> Stub {
    Stub::new(|request, _| match request.path.as_str() {
        "/v1/rejections" => Reply::json(json!({
            "rejections": [
                {
                    "id": REJECTION_ID, "project_id": PROJECT_ID, "source": "otlp", "sdk": "opentelemetry/python",
                    "sdk_version": "1.27.0", "rejected": 1_200, "requests": 2,
                    "reasons": [
                        {"index": 7, "code": "validation_failed", "message": "span_id must be 8 bytes"},
                        {"index": 9, "code": "validation_failed", "message": "trace_id must be 16 bytes"},
                    ],
                    "request_id": "r-1", "received_at": "2026-11-21T13:00:00Z", "last_at": "2026-11-21T14:00:00Z",
                },
                {
                    "id": PROJECT_ID, "project_id": null, "source": "json", "sdk": null, "sdk_version": null,
                    "rejected": 1, "requests": 1, "reasons": [], "request_id": "r-2",
                    "received_at": "2026-11-20T14:00:00Z", "last_at": "2026-11-20T14:00:00Z",
                },
            ],
            "has_more": false, "next_cursor": null,
        })),
        _ => Reply::json(json!({
            "projects": [{
                "id": PROJECT_ID, "name": "bot", "status": "active", "prompt_autoship_enabled": false,
                "retention_days": null, "archived_at": null,
                "created_at": "2026-11-21T14:00:00Z", "updated_at": "2026-11-21T14:00:00Z",
            }],
            "has_more": false, "next_cursor": null,
        })),
    })
}

#[test]
fn rejections_are_listed_with_their_sdk_and_first_reason() {
    let stub = stub();
    let ran = run(stub.loupe(&["rejections", "list", "-o", "table"]));
    assert_eq!((ran.code, stub.count("GET")), (0, 1), "{}", ran.stderr);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", ran.stdout);
    for text in ["otlp", "opentelemetry/python", "1.27.0", "1,200", "span_id must be 8 bytes"] {
        assert!(lines[1].contains(text), "{text}: {}", lines[1]);
    }
    assert!(!lines[1].contains("trace_id must"), "only the first reason: {}", lines[1]);
    assert!(lines[2].contains("json"), "{}", lines[2]);
}

#[test]
fn rejections_have_all_reasons_in_json_and_are_found_by_their_noun_in_singular() {
    let stub = stub();
    let ran = run(stub.loupe(&["rejection", "list", "--json"]));
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["rejections"][0]["reasons"][1]["index"], 9);
    let ran = run(stub.loupe(&["rejections", "list", "-o", "id"]));
    assert_eq!(ran.stdout, format!("{REJECTION_ID}\n{PROJECT_ID}\n"));
}

#[test]
fn rejections_of_the_selected_project_are_requested() {
    let stub = stub();
    let ran = run(stub.loupe(&["rejections", "list", "-p", "bot"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let query = stub.requests().last().unwrap().query.clone();
    assert!(query.contains(&format!("project_id={PROJECT_ID}")), "{query}");
}
