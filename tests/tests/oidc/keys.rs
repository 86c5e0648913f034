//! Keys of the provider that are added, removed or unavailable.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use server::clock::Clock;
use tests::{Reply, TestApp};

use crate::{
    provider::{Mood, Provider},
    signer::Signer,
};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Returns claims that stay valid however far a test moves the clock.
fn lasting(provider: &Provider, app: &TestApp) -> Value {
    let mut claims = provider.claims(app);
    claims["exp"] = json!(app.clock.now() / 1_000_000 + 30 * DAY);
    claims.as_object_mut().unwrap().remove("iat");
    claims
}

async fn me(app: &TestApp, token: &str) -> Reply {
    app.bearer(token).get("/v1/me").await
}

/// Checks the response to a token that can't be verified at the moment.
fn undecided(reply: &Reply) {
    reply.is(503, "overloaded");
    assert!(reply.headers["retry-after"].to_str().unwrap().parse::<u32>().unwrap() >= 1);
}

#[tokio::test]
async fn a_new_key_works_on_first_use() {
    let (old, new) = (Signer::p256("old"), Signer::rsa("new"));
    let provider = Provider::with(&[&old]).await;
    let app = provider.app(&[]).await;
    let claims = lasting(&provider, &app);
    me(&app, &old.token(&claims)).await.ok();
    app.advance(31);
    provider.publish(&[&old, &new]);
    me(&app, &new.token(&claims)).await.ok();
    me(&app, &old.token(&claims)).await.ok();
    assert_eq!(provider.fetches(), 2);
    app.stop().await;
}

#[tokio::test]
async fn a_key_without_a_name_is_exchanged() {
    let unnamed = || {
        let mut signer = Signer::p256("");
        signer.jwk.as_object_mut().unwrap().remove("kid");
        signer
    };
    let (old, new) = (unnamed(), unnamed());
    let provider = Provider::with(&[&old]).await;
    let app = provider.app(&[]).await;
    let (claims, header) = (lasting(&provider, &app), json!({"alg": "ES256"}));
    me(&app, &old.sign(&header, &claims)).await.ok();
    app.advance(31);
    provider.publish(&[&new]);
    me(&app, &new.sign(&header, &claims)).await.ok();
    me(&app, &old.sign(&header, &claims)).await.is(401, "unauthorized");
    app.stop().await;
}

