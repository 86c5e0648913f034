//! `GET /v1/sessions`, compared with a model and in separate tests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use api::Timestamp;
use fastrand::Rng;
use serde_json::{Value, json};
use tests::{Caller, app::TEST_START_MICROS, on_both_databases};

const MINUTE: i64 = 60_000_000;

/// The properties of a trace that matter for sessions.
#[derive(Clone, Debug)]
struct SessionTrace {
    session: Option<String>,
    user: Option<&'static str>,
    second_project: bool,
    at: i64,
    error: bool,
    cost: Option<f64>,
    tokens: i64,
}

impl SessionTrace {
    fn random(rng: &mut Rng) -> Self {
        let sessions = ["s-1", "s-2", "s 3", "会话🙏", "a'b\"c\\", "%_", "\u{1}", "-"];
        Self {
            session: (rng.u8(..5) > 0).then(|| match rng.u8(..3) {
                0 => sessions[rng.usize(..sessions.len())].to_owned(),
                _ => format!("session {}", rng.u8(..40)),
            }),
            user: [None, Some("u-1"), Some("u-2")][rng.usize(..3)],
            second_project: rng.bool(),
            // There are few start times, so that many traces have the same one.
            at: TEST_START_MICROS - rng.i64(0..50) * MINUTE,
            error: rng.u8(..4) == 0,
            cost: (rng.u8(..3) == 0).then(|| f64::from(rng.u16(..)) / 1_000.0),
            tokens: rng.i64(0..1_000),
        }
    }

    fn item(&self) -> Value {
        json!({"session_id": self.session, "user_id": self.user, "started_at": Timestamp::from_micros(self.at),
            "project_name": self.second_project.then_some("second"), "error": self.error.then_some("boom"), "cost": self.cost,
            "spans": [{"name": "s", "prompt_tokens": self.tokens, "completion_tokens": 1}]})
    }
}

async fn send(caller: &Caller, traces: &[SessionTrace]) {
    for some in traces.chunks(500) {
        let items: Vec<Value> = some.iter().map(SessionTrace::item).collect();
        let result = caller.post("/v1/ingest/batch", &json!({"traces": items})).await.ok();
        assert_eq!(result["rejected"], 0, "{result}");
    }
}

/// Returns all sessions, in pages of `limit`.
async fn pages(caller: &Caller, query: &str, limit: usize) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = caller.get(&format!("/v1/sessions?limit={limit}{query}{cursor}")).await.ok();
        let sessions = page["sessions"].as_array().unwrap();
        assert!(sessions.len() <= limit);
        all.extend(sessions.iter().cloned());
        assert_eq!(page["has_more"], !page["next_cursor"].is_null());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

/// Returns the expected sessions by name.
fn model<'a>(traces: impl Iterator<Item = &'a SessionTrace>) -> BTreeMap<String, Value> {
    let mut sessions: BTreeMap<String, Vec<&SessionTrace>> = BTreeMap::new();
    for trace in traces {
        if let Some(session) = &trace.session {
            sessions.entry(session.clone()).or_default().push(trace);
        }
    }
    let sum = |(name, traces): (String, Vec<&SessionTrace>)| {
        let at = || traces.iter().map(|it| it.at);
        let costs: Vec<f64> = traces.iter().filter_map(|it| it.cost).collect();
        let cents = |it: f64| (it * 1_000.0).round();
        let value = json!({
            "session_id": name,
            "trace_count": traces.len(),
            "error_count": traces.iter().filter(|it| it.error).count(),
            "first_seen": Timestamp::from_micros(at().min().unwrap()),
            "last_seen": Timestamp::from_micros(at().max().unwrap()),
            "cost": (!costs.is_empty()).then(|| cents(costs.iter().sum())),
            "total_token_count": traces.iter().map(|it| it.tokens + 1).sum::<i64>(),
        });
        (name, value)
    };
    sessions.into_iter().map(sum).collect()
}

fn check(found: Vec<Value>, expected: BTreeMap<String, Value>, about: &str) {
    assert!(found.is_sorted_by(|a, b| a["last_seen"].as_str() >= b["last_seen"].as_str()), "{about}");
    let count = found.len();
    let found: BTreeMap<String, Value> = found
        .into_iter()
        .map(|mut it| {
            if let Some(cost) = it["cost"].as_f64() {
                it["cost"] = (cost * 1_000.0).round().into();
            }
            (it["session_id"].as_str().unwrap().to_owned(), it)
        })
        .collect();
    assert_eq!(count, found.len(), "{about}: a session is listed twice");
    assert_eq!(found, expected, "{about}");
}

