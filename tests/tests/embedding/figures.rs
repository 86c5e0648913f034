//! Metrics about embedding for the operator.

use super::*;
use crate::provider::Mood;

on_both! {
    async fn spans_requests_and_what_waits_are_counted(on: On) {
        let scene = Scene::own(on).await;
        scene.say("one").await;
        scene.work().await;
        scene.own.turn(Mood::Status(503, None));
        scene.say("two").await;
        scene.work().await;
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
