//! OTLP over gRPC.

use std::{convert::Infallible, time::Duration};

use api::{Plan, Role};
use axum::{
    body::{Body, Bytes},
    http::Request,
};
use base64::{Engine, prelude::BASE64_STANDARD_NO_PAD};
use futures::{StreamExt, stream};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;
use serde_json::{Value, json};
use tests::{
    Caller, On, Reply, TestApp,
    app::TEST_START_MICROS,
    expectation::{read_json, root, scenarios_of, text},
    grpc::{EXPORT_TRACES, GrpcClient, GrpcReply, framed},
    on_both_databases,
    otlp::{Span, request},
};
use uuid::Uuid;

use crate::protocol::{PROTOBUF_TYPE, RpcStatus, encoded, packed};

/// The flags of a server with OTLP over gRPC.
pub(crate) const GRPC_FLAGS: [&str; 2] = ["--otlp-grpc-listen", "127.0.0.1:0"];

on_both_databases! {
    async fn captured_requests_are_stored_over_grpc_as_over_http(app: TestApp) {
        let served = app.beside_with(&GRPC_FLAGS).await;
        let client = connect(&served).await;
        let (http_tenant, over_http) = served.other_tenant(Plan::Enterprise).await;
        let over_grpc = served.full_key();
        let mut compared = 0;
        for scenario in scenarios_of(&root()).iter().step_by(5) {
            let expected = read_json(&scenario.join("expect.json"));
            let files = expected["requests"].as_array().unwrap().iter().map(|it| it.as_str().unwrap());
            let metas = files.clone().map(|it| read_json(&scenario.join(format!("{}.meta.json", it.split('.').next().unwrap()))));
            if metas.clone().any(|it| it["content_type"] != PROTOBUF_TYPE) {
                continue;
            }
            for (file, meta) in files.zip(metas) {
                let body = std::fs::read(scenario.join(file)).unwrap();
                let encoding = meta["content_encoding"].as_str().unwrap_or("identity");
                let token = format!("Bearer {}", served.key_text());
                let metadata = [("authorization", token.as_str()), ("grpc-encoding", encoding)];
                let flag = u8::from(encoding != "identity");
                let reply = client.call(EXPORT_TRACES, &metadata, framed(flag, &body)).await;
                assert_eq!((reply.code, reply.body), (0, Some(Bytes::new())), "{file}: {}", reply.message);
                let sent = over_http.request(reqwest::Method::POST, "/v1/traces");
                let sent = sent.header("content-type", PROTOBUF_TYPE).header("content-encoding", encoding).body(body);
                assert_eq!(over_http.send(sent).await.status, 200);
            }
            for trace in expected["traces"].as_array().unwrap() {
                let address = format!("/v1/traces/{}", text(&trace["otel_trace_id"]));
                // Each tenant has its own project.
                let detail = |reply: Reply, tenant: Uuid| {
                    let mut detail = reply.ok();
                    detail["project_id"] = Value::Null;
                    detail.to_string().replace(&tenant.to_string(), "tenant")
                };
                let left = detail(over_grpc.get(&address).await, served.tenant);
                assert_eq!(left, detail(over_http.get(&address).await, http_tenant), "{address}");
                compared += 1;
            }
        }
        assert!(compared > 30, "only {compared} traces were compared");
        served.stop().await;
    }

    async fn failed_calls_have_the_status_of_grpc(app: TestApp) {
        let served = app.beside_with(&[&GRPC_FLAGS[..], &["--max-body-bytes", "20000"]].concat()).await;
        let client = connect(&served).await;
        let good = message(1);
        let key = served.key_text();

        check(&client.export("lp_unknown", &good).await, 16, "unauthorized");
        check(&client.call(EXPORT_TRACES, &[], framed(0, &good)).await, 16, "unauthorized");
        check(&client.export(key, &good[..good.len() - 3]).await, 3, "invalid_body");
        check(&client.export(key, &vec![0; 20_001]).await, 8, "payload_too_large");
        let authorization = format!("Bearer {key}");
        let compressed = |encoding| [("authorization", authorization.as_str()), ("grpc-encoding", encoding)];
        let reply = client.call(EXPORT_TRACES, &compressed("snappy"), framed(1, &good)).await;
        check(&reply, 12, "unsupported_media_type");
        assert_eq!(reply.headers["grpc-accept-encoding"], "identity,gzip,zstd");
        check(&client.call(EXPORT_TRACES, &compressed("gzip"), framed(1, &good)).await, 3, "invalid_body");
        let expanding = packed("gzip", vec![0; 40_000]);
        check(&client.call(EXPORT_TRACES, &compressed("gzip"), framed(1, &expanding)).await, 8, "payload_too_large");
        let unknown = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";
        for method in [unknown, "/", "/v1/traces", "/grpc.health.v1.Health/Check"] {
            check(&client.call(method, &[("authorization", &authorization)], framed(0, &good)).await, 12, "not_found");
        }
        let typed = [("content-type", "application/grpc"), ("authorization", authorization.as_str())];
        let get = Request::get(format!("http://{}{EXPORT_TRACES}", served.otlp_grpc_address.unwrap()));
        let get = typed.iter().fold(get, |it, (name, value)| it.header(*name, *value));
        check(&client.send(get.body(framed(0, &good).into()).unwrap()).await.unwrap(), 12, "not_found");
        let named = [("authorization", authorization.as_str()), ("x-project-name", "old")];
        assert_eq!(client.call(EXPORT_TRACES, &named, framed(0, &message(2))).await.code, 0);
        let owner = served.session(Role::Owner);
        let projects = owner.get("/v1/projects").await.ok();
        let old = projects["projects"].as_array().unwrap().iter().find(|it| it["name"] == "old").unwrap()["id"].clone();
        owner.post(&format!("/v1/projects/{}/archive", old.as_str().unwrap()), &json!({})).await;
        check(&client.call(EXPORT_TRACES, &named, framed(0, &message(3))).await, 7, "error.project.archived");
        assert_eq!(stored(&served).await, 0);
        served.stop().await;
    }

    async fn body_that_is_not_one_message_is_rejected(app: TestApp) {
        let served = app.beside_with(&GRPC_FLAGS).await;
        let client = connect(&served).await;
        let (good, authorization) = (message(1), format!("Bearer {}", served.key_text()));
        let metadata = [("authorization", authorization.as_str())];
        let two = [framed(0, &good), framed(0, &message(2))].concat();
        let short = framed(0, &good)[..good.len()].to_vec();
        // The sixth body declares compression, but the call names none.
        for body in [Vec::new(), vec![0], vec![0; 4], framed(2, &good), framed(255, &good), framed(1, &good), two, short] {
            let reply = client.call(EXPORT_TRACES, &metadata, body.clone()).await;
            check(&reply, 3, "invalid_body");
        }
        let promised = [&[0][..], &u32::MAX.to_be_bytes(), &good].concat();
        check(&client.call(EXPORT_TRACES, &metadata, promised).await, 8, "payload_too_large");
        assert_eq!(stored(&served).await, 0);
        // An empty message is a valid request, and a message may arrive in pieces of any size.
        assert_eq!(client.call(EXPORT_TRACES, &metadata, framed(0, b"")).await.code, 0);
        let pieces = framed(0, &good).into_iter().map(|it| Ok::<_, Infallible>(vec![it]));
        let reply = client.call(EXPORT_TRACES, &metadata, Body::from_stream(stream::iter(pieces))).await;
        assert_eq!((reply.code, stored(&served).await), (0, 1), "{}", reply.message);
        served.stop().await;
    }

    async fn rejected_spans_are_counted_in_the_response(app: TestApp) {
        let served = app.beside_with(&GRPC_FLAGS).await;
        let client = connect(&served).await;
        let spans = [Span::new(1, 1, "good", TEST_START_MICROS), Span::new(1, 0, "no id", TEST_START_MICROS)];
        let reply = client.export(served.key_text(), &encoded(PROTOBUF_TYPE, &request(&spans))).await;
        let response = ExportTraceServiceResponse::decode(reply.body.unwrap()).unwrap();
        assert_eq!((reply.code, response.partial_success.unwrap().rejected_spans), (0, 1));
        assert_eq!(stored(&served).await, 1);
        let method = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";
        let authorization = format!("Bearer {}", served.key_text());
        let reply = client.call(method, &[("authorization", &authorization)], framed(0, b"")).await;
        let response = ExportTraceServiceResponse::decode(reply.body.unwrap()).unwrap();
        assert!(response.partial_success.unwrap().error_message.contains("not stored"));
        served.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn throttled_call_says_when_to_retry() {
    let app = TestApp::with(On::Sqlite, Plan::Starter, &GRPC_FLAGS).await;
    let client = connect(&app).await;
    let mut replies = stream::iter(0..20_000).map(|_| client.export(app.key_text(), b"")).buffered(8);
    let limited = loop {
        let reply = replies.next().await.unwrap();
        if reply.code != 0 {
            break reply;
        }
    };
    check(&limited, 8, "rate_limited");
    let details =
        BASE64_STANDARD_NO_PAD.decode(limited.headers["grpc-status-details-bin"].as_bytes()).unwrap();
    let status = RpcStatus::decode(details.as_slice()).unwrap();
    assert_eq!(
        (status.code, status.details[0].type_url.as_str()),
        (8, "type.googleapis.com/google.rpc.RetryInfo")
    );
    let info = BASE64_STANDARD_NO_PAD.decode(limited.headers["google.rpc.retryinfo-bin"].as_bytes()).unwrap();
    assert_eq!(info, status.details[0].value);
    let delay = RetryInfo::decode(info.as_slice()).unwrap().delay.unwrap();
    assert_eq!(delay.seconds.to_string(), limited.headers["retry-after"].to_str().unwrap());
    drop(replies);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call_without_grpc_content_type_gets_415() {
    let app = TestApp::with(On::Sqlite, Plan::Enterprise, &GRPC_FLAGS).await;
    let client = connect(&app).await;
    for media_type in
        ["application/x-protobuf", "application/json", "application/grpc-web", "application/grpc+json", ""]
    {
        let reply = client.post(EXPORT_TRACES, &[("content-type", media_type)], framed(0, b"")).await;
        assert_eq!(reply.http_status, 415, "{media_type}");
    }
    let authorization = format!("Bearer {}", app.key_text());
    for media_type in ["application/grpc+proto", "application/grpc;charset=utf-8"] {
        let headers = [("content-type", media_type), ("authorization", authorization.as_str())];
        assert_eq!(client.post(EXPORT_TRACES, &headers, framed(0, b"")).await.code, 0, "{media_type}");
    }
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_that_does_not_arrive_in_time_ends_the_call() {
    let flags = [&GRPC_FLAGS[..], &["--header-timeout", "1", "--body-timeout", "1"]].concat();
    let app = TestApp::with(On::Sqlite, Plan::Enterprise, &flags).await;
    let client = connect(&app).await;
    let good = framed(0, &message(1));
    for sent in [0, 3, 5, good.len() - 1] {
        let started: Vec<Result<Bytes, Infallible>> = vec![Ok(Bytes::copy_from_slice(&good[..sent]))];
        let body = Body::from_stream(stream::iter(started).chain(stream::pending()));
        let authorization = format!("Bearer {}", app.key_text());
        check(
            &client.call(EXPORT_TRACES, &[("authorization", &authorization)], body).await,
            3,
            "invalid_body",
        );
    }
    assert_eq!(stored(&app).await, 0);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_calls_leave_nothing_behind() {
    let app = TestApp::with(On::Sqlite, Plan::Enterprise, &GRPC_FLAGS).await;
    let client = connect(&app).await;
    let authorization = format!("Bearer {}", app.key_text());
    let good = framed(0, &message(1));
    // More than the number of bodies of a tenant that may arrive at the same time.
    for _ in 0..1_100 {
        let started: Vec<Result<Bytes, Infallible>> =
            vec![Ok(Bytes::copy_from_slice(&good[..good.len() - 1]))];
        let body = Body::from_stream(stream::iter(started).chain(stream::pending()));
        let metadata = [("authorization", authorization.as_str())];
        let call = client.call(EXPORT_TRACES, &metadata, body);
        assert!(tokio::time::timeout(Duration::from_millis(3), call).await.is_err());
    }
    let next = message(2);
    let call = client.export(app.key_text(), &next);
    assert_eq!(tokio::time::timeout(Duration::from_secs(20), call).await.unwrap().code, 0);
    assert_eq!(stored(&app).await, 1);
    assert_eq!(app.app.memory.used(), 0);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connection_can_be_used_after_a_large_message_is_rejected() {
    let flags = [&GRPC_FLAGS[..], &["--max-body-bytes", "100000"]].concat();
    let app = TestApp::with(On::Sqlite, Plan::Enterprise, &flags).await;
    let client = connect(&app).await;
    // Larger than the window of the connection.
    let large = vec![0; 1_000_000];
    for _ in 0..20 {
        check(&client.export("lp_unknown", &large).await, 16, "unauthorized");
        check(&client.export(app.key_text(), &large).await, 8, "payload_too_large");
    }
    assert_eq!(client.export(app.key_text(), &message(1)).await.code, 0);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_beyond_the_limit_of_a_connection_wait() {
    let app = TestApp::with(On::Sqlite, Plan::Enterprise, &GRPC_FLAGS).await;
    let client = connect(&app).await;
    // The client learns the limit with the first response. The server refuses earlier calls beyond it, and stock clients
    // send them again.
    assert_eq!(client.export(app.key_text(), b"").await.code, 0);
    let messages: Vec<Vec<u8>> = (1..=40).map(message).collect();
    let replies =
        futures::future::join_all(messages.iter().map(|it| client.export(app.key_text(), it))).await;
    assert!(replies.iter().all(|it| it.code == 0), "{replies:?}");
    assert_eq!(stored(&app).await, 40);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_call_is_finished_when_the_server_stops() {
    let app = TestApp::with(On::Sqlite, Plan::Enterprise, &GRPC_FLAGS).await;
    let (idle, client) = (connect(&app).await, connect(&app).await);
    assert_eq!(idle.export(app.key_text(), &message(1)).await.code, 0);
    let framed = framed(0, &message(2));
    let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
    let (first, rest) = (framed[..8].to_vec(), framed[8..].to_vec());
    let rest = async move {
        receiver.await.unwrap();
        Ok::<_, Infallible>(rest)
    };
    let body = Body::from_stream(stream::iter([Ok(first)]).chain(stream::once(rest)));
    let authorization = format!("Bearer {}", app.key_text());
    let metadata = [("authorization", authorization.as_str())];
    let pause = || tokio::time::sleep(Duration::from_millis(100));
    let stop = async {
        pause().await;
        let finish_call = async {
            pause().await;
            sender.send(()).unwrap();
        };
        tokio::join!(app.stop(), finish_call);
    };
    let (reply, ()) = tokio::join!(client.call(EXPORT_TRACES, &metadata, body), stop);
    assert_eq!(reply.code, 0, "{reply:?}");
    drop(idle);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connection_beyond_the_limit_gets_unavailable() {
    let flags = [&GRPC_FLAGS[..], &["--max-connections", "1"]].concat();
    let app = TestApp::with(On::Sqlite, Plan::Enterprise, &flags).await;
    let first = connect(&app).await;
    assert_eq!(first.export(app.key_text(), &message(1)).await.code, 0);
    let second = connect(&app).await;
    let refused = second.export(app.key_text(), &message(2)).await;
    check(&refused, 14, "overloaded");
    assert!(refused.headers.contains_key("google.rpc.retryinfo-bin"), "{refused:?}");
    app.stop().await;
}

pub(crate) async fn connect(app: &TestApp) -> GrpcClient {
    GrpcClient::connect(app.otlp_grpc_address.unwrap()).await
}

/// Returns a request with one span.
fn message(trace: u128) -> Vec<u8> {
    encoded(PROTOBUF_TYPE, &request([&Span::new(trace, 1, "sent", TEST_START_MICROS)]))
}

/// Returns the number of traces in the default project.
async fn stored(app: &TestApp) -> usize {
    let key: Caller = app.full_key();
    let list = key.get(&format!("/v1/traces?project_id={}", app.project)).await.ok();
    list["traces"].as_array().unwrap().len()
}

#[track_caller]
fn check(reply: &GrpcReply, code: i32, error: &str) {
    assert_eq!(reply.http_status, 200, "{reply:?}");
    assert_eq!((reply.code, reply.headers["x-error-code"].to_str().unwrap()), (code, error), "{reply:?}");
    assert!(reply.message.starts_with(&format!("{error}: ")), "{reply:?}");
    assert!(reply.headers.contains_key("x-request-id") && reply.body.is_none(), "{reply:?}");
    let details = BASE64_STANDARD_NO_PAD.decode(reply.headers["grpc-status-details-bin"].as_bytes()).unwrap();
    assert_eq!(RpcStatus::decode(details.as_slice()).unwrap().code, code);
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    delay: Option<prost_types::Duration>,
}
