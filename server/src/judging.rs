//! Judges: selects the provider and model, and requests verdicts.
//!
//! Who may be asked follows from plan, credentials and settings (`which`). What is asked and how an
//! answer is read is `evaluators::judge`; one request is [`crate::providers::judge`]. In between
//! (`conversation`) the form is found in which a server takes the question, an answer that can't be
//! read is asked for once more, and all that is spent is added up. A provider that fails is left alone
//! for a while ([`Rests`]), and only so many wait for one at a time ([`ConcurrencyLimits`]). Trying again later is
//! the caller's, which has a durable queue for it.

mod conversation;
mod outcome;
mod ways;
mod which;

use std::{sync::Arc, time::Duration};

use api::{Plan, credential::Provider, eval::ModelTier};
use entities::provider_credential;
use evaluators::judge::{Ask, Prefers};
use queue::ConcurrencyLimits;
use store::sealed::PROVIDER_KEY;
use uuid::Uuid;

pub use self::{
    outcome::{JudgeFailure, Judged, Kind, Spent},
    which::Nobody,
};
use self::{
    ways::Ways,
    which::{Which, which},
};
use crate::{
    access::seal::Sealer,
    clock::Clock,
    config::{EmbeddingSettings, JudgeSettings},
    error::Result,
    ingest::prices::PriceBook,
    known::Known,
    providers::{
        Egress,
        judge::{Endpoint, Failure, JudgeClient},
        rest::{Pause, Resting, Rests},
    },
    telemetry::Telemetry,
};

/// Number of consecutive failures after which the circuit breaker opens.
const BORNE: u32 = 2;
/// Cool-down after a failure of key, account or model, which a person must fix.
const DENIED: Duration = Duration::from_secs(60);
/// Maximum number of concurrent requests of a process to a tenant's provider.
const TURNS_OWN: usize = 8;
/// Maximum number of concurrent requests of a process to the platform's provider, which serves many
/// tenants.
const TURNS_PLATFORM: usize = 32;
/// Delay after which a request without a permit should try again.
const NEXT_TURN: Duration = Duration::from_secs(1);

/// The account of a provider: the platform's, or a version of a tenant's credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Who {
    /// The operator's account.
    Platform(Provider),
    /// The tenant, and the time of the credential's last change in microseconds: a changed credential
    /// counts as a new account.
    Tenant(Uuid, Provider, i64),
}

/// The key of a circuit breaker: an account, or one model of it.
type Place = (Who, Option<String>);

/// The judge of a tenant.
#[derive(Clone, Debug)]
pub struct Chosen {
    who: Who,
    endpoint: Endpoint,
    prices: Arc<PriceBook>,
}

impl Chosen {
    /// Returns the model.
    pub fn model(&self) -> &str {
        &self.endpoint.model
    }

    /// Returns the account.
    pub fn who(&self) -> Who {
        self.who
    }

