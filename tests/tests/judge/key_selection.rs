//! The choice of the judge's key on each plan.

use super::*;

on_both! {
    async fn judge_key_follows_from_plan(on: On) {
        let scene = Scene::on(on, Plan::Team, &[]).await;
        let who = async |plan| {
            let chosen = scene.select_judge(plan, PreferredProvider::OpenAi, ModelTier::Cheap).await;
            chosen.map(|it| it.model().to_owned())
        };
        let platform = Ok("platform-cheap".to_owned());
        for plan in [Plan::Starter, Plan::Pro] {
            assert_eq!(who(plan).await, platform, "{plan}");
        }
        for plan in [Plan::Team, Plan::Business, Plan::Enterprise] {
            assert_eq!(who(plan).await, Err(NoJudge::CredentialsMissing), "{plan}");
        }
        scene.store_credential("openai_compatible", json!({"judge_model_cheap": "own-model"})).await.ok();
        for plan in [Plan::Starter, Plan::Pro] {
            assert_eq!(who(plan).await, platform, "{plan}");
        }
        for plan in [Plan::Team, Plan::Business, Plan::Enterprise] {
            assert_eq!(who(plan).await, Ok("own-model".to_owned()), "{plan}");
        }
        // Each provider receives its own key.
        let chosen = scene.select_judge(Plan::Starter, PreferredProvider::Anthropic, ModelTier::Premium).await.unwrap();
        let judged = scene.app.app.judge.ask(&chosen, &judge_request()).await.unwrap();
        assert_eq!((judged.usage.model.as_deref(), judged.usage.cost), (Some("platform-premium"), None));
        scene.request_verdict().await.unwrap();
        let (platform, own) = (scene.platform.take_requests(), scene.own.take_requests());
        assert_eq!((platform.len(), own.len()), (1, 1));
        assert_eq!((platform[0].key.as_str(), own[0].key.as_str()), (PLATFORM_KEY, TENANT_KEY));
        scene.stop().await;
    }

    async fn plan_without_platform_judge_is_not_configured(on: On) {
        let app = TestApp::with(on, Plan::Pro, &[]).await;
        for plan in [Plan::Starter, Plan::Pro] {
            let chosen = app.app.judge.select(app.tenant, plan, None, ModelTier::Cheap).await.unwrap();
            assert_eq!(chosen.unwrap_err(), NoJudge::NotConfigured);
        }
        app.stop().await;
    }
}

/// Failures of the platform's provider name the settings and no credential of a tenant.
#[tokio::test]
async fn platform_failure_names_settings_without_secrets() {
    let scene = Scene::on(On::Sqlite, Plan::Pro, &[]).await;
    scene.platform.set_behaviours([Behaviour::Status(
        401,
        None,
        "Incorrect key of the organization org-1",
        "",
    )]);
    let chosen = scene.select_judge(Plan::Pro, PreferredProvider::OpenAi, ModelTier::Cheap).await.unwrap();
    let failure = scene.app.app.judge.ask(&chosen, &judge_request()).await.unwrap_err();
    assert_eq!(failure.kind, JudgeFailureKind::Broken);
    assert!(failure.message.contains("LOUPE_JUDGE_OPENAI_"), "{failure}");
    assert!(failure.message.contains("it returned status 401"), "{failure}");
    // The operator's account is not revealed to a tenant.
    assert!(!failure.message.contains("canary") && !failure.message.contains("org-1"), "{failure}");
    assert!(!format!("{chosen:?}").contains("canary"));
    scene.stop().await;
}
