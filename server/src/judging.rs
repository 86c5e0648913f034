//! Judges: selects the provider and model, and requests verdicts.
//!
//! Plan, credentials and settings determine the judge (`judge_selection`). `evaluators::judge` builds the prompt
//! and parses the reply; [`crate::providers::judge`] sends one request. In between, `conversation`
//! detects the structured-output mode, requests a repair of a reply that cannot be parsed, and adds up
//! the usage. A failing provider has a circuit breaker ([`CircuitBreakers`]), and the number of concurrent
//! requests is limited ([`ConcurrencyLimits`]). Later retries are left to the caller's durable queue.

mod conversation;
mod judge_result;
mod judge_selection;
mod output_modes;

use std::{sync::Arc, time::Duration};

use api::{Plan, credential::Provider, eval::ModelTier};
use entities::provider_credential;
use evaluators::judge::{JudgeRequest, PreferredProvider};
use outbound::{AddressOwner, OutboundClient};
use queue::ConcurrencyLimits;
use store::{evaluations::JudgeUsage, sealed::PROVIDER_KEY};
use uuid::Uuid;

pub use self::{
    judge_result::{JudgeFailure, JudgeFailureKind, JudgeResult},
    judge_selection::NoJudge,
};
use self::{
    judge_selection::{JudgeSelection, select_judge},
    output_modes::OutputModeCache,
};
use crate::{
    access::seal::Sealer,
    access_cache::AccessCache,
    clock::Clock,
    config::{EmbeddingSettings, JudgeSettings},
    error::Result,
    ingest::prices::PriceBook,
    providers::{
        circuit_breaker::{CircuitBreakers, CoolDown, OpenCircuitBreaker},
        judge::{JudgeClient, JudgeEndpoint, JudgeProviderFailure},
    },
    telemetry::Telemetry,
};

/// Number of consecutive failures after which the circuit breaker opens.
const MAX_CONSECUTIVE_FAILURES: u32 = 2;
/// Cool-down after a failure of key, account or model, which a person must fix.
const DENIED_COOL_DOWN: Duration = Duration::from_secs(60);
/// Maximum number of concurrent requests of a process to a tenant's provider.
const MAX_TENANT_REQUESTS: usize = 8;
/// Maximum number of concurrent requests of a process to the platform's provider, which serves many
/// tenants.
const MAX_PLATFORM_REQUESTS: usize = 32;
/// Delay after which a request without a permit should try again.
const PERMIT_RETRY_DELAY: Duration = Duration::from_secs(1);

/// The account of a provider: the platform's, or a version of a tenant's credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JudgeAccount {
    /// The operator's account.
    Platform(Provider),
    /// The tenant, and the time of the credential's last change in microseconds: a changed credential
    /// counts as a new account.
    Tenant(Uuid, Provider, i64),
}

/// The key of a circuit breaker: an account, or one model of it.
type BreakerKey = (JudgeAccount, Option<String>);

/// The judge of a tenant.
#[derive(Clone, Debug)]
pub struct SelectedJudge {
    account: JudgeAccount,
    endpoint: JudgeEndpoint,
    prices: Arc<PriceBook>,
}

impl SelectedJudge {
    /// Returns the model.
    pub fn model(&self) -> &str {
        &self.endpoint.model
    }

    /// Returns the account.
    pub fn account(&self) -> JudgeAccount {
        self.account
    }

    /// Returns the usage of the model before its first reply.
    fn no_usage(&self) -> JudgeUsage {
        JudgeUsage { model: Some(self.endpoint.model.clone()), ..JudgeUsage::default() }
    }

    /// Returns what a person can do when the judge does not work, as a clause of a message.
    fn remedy(&self) -> String {
        match self.account {
            JudgeAccount::Tenant(_, provider, _) => format!(
                "an owner stores a working key, address or model with PUT /v1/provider-credentials/{provider}"
            ),
            JudgeAccount::Platform(provider) => format!(
                "the operator of this server must check its settings LOUPE_JUDGE_{}_…",
                provider.as_str().to_uppercase()
            ),
        }
    }
}