#[tokio::test]
async fn a_removed_key_is_dead_within_ten_minutes() {
    let (old, new) = (Signer::p256("old"), Signer::p256("new"));
    let provider = Provider::with(&[&old, &new]).await;
    let app = provider.app(&[]).await;
    let claims = lasting(&provider, &app);
    let (old_token, new_token) = (old.token(&claims), new.token(&claims));
    me(&app, &old_token).await.ok();
    provider.publish(&[&new]);
    // Without requests meanwhile, the first request fetches the keys.
    app.advance(10 * MINUTE);
    me(&app, &old_token).await.is(401, "unauthorized");
    me(&app, &new_token).await.ok();
    assert_eq!(provider.fetches(), 2);

    // With regular requests, the keys are fetched in the background, and no request waits.
    provider.publish(&[&old]);
    provider.is(Mood::Slow(Duration::from_millis(300)));
    for minute in 1..10 {
        app.advance(MINUTE);
        let began = Instant::now();
        let reply = me(&app, &new_token).await;
        let waited = began.elapsed();
        if reply.status == 401 {
            assert_eq!(minute, 9, "the fetch of the eighth minute tells");
            break;
        }
        reply.ok();
        if minute == 8 {
            assert!(waited < Duration::from_millis(250), "{waited:?}");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
    // One fetch because of the age of the keys, and one for a key that might have been new.
    assert_eq!(provider.fetches(), 4);
    me(&app, &new_token).await.is(401, "unauthorized");
    me(&app, &old_token).await.ok();
    app.stop().await;
}

#[tokio::test]
async fn an_outage_goes_unnoticed_for_a_day() {
    let (old, new) = (Signer::p256("old"), Signer::p256("new"));
    let provider = Provider::with(&[&old]).await;
    let app = provider.app(&[]).await;
    let claims = lasting(&provider, &app);
    let token = old.token(&claims);
    me(&app, &token).await.ok();
    provider.is(Mood::Failing(500));
    for _ in 0..25 {
        app.advance(MINUTE);
        me(&app, &token).await.ok();
    }
    // At most one attempt per minute, from the eighth on.
    assert!((2..=20).contains(&provider.fetches()), "{}", provider.fetches());
    // The server can't determine whether a key is new or invented.
    undecided(&me(&app, &new.token(&claims)).await);
    app.advance(23 * HOUR);
    me(&app, &token).await.ok();
    app.advance(HOUR);
    undecided(&me(&app, &token).await);
    app.full_key().get("/v1/me").await.ok();

    provider.is(Mood::Well);
    provider.publish(&[&old, &new]);
    app.advance(31);
    me(&app, &new.token(&claims)).await.ok();
    me(&app, &token).await.ok();
    app.stop().await;
}

#[tokio::test]
async fn a_provider_that_hangs_holds_up_one_moment_at_most() {
    let signer = Signer::p256("only");
    let provider = Provider::with(&[&signer]).await;
    let app = provider.app(&[]).await;
    let token = signer.token(&lasting(&provider, &app));
    me(&app, &token).await.ok();
    provider.is(Mood::Slow(Duration::from_secs(60)));
    for minute in 1..=12 {
        app.advance(MINUTE);
        let began = Instant::now();
        me(&app, &token).await.ok();
        assert!(began.elapsed() < Duration::from_secs(1), "minute {minute}: {:?}", began.elapsed());
        if minute == 8 {
            // The background fetch gives up after five seconds.
            tokio::time::sleep(Duration::from_millis(5_200)).await;
        }
    }
    app.stop().await;
}

#[tokio::test]
async fn without_keys_nobody_is_told_that_the_token_is_bad() {
    let signer = Signer::p256("only");
    let provider = Provider::with(&[&signer]).await;
    provider.is(Mood::Failing(502));
    let app = provider.app(&[]).await;
    let claims = lasting(&provider, &app);
    let token = signer.token(&claims);
    undecided(&me(&app, &token).await);
    undecided(&me(&app, &token).await);
    // Tokens that no key could make valid need no provider.
    for bad in
        ["x.y.z", &token[1..], &signer.token(&json!({})), &signer.sign(&json!({"alg": "none"}), &claims)]
    {
        me(&app, bad).await.is(401, "unauthorized");
    }
    app.full_key().get("/v1/me").await.ok();
    provider.is(Mood::Well);
    app.advance(5);
    me(&app, &token).await.ok();
    assert_eq!(provider.fetches(), 2);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_longer_than_a_moment_for_a_first_key() {
    let signer = Signer::p256("only");
    let provider = Provider::with(&[&signer]).await;
    provider.is(Mood::Slow(Duration::from_secs(60)));
    let app = provider.app(&[]).await;
    let token = signer.token(&lasting(&provider, &app));
    let began = Instant::now();
    undecided(&me(&app, &token).await);
    let took = began.elapsed();
    assert!((Duration::from_millis(2_500)..Duration::from_secs(4)).contains(&took), "{took:?}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invented_key_ids_are_no_way_to_disturb_anybody() {
    let signer = Signer::rsa("good");
    let provider = Provider::with(&[&signer]).await;
    let app = provider.app(&["--unauthenticated-per-minute", "10000"]).await;
    let claims = lasting(&provider, &app);
    let good = app.bearer(&signer.token(&claims));
    good.get("/v1/me").await.ok();
    app.advance(31);
    // A request that waited for the provider would take a second.
    provider.is(Mood::Slow(Duration::from_secs(1)));
    let forger = Signer::p256("forger");
    let invented = async {
        let anyone = app.anonymous();
        let requests = (0..500).map(|i| {
            let token = forger.sign(&json!({"alg": "ES256", "kid": format!("kid-{i}")}), &claims);
            anyone.request(reqwest::Method::GET, "/v1/me").bearer_auth(token)
        });
        for request in requests {
            // Ten seconds in all.
            app.clock.advance(20_000);
            anyone.send(request).await.is(401, "unauthorized");
        }
    };
    let mut times = Vec::new();
    let ours = async {
        for _ in 0..500 {
            let began = Instant::now();
            good.get("/v1/me").await.ok();
            times.push(began.elapsed());
        }
    };
    tokio::join!(invented, ours);
    assert_eq!(provider.fetches(), 2, "one at the start, one for all of the others");
    times.sort();
    let p99 = times[494];
    println!("p99 of good tokens: {p99:?}");
    assert!(p99 < Duration::from_millis(500), "{p99:?}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_first_users_of_a_key_share_one_fetch() {
    let (old, new) = (Signer::p256("old"), Signer::p256("new"));
    let provider = Provider::with(&[&old]).await;
    let app = provider.app(&[]).await;
    let claims = lasting(&provider, &app);
    me(&app, &old.token(&claims)).await.ok();
    app.advance(31);
    provider.publish(&[&new]);
    provider.is(Mood::Slow(Duration::from_millis(200)));
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
async fn what_is_no_key_set_changes_nothing() {
    let signer = Signer::p256("only");
    let provider = Provider::with(&[&signer]).await;
    let app = provider.app(&[]).await;
    let token = signer.token(&lasting(&provider, &app));
    me(&app, &token).await.ok();
    let many = json!({"keys": vec![signer.jwk.clone(); 65]}).to_string();
    let large = json!({"keys": [signer.jwk], "x": "x".repeat(300_000)}).to_string();
    for body in ["", "null", "[]", "{}", "{\"keys\":{}}", "{\"keys\":null}", "<html>", &many, &large] {
        let before = provider.fetches();
        provider.is(Mood::Saying(body.to_owned()));
        app.advance(11 * MINUTE);
        me(&app, &token).await.ok();
        assert_eq!(provider.fetches(), before + 1);
    }
    // An empty set is a valid set: the provider revokes all keys.
    provider.is(Mood::Saying(r#"{"keys":[]}"#.to_owned()));
    app.advance(11 * MINUTE);
    me(&app, &token).await.is(401, "unauthorized");
    provider.is(Mood::Well);
    app.advance(31);
    me(&app, &token).await.ok();
    app.stop().await;
}

#[tokio::test]
async fn a_clock_that_is_set_back_does_not_revive_a_key() {
    let (old, new) = (Signer::p256("old"), Signer::p256("new"));
    let provider = Provider::with(&[&old]).await;
    let app = provider.app(&[]).await;
    let claims = lasting(&provider, &app);
    me(&app, &old.token(&claims)).await.ok();
    provider.publish(&[&new]);
    app.advance(-HOUR);
    me(&app, &old.token(&claims)).await.is(401, "unauthorized");
    me(&app, &new.token(&claims)).await.ok();
    app.stop().await;
}
