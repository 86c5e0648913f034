//! Quota and embedding settings for storing traces.

/// What plan and settings determine for the traces of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// Traces per month; `None` means no limit.
    pub limit: Option<u64>,
    /// Whether the spans are to be embedded.
    pub embeds: bool,
}