/// Selects judges and calls them.
pub struct Judge {
    client: JudgeClient,
    settings: JudgeSettings,
    /// Addresses set by the operator, which may be private.
    operator_addresses: Vec<String>,
    access_cache: Arc<AccessCache>,
    sealer: Arc<Sealer>,
    clock: Arc<dyn Clock>,
    telemetry: Arc<Telemetry>,
    breakers: CircuitBreakers<BreakerKey>,
    concurrency: ConcurrencyLimits<JudgeAccount>,
    output_modes: OutputModeCache,
}

impl Judge {
    /// Creates a judge with the platform's providers from these settings.
    pub fn new(
        settings: &JudgeSettings,
        embedding: &EmbeddingSettings,
        outbound: OutboundClient,
        access_cache: Arc<AccessCache>,
        sealer: Arc<Sealer>,
        clock: Arc<dyn Clock>,
        telemetry: Arc<Telemetry>,
    ) -> Self {
        let addresses = [Provider::OpenAi, Provider::Anthropic].map(|it| settings.base_url(it));
        let operator_addresses = addresses.into_iter().chain([embedding.base_url()]).flatten();
        Self {
            client: JudgeClient::new(outbound),
            operator_addresses: operator_addresses.map(str::to_owned).collect(),
            settings: settings.clone(),
            access_cache,
            sealer,
            clock,
            telemetry,
            breakers: CircuitBreakers::new(MAX_CONSECUTIVE_FAILURES),
            concurrency: ConcurrencyLimits::default(),
            output_modes: OutputModeCache::default(),
        }
    }

    /// Selects the judge for a tenant on this plan, preferably of the evaluator's preferred provider;
    /// or returns why there is none.
    ///
    /// # Errors
    ///
    /// Fails when the database fails, or a key cannot be unsealed.
    pub async fn select(
        &self,
        tenant: Uuid,
        plan: Plan,
        preferred: Option<PreferredProvider>,
        tier: ModelTier,
    ) -> Result<std::result::Result<SelectedJudge, NoJudge>> {
        let credentials = self.access_cache.credentials(tenant).await?;
        let (account, endpoint) = match select_judge(plan, &credentials, &self.settings, preferred, tier) {
            Err(missing) => return Ok(Err(missing)),
            Ok(JudgeSelection::Platform(provider, model)) => {
                (JudgeAccount::Platform(provider), self.platform_endpoint(provider, model))
            }
            Ok(JudgeSelection::Own(row, provider, model)) => match self.tenant_endpoint(row, provider, model)
            {
                Ok(endpoint) => (JudgeAccount::Tenant(tenant, provider, row.updated_at), endpoint),
                Err(error) => {
                    tracing::error!(%tenant, %error, "a judge's credential can't be decrypted");
                    return Ok(Err(NoJudge::Sealed));
                }
            },
        };
        let prices = self.access_cache.price_book(tenant).await?;
        Ok(Ok(SelectedJudge { account, endpoint, prices }))
    }

    /// Requests a verdict. This takes up to twice the timeout of a judge.
    ///
    /// # Errors
    ///
    /// Fails when there is no verdict, with what to do about it.
    pub async fn ask(
        &self,
        selected: &SelectedJudge,
        request: &JudgeRequest,
    ) -> std::result::Result<JudgeResult, JudgeFailure> {
        let result = self.admitted(selected, request).await;
        let (outcome, usage) = match &result {
            Ok(result) => ("ok", &result.usage),
            Err(failure) => (failure.kind.word(), &*failure.usage),
        };
        self.telemetry.judge.count_verdict(outcome, usage.prompt_tokens, usage.completion_tokens);
        result
    }

