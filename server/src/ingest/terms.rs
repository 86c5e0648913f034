//! On which terms a tenant's traces are stored.

/// What plan and settings say about storing the traces of one request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// Traces a month; none is no limit.
    pub limit: Option<u64>,
    /// Their spans are to be embedded.
    pub embeds: bool,
}
