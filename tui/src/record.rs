//! A span or a trace as a record: its texts and its JSON.

use api::trace::{Span, Trace};

/// A span, or a trace that has no spans.
#[derive(Clone, Copy, Debug)]
pub enum Record<'a> {
    /// A span. The root spans take a missing input or output from the trace.
    Span(&'a Span, Option<&'a Trace>),
    /// A trace.
    Trace(&'a Trace),
}

impl<'a> Record<'a> {
    /// Returns the input.
    pub fn input(self) -> Option<&'a str> {
        match self {
            Self::Span(span, trace) => {
                span.input.as_deref().or_else(|| root_trace(span, trace)?.input.as_deref())
            }
            Self::Trace(trace) => trace.input.as_deref(),
        }
    }

    /// Returns the output.
    pub fn output(self) -> Option<&'a str> {
        match self {
            Self::Span(span, trace) => {
                span.output.as_deref().or_else(|| root_trace(span, trace)?.output.as_deref())
            }
            Self::Trace(trace) => trace.output.as_deref(),
        }
    }

    /// Returns the error.
    pub fn error(self) -> Option<&'a str> {
        match self {
            Self::Span(span, _) => span.error.as_deref(),
            Self::Trace(trace) => trace.error.as_deref(),
        }
    }

    /// Returns the name.
    pub fn name(self) -> &'a str {
        match self {
            Self::Span(span, _) => &span.name,
            Self::Trace(trace) => trace.name.as_deref().unwrap_or("trace"),
        }
    }

    /// Returns the record as JSON.
    pub fn json(self) -> String {
        let text = match self {
            Self::Span(span, _) => serde_json::to_string(span),
            Self::Trace(trace) => serde_json::to_string(trace),
        };
        text.unwrap_or_default()
    }

    /// Returns the input, the error and the output.
    pub fn texts(self) -> String {
        let parts = [self.input(), self.error(), self.output()];
        parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
    }
}

/// Returns the trace of a root span: clients often give the input to the trace only.
fn root_trace<'a>(span: &Span, trace: Option<&'a Trace>) -> Option<&'a Trace> {
    trace.filter(|_| span.parent_span_id.is_none())
}
