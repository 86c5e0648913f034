//! What spans and questions mean, as vectors: whose key asks for them, and asking.
//!
//! Spans are embedded by jobs ([`crate::span_embedding`]), questions while somebody waits ([`Embedder::query`]).
//! Who may be asked follows from plan and credentials (`whose`), which a process remembers, so
//! that ingest decides without a query whether a commit makes work. A provider that fails is left
//! alone for a while ([`Rests`]).

mod whose;

use std::{sync::Arc, time::Duration};

use api::{ErrorCode, Plan};
use entities::provider_credential;
use queue::ConcurrencyLimits;
use store::{sealed::PROVIDER_KEY, vectors::UnitVector};
use tokio::time::Instant;
use uuid::Uuid;

use self::whose::{Whose, whose};
use crate::{
    access::seal::Sealer,
    clock::Clock,
    config::EmbeddingSettings,
    error::{Result, problem},
    known::Known,
    providers::{
        Egress,
        embedding::{EmbeddingClient, Endpoint, Failure},
        rest::Rests,
    },
    telemetry::Telemetry,
};

/// How long somebody waits for the vector of a question.
const QUERY: Duration = Duration::from_secs(10);

/// Says who embeds, and asks them.
pub struct Embedder {
    client: EmbeddingClient,
    platform: Option<Endpoint>,
    known: Arc<Known>,
    sealer: Arc<Sealer>,
    clock: Arc<dyn Clock>,
    telemetry: Arc<Telemetry>,
    /// Which providers are left alone for a while.
    pub rests: Rests<Who>,
    /// Limits the workers that embed for a tenant.
    pub turns: ConcurrencyLimits<Uuid>,
}

/// Whose provider it is: the platform's, or that of a tenant's credential as it was stored at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Who {
    /// The operator's.
    Platform,
    /// The tenant, and when its credential last changed, microseconds: a changed one is another one.
    Tenant(Uuid, i64),
}

/// Who embeds for a tenant.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// Whose key asks.
    pub who: Who,
    /// The model and its address.
    pub endpoint: Endpoint,
}

impl Chosen {
    /// Who it is.
    pub fn who(&self) -> Who {
        self.who
    }

    /// The model that is asked.
    pub fn model(&self) -> &str {
        &self.endpoint.model
    }
}

impl Embedder {
    /// An embedder that knows the platform's provider from these settings.
    ///
    /// # Errors
    /// When there can be no client.
    pub fn new(
        settings: &EmbeddingSettings,
        egress: Egress,
        known: Arc<Known>,
        sealer: Arc<Sealer>,
        clock: Arc<dyn Clock>,
        telemetry: Arc<Telemetry>,
    ) -> anyhow::Result<Self> {
        let platform = settings.is_set().then(|| Endpoint {
            base_url: settings.base_url().map(str::to_owned),
            key: settings.embedding_api_key.clone().unwrap_or_default(),
            model: settings.model().to_owned(),
            guarded: false,
        });
        let client = EmbeddingClient::new(egress)?;
        Ok(Self {
            client,
            platform,
            known,
            sealer,
            clock,
            telemetry,
            rests: Rests::new(0),
            turns: ConcurrencyLimits::default(),
        })
    }

    /// Whether spans of a tenant on this plan are embedded.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn embeds(&self, tenant: Uuid, plan: Plan) -> Result<bool> {
        if plan < Plan::Pro || (plan == Plan::Pro && self.platform.is_some()) {
            return Ok(plan == Plan::Pro);
        }
        let credentials = self.known.credentials(tenant).await?;
        Ok(whose(plan, &credentials, self.platform.is_some()) != Whose::Nobody)
    }

    /// Returns the tenant's own embedding provider, which embeds text queries. The platform's provider only
    /// embeds spans in the background.
    ///
    /// # Errors
    /// `upstream_failed` when the tenant has none; the message says how to store one.
    pub async fn for_questions(&self, tenant: Uuid, plan: Plan) -> Result<Chosen> {
        let own = self.chosen(tenant, plan).await?.filter(|it| it.who != Who::Platform);
        own.ok_or_else(|| problem(ErrorCode::UpstreamFailed, NO_OWN_PROVIDER))
    }

    /// The vector of a question.
    ///
    /// # Errors
    /// `upstream_failed` when the provider fails or takes too long.
    pub async fn query(&self, chosen: &Chosen, text: &str) -> Result<UnitVector> {
        let vectors = self.ask(&chosen.endpoint, &[text], QUERY).await;
        match vectors.map(|mut it| it.pop()) {
            Ok(Some(vector)) => Ok(vector),
            Ok(None) => Err(anyhow::anyhow!("the client answered no vector").into()),
            Err(failure) => {
                let message = format!("the embedding provider failed: {failure}");
                Err(problem(ErrorCode::UpstreamFailed, message))
            }
        }
    }

    /// Who embeds for a tenant on this plan, if anybody does.
    pub async fn chosen(&self, tenant: Uuid, plan: Plan) -> Result<Option<Chosen>> {
        let credentials = self.known.credentials(tenant).await?;
        match whose(plan, &credentials, self.platform.is_some()) {
            Whose::Nobody => Ok(None),
            Whose::Platform => {
                Ok(self.platform.clone().map(|endpoint| Chosen { who: Who::Platform, endpoint }))
            }
            Whose::Own(row, model) => {
                let endpoint = self.own(row, model)?;
                Ok(Some(Chosen { who: Who::Tenant(tenant, row.updated_at), endpoint }))
            }
        }
    }

    fn own(&self, row: &provider_credential::Model, model: &str) -> Result<Endpoint> {
        let key = self.sealer.open(PROVIDER_KEY.place(row.tenant_id, &row.provider), &row.sealed_key)?;
        let platform = self.platform.as_ref().and_then(|it| it.base_url.as_deref());
        // The first start gives a tenant the operator's provider, wherever that is.
        let operators = row.base_url.is_some() && row.base_url.as_deref() == platform;
        Ok(Endpoint { base_url: row.base_url.clone(), key, model: model.to_owned(), guarded: !operators })
    }

    /// The vectors of these texts, counted and timed.
    pub async fn ask(
        &self,
        endpoint: &Endpoint,
        texts: &[&str],
        timeout: Duration,
    ) -> Result<Vec<UnitVector>, Failure> {
        let began = Instant::now();
        let asked = self.client.embed(endpoint, texts, timeout, self.clock.now()).await;
        let outcome = asked.as_ref().map_or_else(Failure::word, |_| "ok");
        self.telemetry.embedding.asked(outcome, began.elapsed());
        asked
    }
}

/// The message for text queries of a tenant without its own embedding provider.
const NO_OWN_PROVIDER: &str = "text search needs an embedding provider of your own, and none is configured: an owner stores one with \
     embedding_model (PUT /v1/provider-credentials/openai or openai_compatible); search by vector needs none";
