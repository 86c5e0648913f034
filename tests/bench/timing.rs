//! Tests whether response times reveal what responses hide: compares rejected keys with each other, and ids
//! of other tenants with unknown ids. For an otherwise idle machine; see docs/benchmarks.md.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]
#![allow(clippy::disallowed_methods, reason = "the environment names the databases")]

use std::time::Instant;

use api::{Plan, Role};
use entities::api_key;
use reqwest::{Method, RequestBuilder};
use sea_orm::{ActiveModelTrait, EntityTrait, IntoActiveModel};
use serde_json::json;
use server::access::api_key::ApiKey;
use store::new_id;
use tests::{On, TestApp, app::TEST_START_MICROS, postgres::URL_VARIABLE_NAME};

/// Number of requests of each kind.
const SAMPLES_PER_KIND: usize = 10_000;

/// The value of |t| (Welch's t-test, as in dudect) above which the times of two kinds differ with certainty.
const MAX_T: f64 = 4.5;

/// Returns the microseconds until a request is rejected with this status.
async fn timed(request: RequestBuilder, status: u16) -> f64 {
    let began = Instant::now();
    let reply = request.send().await.unwrap();
    assert_eq!(reply.status().as_u16(), status, "{}", reply.url());
    reply.bytes().await.unwrap();
    began.elapsed().as_secs_f64() * 1e6
}

/// Returns the mean of the faster nine tenths (the scheduler causes the slowest), the variance of this mean,
/// and the median of all.
fn brief(times: &mut [f64]) -> (f64, f64, f64) {
    times.sort_by(f64::total_cmp);
    let kept = &times[..times.len() * 9 / 10];
    let mean = kept.iter().sum::<f64>() / kept.len() as f64;
    let variance = kept.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / (kept.len() - 1) as f64;
    (mean, variance / kept.len() as f64, times[times.len() / 2])
}

/// Prints each kind next to the first one.
fn report(what: &str, kinds: &mut [(&str, Vec<f64>)]) {
    let first = brief(&mut kinds[0].1);
    for (name, times) in kinds {
        let (mean, error, median) = brief(times);
        let t = (mean - first.0) / (error + first.1).sqrt();
        let ratio = median / first.2 - 1.0;
        let verdict = if t.abs() < MAX_T { "" } else { "differs" };
        println!(
            "{what:<28} {name:<10} median {median:>7.1} µs {:>+6.1} %  t {t:>+7.2} {verdict}",
            ratio * 100.0
        );
    }
}

/// Inserts keys that were valid once and are now expired or, without `expired`, revoked. Returns their
/// secrets.
async fn past_keys(app: &TestApp, expired: bool) -> Vec<String> {
    let mut secrets = Vec::with_capacity(SAMPLES_PER_KIND);
    let mut rows = Vec::new();
    for _ in 0..SAMPLES_PER_KIND {
        let key = ApiKey::generate().unwrap();
        rows.push(api_key::Model {
            id: new_id(),
            tenant_id: app.tenant,
            project_id: app.project,
            hash: key.hash().to_vec(),
            name: "past".to_owned(),
            prefix: key.prefix().to_owned(),
            scopes: String::new(),
            role: Role::Owner.as_str().to_owned(),
            created_at: TEST_START_MICROS,
            expires_at: expired.then_some(TEST_START_MICROS - 1),
            revoked_at: (!expired).then_some(TEST_START_MICROS - 1),
        });
        secrets.push(key.reveal().to_owned());
    }
    for block in rows.chunks(500) {
        let block = block.iter().map(|it| it.clone().into_active_model().reset_all());
        api_key::Entity::insert_many(block).exec(&app.app.db.write).await.unwrap();
    }
    secrets
}

