//! Judges: structured-output modes, the choice of the key, and failures.
//!
//! Providers are real servers on the loopback address, exempted like an operator would.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "providers run beside the test")]

mod builtins;
mod changes_while_pending;
mod custom_evaluators;
mod failures;
mod first_start;
mod judge_selection;
mod key_selection;
mod labels;
mod limits;
mod llm_evaluations;
mod output_modes;
mod over_http;
mod provider;
mod quota;
mod repeated_evaluations;
mod running_evaluations;
mod scene_requests;
mod unparsable_replies;

use std::sync::Arc;

use api::{Plan, Role, eval::ModelTier};
use evaluators::judge::{JudgeRequest, PreferredProvider, Scale};
use evaluators::verdict::Threshold;
use provider::{Behaviour, Provider};
use serde_json::{Value, json};
use server::judging::{JudgeFailure, JudgeFailureKind, JudgeResult, NoJudge, SelectedJudge};
use tests::{On, Reply, TestApp};

/// Runs each test on SQLite and on PostgreSQL.
macro_rules! on_both {
    ($($(#[$meta:meta])* async fn $name:ident($on:ident: On) $body:block)+) => {
        $(
            $(#[$meta])*
            mod $name {
                #[allow(unused_imports, reason = "a test uses only some of the imports of its file")]
                use super::*;

                async fn test($on: On) $body

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn sqlite() {
                    test(On::Sqlite).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn postgres() {
                    test(On::Postgres).await;
                }
            }
        )+
    };
}
pub(crate) use on_both;

/// The tenant's key, which only its provider may receive.
const TENANT_KEY: &str = "sk-canary-of-the-tenant";
/// The key of the platform's provider.
const PLATFORM_KEY: &str = "sk-canary-of-the-platform";

/// A server, the platform's provider and a tenant's own provider.
struct Scene {
    app: TestApp,
    platform: Provider,
    own: Provider,
}

impl Scene {
    /// Creates a scene with a tenant on this plan without a credential, and a platform's provider that speaks
    /// OpenAI's protocol.
    async fn on(database: On, plan: Plan, more: &[&str]) -> Self {
        let (platform, own) = (Provider::start().await, Provider::start().await);
        let (url, own_address) = (platform.url(), own.address.to_string());
        let flags = [
            "--judge-openai-api-key",
            PLATFORM_KEY,
            "--judge-openai-base-url",
            &url,
            "--judge-openai-cheap-model",
            "platform-cheap",
            "--judge-openai-premium-model",
            "platform-premium",
            "--egress-allow-cidrs",
            &own_address,
        ];
        let app = TestApp::with(database, plan, &[&flags, more].concat()).await;
        Self { app, platform, own }
    }

    /// Creates a scene with a tenant on the plan Team whose own provider, of this kind, judges.
    async fn with_own_provider(provider: &str) -> Self {
        Self::with_own_provider_and_flags(provider, &[]).await
    }

    /// Creates a scene like [`Self::with_own_provider`] with these settings.
    async fn with_own_provider_and_flags(provider: &str, flags: &[&str]) -> Self {
        let scene = Self::on(On::Sqlite, Plan::Team, flags).await;
        scene.store_credential(provider, json!({})).await.ok();
        scene
    }

    /// Stores the tenant's own provider, with these fields changed.
    async fn store_credential(&self, provider: &str, changes: Value) -> Reply {
        let mut body =
            json!({"api_key": TENANT_KEY, "base_url": self.own.url(), "judge_model_cheap": "gpt-4o"});
        body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        self.app.session(Role::Owner).put(&format!("/v1/provider-credentials/{provider}"), &body).await
    }

    /// Selects the judge.
    async fn select_judge(
        &self,
        plan: Plan,
        prefers: PreferredProvider,
        tier: ModelTier,
    ) -> Result<SelectedJudge, NoJudge> {
        self.app.app.judge.select(self.app.tenant, plan, Some(prefers), tier).await.unwrap()
    }

    /// Selects the judge for the plan Team.
    async fn selected_judge(&self) -> SelectedJudge {
        self.select_judge(Plan::Team, PreferredProvider::OpenAi, ModelTier::Cheap).await.unwrap()
    }

    /// Requests a verdict from the tenant's own provider.
    async fn request_verdict(&self) -> Result<JudgeResult, JudgeFailure> {
        let result = self.app.app.judge.ask(&self.selected_judge().await, &judge_request()).await;
        if let Err(failure) = &result {
            let message = format!("{failure:?}");
            assert!(!message.contains("canary"), "{message}");
        }
        result
    }

    /// Requests a verdict and returns the failure.
    async fn request_failure(&self) -> JudgeFailure {
        self.request_verdict().await.unwrap_err()
    }

    async fn stop(self) {
        self.app.stop().await;
    }
}

/// Returns a question with a score from 0 to 1.
fn judge_request() -> JudgeRequest {
    JudgeRequest {
        system: "Judge. Answer with one JSON object.".to_owned(),
        user: "Output of the model: the invoice is paid.".to_owned(),
        schema: Scale::ZERO_TO_ONE.schema(),
        scale: Scale::ZERO_TO_ONE,
        threshold: Threshold::default(),
    }
}
