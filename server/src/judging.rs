//! Judges: selects the provider and model, and requests verdicts.
//!
//! Plan, credentials and settings determine the judge (`which`). `evaluators::judge` builds the prompt
//! and parses the reply; [`crate::providers::judge`] sends one request. In between, `conversation`
//! detects the structured-output mode, requests a repair of a reply that can't be parsed, and adds up
//! the usage. A failing provider has a circuit breaker ([`Rests`]), and the number of concurrent
//! requests is limited ([`ConcurrencyLimits`]). Later retries are left to the caller's durable queue.

mod conversation;
mod outcome;
mod ways;
mod which;

use std::{sync::Arc, time::Duration};

use api::{Plan, credential::Provider, eval::ModelTier};
use entities::provider_credential;
use evaluators::judge::{JudgeRequest, PreferredProvider};
use outbound::{AddressOwner, OutboundClient};
use queue::ConcurrencyLimits;
use store::{evaluations::JudgeUsage, sealed::PROVIDER_KEY};
use uuid::Uuid;

pub use self::{
    outcome::{JudgeFailure, JudgeResult, Kind},
    which::NoJudge,
};
use self::{
    ways::OutputModeCache,
    which::{JudgeSelection, select_judge},
};
use crate::{
    access::seal::Sealer,
    clock::Clock,
    config::{EmbeddingSettings, JudgeSettings},
    error::Result,
    ingest::prices::PriceBook,
    known::AccessCache,
    providers::{
        judge::{Endpoint, Failure, JudgeClient},
        rest::{Pause, Resting, Rests},
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
    who: JudgeAccount,
    endpoint: Endpoint,
    prices: Arc<PriceBook>,
}

impl SelectedJudge {
    /// Returns the model.
    pub fn model(&self) -> &str {
        &self.endpoint.model
    }

    /// Returns the account.
    pub fn account(&self) -> JudgeAccount {
        self.who
    }

    /// Returns the usage of the model before its first reply.
    fn no_usage(&self) -> JudgeUsage {
        JudgeUsage { model: Some(self.endpoint.model.clone()), ..JudgeUsage::default() }
    }

    /// Returns what to do when it does not work.
    fn remedy(&self) -> String {
        match self.who {
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
    operators: Vec<String>,
    known: Arc<AccessCache>,
    sealer: Arc<Sealer>,
    clock: Arc<dyn Clock>,
    telemetry: Arc<Telemetry>,
    rests: Rests<BreakerKey>,
    turns: ConcurrencyLimits<JudgeAccount>,
    ways: OutputModeCache,
}

impl Judge {
    /// Creates a judge with the platform's providers from these settings.
    pub fn new(
        settings: &JudgeSettings,
        embedding: &EmbeddingSettings,
        outbound: OutboundClient,
        known: Arc<AccessCache>,
        sealer: Arc<Sealer>,
        clock: Arc<dyn Clock>,
        telemetry: Arc<Telemetry>,
    ) -> Self {
        let addresses = [Provider::OpenAi, Provider::Anthropic].map(|it| settings.base_url(it));
        let operators = addresses.into_iter().chain([embedding.base_url()]).flatten();
        Self {
            client: JudgeClient::new(outbound),
            operators: operators.map(str::to_owned).collect(),
            settings: settings.clone(),
            known,
            sealer,
            clock,
            telemetry,
            rests: Rests::new(MAX_CONSECUTIVE_FAILURES),
            turns: ConcurrencyLimits::default(),
            ways: OutputModeCache::default(),
        }
    }

    /// Selects the judge for a tenant on this plan, preferably of the evaluator's preferred provider;
    /// or returns why there is none.
    ///
    /// # Errors
    ///
    /// Fails when the database fails, or a key can't be unsealed.
    pub async fn choose(
        &self,
        tenant: Uuid,
        plan: Plan,
        prefers: Option<PreferredProvider>,
        tier: ModelTier,
    ) -> Result<std::result::Result<SelectedJudge, NoJudge>> {
        let credentials = self.known.credentials(tenant).await?;
        let (who, endpoint) = match select_judge(plan, &credentials, &self.settings, prefers, tier) {
            Err(nobody) => return Ok(Err(nobody)),
            Ok(JudgeSelection::Platform(provider, model)) => {
                (JudgeAccount::Platform(provider), self.platform(provider, model))
            }
            Ok(JudgeSelection::Own(row, provider, model)) => match self.own(row, provider, model) {
                Ok(endpoint) => (JudgeAccount::Tenant(tenant, provider, row.updated_at), endpoint),
                Err(error) => {
                    tracing::error!(%tenant, %error, "a judge's credential can't be decrypted");
                    return Ok(Err(NoJudge::Sealed));
                }
            },
        };
        let prices = self.known.price_book(tenant).await?;
        Ok(Ok(SelectedJudge { who, endpoint, prices }))
    }

    /// Requests a verdict. This takes up to twice the timeout of a judge.
    ///
    /// # Errors
    ///
    /// Fails when there is no verdict, with what to do about it.
    pub async fn ask(
        &self,
        chosen: &SelectedJudge,
        ask: &JudgeRequest,
    ) -> std::result::Result<JudgeResult, JudgeFailure> {
        let asked = self.admitted(chosen, ask).await;
        let (outcome, usage) = match &asked {
            Ok(result) => ("ok", &result.usage),
            Err(failure) => (failure.kind.word(), &*failure.usage),
        };
        self.telemetry.judge.count_verdict(outcome, usage.prompt_tokens, usage.completion_tokens);
        asked
    }

    /// Checks whether a judge could be called now, for callers that have much to read before. It
    /// acquires no permit, so a later call may still be rejected.
    ///
    /// # Errors
    ///
    /// Returns the error that a call would return.
    pub fn would_admit(&self, chosen: &SelectedJudge) -> std::result::Result<(), JudgeFailure> {
        let admitted = match self.turns.taken(&chosen.who) {
            taken if taken >= turns_of(chosen.who) => Err(no_turn(chosen)),
            _ => {
                let now = self.clock.now();
                let resting =
                    |it: &BreakerKey| self.rests.would_admit(it, now).map_err(|it| resting(chosen, &it, now));
                places(chosen).iter().try_for_each(resting)
            }
        };
        if let Err(failure) = &admitted {
            self.telemetry.judge.count_verdict(failure.kind.word(), None, None);
        }
        admitted
    }

    fn platform(&self, provider: Provider, model: &str) -> Endpoint {
        Endpoint {
            provider,
            base_url: self.settings.base_url(provider).map(str::to_owned),
            key: self.settings.key(provider).unwrap_or_default().to_owned(),
            model: model.to_owned(),
            set_by: AddressOwner::Operator,
        }
    }

    fn own(&self, row: &provider_credential::Model, provider: Provider, model: &str) -> Result<Endpoint> {
        let key = self.sealer.open(PROVIDER_KEY.location(row.tenant_id, &row.provider), &row.sealed_key)?;
        // The first start stores the operator's providers for a tenant, at any address.
        let is_operators = row.base_url.as_ref().is_some_and(|it| self.operators.contains(it));
        let set_by = if is_operators { AddressOwner::Operator } else { AddressOwner::Tenant };
        let base_url = row.base_url.clone();
        Ok(Endpoint { provider, base_url, key, model: model.to_owned(), set_by })
    }

    /// Calls the judge if the circuit breaker allows it and a permit is free.
    async fn admitted(
        &self,
        chosen: &SelectedJudge,
        ask: &JudgeRequest,
    ) -> std::result::Result<JudgeResult, JudgeFailure> {
        let [model, provider] = places(chosen);
        let Some(_turn) = self.turns.take(&chosen.who, turns_of(chosen.who)) else {
            return Err(no_turn(chosen));
        };
        let (now, patience) = (self.clock.now(), self.settings.timeout());
        for place in [&model, &provider] {
            self.rests.admit(place, now, patience).map_err(|it| resting(chosen, &it, now))?;
        }
        let (usage, asked) = self.converse(chosen, ask).await;
        let now = self.clock.now();
        let failure = match asked {
            Ok(verdict) => {
                self.is_well(chosen, &provider, &model);
                return Ok(JudgeResult { verdict, usage });
            }
            Err(failure) => failure,
        };
        let rest = match &failure {
            Failure::Denied { only_model: true, .. } => {
                // The provider responds, so its other models may be called.
                self.rests.recovered(&provider);
                Some((model, Pause::Fixed(DENIED_COOL_DOWN)))
            }
            Failure::Denied { .. } => Some((provider, Pause::Fixed(DENIED_COOL_DOWN))),
            Failure::Passing { after, .. } => Some((provider, Pause::Growing(*after))),
            // The provider responds, although not as it should.
            Failure::Refused(_) | Failure::Form { .. } | Failure::Unusable(_) => {
                self.is_well(chosen, &provider, &model);
                None
            }
        };
        let why = failure.to_string();
        let until = rest.and_then(|(place, pause)| self.rests.failed(place, pause, &why, now));
        if let Some((_, true)) = until {
            tracing::warn!(who = ?chosen.who, model = chosen.model(), why, "a judge fails; its circuit breaker is open");
        }
        let kind = Kind::from(&failure);
        let retry_after = match (&failure, until) {
            (Failure::Passing { .. }, Some((until, _))) => Some(between(now, until)),
            (Failure::Passing { after, .. }, None) => *after,
            _ => None,
        };
        let message = failure_message(chosen, kind, &why);
        Err(JudgeFailure { kind, message, retry_after, failing_since: None, usage: Box::new(usage) })
    }

    fn is_well(&self, chosen: &SelectedJudge, provider: &BreakerKey, model: &BreakerKey) {
        let recovered = [provider, model].map(|it| self.rests.recovered(it));
        if recovered.contains(&true) {
            tracing::info!(who = ?chosen.who, model = chosen.model(), "a judge works again");
        }
    }
}

/// Returns the circuit breakers of a judge, the narrower one first.
fn places(chosen: &SelectedJudge) -> [BreakerKey; 2] {
    [(chosen.who, Some(chosen.endpoint.model.clone())), (chosen.who, None)]
}

/// Returns the maximum number of concurrent requests to a provider.
const fn turns_of(who: JudgeAccount) -> usize {
    match who {
        JudgeAccount::Platform(_) => MAX_PLATFORM_REQUESTS,
        JudgeAccount::Tenant(..) => MAX_TENANT_REQUESTS,
    }
}

/// Returns the failure for a request without a permit.
fn no_turn(chosen: &SelectedJudge) -> JudgeFailure {
    let message = format!("too many requests wait for the judge {}", chosen.model());
    let retry_after = Some(PERMIT_RETRY_DELAY);
    JudgeFailure {
        kind: Kind::Waiting,
        message,
        retry_after,
        failing_since: None,
        usage: Box::new(chosen.no_usage()),
    }
}

/// Returns a message that says what happened and what to do about it.
fn failure_message(chosen: &SelectedJudge, kind: Kind, why: &str) -> String {
    let model = chosen.model();
    let is_platforms = matches!(chosen.who, JudgeAccount::Platform(_));
    // Providers repeat the account's name in errors, so tenants do not see the messages of the
    // platform's account.
    let why = match kind {
        Kind::Broken | Kind::Later | Kind::Waiting if is_platforms => why.split(':').next().unwrap_or(why),
        _ => why,
    };
    match kind {
        Kind::Broken => format!("the judge {model} can't be used: {why}; {}", chosen.remedy()),
        Kind::Refused => format!("the judge {model} rejected this trace: {why}"),
        Kind::Unreadable => format!("the judge {model} returned no verdict: {why}"),
        Kind::Waiting | Kind::Later => format!("the judge {model} did not respond: {why}"),
    }
}

/// Returns the failure for an open circuit breaker.
fn resting(chosen: &SelectedJudge, resting: &Resting, now: i64) -> JudgeFailure {
    let kind = match resting.pause {
        Pause::Fixed(_) => Kind::Broken,
        Pause::Growing(_) => Kind::Waiting,
    };
    let message = failure_message(chosen, kind, &resting.why);
    let retry_after = Some(between(now, resting.until));
    JudgeFailure {
        kind,
        message,
        retry_after,
        failing_since: Some(resting.since),
        usage: Box::new(chosen.no_usage()),
    }
}

fn between(now: i64, until: i64) -> Duration {
    Duration::from_micros(u64::try_from(until.saturating_sub(now)).unwrap_or_default())
}