on_both_databases! {
    async fn sessions_equal_the_model_of_their_traces(app: TestApp) {
        let key = app.full_key();
        let mut rng = Rng::with_seed(5);
        let traces: Vec<SessionTrace> = (0..600).map(|_| SessionTrace::random(&mut rng)).collect();
        send(&key, &traces).await;
        let projects = key.get("/v1/projects").await.ok();
        let second = projects["projects"].as_array().unwrap().iter().find(|it| it["name"] == "second").unwrap();
        let second = second["id"].as_str().unwrap();
        let (from, to) = (TEST_START_MICROS - 30 * MINUTE, TEST_START_MICROS - 10 * MINUTE);
        let stamp = |at| Timestamp::from_micros(at).to_string();
        for limit in [1, 7, 200] {
            check(pages(&key, "", limit).await, model(traces.iter()), "all");
            let of_user = model(traces.iter().filter(|it| it.user == Some("u-1")));
            check(pages(&key, "&user_id=u-1", limit).await, of_user, "of a user");
            let of_project = model(traces.iter().filter(|it| it.second_project));
            check(pages(&key, &format!("&project_id={second}"), limit).await, of_project, "of a project");
            let within = model(traces.iter().filter(|it| (from..=to).contains(&it.at)));
            let query = format!("&from={}&to={}", stamp(from), stamp(to));
            check(pages(&key, &query, limit).await, within, "within a time");
            let every = model(traces.iter().filter(|it| it.second_project && it.user == Some("u-2") && it.at >= from));
            let query = format!("&project_id={second}&user_id=u-2&from={}", stamp(from));
            check(pages(&key, &query, limit).await, every, "everything together");
        }
        check(pages(&key, "&user_id=unknown", 50).await, BTreeMap::new(), "sessions of an unknown user");
    }

    async fn long_session_does_not_hide_others(app: TestApp) {
        let key = app.full_key();
        let told = |session: Option<&str>, at: i64| SessionTrace { session: session.map(str::to_owned), user: None,
            second_project: false, at, error: false, cost: None, tokens: 0 };
        let mut traces: Vec<SessionTrace> = (0..10_500).map(|i| told(Some("long"), TEST_START_MICROS - i)).collect();
        traces.extend((0..500).map(|i| told(None, TEST_START_MICROS - i)));
        traces.push(told(Some("old"), TEST_START_MICROS - 100 * MINUTE));
        send(&key, &traces).await;
        let first = key.get("/v1/sessions").await.ok();
        assert_eq!((first["sessions"].as_array().unwrap().len(), &first["has_more"]), (1, &json!(true)));
        assert_eq!((&first["sessions"][0]["trace_count"], &first["sessions"][0]["cost"]), (&json!(10_500), &Value::Null));
        let all = pages(&key, "", 50).await;
        let names: Vec<_> = all.iter().map(|it| it["session_id"].as_str().unwrap()).collect();
        assert_eq!(names, ["long", "old"]);
    }

    async fn session_cursor_is_valid_for_its_list_only(app: TestApp) {
        let key = app.full_key();
        for i in 0..3 {
            key.post("/v1/ingest", &json!({"session_id": i.to_string(), "user_id": "u"})).await.ok();
            app.advance(1);
        }
        let page = key.get("/v1/sessions?limit=1").await.ok();
        let cursor = page["next_cursor"].as_str().unwrap();
        key.get(&format!("/v1/sessions?limit=1&user_id=u&cursor={cursor}")).await.is(400, "invalid_cursor");
        key.get(&format!("/v1/traces?cursor={cursor}")).await.is(400, "invalid_cursor");
        let (_, theirs) = app.other_tenant(api::Plan::Starter).await;
        theirs.get(&format!("/v1/sessions?limit=1&cursor={cursor}")).await.is(400, "invalid_cursor");
        assert_eq!(theirs.get("/v1/sessions").await.ok(), json!({"sessions": [], "has_more": false, "next_cursor": null}));
        // A new trace of the first session does not list it again.
        app.advance(1);
        key.post("/v1/ingest", &json!({"session_id": "2"})).await.ok();
        let page = key.get(&format!("/v1/sessions?cursor={cursor}")).await.ok();
        let names: Vec<_> = page["sessions"].as_array().unwrap().iter().map(|it| it["session_id"].clone()).collect();
        assert_eq!(names, ["1", "0"]);
    }

    async fn invalid_session_parameter_is_rejected(app: TestApp) {
        let key = app.full_key();
        for query in ["project_id=x", "from=then", "limit=0", "limit=201", "user_id=%00", "from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z"] {
            key.get(&format!("/v1/sessions?{query}")).await.is(400, "invalid_query");
        }
        key.get("/v1/sessions?cursor=x").await.is(400, "invalid_cursor");
    }

    /// Sums that exceed a 64-bit number are not an error.
    async fn session_sums_beyond_64_bits_saturate(app: TestApp) {
        let key = app.full_key();
        for _ in 0..3 {
            let item = json!({"session_id": "s", "cost": 1_000_000.0, "spans": [{"name": "s", "prompt_tokens": i64::MAX}]});
            key.post("/v1/ingest", &item).await.ok();
        }
        let page = key.get("/v1/sessions").await.ok();
        assert_eq!((&page["sessions"][0]["cost"], &page["sessions"][0]["total_token_count"]), (&json!(3_000_000.0), &json!(i64::MAX)));
    }
}