    /// Checks whether a judge could be called now, for callers that have much to read before. It
    /// acquires no permit, so a later call may still be rejected.
    ///
    /// # Errors
    ///
    /// Returns the error that a call would return.
    pub fn would_admit(&self, selected: &SelectedJudge) -> std::result::Result<(), JudgeFailure> {
        let admitted = match self.concurrency.taken(&selected.account) {
            taken if taken >= max_requests(selected.account) => Err(no_permit_failure(selected)),
            _ => {
                let now = self.clock.now();
                let open_breaker = |it: &BreakerKey| {
                    self.breakers.would_admit(it, now).map_err(|it| open_breaker(selected, &it, now))
                };
                breaker_keys(selected).iter().try_for_each(open_breaker)
            }
        };
        if let Err(failure) = &admitted {
            self.telemetry.judge.count_verdict(failure.kind.word(), None, None);
        }
        admitted
    }

    fn platform_endpoint(&self, provider: Provider, model: &str) -> JudgeEndpoint {
        JudgeEndpoint {
            provider,
            base_url: self.settings.base_url(provider).map(str::to_owned),
            key: self.settings.key(provider).unwrap_or_default().to_owned(),
            model: model.to_owned(),
            set_by: AddressOwner::Operator,
        }
    }

    /// Returns the endpoint of a tenant's own credential.
    ///
    /// # Errors
    ///
    /// Fails when the key cannot be unsealed.
    pub fn tenant_endpoint(
        &self,
        row: &provider_credential::Model,
        provider: Provider,
        model: &str,
    ) -> Result<JudgeEndpoint> {
        let key = self.sealer.unseal(PROVIDER_KEY.location(row.tenant_id, &row.provider), &row.sealed_key)?;
        // The first start stores the operator's providers for a tenant, at any address.
        let is_operator_address =
            row.base_url.as_ref().is_some_and(|it| self.operator_addresses.contains(it));
        let set_by = if is_operator_address { AddressOwner::Operator } else { AddressOwner::Tenant };
        let base_url = row.base_url.clone();
        Ok(JudgeEndpoint { provider, base_url, key, model: model.to_owned(), set_by })
    }

    /// Calls the judge if the circuit breaker allows it and a permit is free.
    async fn admitted(
        &self,
        selected: &SelectedJudge,
        request: &JudgeRequest,
    ) -> std::result::Result<JudgeResult, JudgeFailure> {
        let [model, provider] = breaker_keys(selected);
        let Some(_permit) = self.concurrency.take(&selected.account, max_requests(selected.account)) else {
            return Err(no_permit_failure(selected));
        };
        let (now, timeout) = (self.clock.now(), self.settings.timeout());
        for breaker_key in [&model, &provider] {
            self.breakers.admit(breaker_key, now, timeout).map_err(|it| open_breaker(selected, &it, now))?;
        }
        let (usage, result) = self.converse(selected, request).await;
        let now = self.clock.now();
        let failure = match result {
            Ok(verdict) => {
                self.record_success(selected, &provider, &model);
                return Ok(JudgeResult { verdict, usage });
            }
            Err(failure) => failure,
        };
        let cool_down = match &failure {
            JudgeProviderFailure::Denied { only_model: true, .. } => {
                // The provider responds, so its other models may be called.
                self.breakers.record_success(&provider);
                Some((model, CoolDown::Fixed(DENIED_COOL_DOWN)))
            }
            JudgeProviderFailure::Denied { .. } => Some((provider, CoolDown::Fixed(DENIED_COOL_DOWN))),
            JudgeProviderFailure::Temporary { retry_after, .. } => {
                Some((provider, CoolDown::Growing(*retry_after)))
            }
            // The provider responds, although not as it should.
            JudgeProviderFailure::TextRejected(_)
            | JudgeProviderFailure::UnsupportedFeature { .. }
            | JudgeProviderFailure::InvalidResponse(_) => {
                self.record_success(selected, &provider, &model);
                None
            }
        };
        let why = failure.to_string();
        let until = cool_down.and_then(|(breaker_key, cool_down)| {
            self.breakers.record_failure(breaker_key, cool_down, &why, now)
        });
        if let Some((_, true)) = until {
            tracing::warn!(account = ?selected.account, model = selected.model(), why, "a judge fails; its circuit breaker is open");
        }
        let kind = JudgeFailureKind::from(&failure);
        let retry_after = match (&failure, until) {
            (JudgeProviderFailure::Temporary { .. }, Some((until, _))) => Some(time_until(now, until)),
            (JudgeProviderFailure::Temporary { retry_after, .. }, None) => *retry_after,
            _ => None,
        };
        let message = failure_message(selected, kind, &why);
        Err(JudgeFailure { kind, message, retry_after, failing_since: None, usage: Box::new(usage) })
    }