    /// Returns what to do when it does not work.
    fn remedy(&self) -> String {
        match self.who {
            Who::Tenant(_, provider, _) => format!(
                "an owner stores a working key, address or model with PUT /v1/provider-credentials/{provider}"
            ),
            Who::Platform(provider) => format!(
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
    known: Arc<Known>,
    sealer: Arc<Sealer>,
    clock: Arc<dyn Clock>,
    telemetry: Arc<Telemetry>,
    rests: Rests<Place>,
    turns: ConcurrencyLimits<Who>,
    ways: Ways,
}

impl Judge {
    /// Creates a judge with the platform's providers from these settings.
    ///
    /// # Errors
    ///
    /// Fails when the HTTP client can't be created.
    pub fn new(
        settings: &JudgeSettings,
        embedding: &EmbeddingSettings,
        egress: Egress,
        known: Arc<Known>,
        sealer: Arc<Sealer>,
        clock: Arc<dyn Clock>,
        telemetry: Arc<Telemetry>,
    ) -> anyhow::Result<Self> {
        let addresses = [Provider::OpenAi, Provider::Anthropic].map(|it| settings.base_url(it));
        let operators = addresses.into_iter().chain([embedding.base_url()]).flatten();
        Ok(Self {
            client: JudgeClient::new(egress)?,
            operators: operators.map(str::to_owned).collect(),
            settings: settings.clone(),
            known,
            sealer,
            clock,
            telemetry,
            rests: Rests::new(BORNE),
            turns: ConcurrencyLimits::default(),
            ways: Ways::default(),
        })
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
        prefers: Option<Prefers>,
        tier: ModelTier,
    ) -> Result<std::result::Result<Chosen, Nobody>> {
        let credentials = self.known.credentials(tenant).await?;
        let (who, endpoint) = match which(plan, &credentials, &self.settings, prefers, tier) {
            Err(nobody) => return Ok(Err(nobody)),
            Ok(Which::Platform(provider, model)) => (Who::Platform(provider), self.platform(provider, model)),
            Ok(Which::Own(row, provider, model)) => match self.own(row, provider, model) {
                Ok(endpoint) => (Who::Tenant(tenant, provider, row.updated_at), endpoint),
                Err(error) => {
                    tracing::error!(%tenant, %error, "a judge's credential can't be decrypted");
                    return Ok(Err(Nobody::Sealed));
                }
            },
        };
        let prices = self.known.price_book(tenant).await?;
        Ok(Ok(Chosen { who, endpoint, prices }))
    }

    /// Requests a verdict. This takes up to twice the timeout of a judge.
    ///
    /// # Errors
    ///
    /// Fails when there is no verdict, with what to do about it.
    pub async fn ask(&self, chosen: &Chosen, ask: &Ask) -> std::result::Result<Judged, JudgeFailure> {
        let asked = self.admitted(chosen, ask).await;
        let (outcome, spent) = match &asked {
            Ok(judged) => ("ok", judged.spent),
            Err(failure) => (failure.kind.word(), failure.spent),
        };
        self.telemetry.judge.asked(outcome, spent.prompt_tokens, spent.completion_tokens);
        asked
    }

    /// Checks whether a judge could be called now, for callers that have much to read before. It
    /// acquires no permit, so a later call may still be rejected.
    ///
    /// # Errors
    ///
    /// Returns the error that a call would return.
    pub fn would_admit(&self, chosen: &Chosen) -> std::result::Result<(), JudgeFailure> {
        let admitted = match self.turns.taken(&chosen.who) {
            taken if taken >= turns_of(chosen.who) => Err(no_turn(chosen)),
            _ => {
                let now = self.clock.now();
                let resting =
                    |it: &Place| self.rests.would_admit(it, now).map_err(|it| resting(chosen, &it, now));
                places(chosen).iter().try_for_each(resting)
            }
        };
        if let Err(failure) = &admitted {
            self.telemetry.judge.asked(failure.kind.word(), None, None);
        }
        admitted
    }

    fn platform(&self, provider: Provider, model: &str) -> Endpoint {
        Endpoint {
            provider,
            base_url: self.settings.base_url(provider).map(str::to_owned),
            key: self.settings.key(provider).unwrap_or_default().to_owned(),
            model: model.to_owned(),
            guarded: false,
        }
    }

    fn own(&self, row: &provider_credential::Model, provider: Provider, model: &str) -> Result<Endpoint> {
        let key = self.sealer.open(PROVIDER_KEY.place(row.tenant_id, &row.provider), &row.sealed_key)?;
        // The first start stores the operator's providers for a tenant, at any address.
        let is_operators = row.base_url.as_ref().is_some_and(|it| self.operators.contains(it));
        let (base_url, guarded) = (row.base_url.clone(), !is_operators);
        Ok(Endpoint { provider, base_url, key, model: model.to_owned(), guarded })
    }

    /// Calls the judge if the circuit breaker allows it and a permit is free.
    async fn admitted(&self, chosen: &Chosen, ask: &Ask) -> std::result::Result<Judged, JudgeFailure> {
        let [model, provider] = places(chosen);
        let Some(_turn) = self.turns.take(&chosen.who, turns_of(chosen.who)) else {
            return Err(no_turn(chosen));
        };
        let (now, patience) = (self.clock.now(), self.settings.timeout());
        for place in [&model, &provider] {
            self.rests.admit(place, now, patience).map_err(|it| resting(chosen, &it, now))?;
        }
        let (spent, asked) = self.converse(chosen, ask).await;
        let now = self.clock.now();
        let failure = match asked {
            Ok(verdict) => {
                self.is_well(chosen, &provider, &model);
                return Ok(Judged { verdict, model: chosen.endpoint.model.clone(), spent });
            }
            Err(failure) => failure,
        };
        let rest = match &failure {
            Failure::Denied { only_model: true, .. } => {
                // The provider responds, so its other models may be called.
                self.rests.recovered(&provider);
                Some((model, Pause::Fixed(DENIED)))
            }
            Failure::Denied { .. } => Some((provider, Pause::Fixed(DENIED))),
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
        let message = told(chosen, kind, &why);
        Err(JudgeFailure { kind, message, retry_after, failing_since: None, spent })
    }

    fn is_well(&self, chosen: &Chosen, provider: &Place, model: &Place) {
        let recovered = [provider, model].map(|it| self.rests.recovered(it));
        if recovered.contains(&true) {
            tracing::info!(who = ?chosen.who, model = chosen.model(), "a judge works again");
        }
    }
}

/// Returns the circuit breakers of a judge, the narrower one first.
fn places(chosen: &Chosen) -> [Place; 2] {
    [(chosen.who, Some(chosen.endpoint.model.clone())), (chosen.who, None)]
}

/// Returns the maximum number of concurrent requests to a provider.
const fn turns_of(who: Who) -> usize {
    match who {
        Who::Platform(_) => TURNS_PLATFORM,
        Who::Tenant(..) => TURNS_OWN,
    }
}

/// Returns the failure for a request without a permit.
fn no_turn(chosen: &Chosen) -> JudgeFailure {
    let message = format!("too many requests wait for the judge {}", chosen.model());
    let retry_after = Some(NEXT_TURN);
    JudgeFailure { kind: Kind::Waiting, message, retry_after, failing_since: None, spent: Spent::default() }
}

/// Returns a message that says what happened and what to do about it.
fn told(chosen: &Chosen, kind: Kind, why: &str) -> String {
    let model = chosen.model();
    let is_platforms = matches!(chosen.who, Who::Platform(_));
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
fn resting(chosen: &Chosen, resting: &Resting, now: i64) -> JudgeFailure {
    let (kind, spent) = match resting.pause {
        Pause::Fixed(_) => (Kind::Broken, Spent::default()),
        Pause::Growing(_) => (Kind::Waiting, Spent::default()),
    };
    let message = told(chosen, kind, &resting.why);
    let retry_after = Some(between(now, resting.until));
    JudgeFailure { kind, message, retry_after, failing_since: Some(resting.since), spent }
}

fn between(now: i64, until: i64) -> Duration {
    Duration::from_micros(u64::try_from(until.saturating_sub(now)).unwrap_or_default())
}
