//! Query strings: every parameter of every list with hostile values.

use tests::{TestApp, on_both_databases};

use super::check_health;

/// Percent-encodes all bytes.
fn encoded(bytes: &[u8]) -> String {
    bytes.iter().map(|it| format!("%{it:02X}")).collect()
}

/// Returns values that no parameter should accept blindly.
fn hostile() -> Vec<(String, String)> {
    let texts = [
        "",
        " ",
        "'",
        "\"",
        "\\",
        "%",
        "_",
        "*",
        "' OR '1'='1",
        "1; DROP TABLE trace; --",
        "$1",
        "?",
        ":x",
        "{}",
        "[]",
        "null",
        "undefined",
        "NaN",
        "Infinity",
        "-Infinity",
        "-1",
        "-0",
        "0",
        "+1",
        "1.5",
        "1e3",
        "1e400",
        "0x10",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "99999999999999999999999999",
        "true",
        "TRUE",
        "false",
        "yes",
        "\u{1F600}",
        "\u{feff}",
        "\u{202e}",
        "a\nb",
        "a\rb",
        "\u{1}",
        "\u{7f}",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999Z",
        "0000-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "now",
        "2026-06-15",
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "zzzzzzzz-0000-0000-0000-000000000000",
        "../../etc/passwd",
        "<script>",
        "timeout",
        "other",
        ":",
        "::",
        "a:",
        ":a",
        "k:v",
    ];
    let mut values: Vec<_> = texts.iter().map(|it| (format!("{it:?}"), encoded(it.as_bytes()))).collect();
    values.push(("10,000 characters".to_owned(), "x".repeat(10_000)));
    values.push(("invalid UTF-8".to_owned(), "%FF%FE".to_owned()));
    values.push(("half an escape".to_owned(), "%".to_owned()));
    values.push(("a wrong escape".to_owned(), "%zz".to_owned()));
    values.push(("plus signs".to_owned(), "+++".to_owned()));
    values
}

/// Returns the form-encoded value; an error if its bytes are not UTF-8.
fn percent_decoded(value: &str) -> Result<String, std::string::FromUtf8Error> {
    let (text, mut bytes, mut at) = (value.as_bytes(), Vec::new(), 0);
    while let Some(byte) = text.get(at) {
        let digits = text.get(at + 1..at + 3).and_then(|it| std::str::from_utf8(it).ok());
        let escaped = digits.and_then(|it| u8::from_str_radix(it, 16).ok()).filter(|_| *byte == b'%');
        at += if escaped.is_some() { 3 } else { 1 };
        bytes.push(escaped.unwrap_or(if *byte == b'+' { b' ' } else { *byte }));
    }
    String::from_utf8(bytes)
}

/// The expected treatment of a parameter's value.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// A text that may be empty.
    Text,
    /// A text that must not be empty.
    Filled,
    /// At least one word.
    Words,
    Number,
    Money,
    Truth,
    Time,
    Id,
    Failure,
    Limit,
    Cursor,
    Status,
    Half,
}

const TRACE_PARAMETERS: &[(&str, Kind)] = &[
    ("project_id", Kind::Id),
    ("model", Kind::Text),
    ("error", Kind::Truth),
    ("failure_type", Kind::Failure),
    ("from", Kind::Time),
    ("to", Kind::Time),
    ("latency_min", Kind::Number),
    ("latency_max", Kind::Number),
    ("token_count_min", Kind::Number),
    ("token_count_max", Kind::Number),
    ("min_cost", Kind::Money),
    ("max_cost", Kind::Money),
    ("tag_key", Kind::Half),
    ("tag_value", Kind::Half),
    ("tag", Kind::Filled),
    ("session_id", Kind::Text),
    ("user_id", Kind::Text),
    ("name", Kind::Text),
    ("external_id", Kind::Text),
    ("q", Kind::Words),
    ("preview", Kind::Truth),
    ("limit", Kind::Limit),
    ("cursor", Kind::Cursor),
    ("unknown", Kind::Text),
];

/// Returns whether the kind accepts the value after percent-decoding.
fn accepts(kind: Kind, value: &str) -> bool {
    let Ok(decoded) = percent_decoded(value) else { return false };
    match kind {
        Kind::Text => true,
        Kind::Filled => !decoded.is_empty(),
        Kind::Words => !decoded.trim().is_empty(),
        Kind::Number => decoded.parse::<i64>().is_ok_and(|it| it >= 0),
        Kind::Money => decoded.parse::<f64>().is_ok_and(|it| (0.0..=1e6).contains(&it)),
        Kind::Truth => decoded == "true" || decoded == "false",
        Kind::Time => decoded.replace(' ', "+").parse::<api::Timestamp>().is_ok(),
        Kind::Id => uuid::Uuid::parse_str(&decoded).is_ok(),
        Kind::Failure => decoded == "timeout",
        Kind::Limit => decoded.parse::<u32>().is_ok_and(|it| (1..=200).contains(&it)),
        Kind::Cursor | Kind::Half => false,
        Kind::Status => ["active", "archived", "all"].contains(&decoded.as_str()),
    }
}