async fn refused_keys(database: On) {
    let app = TestApp::with(database, Plan::Enterprise, &["--unauthenticated-per-minute", "1000000"]).await;
    let (revoked, expired) = (past_keys(&app, false).await, past_keys(&app, true).await);
    let unknown = || (0..SAMPLES_PER_KIND).map(|_| ApiKey::generate().unwrap().reveal().to_owned());
    // Keys of the right length and alphabet with a wrong checksum.
    let wrong: Vec<String> = unknown().map(|it| format!("{}zzzzzz", &it[..46])).collect();
    let all = [
        ("unknown", unknown().collect()),
        ("unknown", unknown().collect()),
        ("revoked", revoked),
        ("expired", expired),
        ("checksum", wrong),
    ];
    let client = app.anonymous();
    for fresh in [true, false] {
        let mut kinds = all.each_ref().map(|it| (it.0, Vec::with_capacity(SAMPLES_PER_KIND)));
        for n in 0..SAMPLES_PER_KIND {
            for which in (0..all.len()).map(|it| (it + n) % all.len()) {
                let key = &all[which].1[if fresh { n } else { 0 }];
                let request = client.request(Method::GET, "/v1/me").bearer_auth(key);
                kinds[which].1.push(timed(request, 401).await);
            }
        }
        let what = format!("{database:?}, {}", if fresh { "a new key each" } else { "the same key" });
        report(&what, &mut kinds);
    }
    app.stop().await;
}

async fn ids_of_others(database: On) {
    let app = TestApp::on(database).await;
    let (other, _) = app.other_tenant(Plan::Enterprise).await;
    let theirs = app.session_of(other, Role::Owner);
    let id = |it: serde_json::Value| it["id"].as_str().unwrap().to_owned();
    let trace = id(theirs.post("/v1/ingest", &json!({"name": "n"})).await.ok());
    let project = id(theirs.post("/v1/projects", &json!({"name": "p"})).await.ok());
    let deployment = json!({"project_id": project, "prompt_name": "p", "template": "t"});
    let deployment = id(theirs.post("/v1/prompts/deployments", &deployment).await.ok());
    let key = id(theirs.post("/v1/apikeys", &json!({"name": "k"})).await.ok());
    let member = theirs.get("/v1/members").await.ok()["members"][0]["id"].as_str().unwrap().to_owned();
    let owner = app.session(Role::Owner);
    for (method, before, id, after) in [
        (Method::GET, "/v1/traces/", &trace, ""),
        (Method::GET, "/v1/traces/", &trace, "/spans"),
        (Method::DELETE, "/v1/traces/", &trace, ""),
        (Method::GET, "/v1/projects/", &project, ""),
        (Method::PATCH, "/v1/projects/", &project, ""),
        (Method::POST, "/v1/projects/", &project, "/archive"),
        (Method::GET, "/v1/projects/", &project, "/redaction"),
        (Method::GET, "/v1/prompts/deployments/", &deployment, ""),
        (Method::POST, "/v1/prompts/deployments/", &deployment, "/approve"),
        (Method::DELETE, "/v1/apikeys/", &key, ""),
        (Method::PATCH, "/v1/members/", &member, ""),
        (Method::DELETE, "/v1/members/", &member, ""),
    ] {
        let mut kinds = [("unknown", Vec::new()), ("foreign", Vec::new())];
        for n in 0..1_000 {
            for which in [n % 2, 1 - n % 2] {
                let id = if which == 0 { new_id().to_string() } else { id.clone() };
                let path = format!("{before}{id}{after}");
                let request = owner.request(method.clone(), &path).json(&json!({"status": "active"}));
                kinds[which].1.push(timed(request, 404).await);
            }
        }
        report(&format!("{database:?} {method} {before}…{after}"), &mut kinds);
    }
    app.stop().await;
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut databases = vec![On::Sqlite];
    if std::env::var_os(URL_VARIABLE_NAME).is_some() {
        databases.push(On::Postgres);
    }
    for database in databases {
        refused_keys(database).await;
        ids_of_others(database).await;
    }
}
