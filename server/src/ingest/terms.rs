//! On which terms a tenant's traces are stored.

use store::quotas::Quota;

use crate::{
    access::{Caller, plans::monthly_limit},
    app::App,
    error::Result,
};

/// What plan and settings say about storing the traces of one request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// Traces a month; none is no limit.
    pub limit: Option<u64>,
    /// Their spans are to be embedded.
    pub embeds: bool,
}

impl Terms {
    /// The caller's terms.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn of(app: &App, caller: &Caller) -> Result<Self> {
        let embeds = app.embedder.embeds(caller.tenant_id, caller.plan).await?;
        Ok(Self { limit: monthly_limit(Quota::Traces, caller.plan), embeds })
    }
}