async fn check_parameters(app: &TestApp, path: &str, parameters: &[(&str, Kind)]) {
    let (key, owner) = (app.full_key(), app.session(api::Role::Owner));
    let needs_session = [
        "/v1/apikeys",
        "/v1/provider-credentials",
        "/v1/members",
        "/v1/failures",
        "/v1/failures/clusters",
        "/v1/prompts/deployments",
    ]
    .contains(&path);
    let caller = if needs_session { &owner } else { &key };
    let mut wrong = Vec::new();
    for (name, kind) in parameters {
        for (what, value) in hostile() {
            let reply = caller.get(&format!("{path}?{name}={value}")).await;
            let code = match kind {
                _ if accepts(*kind, &value) => None,
                _ if percent_decoded(&value).is_err() => Some("invalid_query"),
                Kind::Cursor => Some("invalid_cursor"),
                Kind::Half => Some("error.tags_filter_incomplete"),
                _ => Some("invalid_query"),
            };
            let expected = (if code.is_some() { 400 } else { 200 }, code);
            if (reply.status, reply.code().as_deref()) != expected {
                wrong.push(format!("{name}={what}: {} {:?}", reply.status, reply.code()));
            }
        }
        caller.get(&format!("{path}?{name}=a%00b")).await.is(400, "invalid_query");
    }
    assert!(wrong.is_empty(), "{path}: {wrong:#?}");
    check_health(app).await;
}

