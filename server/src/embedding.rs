//! Embeddings of spans and queries: selects the provider and calls it.
//!
//! Spans are embedded by jobs ([`crate::span_embedding`]), queries during the request ([`Embedder::query`]). Plan and
//! credentials, which are cached, determine the provider (`provider_selection`), so that ingest decides without a
//! query whether a commit needs a job. A provider that fails has a circuit breaker ([`CircuitBreakers`]).

mod provider_selection;

use std::{sync::Arc, time::Duration};

use api::{ErrorCode, Plan};
use entities::provider_credential;
use outbound::{AddressOwner, OutboundClient};
use queue::ConcurrencyLimits;
use store::{sealed::PROVIDER_KEY, vectors::UnitVector};
use tokio::time::Instant;
use uuid::Uuid;

use self::provider_selection::{ProviderSelection, select_provider};
use crate::{
    access::seal::Sealer,
    access_cache::AccessCache,
    clock::Clock,
    config::EmbeddingSettings,
    error::{Result, problem},
    providers::{
        circuit_breaker::CircuitBreakers,
        embedding::{EmbeddingClient, EmbeddingEndpoint, EmbeddingFailure},
    },
    telemetry::Telemetry,
};

/// Timeout of embedding a query.
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Selects embedding providers and calls them.
pub struct Embedder {
    client: EmbeddingClient,
    platform: Option<EmbeddingEndpoint>,
    access_cache: Arc<AccessCache>,
    sealer: Arc<Sealer>,
    clock: Arc<dyn Clock>,
    telemetry: Arc<Telemetry>,
    /// The circuit breakers of the providers.
    pub breakers: CircuitBreakers<EmbeddingAccount>,
    /// Limits the workers that embed for a tenant.
    pub concurrency: ConcurrencyLimits<Uuid>,
}

/// The account of a provider: the platform's, or a version of a tenant's credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EmbeddingAccount {
    /// The operator's account.
    Platform,
    /// The tenant, and the time of the credential's last change in microseconds: a changed credential
    /// counts as a new account.
    Tenant(Uuid, i64),
}

/// The embedding provider of a tenant.
#[derive(Clone, Debug)]
pub struct SelectedProvider {
    /// The account that pays.
    pub account: EmbeddingAccount,
    /// The model and its address.
    pub endpoint: EmbeddingEndpoint,
}

impl SelectedProvider {
    /// Returns the account.
    pub fn account(&self) -> EmbeddingAccount {
        self.account
    }

    /// Returns the model.
    pub fn model(&self) -> &str {
        &self.endpoint.model
    }
}

impl Embedder {
    /// Creates an embedder with the platform's provider from these settings.
    pub fn new(
        settings: &EmbeddingSettings,
        outbound: OutboundClient,
        access_cache: Arc<AccessCache>,
        sealer: Arc<Sealer>,
        clock: Arc<dyn Clock>,
        telemetry: Arc<Telemetry>,
    ) -> Self {
        let platform = settings.is_set().then(|| EmbeddingEndpoint {
            base_url: settings.base_url().map(str::to_owned),
            key: settings.embedding_api_key.clone().unwrap_or_default(),
            model: settings.model().to_owned(),
            set_by: AddressOwner::Operator,
        });
        Self {
            client: EmbeddingClient::new(outbound),
            platform,
            access_cache,
            sealer,
            clock,
            telemetry,
            breakers: CircuitBreakers::new(0),
            concurrency: ConcurrencyLimits::default(),
        }
    }

    /// Whether spans of a tenant on this plan are embedded.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn embeds(&self, tenant: Uuid, plan: Plan) -> Result<bool> {
        if plan < Plan::Pro || (plan == Plan::Pro && self.platform.is_some()) {
            return Ok(plan == Plan::Pro);
        }
        let credentials = self.access_cache.credentials(tenant).await?;
        Ok(select_provider(plan, &credentials, self.platform.is_some()) != ProviderSelection::NoProvider)
    }

    /// Returns the tenant's own embedding provider, which embeds text queries. The platform's provider
    /// only embeds spans in the background.
    ///
    /// # Errors
    ///
    /// Fails with `upstream_failed` when the tenant has none; the message says how to store one.
    pub async fn for_queries(&self, tenant: Uuid, plan: Plan) -> Result<SelectedProvider> {
        let own = self.select(tenant, plan).await?.filter(|it| it.account != EmbeddingAccount::Platform);
        own.ok_or_else(|| problem(ErrorCode::UpstreamFailed, NO_OWN_PROVIDER))
    }

    /// Returns the vector of a query.
    ///
    /// # Errors
    ///
    /// Fails with `upstream_failed` when the provider fails or takes too long.
    pub async fn query(&self, selected: &SelectedProvider, text: &str) -> Result<UnitVector> {
        let vectors = self.embed(&selected.endpoint, &[text], QUERY_TIMEOUT).await;
        match vectors.map(|mut it| it.pop()) {
            Ok(Some(vector)) => Ok(vector),
            Ok(None) => Err(anyhow::anyhow!("the client returned no vector").into()),
            Err(failure) => {
                let message = format!("the embedding provider failed: {failure}");
                Err(problem(ErrorCode::UpstreamFailed, message))
            }
        }
    }

    /// Returns the embedding provider for a tenant on this plan, if any.
    pub async fn select(&self, tenant: Uuid, plan: Plan) -> Result<Option<SelectedProvider>> {
        let credentials = self.access_cache.credentials(tenant).await?;
        match select_provider(plan, &credentials, self.platform.is_some()) {
            ProviderSelection::NoProvider => Ok(None),
            ProviderSelection::Platform => Ok(self
                .platform
                .clone()
                .map(|endpoint| SelectedProvider { account: EmbeddingAccount::Platform, endpoint })),
            ProviderSelection::Own(row, model) => {
                let endpoint = self.tenant_endpoint(row, model)?;
                Ok(Some(SelectedProvider {
                    account: EmbeddingAccount::Tenant(tenant, row.updated_at),
                    endpoint,
                }))
            }
        }
    }

    fn tenant_endpoint(&self, row: &provider_credential::Model, model: &str) -> Result<EmbeddingEndpoint> {
        let key = self.sealer.unseal(PROVIDER_KEY.location(row.tenant_id, &row.provider), &row.sealed_key)?;
        let platform = self.platform.as_ref().and_then(|it| it.base_url.as_deref());
        // The first start stores the operator's provider for a tenant, at any address.
        let is_operator_address = row.base_url.is_some() && row.base_url.as_deref() == platform;
        let set_by = if is_operator_address { AddressOwner::Operator } else { AddressOwner::Tenant };
        Ok(EmbeddingEndpoint { base_url: row.base_url.clone(), key, model: model.to_owned(), set_by })
    }

    /// Returns the vectors of these texts, with metrics.
    pub async fn embed(
        &self,
        endpoint: &EmbeddingEndpoint,
        texts: &[&str],
        timeout: Duration,
    ) -> Result<Vec<UnitVector>, EmbeddingFailure> {
        let began = Instant::now();
        let result = self.client.embed(endpoint, texts, timeout, self.clock.now()).await;
        let outcome = result.as_ref().map_or_else(EmbeddingFailure::word, |_| "ok");
        self.telemetry.embedding.count_request(outcome, began.elapsed());
        result
    }
}

/// The message for text queries of a tenant without its own embedding provider.
const NO_OWN_PROVIDER: &str = "text search needs an embedding provider of your own, and none is configured: an owner stores one with \
     embedding_model (PUT /v1/provider-credentials/openai or openai_compatible); search by vector needs none";
