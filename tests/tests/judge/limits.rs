//! The number of concurrent requests to a provider, and the operator's metrics about them.

use std::time::Duration;

use sea_orm::EntityTrait;

use super::{over_http::METRIC_NAME, *};

type RunningRequests = Vec<tokio::task::JoinHandle<Result<JudgeResult, JudgeFailure>>>;

/// Starts as many evaluations as may wait for a provider that does not respond.
async fn occupy_all_permits(scene: &Arc<Scene>) -> RunningRequests {
    scene.own.set_behaviours([Behaviour::Stalls]);
    let chosen = scene.selected_judge().await;
    let ask = |_| {
        let (scene, chosen) = (Arc::clone(scene), chosen.clone());
        tokio::spawn(async move { scene.app.app.judge.ask(&chosen, &judge_request()).await })
    };
    let asking = (0..8).map(ask).collect();
    scene.wait_for_requests(8).await;
    asking
}

async fn cancel_all(asking: RunningRequests) {
    for it in asking {
        it.abort();
        assert!(it.await.is_err());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_requests_to_a_provider_are_limited() {
    let scene = Arc::new(Scene::with_own_provider("openai").await);
    let waiting = occupy_all_permits(&scene).await;
    let failure = scene.request_failure().await;
    assert_eq!(
        (failure.kind, failure.retry_after),
        (JudgeFailureKind::Waiting, Some(Duration::from_secs(1)))
    );
    assert_eq!(scene.own.request_count(), 8);
    // A cancelled caller releases its permit.
    cancel_all(waiting).await;
    scene.own.set_behaviours([Behaviour::Succeeds]);
    assert!(scene.request_verdict().await.is_ok());
    Arc::into_inner(scene).unwrap().stop().await;
}

/// Waiting for a permit never fails an evaluation; a failing judge does after several attempts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_for_a_permit_never_fails_an_evaluation() {
    let scene = Arc::new(Scene::with_own_provider("openai").await);
    let stalled = occupy_all_permits(&scene).await;
    let (path, _) = scene.evaluate_once().await;
    scene.app.advance(7 * 3_600);
    scene.app.drain().await;
    assert_eq!(scene.get(&path).await["status"], "pending");
    cancel_all(stalled).await;
    // Each time, one of the evaluations sends a request, and the others wait for its result.
    scene.own.set_behaviours([Behaviour::Status(
        429,
        Some("3600"),
        "Come back later",
        "rate_limit_exceeded",
    )]);
    let paths = [path, scene.evaluate().await, scene.evaluate().await];
    let statuses = async || {
        let mut statuses = Vec::new();
        for path in &paths {
            statuses.push(scene.get(path).await);
        }
        statuses
    };
    for (hours, expected) in [(5, "pending"), (5, "failed")] {
        for _ in 0..hours {
            scene.app.advance(3_600);
            scene.app.drain().await;
        }
        let now = statuses().await;
        assert!(now.iter().all(|it| it["status"] == expected), "{now:?}");
    }
    let errors = statuses().await;
    assert!(errors.iter().any(|it| it["error"].as_str().unwrap().contains("6 hours")), "{errors:?}");
    Arc::into_inner(scene).unwrap().stop().await;
}

/// A tenant whose judge does not respond occupies some workers and leaves the others to other tenants.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tenant_with_hanging_judge_leaves_workers_to_others() {
    let scene = Scene::with_own_provider("openai").await;
    let (_, other) = scene.app.other_tenant(Plan::Pro).await;
    scene.own.set_behaviours([Behaviour::Stalls]);
    let mut waiting = Vec::new();
    for _ in 0..40 {
        waiting.push(scene.evaluate().await);
    }
    queue::worker::start(&scene.app.app);
    scene.wait_for_requests(8).await;
    let item = json!({"name": "chat", "input": "Where?", "output": "There."});
    let trace = other.post("/v1/ingest", &item).await.ok()["id"].clone();
    let body = json!({"trace_id": trace, "metric_name": METRIC_NAME});
    let id = other.post("/v1/eval", &body).await.ok()["id"].clone();
    let path = format!("/v1/eval/{}", id.as_str().unwrap());
    while other.get(&path).await.ok()["status"] != "complete" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Evaluations without a permit were neither read nor written meanwhile.
    let rows = entities::evaluation::Entity::find().all(&scene.app.app.db.write).await.unwrap();
    let taken = rows.iter().filter(|it| it.tenant_id == scene.app.tenant && it.attempts > 0).count();
    assert_eq!((taken, scene.own.request_count()), (8, 8));
    scene.stop().await;
}

#[tokio::test]
async fn judge_metrics_are_served() {
    let scene = Scene::with_own_provider("openai").await;
    scene.own.set_behaviours([
        Behaviour::RepliesWith("?".to_owned()),
        Behaviour::Succeeds,
        Behaviour::Status(401, None, "no", ""),
    ]);
    scene.request_verdict().await.unwrap();
    scene.request_failure().await;
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