on_both_databases! {
    async fn invalid_trace_list_parameter_is_rejected(app: TestApp) {
        check_parameters(app, "/v1/traces", TRACE_PARAMETERS).await;
    }

    async fn invalid_parameter_of_other_lists_is_rejected(app: TestApp) {
        check_parameters(app, "/v1/projects", &[("status", Kind::Status), ("limit", Kind::Limit), ("cursor", Kind::Cursor)]).await;
        for path in ["/v1/apikeys", "/v1/models", "/v1/provider-credentials", "/v1/members", "/v1/evaluators"] {
            check_parameters(app, path, &[("limit", Kind::Limit), ("cursor", Kind::Cursor)]).await;
        }
        check_parameters(app, "/v1/eval", &[("metric_name", Kind::Filled), ("label", Kind::Filled), ("trace_id", Kind::Id), ("from", Kind::Time)]).await;
        check_parameters(app, "/v1/audit-log", &[("action", Kind::Filled), ("actor", Kind::Filled), ("to", Kind::Time)]).await;
        check_parameters(app, "/v1/sessions", &[("user_id", Kind::Text), ("project_id", Kind::Id), ("cursor", Kind::Cursor)]).await;
        check_parameters(app, "/v1/rejections", &[("project_id", Kind::Id), ("limit", Kind::Limit), ("cursor", Kind::Cursor)]).await;
        check_parameters(app, "/v1/feedback", &[("trace_id", Kind::Id), ("cursor", Kind::Cursor)]).await;
        check_parameters(app, "/v1/anomalies", &[("project_id", Kind::Id), ("metric", Kind::Text), ("to", Kind::Time), ("limit", Kind::Limit), ("cursor", Kind::Cursor)])
            .await;
        check_parameters(app, "/v1/failures", &[("project_id", Kind::Id), ("cluster_id", Kind::Id), ("trace_id", Kind::Id), ("model", Kind::Text),
            ("from", Kind::Time), ("to", Kind::Time), ("limit", Kind::Limit), ("cursor", Kind::Cursor)]).await;
        check_parameters(app, "/v1/failures/clusters", &[("project_id", Kind::Id), ("from", Kind::Time), ("to", Kind::Time), ("cursor", Kind::Cursor)]).await;
        check_parameters(app, "/v1/prompts/deployments", &[("project_id", Kind::Id), ("prompt_name", Kind::Text), ("limit", Kind::Limit), ("cursor", Kind::Cursor)])
            .await;
        check_parameters(app, "/v1/failure-rules", &[("project_id", Kind::Id), ("limit", Kind::Limit), ("cursor", Kind::Cursor)]).await;
        let trace = app.full_key().post("/v1/ingest", &serde_json::json!({"name": "t"})).await.ok();
        let spans = format!("/v1/traces/{}/spans", trace["id"].as_str().unwrap());
        check_parameters(app, &spans, &[("limit", Kind::Limit), ("cursor", Kind::Cursor)]).await;
    }

    /// A parameter without a value has an empty one, which selects empty texts or is refused.
    async fn empty_parameter_differs_from_absent_parameter(app: TestApp) {
        let key = app.full_key();
        key.post("/v1/ingest", &serde_json::json!({"name": "", "session_id": "s"})).await.ok();
        key.post("/v1/ingest", &serde_json::json!({"name": "named", "model": "m"})).await.ok();
        for (query, count) in [("name=", 1), ("name=named", 1), ("model=", 0), ("session_id=", 0), ("user_id=", 0), ("external_id=", 0)] {
            let list = key.get(&format!("/v1/traces?{query}")).await.ok();
            assert_eq!(list["traces"].as_array().unwrap().len(), count, "{query}");
        }
        for query in ["tag_key=", "tag_value=", "tag_key=k", "tag_value=v", "tag_key=&tag_value=v", "tag_key&tag_value"] {
            key.get(&format!("/v1/traces?{query}")).await.is(400, "error.tags_filter_incomplete");
        }
        key.get("/v1/traces?tag_key=k&tag_value=").await.ok();
        for query in ["project_id=", "error=", "failure_type=", "from=", "to=", "latency_min=", "min_cost=", "tag=", "q=", "q=+", "preview=", "limit=", "limit"] {
            key.get(&format!("/v1/traces?{query}")).await.is(400, "invalid_query");
        }
        key.get("/v1/traces?cursor=").await.is(400, "invalid_cursor");
        for path in ["/v1/projects?status=", "/v1/metrics?window=", "/v1/metrics?interval=", "/v1/metrics?group_by=", "/v1/traces/export?format=",
            "/v1/eval?status=", "/v1/eval?min_score=", "/v1/feedback?label=", "/v1/traces/stream?project_id="] {
            key.get(path).await.is(400, "invalid_query");
        }
    }

    async fn query_with_invalid_utf8_is_rejected(app: TestApp) {
        let key = app.full_key();
        for query in ["q=%ff", "name=%C3%28", "unknown=%80", "%FF=1", "q=a%F0%9F%98", "tag_key=%ff&tag_value=v"] {
            for path in ["/v1/traces", "/v1/metrics", "/v1/models"] {
                key.get(&format!("{path}?{query}")).await.is(400, "invalid_query");
            }
        }
        // The replacement character itself is valid text.
        key.get("/v1/traces?q=%EF%BF%BD").await.ok();
    }

    async fn invalid_path_id_is_rejected(app: TestApp) {
        let (key, owner) = (app.full_key(), app.session(api::Role::Owner));
        let ids = [
            "x", "0", "-1", "null", "%20", "%00", "%2F", "..%2F..", "%FF", "'%20OR%201=1", "00000000-0000-0000-0000-00000000000",
            "00000000-0000-0000-0000-0000000000000", "g0000000-0000-0000-0000-000000000000", "0000000000000000", "%F0%9F%98%80",
        ];
        for id in ids.into_iter().map(str::to_owned).chain(["a".repeat(10_000)]) {
            for path in [format!("/v1/traces/{id}"), format!("/v1/traces/{id}/spans"), format!("/v1/projects/{id}")] {
                key.get(&path).await.is(400, "invalid_query");
            }
            owner.delete(&format!("/v1/apikeys/{id}")).await.is(400, "invalid_query");
            for action in ["archive", "unarchive"] {
                owner.post(&format!("/v1/projects/{id}/{action}"), &serde_json::json!({})).await.is(400, "invalid_query");
            }
        }
        // An OpenTelemetry id has no hyphens, so this text is not the id of a trace.
        key.get("/v1/traces/0000000000000000000000000000000a").await.is(404, "not_found");
        key.get("/v1/traces/FFFFFFFF-ffff-ffff-ffff-FFFFFFFFFFFF").await.is(404, "not_found");
        check_health(app).await;
    }

    async fn unusual_query_string_is_parsed_or_rejected(app: TestApp) {
        let key = app.full_key();
        for query in ["", "&", "&&&", "=", "==", "=x", "limit&limit=5", "?limit=5", "limit=500&limit=5", "a=b;limit=0", "%", "%00=x&limit=5", "[]=x", "tag[]=x", "tag[0]=x"] {
            let reply = key.get(&format!("/v1/traces?{query}")).await;
            assert_eq!(reply.status, 200, "{query}: {}", reply.text());
        }
        for query in ["limit=5&limit=500", "error=true&error=maybe", "from=2026-06-15T12:00:00Z&from=x", "to=2026-06-15T12:00:00Z&from=2026-06-15T12:00:01Z"] {
            key.get(&format!("/v1/traces?{query}")).await.is(400, "invalid_query");
        }
        // Very long query strings.
        for query in ["x=y&".repeat(3_000), "q=a&".repeat(3_000), format!("q={}", "ab+".repeat(4_000)), format!("name={}", "%F0%9F%98%80".repeat(1_000))] {
            key.get(&format!("/v1/traces?{query}")).await.ok();
        }
        for query in ["tag=a&".repeat(2_000), "tag=a:b&".repeat(1_500), "tag=k%22:%27&".repeat(101)] {
            key.get(&format!("/v1/traces?{query}")).await.is(400, "invalid_query");
        }
        let all = "project_id=00000000-0000-0000-0000-000000000000&model=a&error=true&failure_type=timeout&from=2026-06-15T12:00:00Z&to=2026-06-15T12:00:00Z\
                   &latency_min=0&latency_max=9&token_count_min=0&token_count_max=9&min_cost=0&max_cost=9&tag_key=a&tag_value=b&tag=c&tag=d:e&session_id=f\
                   &user_id=g&name=h&external_id=i&q=j&preview=true&limit=1";
        key.get(&format!("/v1/traces?{all}")).await.ok();
        check_health(app).await;
    }
}
