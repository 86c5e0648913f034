//! The protocol: paths, encodings, formats, and errors.

use std::io::Write;

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message;
use reqwest::Method;
use serde_json::{Value, json};
use tests::{
    Caller, Reply,
    app::TEST_START_MICROS,
    on_both_databases,
    otlp::{Span, request, request_of},
};

pub const PROTOBUF_TYPE: &str = "application/x-protobuf";
const JSON_TYPE: &str = "application/json";

/// The paths of the ingest handler.
const INGEST_PATHS: [&str; 4] = ["/v1/otlp/traces", "/v1/otlp/v1/traces", "/v1/traces", LANGFUSE_PATH];
/// The path of Langfuse's exporter.
const LANGFUSE_PATH: &str = "/api/public/otel/v1/traces";

on_both_databases! {
    async fn every_path_accepts_every_format_and_encoding(app: TestApp) {
        let key = app.full_key();
        let mut trace = 0x100_u128;
        for address in INGEST_PATHS {
            for form in [PROTOBUF_TYPE, JSON_TYPE] {
                for encoding in ["identity", "gzip", "zstd"] {
                    trace += 1;
                    let body = encoded(form, &request([&Span::new(trace, 1, "sent", TEST_START_MICROS)]));
                    let reply = post(&key, address, form, encoding, packed(encoding, body)).await;
                    assert_eq!(reply.status, 200, "{address} {form} {encoding}: {}", reply.text());
                    assert_eq!(reply.headers["content-type"], form);
                    assert_eq!(reply.body, if form == JSON_TYPE { b"{}".to_vec() } else { Vec::new() });
                    let stored = key.get(&format!("/v1/traces/{trace:032x}")).await.ok();
                    assert_eq!((&stored["name"], &stored["span_count"]), (&json!("sent"), &json!(1)));
                }
            }
        }
    }

    async fn metrics_are_acknowledged_but_not_stored(app: TestApp) {
        let key = app.full_key();
        for address in ["/v1/otlp/v1/metrics", "/v1/metrics"] {
            let reply = post(&key, address, JSON_TYPE, "identity", b"{}".to_vec()).await.ok();
            let message = reply["partialSuccess"]["errorMessage"].as_str().unwrap().to_owned();
            assert!(message.contains("metrics are not stored"), "{message}");
            let reply = post(&key, address, PROTOBUF_TYPE, "gzip", packed("gzip", Vec::new())).await;
            assert_eq!((reply.status, reply.headers["content-type"].to_str().unwrap()), (200, PROTOBUF_TYPE));
            assert!(!export_response(&reply).partial_success.unwrap().error_message.is_empty());
        }
        assert_eq!(key.get("/v1/traces").await.ok()["traces"], json!([]));
        app.anonymous().post("/v1/otlp/v1/metrics", &json!({})).await.is(401, "unauthorized");
    }

    async fn invalid_spans_are_counted_and_valid_ones_stored(app: TestApp) {
        let key = app.full_key();
        let mut body = request([&Span::new(1, 1, "good", TEST_START_MICROS), &Span::new(0, 2, "no trace", TEST_START_MICROS), &Span::new(1, 0, "no id", TEST_START_MICROS)]);
        let reply = post(&key, INGEST_PATHS[0], JSON_TYPE, "identity", encoded(JSON_TYPE, &body)).await.ok();
        assert_eq!(reply["partialSuccess"]["rejectedSpans"], "2", "{reply}");
        assert!(reply["partialSuccess"]["errorMessage"].as_str().is_some_and(|it| !it.is_empty()));
        assert_eq!(key.get(&format!("/v1/traces/{:032x}", 1)).await.ok()["span_count"], 1);

        body["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"] = json!(format!("{:032x}", 2));
        let reply = post(&key, INGEST_PATHS[0], PROTOBUF_TYPE, "identity", encoded(PROTOBUF_TYPE, &body)).await;
        assert_eq!(export_response(&reply).partial_success.unwrap().rejected_spans, 2);
        assert_eq!(key.get(&format!("/v1/traces/{:032x}", 2)).await.ok()["span_count"], 1);
    }

    async fn empty_otlp_request_is_a_success(app: TestApp) {
        let key = app.full_key();
        assert_eq!(post(&key, INGEST_PATHS[0], PROTOBUF_TYPE, "identity", Vec::new()).await.status, 200);
        post(&key, INGEST_PATHS[0], JSON_TYPE, "identity", b"{}".to_vec()).await.ok();
        post(&key, INGEST_PATHS[0], JSON_TYPE, "identity", request([]).to_string().into_bytes()).await.ok();
    }

    async fn broken_otlp_request_is_rejected_as_a_whole(app: TestApp) {
        let key = app.full_key();
        let good = encoded(PROTOBUF_TYPE, &request([&Span::new(7, 1, "good", TEST_START_MICROS).with("gen_ai.prompt", "text")]));
        let cut = good[..good.len() - 3].to_vec();
        let cases: [(&str, &str, Vec<u8>, u16); 8] = [
            (PROTOBUF_TYPE, "identity", cut, 400),
            (PROTOBUF_TYPE, "gzip", good.clone(), 400),
            (PROTOBUF_TYPE, "zstd", good.clone(), 400),
            (PROTOBUF_TYPE, "br", good.clone(), 415),
            ("text/plain", "identity", good.clone(), 415),
            (JSON_TYPE, "identity", good.clone(), 400),
            (JSON_TYPE, "identity", b"[]".to_vec(), 400),
            (JSON_TYPE, "identity", br#"{"resourceSpans": 5}"#.to_vec(), 400),
        ];
        for (form, encoding, body, status) in cases {
            let reply = post(&key, INGEST_PATHS[0], form, encoding, body).await;
            assert_eq!(reply.status, status, "{form} {encoding}: {}", reply.text());
            assert!(reply.headers.contains_key("x-error-code"), "{form} {encoding}: {:?}", reply.headers);
        }
        assert_eq!(key.get("/v1/traces").await.ok()["traces"], json!([]));
    }

    async fn error_response_has_the_format_of_its_request(app: TestApp) {
        let stranger = app.bearer("lp_unknown");
        let reply = post(&stranger, INGEST_PATHS[1], JSON_TYPE, "identity", b"{}".to_vec()).await;
        reply.is(401, "unauthorized");
        let reply = post(&stranger, INGEST_PATHS[1], PROTOBUF_TYPE, "identity", Vec::new()).await;
        assert_eq!((reply.status, reply.headers["x-error-code"].to_str().unwrap()), (401, "unauthorized"));
        assert_eq!(reply.headers["content-type"], PROTOBUF_TYPE);
        let message = RpcStatus::decode(reply.body.as_slice()).unwrap().message;
        assert!(message.starts_with("unauthorized: "), "{message}");
    }

    async fn resource_attribute_selects_the_project(app: TestApp) {
        let key = app.full_key();
        let named = |name, trace| request_of(&[("openinference.project.name", name)], [&Span::new(trace, 1, "a", TEST_START_MICROS)]);
        key.post(INGEST_PATHS[0], &named("shop", 1)).await.ok();
        key.post(INGEST_PATHS[0], &named("shop", 2)).await.ok();
        key.post(INGEST_PATHS[0], &named("desk", 3)).await.ok();
        key.post(INGEST_PATHS[0], &request([&Span::new(4, 1, "a", TEST_START_MICROS)])).await.ok();
        let projects = app.session(api::Role::Owner).get("/v1/projects").await.ok();
        let id = |name: &str| {
            let projects = projects["projects"].as_array().unwrap();
            projects.iter().find(|it| it["name"] == name).unwrap()["id"].as_str().unwrap().to_owned()
        };
        for (name, count) in [("shop", 2), ("desk", 1), ("default", 1)] {
            let list = key.get(&format!("/v1/traces?project_id={}", id(name))).await.ok();
            assert_eq!(list["traces"].as_array().unwrap().len(), count, "{name}");
        }
        // A trace stays in the project it first arrived in.
        let elsewhere = request_of(&[("openinference.project.name", "desk")], [&Span::new(1, 2, "b", TEST_START_MICROS)]);
        key.post(INGEST_PATHS[0], &elsewhere).await.ok();
        let stored = key.get(&format!("/v1/traces/{:032x}", 1)).await.ok();
        assert_eq!((stored["project_id"].as_str().unwrap(), &stored["span_count"]), (id("shop").as_str(), &json!(2)));
        // The header has precedence over the resource.
        let header = key.request(Method::POST, INGEST_PATHS[0]).header("x-project-name", "desk").json(&named("shop", 9));
        key.send(header).await.ok();
        let stored = key.get(&format!("/v1/traces/{:032x}", 9)).await.ok();
        assert_eq!(stored["project_id"].as_str().unwrap(), id("desk"));
        // An archived project accepts no traces.
        let archived = app.session(api::Role::Owner).post(&format!("/v1/projects/{}/archive", id("shop")), &json!({})).await;
        assert!(archived.status < 300, "{}", archived.text());
        key.post(INGEST_PATHS[0], &named("shop", 5)).await.is(403, "error.project.archived");
        let reply = post(&key, INGEST_PATHS[0], PROTOBUF_TYPE, "identity", encoded(PROTOBUF_TYPE, &named("shop", 5))).await;
        let message = RpcStatus::decode(reply.body.as_slice()).unwrap().message;
        assert!(message.starts_with("error.project.archived: "), "{message}");
        assert_eq!(key.get(&format!("/v1/traces/{:032x}", 5)).await.status, 404);
    }
}

/// `google.rpc.Status`, as exporters read it.
#[derive(Clone, PartialEq, Message)]
pub struct RpcStatus {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<prost_types::Any>,
}

async fn post(key: &Caller, address: &str, form: &str, encoding: &str, body: Vec<u8>) -> Reply {
    let request =
        key.request(Method::POST, address).header("content-type", form).header("content-encoding", encoding);
    key.send(request.body(body)).await
}

pub fn encoded(form: &str, request: &Value) -> Vec<u8> {
    if form == JSON_TYPE {
        return request.to_string().into_bytes();
    }
    let message: ExportTraceServiceRequest = serde_json::from_value(request.clone()).unwrap();
    message.encode_to_vec()
}

pub fn packed(encoding: &str, body: Vec<u8>) -> Vec<u8> {
    match encoding {
        "gzip" => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(&body).unwrap();
            encoder.finish().unwrap()
        }
        "zstd" => zstd::encode_all(body.as_slice(), 1).unwrap(),
        _ => body,
    }
}

fn export_response(reply: &Reply) -> ExportTraceServiceResponse {
    assert_eq!(reply.status, 200, "{}", reply.text());
    ExportTraceServiceResponse::decode(reply.body.as_slice()).unwrap()
}
