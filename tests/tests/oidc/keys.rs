//! Keys of the provider that are added, removed or unavailable.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use server::clock::Clock;
use tests::{
    Reply, TestApp,
    hang::{must_end, wait_until},
};
use tokio::sync::Notify;

use crate::{
    provider::{Behaviour, Provider},
    signer::Signer,
};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// A delay that is longer than any test.
const STALL_DURATION: Duration = Duration::from_secs(3_600);

/// Returns claims that stay valid however far a test moves the clock.
fn lasting_claims(provider: &Provider, app: &TestApp) -> Value {
    let mut claims = provider.claims(app);
    claims["exp"] = json!(app.clock.now() / 1_000_000 + 30 * DAY);
    claims.as_object_mut().unwrap().remove("iat");
    claims
}

async fn me(app: &TestApp, token: &str) -> Reply {
    app.bearer(token).get("/v1/me").await
}

/// Checks the response to a token that cannot be verified at the moment.
fn assert_undecided(reply: &Reply) {
    reply.is(503, "overloaded");
    assert!(reply.headers["retry-after"].to_str().unwrap().parse::<u32>().unwrap() >= 1);
}

#[tokio::test]
async fn new_key_works_on_first_use() {
    let (old, new) = (Signer::p256("old"), Signer::rsa("new"));
    let provider = Provider::with(&[&old]).await;
    let app = provider.app(&[]).await;
    let claims = lasting_claims(&provider, &app);
    me(&app, &old.token(&claims)).await.ok();
    app.advance(31);
    provider.publish(&[&old, &new]);
    me(&app, &new.token(&claims)).await.ok();
    me(&app, &old.token(&claims)).await.ok();
    assert_eq!(provider.fetches(), 2);
    app.stop().await;
}

#[tokio::test]
async fn key_without_kid_is_replaced() {
    let unnamed = || {
        let mut signer = Signer::p256("");
        signer.jwk.as_object_mut().unwrap().remove("kid");
        signer
    };
    let (old, new) = (unnamed(), unnamed());
    let provider = Provider::with(&[&old]).await;
    let app = provider.app(&[]).await;
    let (claims, header) = (lasting_claims(&provider, &app), json!({"alg": "ES256"}));
    me(&app, &old.sign(&header, &claims)).await.ok();
    app.advance(31);
    provider.publish(&[&new]);
    me(&app, &new.sign(&header, &claims)).await.ok();
    me(&app, &old.sign(&header, &claims)).await.is(401, "unauthorized");
    app.stop().await;
}

#[tokio::test]
async fn removed_key_is_rejected_within_ten_minutes() {
    let (old, new) = (Signer::p256("old"), Signer::p256("new"));
    let provider = Provider::with(&[&old, &new]).await;
    let app = provider.app(&[]).await;
    let claims = lasting_claims(&provider, &app);
    let (old_token, new_token) = (old.token(&claims), new.token(&claims));
    me(&app, &old_token).await.ok();
    provider.publish(&[&new]);
    // Without requests meanwhile, the first request fetches the keys.
    app.advance(10 * MINUTE);
    me(&app, &old_token).await.is(401, "unauthorized");
    me(&app, &new_token).await.ok();
    assert_eq!(provider.fetches(), 2);

    // With regular requests, the keys are fetched in the background. No request waits: the provider responds only
    // after the requests.
    provider.publish(&[&old]);
    let released = Arc::new(Notify::new());
    provider.set_behaviour(Behaviour::Waits(Arc::clone(&released)));
    for _ in 1..=8 {
        app.advance(MINUTE);
        me(&app, &new_token).await.ok();
    }
    wait_until("the eighth minute starts a fetch", async || provider.open_fetches() == 1).await;
    provider.set_behaviour(Behaviour::Succeeds);
    released.notify_one();
    wait_until("the fetched keys apply", async || me(&app, &new_token).await.status == 401).await;
    assert_eq!(provider.fetches(), 3, "one fetch because of the age of the keys");
    // Keys that are a minute old are fetched again for a key that might have been new.
    app.advance(MINUTE);
    me(&app, &new_token).await.is(401, "unauthorized");
    assert_eq!(provider.fetches(), 4);
    me(&app, &old_token).await.ok();
    app.stop().await;
}

#[tokio::test]
async fn provider_outage_is_tolerated_for_a_day() {
    let (old, new) = (Signer::p256("old"), Signer::p256("new"));
    let provider = Provider::with(&[&old]).await;
    let app = provider.app(&[]).await;
    let claims = lasting_claims(&provider, &app);
    let token = old.token(&claims);
    me(&app, &token).await.ok();
    provider.set_behaviour(Behaviour::Fails(500));
    for _ in 0..25 {
        app.advance(MINUTE);
        me(&app, &token).await.ok();
    }
    // At most one attempt per minute, from the eighth on.
    assert!((2..=20).contains(&provider.fetches()), "{}", provider.fetches());
    // The server cannot determine whether a key is new or invented.
    assert_undecided(&me(&app, &new.token(&claims)).await);
    app.advance(23 * HOUR);
    me(&app, &token).await.ok();
    app.advance(HOUR);
    assert_undecided(&me(&app, &token).await);
    app.full_key().get("/v1/me").await.ok();

    provider.set_behaviour(Behaviour::Succeeds);
    provider.publish(&[&old, &new]);
    app.advance(31);
    me(&app, &new.token(&claims)).await.ok();
    me(&app, &token).await.ok();
    app.stop().await;
}

