//! How many wait for a provider at the same time, and what the operator sees.

use std::time::Duration;

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_so_many_wait_for_one_provider() {
    let scene = Arc::new(Scene::own("openai").await);
    scene.own.turn([Mood::Stalls]);
    let chosen = scene.chosen().await;
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let (scene, chosen) = (Arc::clone(&scene), chosen.clone());
            tokio::spawn(async move { scene.app.app.judge.ask(&chosen, &question()).await })
        })
        .collect();
    while scene.own.count() < 8 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let failure = scene.fails().await;
    assert_eq!((failure.kind, failure.retry_after), (Kind::Waiting, Some(Duration::from_secs(1))));
    assert_eq!(scene.own.count(), 8);
    // Whoever stops waiting gives the turn back.
    for it in waiting {
        it.abort();
        assert!(it.await.is_err());
    }
    scene.own.turn([Mood::Well]);
    assert!(scene.ask().await.is_ok());
    Arc::into_inner(scene).unwrap().stop().await;
}

#[tokio::test]
async fn the_operator_sees_figures() {
    let scene = Scene::own("openai").await;
    scene.own.turn([Mood::Says("?".to_owned()), Mood::Well, Mood::Status(401, None, "no", "")]);
    scene.ask().await.unwrap();
    scene.fails().await;
    let page = scene.app.anonymous().get("/metrics").await.text();
    for line in [
        "loupe_judge_verdicts_total{outcome=\"ok\"} 1",
        "loupe_judge_verdicts_total{outcome=\"broken\"} 1",
        "loupe_judge_requests_total{outcome=\"ok\"} 2",
        "loupe_judge_requests_total{outcome=\"denied\"} 1",
        "loupe_judge_repairs_total 1",
        "loupe_judge_tokens_total{direction=\"input\"} 2000",
        "loupe_judge_tokens_total{direction=\"output\"} 200",
        "loupe_judge_request_duration_seconds_count 3",
    ] {
        assert!(page.lines().any(|it| it == line), "{line}\n{page}");
    }
    assert!(!page.contains("canary"));
    scene.stop().await;
}
