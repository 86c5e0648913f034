//! The operator's settings for a provider.

use std::path::Path;

use api::{Plan, Role};
use serde_json::{Value, json};
use server::{access::session::Claims, clock::Clock, config};
use tests::{On, TestApp, process::Setup};

use crate::{
    provider::{Provider, TOKEN_AUDIENCE},
    signer::Signer,
};

#[tokio::test]
async fn claim_names_follow_the_settings() {
    let signer = Signer::p256("only");
    let provider = Provider::with(&[&signer]).await;
    let flags =
        ["--oidc-tenant-claim", "https://acme.example/org.id", "--oidc-role-claim", "realm_access.roles"];
    let app = provider.app(&flags).await;
    let mut claims = provider.claims(&app);
    app.bearer(&signer.token(&claims)).get("/v1/me").await.is(401, "unauthorized");
    claims["https://acme.example/org.id"] = json!(app.tenant);
    claims["realm_access"] = json!({"roles": ["offline_access", "member"]});
    let me = app.bearer(&signer.token(&claims)).get("/v1/me").await.ok();
    // The claims with the default names are ignored.
    assert_eq!((&me["role"], &me["subject"]), (&json!("member"), &json!("auth0|ada")));
    assert_eq!(me["expires_at"], "2026-06-15T13:00:00.000000Z");
    claims["realm_access.roles"] = json!("viewer");
    assert_eq!(app.bearer(&signer.token(&claims)).get("/v1/me").await.ok()["role"], "viewer");
    app.stop().await;
}

#[tokio::test]
async fn audience_is_ignored_without_the_setting() {
    let signer = Signer::p256("only");
    let provider = Provider::with(&[&signer]).await;
    let app = TestApp::with(On::Sqlite, Plan::Starter, &["--oidc-issuer", &provider.issuer]).await;
    let mut claims = provider.claims(&app);
    for audience in [json!("another"), json!(["x"]), json!(5), Value::Null] {
        claims["aud"] = audience;
        app.bearer(&signer.token(&claims)).get("/v1/me").await.ok();
    }
    claims.as_object_mut().unwrap().remove("aud");
    app.bearer(&signer.token(&claims)).get("/v1/me").await.ok();
    app.stop().await;
}

#[tokio::test]
async fn jwks_url_setting_skips_discovery() {
    let signer = Signer::p256("only");
    let provider = Provider::with(&[&signer]).await;
    let keys = format!("{}/keys", provider.issuer);
    let issuer = "https://issuer.example/tenant/";
    let app =
        TestApp::with(On::Sqlite, Plan::Starter, &["--oidc-issuer", issuer, "--oidc-jwks-url", &keys]).await;
    let mut claims = provider.claims(&app);
    claims["iss"] = json!(issuer);
    app.bearer(&signer.token(&claims)).get("/v1/me").await.ok();
    claims["iss"] = json!(issuer.trim_end_matches('/'));
    app.bearer(&signer.token(&claims)).get("/v1/me").await.is(401, "unauthorized");
    app.stop().await;
}

/// A document must name the configured issuer exactly; otherwise any issuer could have written it.
#[tokio::test]
async fn discovery_document_must_name_the_issuer() {
    let signer = Signer::p256("only");
    let provider = Provider::with(&[&signer]).await;
    let (issuer, keys) = (provider.issuer.clone(), format!("{}/keys", provider.issuer));
    let documents = [
        (json!("https://issuer.example"), keys.clone()),
        (json!(format!("{issuer}/")), keys.clone()),
        (json!(null), keys),
        (json!(issuer), "http://10.0.0.1/keys".to_owned()),
        (json!(issuer), "file:///etc/passwd".to_owned()),
        (json!(issuer), "/keys".to_owned()),
        (json!(issuer), format!("{}/keys", issuer.replace("//", "//user:pass@"))),
        // A redirect is not followed.
        (json!(issuer), format!("{issuer}/moved")),
    ];
    let app = provider.app(&[]).await;
    let token = app.bearer(&signer.token(&provider.claims(&app)));
    token.get("/v1/me").await.ok();
    for (issuer, keys) in documents {
        provider.set_discovery_document(issuer, &keys);
        let app = provider.app(&[]).await;
        app.bearer(&signer.token(&provider.claims(&app))).get("/v1/me").await.is(503, "overloaded");
        app.stop().await;
    }
    app.stop().await;
}

