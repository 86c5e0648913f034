//! `GET /metrics`, which monitoring systems read.

use std::collections::BTreeMap;

use api::Plan;
use reqwest::Method;
use serde_json::json;
use tests::{
    On, TestApp,
    hang::wait_until,
    on_both_databases,
    raw::{connect, send_request, send_request_to},
    sse::EventStream,
};

use crate::{server, token};

/// Samples by name and labels.
type MetricSamples = BTreeMap<String, f64>;

async fn metrics(app: &TestApp) -> MetricSamples {
    let response = send_request(app, "GET /metrics", &[]).await;
    assert_eq!(response.status, 200);
    parse(&String::from_utf8(response.body).unwrap())
}

/// Parses a page; panics if it is not in the OpenMetrics format.
fn parse(page: &str) -> MetricSamples {
    let (mut metrics, mut described) = (MetricSamples::new(), Vec::new());
    let lines = page.strip_suffix("# EOF\n").expect("an end").lines();
    for line in lines {
        if let Some(said) = line.strip_prefix("# ") {
            let mut words = said.splitn(3, ' ');
            assert!(matches!(words.next(), Some("HELP" | "TYPE" | "UNIT")), "{line}");
            described.push(words.next().unwrap().to_owned());
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        let family = name.split('{').next().unwrap();
        assert!(described.iter().any(|it| family.starts_with(it.as_str())), "no description: {line}");
        assert!(metrics.insert(name.to_owned(), value.parse().unwrap()).is_none(), "twice: {line}");
    }
    metrics
}

on_both_databases! {
    async fn requests_ingest_jobs_and_connections_are_counted(app: TestApp) {
        let key = app.full_key();
        let span = |n: u8| json!({"name": "s", "metadata": {"n": n}});
        key.post("/v1/ingest", &json!({"id": "a", "spans": [span(1), span(2)]})).await.ok();
        key.post("/v1/ingest", &json!({"id": "a", "spans": [span(1)]})).await.is(409, "conflict");
        key.post("/v1/ingest/batch", &json!({"traces": [{"id": "b"}, {"tags": 1}, {"id": "c"}]})).await.ok();
        key.get("/v1/traces/00000000-0000-0000-0000-000000000000").await.is(404, "not_found");
        app.anonymous().get("/v1/traces").await.is(401, "unauthorized");
        app.anonymous().get("/v1/no/such/path").await.is(404, "not_found");
        key.send(key.request(Method::HEAD, "/healthz")).await;
        let metrics = metrics(app).await;
        for (name, value) in [
            (r#"loupe_http_requests_total{method="POST",route="/v1/ingest",status="2xx"}"#, 1.0),
            (r#"loupe_http_requests_total{method="POST",route="/v1/ingest",status="4xx"}"#, 1.0),
            (r#"loupe_http_errors_total{method="POST",route="/v1/ingest",code="conflict"}"#, 1.0),
            (r#"loupe_http_requests_total{method="GET",route="/v1/traces/{id}",status="4xx"}"#, 1.0),
            (r#"loupe_http_errors_total{method="GET",route="/v1/traces",code="unauthorized"}"#, 1.0),
            (r#"loupe_http_errors_total{method="",route="other",code="not_found"}"#, 1.0),
            (r#"loupe_http_requests_total{method="GET",route="/healthz",status="2xx"}"#, 1.0),
            (r#"loupe_http_request_duration_seconds_count{method="POST",route="/v1/ingest"}"#, 2.0),
            (r#"loupe_http_request_duration_seconds_bucket{le="+Inf",method="POST",route="/v1/ingest"}"#, 2.0),
            (r#"loupe_http_requests_in_flight"#, 1.0),
            (r#"loupe_ingest_traces_total{outcome="new"}"#, 3.0),
            (r#"loupe_ingest_traces_total{outcome="duplicate"}"#, 1.0),
            (r#"loupe_ingest_spans_total"#, 2.0),
            (r#"loupe_ingest_refused_total{code="invalid_body"}"#, 1.0),
            (r#"loupe_commit_duration_seconds_count"#, 3.0),
            (r#"loupe_commit_requests_sum"#, 3.0),
            (r#"loupe_jobs{lane="ingest",status="dead"}"#, 0.0),
        ] {
            assert_eq!(metrics.get(name), Some(&value), "{name} in {metrics:#?}");
        }
        let at_least = |name: &str, least: f64| assert!(metrics[name] >= least, "{name}: {}", metrics[name]);
        at_least("loupe_ingest_body_bytes_total", 100.0);
        at_least("loupe_http_connections", 1.0);
        at_least("process_resident_memory_bytes", 1e6);
        at_least("process_open_fds", 5.0);
        at_least("process_max_fds", 100.0);
        assert_eq!(metrics["process_start_time_seconds"], 1_781_524_800.0);
        assert!(metrics.keys().any(|it| it.starts_with("loupe_database_connections{pool=\"write\"")), "{metrics:#?}");
    }

    async fn due_jobs_are_reported_with_their_age(app: TestApp) {
        app.full_key().post("/v1/ingest", &json!({"id": "a", "spans": [{"name": "s"}]})).await.ok();
        app.advance(3_600);
        let before = metrics(app).await;
        assert!(before[r#"loupe_jobs{lane="ingest",status="due"}"#] >= 1.0, "{before:#?}");
        assert!(before[r#"loupe_jobs_oldest_due_seconds{lane="ingest"}"#] >= 3_000.0, "{before:#?}");
        assert!(app.drain().await > 0);
        let after = metrics(app).await;
        assert!(after.keys().any(|it| it.starts_with("loupe_jobs_ended_total{kind=\"") && it.contains("done")), "{after:#?}");
        // The queue is measured every few seconds only, independently of the number of requests.
        assert_eq!(after[r#"loupe_jobs{lane="ingest",status="due"}"#], before[r#"loupe_jobs{lane="ingest",status="due"}"#]);
    }

    /// The metrics reveal nothing about tenants.
    async fn metrics_contain_no_tenant_data(app: TestApp) {
        let key = app.full_key();
        let item = json!({"id": "secret-external", "name": "secret-name", "session_id": "secret-session", "tags": {"secret": "tag"}});
        let made = key.post("/v1/ingest", &item).await.ok();
        key.get(&format!("/v1/traces/{}", made["id"].as_str().unwrap())).await.ok();
        key.get("/v1/secret-path").await.is(404, "not_found");
        key.get("/v1/traces?model=secret-model").await.ok();
        let page = String::from_utf8(send_request(app, "GET /metrics", &[]).await.body).unwrap();
        let ids = [app.tenant.to_string(), app.project.to_string(), made["id"].as_str().unwrap().to_owned()];
        for named in ids.iter().map(String::as_str).chain(["secret", &app.key_text()[..11]]) {
            assert!(!page.contains(named), "{named} in {page}");
        }
    }
}

#[tokio::test]
async fn separate_metrics_address_removes_metrics_from_main_address() {
    let app = server(&["--metrics-listen", "127.0.0.1:0"]).await;
    assert_eq!(send_request(&app, "GET /metrics", &[]).await.status, 404);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    app.app.spawn(server::http::serve::serve_metrics(
        std::sync::Arc::clone(&app.app),
        server::features::routes(),
        listener,
    ));
    let page = send_request_to(&url, "GET /metrics", &[]).await;
    assert!(page.header("content-type").starts_with("application/openmetrics-text"), "{}", page.head);
    parse(&String::from_utf8(page.body).unwrap());
    // The monitoring port serves no other route.
    for line in ["GET /v1/traces", "GET /healthz", "GET /"] {
        assert_eq!(send_request_to(&url, line, &[&token(&app)]).await.status, 404, "{line}");
    }
    app.stop().await;
}

#[tokio::test]
async fn connection_gauge_goes_up_and_down() {
    let app = server(&[]).await;
    let idle: Vec<_> = open_idle_connections(&app, 5).await;
    let stream = EventStream::open(&app.full_key(), "/v1/traces/stream", None).await;
    let during = metrics(&app).await;
    assert_eq!(during["loupe_http_connections"], 7.0, "five idle connections, a stream and this request");
    drop((idle, stream));
    let mut after = during;
    wait_until("the closed connections are no longer counted", async || {
        after = metrics(&app).await;
        after["loupe_http_connections"] < 2.0
    })
    .await;
    assert_eq!((after["loupe_http_connections"], after["loupe_http_requests_in_flight"]), (1.0, 1.0));
    app.stop().await;
}

async fn open_idle_connections(app: &TestApp, n: usize) -> Vec<tokio::net::TcpStream> {
    let mut open = Vec::new();
    for _ in 0..n {
        open.push(connect(app).await);
    }
    open
}

#[tokio::test]
async fn metrics_are_served_while_database_is_unreachable() {
    let app = TestApp::with(On::Sqlite, Plan::Enterprise, &[]).await;
    app.app.db.clone().close().await;
    let metrics = metrics(&app).await;
    assert!(
        metrics.contains_key("loupe_http_connections")
            && !metrics.keys().any(|it| it.starts_with("loupe_jobs{")),
        "{metrics:#?}"
    );
    app.stop().await;
}
