//! API keys, projects and prices of a tenant, over HTTP.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use api::Role;
use prost::Message;
use serde_json::{Value, json};
use tests::{Caller, Reply, TestApp, on_both_databases};

const PROTOBUF_TYPE: &str = "application/x-protobuf";

/// `google.rpc.Status`, as an OTLP client reads it.
#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

/// Returns the id of the project with this name.
async fn project(app: &TestApp, name: &str) -> String {
    let list = app.full_key().get("/v1/projects?status=all&limit=200").await.ok();
    let found = list["projects"].as_array().unwrap().iter().find(|it| it["name"] == name);
    found.unwrap_or_else(|| panic!("no project {name}: {list}"))["id"].as_str().unwrap().to_owned()
}

/// Stores one trace in the project with this name.
async fn send_to(caller: &Caller, name: &str) -> Reply {
    caller.post("/v1/ingest", &json!({"project_name": name})).await
}

async fn archive(owner: &Caller, id: &str) -> Reply {
    owner.post(&format!("/v1/projects/{id}/archive"), &json!({})).await
}

async fn unarchive(owner: &Caller, id: &str) -> Reply {
    owner.post(&format!("/v1/projects/{id}/unarchive"), &json!({})).await
}

/// Builds an OTLP request in JSON with one span, with or without the name of a project.
fn otlp(trace: u8, project: Option<&str>) -> Value {
    let attributes: Vec<Value> = project
        .into_iter()
        .map(|it| json!({"key": "openinference.project.name", "value": {"stringValue": it}}))
        .collect();
    json!({"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": [{"spans": [{
        "traceId": format!("{trace:032x}"), "spanId": "00000000000000a1", "name": "s",
        "startTimeUnixNano": "1781524800000000000", "endTimeUnixNano": "1781524801000000000",
    }]}]}]})
}

