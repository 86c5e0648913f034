//! Spans get their vectors after the commit, in full requests, even if a process stops in between.

use std::time::Duration;

use tests::{
    canaries::{assert_no_canary, canaries, redact_everything},
    hang::{must_end, wait_until},
    otlp::{Span, request},
};

use super::*;
use crate::provider::Behaviour;

/// Returns the texts that a provider received, by request.
fn texts(provider: &Provider) -> Vec<Vec<String>> {
    provider.take_requests().into_iter().map(|it| it.texts).collect()
}

on_both! {
    async fn embedded_text_is_name_input_output_and_error(on: On) {
        let scene = Scene::with_own_provider(on).await;
        let chat = r#"[{"role":"system","content":"Be terse."},{"role":"user","content":"Where is my parcel?"}]"#;
        let spans = json!([
            {"id": "00000000-0000-0000-0000-000000000001", "name": "chat", "input": chat, "output": "On its way."},
            {"id": "00000000-0000-0000-0000-000000000002", "name": "nothing to say"},
            {"id": "00000000-0000-0000-0000-000000000003", "name": "lookup", "input": "{\"city\":\"Paris\"}", "error": "no such city"},
        ]);
        scene.app.full_key().post("/v1/ingest", &json!({"spans": spans})).await.ok();
        scene.run_due_jobs().await;
        let expected = ["chat\nWhere is my parcel?\nOn its way.", "lookup\ncity: Paris\nno such city"];
        assert_eq!(texts(&scene.own), [expected]);
        assert_eq!(scene.vector_models().await, ["own-model"; 2]);
        scene.stop().await;
    }

    async fn masked_values_are_not_sent_to_the_provider(on: On) {
        let scene = Scene::with_own_provider(on).await;
        redact_everything(&scene.app).await;
        for canary in canaries() {
            scene.store_trace(canary.text).await;
        }
        scene.run_due_jobs().await;
        let sent: Vec<String> = texts(&scene.own).concat();
        assert_eq!(sent.len(), canaries().len());
        for text in sent {
            assert!(text.contains("[REDACTED:"), "{text}");
            assert_no_canary("the request", &text);
        }
        scene.stop().await;
    }

    /// Vectors as numbers are accepted although the request asks for base64.
    async fn vectors_given_as_numbers_are_accepted(on: On) {
        let scene = Scene::with_own_provider(on).await;
        scene.own.set_behaviour(Behaviour::SendsNumbers);
        scene.store_trace("hello").await;
        scene.run_due_jobs().await;
        assert_eq!(scene.vector_models().await.len(), 1);
        scene.stop().await;
    }

    async fn many_commits_are_embedded_in_few_requests(on: On) {
        let scene = Scene::with_own_provider(on).await;
        for n in 0..150 {
            scene.store_trace(&format!("question {n}")).await;
        }
        assert_eq!(scene.waiting_jobs().await.len(), 150);
        scene.run_due_jobs().await;
        let sizes: Vec<usize> = texts(&scene.own).iter().map(Vec::len).collect();
        assert_eq!(sizes, [64, 64, 22]);
        assert_eq!(scene.vector_models().await.len(), 150);
        assert_eq!(scene.waiting_jobs().await, []);
        scene.stop().await;
    }

    async fn large_commit_is_embedded_in_many_requests(on: On) {
        let scene = Scene::with_own_provider(on).await;
        let spans = |n: usize| (0..20).map(|i| json!({"name": "s", "input": format!("{n}.{i}")})).collect::<Vec<_>>();
        let traces: Vec<Value> = (0..50).map(|n| json!({"spans": spans(n)})).collect();
        scene.app.full_key().post("/v1/ingest/batch", &json!({"traces": traces})).await.ok();
        scene.run_due_jobs().await;
        let requests = texts(&scene.own);
        assert_eq!(requests.iter().map(Vec::len).max(), Some(64));
        let mut all: Vec<String> = requests.into_iter().flatten().collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!((all.len(), scene.vector_models().await.len()), (1_000, 1_000));
        scene.stop().await;
    }

    /// Late spans of a trace are embedded; earlier spans are not embedded again.
    async fn late_spans_are_embedded_once(on: On) {
        let scene = Scene::with_own_provider(on).await;
        for id in [1, 2, 2] {
            let span = Span::new(1, id, "chat", 0).with("input.value", format!("question {id}"));
            scene.app.full_key().post("/v1/otlp/traces", &request([&span])).await.ok();
            scene.run_due_jobs().await;
        }
        assert_eq!(texts(&scene.own).concat().len(), 2);
        assert_eq!(scene.vector_models().await.len(), 2);
        scene.stop().await;
    }

    /// A process that ends before or during the request to the provider leaves the work to the next process.
    async fn unfinished_embedding_continues_after_restart(on: On) {
        let scene = Scene::with_own_provider(on).await;
        scene.store_trace("before").await;
        let second = scene.restart().await;
        scene.app.advance(2);
        second.drain().await;
        assert_eq!(scene.vector_models().await.len(), 1);
        second.stop().await;

        scene.own.set_behaviour(Behaviour::Stalls);
        scene.store_trace("during").await;
        let third = scene.restart().await;
        scene.app.advance(2);
        let state = std::sync::Arc::clone(&third.app);
        let working = tokio::spawn(async move { queue::worker::drain(&state).await.unwrap() });
        while scene.own.take_requests().iter().all(|it| it.texts != ["chat\nduring\nDone."]) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // This simulates a kill: the job is not released.
        working.abort();
        third.stop().await;
        scene.own.set_behaviour(Behaviour::Succeeds);
        scene.app.advance(60);
        queue::release_expired(&scene.app.app.db, server::clock::Clock::now(scene.app.clock.as_ref())).await.unwrap();
        scene.app.drain().await;
        assert_eq!(scene.vector_models().await.len(), 2);
        scene.stop().await;
    }

    async fn ingest_continues_while_provider_stalls(on: On) {
        let scene = Scene::with_own_provider(on).await;
        scene.own.set_behaviour(Behaviour::Stalls);
        scene.store_trace("first").await;
        scene.app.advance(2);
        queue::worker::start(&scene.app.app);
        while scene.own.take_requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // The provider never responds, so a request that waited for it would hang.
        for n in 0..20 {
            must_end("a trace is stored", scene.store_trace(&n.to_string())).await;
        }
        assert_eq!(scene.vector_models().await.len(), 0);
        // A graceful stop does not wait for the provider.
        must_end("the server stops", scene.stop()).await;
    }

    /// A slow provider delays only the spans of its own tenant.
    async fn slow_provider_does_not_delay_other_tenants(on: On) {
        let scene = Scene::with_own_provider(on).await;
        scene.own.set_behaviour(Behaviour::Stalls);
        let spans: Vec<Value> = (0..256).map(|i| json!({"name": "s", "input": i.to_string()})).collect();
        for _ in 0..6 {
            scene.app.full_key().post("/v1/ingest", &json!({"spans": spans})).await.ok();
        }
        let (_, others_key) = scene.app.other_tenant(Plan::Pro).await;
        scene.app.advance(2);
        queue::worker::start(&scene.app.app);
        while scene.waiting_jobs().await.iter().filter(|it| it.status == "running").count() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        others_key.post("/v1/ingest", &json!({"spans": [{"name": "s", "input": "hello"}]})).await.ok();
        scene.app.advance(2);
        wait_until("a worker embeds the span of the other tenant", async || !scene.vector_models().await.is_empty()).await;
        assert_eq!(scene.vector_models().await, ["platform-model"]);
        // A running job may be about to be snoozed; a waiting request occupies a worker.
        assert_eq!(scene.own.take_requests().len(), 2);
        scene.stop().await;
    }

    /// Spans older than the credential are embedded once.
    async fn existing_spans_are_embedded_once(on: On) {
        let scene = Scene::on(on, Plan::Team).await;
        for n in 0..5 {
            scene.store_trace(&n.to_string()).await;
        }
        scene.store_credential(json!({})).await.ok();
        scene.run_due_jobs().await;
        assert_eq!(texts(&scene.own).concat().len(), 5);
        scene.store_credential(json!({})).await.ok();
        scene.run_due_jobs().await;
        assert_eq!(texts(&scene.own), Vec::<Vec<String>>::new());
        scene.stop().await;
    }
}
