//! Metrics about embedding for the operator.

use super::*;
use crate::provider::Behaviour;

on_both! {
    async fn embedding_spans_requests_and_jobs_are_counted(on: On) {
        let scene = Scene::with_own_provider(on).await;
        scene.store_trace("one").await;
        scene.run_due_jobs().await;
        scene.own.set_behaviour(Behaviour::Status(503, None));
        scene.store_trace("two").await;
        scene.run_due_jobs().await;
        let page = scene.app.anonymous().get("/metrics").await.text();
        for line in [
            "loupe_embedding_spans_total 1",
            "loupe_embedding_spans_refused_total 0",
            "loupe_embedding_requests_total{outcome=\"ok\"} 1",
            "loupe_embedding_requests_total{outcome=\"failed\"} 1",
            "loupe_embedding_request_duration_seconds_count 2",
            "loupe_jobs{lane=\"embedding\",status=\"dead\"} 0",
        ] {
            assert!(page.lines().any(|it| it == line), "{line}\n{page}");
        }
        assert!(!page.contains("canary"));
        scene.stop().await;
    }
}
