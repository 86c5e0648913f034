//! Quota and embedding settings for storing traces.

use store::quotas::Quota;

use crate::{
    access::{Caller, plans::monthly_limit},
    app::App,
    error::Result,
};

/// What plan and settings determine for the traces of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// Traces per month; `None` means no limit.
    pub limit: Option<u64>,
    /// Whether the spans are to be embedded.
    pub embeds: bool,
}

impl Terms {
    /// Returns the settings for a caller.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn of(app: &App, caller: &Caller) -> Result<Self> {
        let embeds = app.embedder.embeds(caller.tenant_id, caller.plan).await?;
        Ok(Self { limit: monthly_limit(Quota::Traces, caller.plan), embeds })
    }
}