#[tokio::test]
async fn hanging_provider_does_not_block_known_keys() {
    let signer = Signer::p256("only");
    let provider = Provider::with(&[&signer]).await;
    let app = provider.app(&[]).await;
    let token = signer.token(&lasting_claims(&provider, &app));
    me(&app, &token).await.ok();
    provider.set_behaviour(Behaviour::Delays(STALL_DURATION));
    for minute in 1..=12 {
        app.advance(MINUTE);
        me(&app, &token).await.ok();
        if minute == 8 {
            // A request that waited for the fetch would end after the fetch has been given up.
            wait_until("a fetch starts in the background", async || provider.fetches() == 2).await;
            assert_eq!(provider.open_fetches(), 1, "the request waited for the fetch");
            wait_until("the fetch is given up", async || provider.open_fetches() == 0).await;
        }
    }
    app.stop().await;
}

#[tokio::test]
async fn token_without_available_keys_gets_503() {
    let signer = Signer::p256("only");
    let provider = Provider::with(&[&signer]).await;
    provider.set_behaviour(Behaviour::Fails(502));
    let app = provider.app(&[]).await;
    let claims = lasting_claims(&provider, &app);
    let token = signer.token(&claims);
    assert_undecided(&me(&app, &token).await);
    assert_undecided(&me(&app, &token).await);
    // Tokens that no key could make valid need no provider.
    for bad in
        ["x.y.z", &token[1..], &signer.token(&json!({})), &signer.sign(&json!({"alg": "none"}), &claims)]
    {
        me(&app, bad).await.is(401, "unauthorized");
    }
    app.full_key().get("/v1/me").await.ok();
    provider.set_behaviour(Behaviour::Succeeds);
    app.advance(5);
    me(&app, &token).await.ok();
    assert_eq!(provider.fetches(), 2);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_key_fetch_times_out_with_503() {
    let signer = Signer::p256("only");
    let provider = Provider::with(&[&signer]).await;
    provider.set_behaviour(Behaviour::Delays(STALL_DURATION));
    let app = provider.app(&[]).await;
    let token = signer.token(&lasting_claims(&provider, &app));
    assert_undecided(&must_end("the fetch times out", me(&app, &token)).await);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invented_key_ids_cause_one_fetch() {
    let signer = Signer::rsa("good");
    let provider = Provider::with(&[&signer]).await;
    let app = provider.app(&["--unauthenticated-per-minute", "10000"]).await;
    let claims = lasting_claims(&provider, &app);
    let good = app.bearer(&signer.token(&claims));
    good.get("/v1/me").await.ok();
    app.advance(31);
    provider.set_behaviour(Behaviour::Delays(Duration::from_secs(1)));
    let forger = Signer::p256("forger");
    let invented = async {
        let anyone = app.anonymous();
        let requests = (0..500).map(|i| {
            let token = forger.sign(&json!({"alg": "ES256", "kid": format!("kid-{i}")}), &claims);
            anyone.request(reqwest::Method::GET, "/v1/me").bearer_auth(token)
        });
        for request in requests {
            // The clock advances by ten seconds in total.
            app.clock.advance(20_000);
            anyone.send(request).await.is(401, "unauthorized");
        }
    };
    let valid = async {
        for _ in 0..500 {
            good.get("/v1/me").await.ok();
        }
    };
    tokio::join!(invented, valid);
    assert_eq!(provider.fetches(), 2, "one fetch at the start, and one for all invented ids");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_users_of_a_new_key_share_one_fetch() {
    let (old, new) = (Signer::p256("old"), Signer::p256("new"));
    let provider = Provider::with(&[&old]).await;
    let app = provider.app(&[]).await;
    let claims = lasting_claims(&provider, &app);
    me(&app, &old.token(&claims)).await.ok();
    app.advance(31);
    provider.publish(&[&new]);
    provider.set_behaviour(Behaviour::Delays(Duration::from_millis(200)));
    let token = app.bearer(&new.token(&claims));
    let mut users = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let token = token.clone();
        users.spawn(async move { token.get("/v1/me").await.status });
    }
    assert_eq!(users.join_all().await, [200; 50]);
    assert_eq!(provider.fetches(), 2);
    app.stop().await;
}

#[tokio::test]
async fn invalid_key_set_keeps_the_previous_keys() {
    let signer = Signer::p256("only");
    let provider = Provider::with(&[&signer]).await;
    let app = provider.app(&[]).await;
    let token = signer.token(&lasting_claims(&provider, &app));
    me(&app, &token).await.ok();
    let many = json!({"keys": vec![signer.jwk.clone(); 65]}).to_string();
    let large = json!({"keys": [signer.jwk], "x": "x".repeat(300_000)}).to_string();
    for body in ["", "null", "[]", "{}", "{\"keys\":{}}", "{\"keys\":null}", "<html>", &many, &large] {
        let before = provider.fetches();
        provider.set_behaviour(Behaviour::RespondsWith(body.to_owned()));
        app.advance(11 * MINUTE);
        me(&app, &token).await.ok();
        assert_eq!(provider.fetches(), before + 1);
    }
    // An empty set is a valid set: the provider revokes all keys.
    provider.set_behaviour(Behaviour::RespondsWith(r#"{"keys":[]}"#.to_owned()));
    app.advance(11 * MINUTE);
    me(&app, &token).await.is(401, "unauthorized");
    provider.set_behaviour(Behaviour::Succeeds);
    app.advance(31);
    me(&app, &token).await.ok();
    app.stop().await;
}

#[tokio::test]
async fn clock_set_back_does_not_revive_a_key() {
    let (old, new) = (Signer::p256("old"), Signer::p256("new"));
    let provider = Provider::with(&[&old]).await;
    let app = provider.app(&[]).await;
    let claims = lasting_claims(&provider, &app);
    me(&app, &old.token(&claims)).await.ok();
    provider.publish(&[&new]);
    app.advance(-HOUR);
    me(&app, &old.token(&claims)).await.is(401, "unauthorized");
    me(&app, &new.token(&claims)).await.ok();
    app.stop().await;
}