on_both_databases! {
    async fn api_key_secret_is_shown_once(app: TestApp) {
        let member = app.session(Role::Member);
        let made = member.post("/v1/apikeys", &json!({"name": "ci", "unknown": 1})).await;
        assert_eq!(made.status, 201);
        let made = made.json();
        let secret = made["secret"].as_str().unwrap();
        assert_eq!(secret.len(), 52);
        assert!(secret.starts_with("lp_") && secret[3..].bytes().all(|it| it.is_ascii_alphanumeric()), "{secret}");
        assert_eq!(made["prefix"], secret[..11]);
        assert_eq!((&made["name"], &made["scopes"]), (&json!("ci"), &json!([])));
        assert_eq!(made["project_id"], app.project.to_string());
        assert_eq!(made["created_at"], "2026-06-15T12:00:00.000000Z");
        assert_eq!(made["expires_at"], Value::Null);

        let list = member.get("/v1/apikeys").await;
        assert!(!list.text().contains(&secret[11..]), "the list shows a secret");
        let list = list.ok();
        let rows = list["apikeys"].as_array().unwrap();
        assert_eq!(rows.len(), 2, "the first key and the new one");
        let row = rows.iter().find(|it| it["id"] == made["id"]).unwrap();
        let mut shown = made.clone();
        shown.as_object_mut().unwrap().remove("secret");
        assert_eq!(row, &shown);

        let me = app.bearer(secret).get("/v1/me").await.ok();
        assert_eq!((&me["role"], &me["api_key"]["id"]), (&json!("member"), &made["id"]));
        assert!(me["api_key"].get("secret").is_none());
        assert_eq!(me["tenant"]["id"], app.tenant.to_string());
    }

    async fn api_key_list_is_paged(app: TestApp) {
        let owner = app.session(Role::Owner);
        for i in 0..7 {
            app.advance(1);
            owner.post("/v1/apikeys", &json!({"name": format!("k{i}")})).await.ok();
        }
        let (mut names, mut query) = (Vec::new(), String::new());
        loop {
            let page = owner.get(&format!("/v1/apikeys?limit=3{query}")).await.ok();
            names.extend(page["apikeys"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()));
            assert_eq!(page["has_more"], page["next_cursor"].is_string());
            match page["next_cursor"].as_str() {
                Some(cursor) => query = format!("&cursor={cursor}"),
                None => break,
            }
        }
        assert_eq!(names, ["k6", "k5", "k4", "k3", "k2", "k1", "k0", "first key"]);
    }

    async fn invalid_api_key_request_is_rejected(app: TestApp) {
        let owner = app.session(Role::Owner);
        let refused = [
            (json!({"name": ""}), "name"),
            (json!({"name": "  \t"}), "name"),
            (json!({"name": "x".repeat(201)}), "name"),
            (json!({"name": "n", "scopes": ["admin"]}), "scopes"),
            (json!({"name": "n", "scopes": ["query", "QUERY"]}), "scopes"),
            (json!({"name": "n", "scopes": [""]}), "scopes"),
            (json!({"name": "n", "expires_at": "2026-06-15T12:00:00Z"}), "expires_at"),
            (json!({"name": "n", "expires_at": "0001-01-01T00:00:00Z"}), "expires_at"),
        ];
        for (body, field) in refused {
            let reply = owner.post("/v1/apikeys", &body).await;
            assert_eq!(reply.is(422, "validation_failed").json()["fields"][0]["field"], field, "{body}");
        }
        let misshapen = [
            json!({}), json!([]), json!(null), json!("n"), json!({"name": null}), json!({"name": 5}),
            json!({"name": "n", "scopes": "query"}), json!({"name": "n", "scopes": [1]}), json!({"name": "n", "scopes": [null]}),
            json!({"name": "n", "project_id": "mine"}), json!({"name": "n", "expires_at": "soon"}),
            json!({"name": "n", "expires_at": "2026-13-01T00:00:00Z"}), json!({"name": "n", "expires_at": 1}),
        ];
        for body in misshapen {
            owner.post("/v1/apikeys", &body).await.is(400, "invalid_body");
        }
        owner.post_bytes("/v1/apikeys", "application/json", b"{\"name\":".to_vec()).await.is(400, "invalid_json");
        owner.post_bytes("/v1/apikeys", "text/plain", b"{}".to_vec()).await.is(415, "unsupported_media_type");
        assert_eq!(owner.get("/v1/apikeys").await.ok()["apikeys"].as_array().unwrap().len(), 1);

        let accepted = [
            json!({"name": "x".repeat(200)}),
            json!({"name": "a\u{0}b", "scopes": null, "project_id": null, "expires_at": null}),
            json!({"name": "twice", "scopes": ["query", "query"]}),
        ];
        for body in accepted {
            assert_eq!(owner.post("/v1/apikeys", &body).await.status, 201, "{body}");
        }
        let list = owner.get("/v1/apikeys").await.ok();
        let find = |name: &str| list["apikeys"].as_array().unwrap().iter().find(|it| it["name"] == name).cloned();
        assert_eq!(find("twice").unwrap()["scopes"], json!(["query"]));
        assert!(find("a\u{fffd}b").is_some(), "{list}");
    }

    async fn expired_api_key_is_unauthorized(app: TestApp) {
        let body = json!({"name": "short", "expires_at": "2026-06-15T12:01:00Z"});
        let made = app.session(Role::Owner).post("/v1/apikeys", &body).await.ok();
        assert_eq!(made["expires_at"], "2026-06-15T12:01:00.000000Z");
        let key = app.bearer(made["secret"].as_str().unwrap());
        app.advance(59);
        key.get("/v1/me").await.ok();
        app.advance(1);
        key.get("/v1/me").await.is(401, "unauthorized");
        key.post("/v1/ingest", &json!({})).await.is(401, "unauthorized");
        app.full_key().get("/v1/me").await.ok();
    }

    async fn revoked_api_key_is_rejected_immediately(app: TestApp) {
        let owner = app.session(Role::Owner);
        let made = owner.post("/v1/apikeys", &json!({"name": "leaked"})).await.ok();
        let key = app.bearer(made["secret"].as_str().unwrap());
        key.post("/v1/ingest", &json!({"id": "before"})).await.ok();
        let path = format!("/v1/apikeys/{}", made["id"].as_str().unwrap());
        let gone = owner.delete(&path).await;
        assert_eq!((gone.status, gone.body.len()), (204, 0));
        key.post("/v1/ingest", &json!({"id": "after"})).await.is(401, "unauthorized");
        key.get("/v1/traces").await.is(401, "unauthorized");
        owner.delete(&path).await.is(404, "not_found");
        let list = owner.get("/v1/apikeys").await.ok();
        assert_eq!(list["apikeys"].as_array().unwrap().len(), 1, "{list}");
        assert_eq!(app.full_key().get("/v1/traces").await.ok()["traces"].as_array().unwrap().len(), 1);
    }

    /// A key has at most the role of its creator, and its traces arrive in its own project.
    async fn api_key_stores_traces_in_its_project(app: TestApp) {
        send_to(&app.full_key(), "second").await.ok();
        let second = project(app, "second").await;
        let body = json!({"name": "n", "project_id": second});
        let made = app.session(Role::Member).post("/v1/apikeys", &body).await.ok();
        let key = app.bearer(made["secret"].as_str().unwrap());
        let id = key.post("/v1/ingest", &json!({})).await.ok()["id"].as_str().unwrap().to_owned();
        assert_eq!(key.get(&format!("/v1/traces/{id}")).await.ok()["project_id"], second);
        archive(&key, &second).await.is(403, "forbidden_role");
    }

    async fn project_is_archived_and_unarchived(app: TestApp) {
        let owner = app.session(Role::Owner);
        let first = app.project.to_string();
        archive(&owner, &first).await.is(409, "error.project.cannot_archive_last");
        send_to(&app.full_key(), "second").await.ok();
        let second = project(app, "second").await;

        app.advance(1);
        let archived = archive(&owner, &first).await;
        assert_eq!(archived.status, 200, "{}", archived.text());
        let archived = archived.json();
        assert_eq!((&archived["status"], &archived["archived_at"]), (&json!("archived"), &json!("2026-06-15T12:00:01.000000Z")));
        app.advance(1);
        assert_eq!(archive(&owner, &first).await.ok(), archived, "archiving twice changes nothing");
        archive(&owner, &second).await.is(409, "error.project.cannot_archive_last");

        let names = async |query: &str| -> Vec<String> {
            let list = owner.get(&format!("/v1/projects{query}")).await.ok();
            list["projects"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names("").await, ["second"]);
        assert_eq!(names("?status=archived").await, ["default"]);
        assert_eq!(names("?status=all").await, ["second", "default"]);
        owner.get("/v1/projects?status=gone").await.is(400, "invalid_query");

        // Reading with the key of an archived project still works.
        app.full_key().get("/v1/traces").await.ok();
        assert_eq!(app.full_key().get(&format!("/v1/projects/{first}")).await.ok(), archived);

        let back = unarchive(&owner, &first).await.ok();
        assert_eq!((&back["status"], &back["archived_at"]), (&json!("active"), &Value::Null));
        assert_eq!(unarchive(&owner, &first).await.ok(), back, "unarchiving twice changes nothing");
        app.full_key().post("/v1/ingest", &json!({})).await.ok();
    }

    async fn archived_project_rejects_new_traces(app: TestApp) {
        let (owner, key) = (app.session(Role::Owner), app.full_key());
        send_to(&key, "second").await.ok();
        let second = project(app, "second").await;
        archive(&owner, &app.project.to_string()).await.ok();

        let whole = |reply: &Reply| {
            let body = reply.is(403, "error.project.archived").json();
            assert!(body["message"].as_str().is_some_and(|it| !it.is_empty()), "{body}");
        };
        whole(&key.post("/v1/ingest", &json!({})).await);
        whole(&key.post("/v1/ingest/batch", &json!({"traces": [{}]})).await);
        for path in ["/v1/otlp/traces", "/v1/otlp/v1/traces", "/v1/traces"] {
            let reply = key.post(path, &otlp(1, None)).await;
            whole(&reply);
            assert_eq!(reply.headers["x-error-code"], "error.project.archived");
            let reply = key.post_bytes(path, PROTOBUF_TYPE, Vec::new()).await;
            assert_eq!((reply.status, reply.headers["content-type"].to_str().unwrap()), (403, PROTOBUF_TYPE), "{path}");
            assert_eq!(reply.headers["x-error-code"], "error.project.archived");
            assert!(reply.headers.contains_key("x-request-id"));
            let status = RpcStatus::decode(reply.body.as_slice()).unwrap();
            assert_eq!(status.code, 7, "PERMISSION_DENIED");
            assert!(status.message.starts_with("error.project.archived: "), "{}", status.message);
        }
        // Naming the project with a key of another project does not work either.
        let body = json!({"name": "n", "project_id": second});
        let made = owner.post("/v1/apikeys", &body).await.ok();
        let other = app.bearer(made["secret"].as_str().unwrap());
        whole(&send_to(&other, "default").await);
        whole(&other.post("/v1/otlp/traces", &otlp(2, Some("default"))).await);
        let named = other.request(reqwest::Method::POST, "/v1/ingest").header("x-project-name", "default").json(&json!({}));
        whole(&other.send(named).await);
        let mixed = other.post("/v1/ingest/batch", &json!({"traces": [{"project_name": "default"}, {}]})).await.ok();
        assert_eq!((&mixed["accepted"], &mixed["results"][0]["code"]), (&json!(1), &json!("error.project.archived")));

        let list = key.get("/v1/traces").await.ok();
        assert_eq!(list["traces"].as_array().unwrap().len(), 2, "the first trace of `second` and the valid one of the batch");
        unarchive(&owner, &app.project.to_string()).await.ok();
        key.post("/v1/ingest", &json!({})).await.ok();
        assert_eq!(key.post("/v1/otlp/traces", &otlp(1, None)).await.status, 200);
    }

    async fn concurrent_archiving_leaves_one_of_two_projects(app: TestApp) {
        let owner = app.session(Role::Owner);
        send_to(&app.full_key(), "second").await.ok();
        let (first, second) = (app.project.to_string(), project(app, "second").await);
        for round in 0..10 {
            let (a, b) = tokio::join!(archive(&owner, &first), archive(&owner, &second));
            let mut statuses = [a.status, b.status];
            statuses.sort_unstable();
            assert_eq!(statuses, [200, 409], "round {round}: {} {}", a.text(), b.text());
            for id in [&first, &second] {
                unarchive(&owner, id).await.ok();
            }
        }
    }

    async fn ingest_creates_projects_by_name(app: TestApp) {
        let key = app.full_key();
        key.post("/v1/ingest", &json!({"id": "field", "project_name": "by field"})).await.ok();
        let named = key.request(reqwest::Method::POST, "/v1/ingest").header("x-project-name", "by header");
        key.send(named.json(&json!({"id": "header"}))).await.ok();
        let both = key.request(reqwest::Method::POST, "/v1/ingest").header("x-project-name", "by header");
        key.send(both.json(&json!({"id": "both", "project_name": "by field"}))).await.ok();
        key.post("/v1/otlp/traces", &otlp(9, Some("by attribute"))).await.ok();
        let batch = json!({"traces": [{"project_name": "by batch"}, {"project_name": "by field"}, {}]});
        assert_eq!(key.post("/v1/ingest/batch", &batch).await.ok()["accepted"], 3);

        for (name, count) in [("by field", 3), ("by header", 1), ("by attribute", 1), ("by batch", 1), ("default", 1)] {
            let id = project(app, name).await;
            let list = key.get(&format!("/v1/traces?project_id={id}")).await.ok();
            assert_eq!(list["traces"].as_array().unwrap().len(), count, "{name}: {list}");
        }
        // A trace stays in the project of its first spans.
        key.post("/v1/otlp/traces", &otlp(9, Some("by field"))).await.ok();
        let id = project(app, "by attribute").await;
        assert_eq!(key.get(&format!("/v1/traces/{:032x}", 9)).await.ok()["project_id"], id);

        send_to(&key, &"x".repeat(2_000)).await.is(422, "validation_failed");
        send_to(&key, "  ").await.is(422, "validation_failed");
        send_to(&key, "nul\u{0}").await.ok();
        project(app, "nul\u{fffd}").await;
    }

    async fn projects_created_by_ingest_are_limited_to_100(app: TestApp) {
        let key = app.full_key();
        // The default project and projects created by request do not count.
        for i in 0..5 {
            key.post("/v1/projects", &json!({"name": format!("by hand {i}")})).await.ok();
        }
        let items: Vec<_> = (0..102).map(|i| json!({"project_name": format!("p{i}")})).collect();
        let result = key.post("/v1/ingest/batch", &json!({"traces": items})).await.ok();
        assert_eq!((&result["accepted"], &result["rejected"]), (&json!(100), &json!(2)));
        assert_eq!(result["results"][100]["code"], "validation_failed");
        send_to(&key, "one more").await.is(422, "validation_failed");
        key.post("/v1/otlp/traces", &otlp(3, Some("one more"))).await.is(422, "validation_failed");
        send_to(&key, "p99").await.ok();
        let all = key.get("/v1/projects?limit=200").await.ok();
        assert_eq!(all["projects"].as_array().unwrap().len(), 106);
        key.post("/v1/projects", &json!({"name": "one more"})).await.ok();
        send_to(&key, "one more").await.ok();
    }

    async fn project_named_by_concurrent_requests_is_created_once(app: TestApp) {
        let key = app.full_key();
        let item = json!({"project_name": "crowd"});
        let mut running = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (key, item) = (key.clone(), item.clone());
            running.spawn(async move { key.post("/v1/ingest", &item).await.status });
        }
        assert!(running.join_all().await.iter().all(|it| *it == 201));
        let list = key.get("/v1/projects").await.ok();
        let named = list["projects"].as_array().unwrap().iter().filter(|it| it["name"] == "crowd").count();
        assert_eq!(named, 1);
    }

    async fn number_of_own_prices_is_limited(app: TestApp) {
        let owner = app.session(Role::Owner);
        let price = json!({"input_per_million": 1.0, "output_per_million": 2.0});
        let parsed = serde_json::from_value(price.clone()).unwrap();
        let txn = app.app.db.begin().await.unwrap();
        for n in 0..999 {
            store::prices::set(&txn, app.tenant, &format!("m{n}"), &parsed, 0).await.unwrap();
        }
        txn.commit().await.unwrap();
        owner.put("/v1/models/the-last", &price).await.ok();
        owner.put("/v1/models/one-more", &price).await.is(422, "validation_failed");
        owner.put("/v1/models/m5", &price).await.ok();
    }

    async fn own_price_applies_to_later_traces_only(app: TestApp) {
        let (owner, key) = (app.session(Role::Owner), app.full_key());
        let cost = async |model: &str| {
            let span = json!({"name": "c", "type": "llm", "model": model, "prompt_tokens": 1000, "completion_tokens": 100});
            key.post("/v1/ingest", &json!({"spans": [span]})).await.ok()["cost"].clone()
        };
        assert_eq!(cost("house-model").await, Value::Null, "a model without a price has no cost");
        assert_eq!(cost("gpt-4o").await, 0.0035);
        let old = key.get("/v1/traces").await.ok();

        let set = owner.put("/v1/models/house-model", &json!({"input_per_million": 1.0, "output_per_million": 2.0})).await;
        let expected = json!({"name": "house-model", "input_per_million": 1.0, "output_per_million": 2.0, "source": "tenant"});
        assert_eq!((set.status, set.json()), (200, expected.clone()));
        owner.put("/v1/models/gpt-4o", &json!({"input_per_million": 0, "output_per_million": 10.0})).await.ok();
        assert_eq!(cost("house-model").await, 0.0012);
        assert_eq!(cost("gpt-4o").await, 0.001);
        owner.put("/v1/models/house-model", &json!({"input_per_million": 2.0, "output_per_million": 2.0})).await.ok();
        assert_eq!(cost("house-model").await, 0.0022);

        let after = key.get("/v1/traces").await.ok();
        let costs = |list: &Value, id: &Value| list["traces"].as_array().unwrap().iter().find(|it| it["id"] == *id).unwrap()["cost"].clone();
        for row in old["traces"].as_array().unwrap() {
            assert_eq!(costs(&after, &row["id"]), row["cost"], "the cost of a stored trace changed");
        }
        // The pages contain each name once.
        let names = async |caller: &Caller, limit: usize| {
            let (mut names, mut cursor) = (Vec::new(), String::new());
            loop {
                let page = caller.get(&format!("/v1/models?limit={limit}{cursor}")).await.ok();
                let models = page["models"].as_array().unwrap();
                assert!(models.len() <= limit && (models.len() == limit || page["has_more"] == false), "{page}");
                names.extend(models.iter().map(|it| it["name"].as_str().unwrap().to_owned()));
                match page["next_cursor"].as_str() {
                    Some(next) => cursor = format!("&cursor={next}"),
                    None => return names,
                }
            }
        };
        let own = names(&key, 20).await;
        assert!(own.is_sorted() && own.len() > 50 && own.contains(&"house-model".to_owned()), "{own:?}");
        assert_eq!(own, names(&key, 7).await);
        assert_eq!(own, names(&key, 200).await);
        assert_eq!(key.get("/v1/models").await.ok()["models"].as_array().unwrap().len(), 50);

        // The prices of another tenant are unchanged.
        let (_, other) = app.other_tenant(api::Plan::Starter).await;
        assert!(!names(&other, 200).await.contains(&"house-model".to_owned()));

        for body in [json!({"input_per_million": -1, "output_per_million": 1}), json!({"input_per_million": 1, "output_per_million": 1e9})] {
            owner.put("/v1/models/x", &body).await.is(422, "validation_failed");
        }
        for body in [json!({}), json!({"input_per_million": "1", "output_per_million": 1}), json!(null), json!({"input_per_million": 1})] {
            owner.put("/v1/models/x", &body).await.is(400, "invalid_body");
        }
        let rate = json!({"input_per_million": 1, "output_per_million": 1});
        for name in ["%20", "%00", &"x".repeat(2_000), "a%00b"] {
            owner.put(&format!("/v1/models/{name}"), &rate).await.is(422, "validation_failed");
        }
        owner.put("/v1/models/%ff", &rate).await.is(400, "invalid_query");
    }
}
