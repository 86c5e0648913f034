//! Options for storing the traces of a request.

/// Options for storing the traces of a request, from the tenant's plan and settings.
#[derive(Clone, Copy, Debug, Default)]
pub struct IngestOptions {
    /// Traces per month; `None` means no limit.
    pub monthly_limit: Option<u64>,
    /// Whether the spans are to be embedded.
    pub embeds_spans: bool,
}