    fn record_success(&self, selected: &SelectedJudge, provider: &BreakerKey, model: &BreakerKey) {
        let recovered = [provider, model].map(|it| self.breakers.record_success(it));
        if recovered.contains(&true) {
            tracing::info!(account = ?selected.account, model = selected.model(), "a judge works again");
        }
    }
}

/// Returns the circuit breakers of a judge, the narrower one first.
fn breaker_keys(selected: &SelectedJudge) -> [BreakerKey; 2] {
    [(selected.account, Some(selected.endpoint.model.clone())), (selected.account, None)]
}

/// Returns the maximum number of concurrent requests to a provider.
const fn max_requests(account: JudgeAccount) -> usize {
    match account {
        JudgeAccount::Platform(_) => MAX_PLATFORM_REQUESTS,
        JudgeAccount::Tenant(..) => MAX_TENANT_REQUESTS,
    }
}

/// Returns the failure for a request without a permit.
fn no_permit_failure(selected: &SelectedJudge) -> JudgeFailure {
    let message = format!("too many requests wait for the judge {}", selected.model());
    let retry_after = Some(PERMIT_RETRY_DELAY);
    JudgeFailure {
        kind: JudgeFailureKind::Waiting,
        message,
        retry_after,
        failing_since: None,
        usage: Box::new(selected.no_usage()),
    }
}

/// Returns a message that says what happened and what to do about it.
fn failure_message(selected: &SelectedJudge, kind: JudgeFailureKind, why: &str) -> String {
    let model = selected.model();
    let is_platforms = matches!(selected.account, JudgeAccount::Platform(_));
    // Providers repeat the account's name in errors, so tenants do not see the messages of the
    // platform's account.
    let why = match kind {
        JudgeFailureKind::Broken | JudgeFailureKind::Later | JudgeFailureKind::Waiting if is_platforms => {
            why.split(':').next().unwrap_or(why)
        }
        _ => why,
    };
    match kind {
        JudgeFailureKind::Broken => format!("the judge {model} can't be used: {why}; {}", selected.remedy()),
        JudgeFailureKind::Refused => format!("the judge {model} rejected this trace: {why}"),
        JudgeFailureKind::Unreadable => format!("the judge {model} returned no verdict: {why}"),
        JudgeFailureKind::Waiting | JudgeFailureKind::Later => {
            format!("the judge {model} did not respond: {why}")
        }
    }
}

/// Returns the failure for an open circuit breaker.
fn open_breaker(selected: &SelectedJudge, open_breaker: &OpenCircuitBreaker, now: i64) -> JudgeFailure {
    let kind = match open_breaker.cool_down {
        CoolDown::Fixed(_) => JudgeFailureKind::Broken,
        CoolDown::Growing(_) => JudgeFailureKind::Waiting,
    };
    let message = failure_message(selected, kind, &open_breaker.why);
    let retry_after = Some(time_until(now, open_breaker.until));
    JudgeFailure {
        kind,
        message,
        retry_after,
        failing_since: Some(open_breaker.since),
        usage: Box::new(selected.no_usage()),
    }
}

fn time_until(now: i64, until: i64) -> Duration {
    Duration::from_micros(u64::try_from(until.saturating_sub(now)).unwrap_or_default())
}