#[tokio::test]
async fn local_issuer_beside_a_provider_requires_a_secret() {
    let signer = Signer::p256("only");
    let provider = Provider::with(&[&signer]).await;
    let secret = ["--session-secret", "0123456789abcdef0123456789abcdef"];
    let both = provider.app(&secret).await;
    both.session(Role::Member).get("/v1/me").await.ok();
    both.bearer(&signer.token(&provider.claims(&both))).get("/v1/me").await.ok();

    let alone = provider.app(&[]).await;
    let claims = Claims {
        sub: "local-owner".to_owned(),
        tenant_id: alone.tenant.to_string(),
        role: "owner".to_owned(),
        exp: alone.clock.now() / 1_000_000 + 60,
        nbf: None,
    };
    assert!(alone.app.sessions.issue(&claims).is_err());
    let local = both.app.sessions.issue(&claims).unwrap();
    alone.bearer(&local).get("/v1/me").await.is(401, "unauthorized");
    both.stop().await;
    alone.stop().await;
}

#[test]
fn unusable_session_token_is_not_issued() {
    let folder = tempfile::tempdir().unwrap();
    let make = ["admin", "create-tenant", "--name", "acme", "--plan", "team", "--json"];
    let made: Value = serde_json::from_slice(&Setup::new(folder.path()).run(&make).stdout).unwrap();
    let tenant = made["tenant_id"].as_str().unwrap();
    let issued = |setup: Setup| {
        let output = setup.run(&["admin", "issue-token", "--tenant", tenant, "--role", "owner"]);
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let with_provider =
        |folder: &Path| Setup::new(folder).with("LOUPE_OIDC_ISSUER", "https://issuer.example");
    let (worked, said) = issued(with_provider(folder.path()));
    assert!(!worked && said.contains("LOUPE_SESSION_SECRET"), "{said}");
    let secret = ("LOUPE_SESSION_SECRET", "0123456789abcdef0123456789abcdef");
    assert!(issued(with_provider(folder.path()).with(secret.0, secret.1)).0);
    assert!(issued(Setup::new(folder.path()).with("LOUPE_OIDC_ISSUER", "")).0, "empty is unset");
    let unknown = "0198f7c0-0000-7000-8000-000000000000";
    let output =
        Setup::new(folder.path()).run(&["admin", "issue-token", "--tenant", unknown, "--role", "owner"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("list-tenants"), "{said}");
}

#[test]
fn invalid_oidc_setting_is_rejected() {
    let checked = |flags: &[&str]| config::from_flags(flags).unwrap().check().map_err(|it| format!("{it:#}"));
    let issuer = |url: &str| checked(&["--oidc-issuer", url, "--oidc-audience", TOKEN_AUDIENCE]);
    for url in [
        "https://issuer.example",
        "https://issuer.example/a/b/",
        "http://localhost:8080/x",
        "http://[::1]:1",
        "http://127.0.0.2",
    ] {
        issuer(url).unwrap();
    }
    for url in [
        "issuer.example",
        "http://issuer.example",
        "http://10.0.0.1",
        "http://localhost.example",
        "ftp://localhost",
        "https://",
        "https://user@issuer.example",
        "https://issuer.example?x=1",
        "https://issuer.example/#x",
        "file:///etc/passwd",
        "x",
    ] {
        let said = issuer(url).unwrap_err();
        assert!(said.contains("LOUPE_OIDC_ISSUER"), "{url}: {said}");
    }
    for flags in [["--oidc-audience", "x"], ["--oidc-jwks-url", "https://issuer.example/keys"]] {
        let said = checked(&flags).unwrap_err();
        assert!(said.contains("LOUPE_OIDC_ISSUER"), "{said}");
    }
    let said = checked(&[
        "--oidc-issuer",
        "https://issuer.example",
        "--oidc-jwks-url",
        "http://issuer.example/keys",
    ])
    .unwrap_err();
    assert!(said.contains("LOUPE_OIDC_JWKS_URL"), "{said}");
}
