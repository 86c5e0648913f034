//! Query strings: every parameter of every list with hostile values.

use tests::{TestApp, on_both_databases};

use super::healthy;

/// Percent-encodes all bytes.
fn encoded(bytes: &[u8]) -> String {
    bytes.iter().map(|it| format!("%{it:02X}")).collect()
}

/// Values that mean nothing good to anybody.
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
    values.push(("bytes that are no text".to_owned(), "%FF%FE".to_owned()));
    values.push(("half an escape".to_owned(), "%".to_owned()));
    values.push(("a wrong escape".to_owned(), "%zz".to_owned()));
    values.push(("plus signs".to_owned(), "+++".to_owned()));
    values
}

/// What is expected of one parameter with one value.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
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

const TRACES: &[(&str, Kind)] = &[
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
    ("tag", Kind::Text),
    ("session_id", Kind::Text),
    ("user_id", Kind::Text),
    ("name", Kind::Text),
    ("external_id", Kind::Text),
    ("q", Kind::Text),
    ("preview", Kind::Truth),
    ("limit", Kind::Limit),
    ("cursor", Kind::Cursor),
    ("unknown", Kind::Text),
];

/// Whether the value, percent-decoded, is one that the kind takes.
fn takes(kind: Kind, value: &str) -> bool {
    let decoded: String =
        url::form_urlencoded::parse(format!("x={value}").as_bytes()).map(|it| it.1.into_owned()).collect();
    if decoded.is_empty() {
        // An empty value counts as none; half a tag stays half of one.
        return true;
    }
    match kind {
        Kind::Text => true,
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

async fn try_all(app: &TestApp, path: &str, parameters: &[(&str, Kind)]) {
    let (key, owner) = (app.full_key(), app.session(api::Role::Owner));
    let caller = if path == "/v1/apikeys" { &owner } else { &key };
    let mut wrong = Vec::new();
    for (name, kind) in parameters {
        for (what, value) in hostile() {
            let reply = caller.get(&format!("{path}?{name}={value}")).await;
            let code = match kind {
                _ if takes(*kind, &value) && !(*kind == Kind::Half && *name == "tag_value") => None,
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
    healthy(app).await;
}

on_both_databases! {
    async fn parameters_of_traces(app: TestApp) {
        try_all(app, "/v1/traces", TRACES).await;
    }

    async fn parameters_of_other_lists(app: TestApp) {
        try_all(app, "/v1/projects", &[("status", Kind::Status), ("limit", Kind::Limit), ("cursor", Kind::Cursor)]).await;
        try_all(app, "/v1/apikeys", &[("limit", Kind::Limit), ("cursor", Kind::Cursor)]).await;
        let trace = app.full_key().post("/v1/ingest", &serde_json::json!({"name": "t"})).await.ok();
        let spans = format!("/v1/traces/{}/spans", trace["id"].as_str().unwrap());
        try_all(app, &spans, &[("limit", Kind::Limit), ("cursor", Kind::Cursor)]).await;
    }

    async fn ids_in_paths(app: TestApp) {
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
        // An id of OpenTelemetry has no hyphens.
        key.get("/v1/traces/0000000000000000000000000000000a").await.is(404, "not_found");
        key.get("/v1/traces/FFFFFFFF-ffff-ffff-ffff-FFFFFFFFFFFF").await.is(404, "not_found");
        healthy(app).await;
    }

    async fn query_strings_as_a_whole(app: TestApp) {
        let key = app.full_key();
        for query in ["", "&", "&&&", "=", "==", "=x", "limit", "limit&limit=5", "?limit=5", "limit=500&limit=5", "a=b;limit=0", "%", "%00=x&limit=5", "[]=x", "tag[]=x", "tag[0]=x"] {
            let reply = key.get(&format!("/v1/traces?{query}")).await;
            assert_eq!(reply.status, 200, "{query}: {}", reply.text());
        }
        for query in ["limit=5&limit=500", "error=true&error=maybe", "from=2026-06-15T12:00:00Z&from=x", "to=2026-06-15T12:00:00Z&from=2026-06-15T12:00:01Z"] {
            key.get(&format!("/v1/traces?{query}")).await.is(400, "invalid_query");
        }
        // Much of everything.
        for query in ["x=y&".repeat(10_000), "q=a&".repeat(10_000), format!("q={}", "ab+".repeat(15_000)), format!("name={}", "%F0%9F%98%80".repeat(4_000))] {
            key.get(&format!("/v1/traces?{query}")).await.ok();
        }
        for query in ["tag=a&".repeat(10_000), "tag=a:b&".repeat(7_000), "tag=k%22:%27&".repeat(101)] {
            key.get(&format!("/v1/traces?{query}")).await.is(400, "invalid_query");
        }
        let all = "project_id=00000000-0000-0000-0000-000000000000&model=a&error=true&failure_type=timeout&from=2026-06-15T12:00:00Z&to=2026-06-15T12:00:00Z\
                   &latency_min=0&latency_max=9&token_count_min=0&token_count_max=9&min_cost=0&max_cost=9&tag_key=a&tag_value=b&tag=c&tag=d:e&session_id=f\
                   &user_id=g&name=h&external_id=i&q=j&preview=true&limit=1";
        key.get(&format!("/v1/traces?{all}")).await.ok();
        healthy(app).await;
    }
}
