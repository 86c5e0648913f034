//! The spans of a request that are not stored: where they are, why they are rejected, and which SDK sent them.

use opentelemetry_proto::tonic::{common::v1::any_value::Value, resource::v1::Resource};

use super::{Decoded, text};

/// Maximum number of rejected spans of a request that are described; all are counted.
pub const MAX_DESCRIBED_SPANS: usize = 5;
/// Maximum length of a message in characters.
const MAX_MESSAGE_CHARS: usize = 300;
/// Maximum length in characters of the name and of the version of an SDK.
const MAX_SDK_CHARS: usize = 100;

/// A span or log record that is not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedSpan {
    /// The position in the request, from 0, counted over all resources and scopes.
    pub index: usize,
    /// Why it was rejected.
    pub message: String,
}

/// The SDK that sent a resource, by the attributes `telemetry.sdk.*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sdk {
    /// Name and language, such as `opentelemetry/python`.
    pub name: String,
    /// The version.
    pub version: Option<String>,
}

impl Sdk {
    /// Returns the SDK of a resource; none if the resource does not name it.
    fn of(resource: &Resource) -> Option<Self> {
        let attribute = |key: &str| {
            let found = resource.attributes.iter().find(|it| it.key == key)?;
            match found.value.as_ref()?.value.as_ref()? {
                Value::StringValue(value) if !value.trim().is_empty() => {
                    Some(text::clean(value.trim().chars().take(MAX_SDK_CHARS).collect()))
                }
                _ => None,
            }
        };
        let name = match (attribute("telemetry.sdk.name"), attribute("telemetry.sdk.language")) {
            (Some(name), Some(language)) => format!("{name}/{language}"),
            (name, language) => name.or(language)?,
        };
        Some(Self { name, version: attribute("telemetry.sdk.version") })
    }
}

impl Decoded {
    /// Counts a rejected span, and describes it if it is among the first ones of the request.
    pub(super) fn reject(&mut self, index: usize, resource: Option<&Resource>, message: impl Into<String>) {
        self.rejected += 1;
        describe((&mut self.rejections, &mut self.sdk), index, resource, message);
    }
}

/// Describes a rejected span or log record if it is among the first ones of the request.
pub(super) fn describe(
    (rejections, sdk): (&mut Vec<RejectedSpan>, &mut Option<Sdk>),
    index: usize,
    resource: Option<&Resource>,
    message: impl Into<String>,
) {
    // Unreadable spans are rejected before those that were read, so the order of calls is not that of the request.
    let at = rejections.partition_point(|it| it.index < index);
    if at == MAX_DESCRIBED_SPANS {
        return;
    }
    // A message may quote a text of the sender.
    let message: String = message.into().chars().take(MAX_MESSAGE_CHARS).collect();
    rejections.insert(at, RejectedSpan { index, message });
    rejections.truncate(MAX_DESCRIBED_SPANS);
    if at == 0 {
        *sdk = resource.and_then(Sdk::of);
    }
}

/// Numbers the spans of a request that were read, when others were not.
pub(super) struct SpanPositions<I: Iterator<Item = usize>> {
    next: usize,
    unreadable: std::iter::Peekable<I>,
}

impl<I: Iterator<Item = usize>> SpanPositions<I> {
    /// Numbers spans from 0, without these ascending positions.
    pub(super) fn without(unreadable: impl IntoIterator<IntoIter = I>) -> Self {
        Self { next: 0, unreadable: unreadable.into_iter().peekable() }
    }

    /// Returns the position of the next span.
    pub(super) fn next_position(&mut self) -> usize {
        while self.unreadable.next_if_eq(&self.next).is_some() {
            self.next += 1;
        }
        self.next += 1;
        self.next - 1
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::{super::from_json, MAX_DESCRIBED_SPANS, Sdk};

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

    fn span(trace: &str) -> Value {
        json!({"traceId": trace, "spanId": "b7ad6b7169203331", "name": "s"})
    }

    fn resource(attributes: &[(&str, &str)], spans: Vec<Value>) -> Value {
        let attributes: Vec<Value> = attributes
            .iter()
            .map(|(key, value)| json!({"key": key, "value": {"stringValue": value}}))
            .collect();
        json!({"resource": {"attributes": attributes}, "scopeSpans": [{"spans": spans}]})
    }

    #[test]
    fn rejected_spans_are_described_in_the_order_of_the_request() {
        let python = [
            ("telemetry.sdk.name", "opentelemetry"),
            ("telemetry.sdk.language", "python"),
            ("telemetry.sdk.version", "1.2"),
        ];
        let body = json!({"resourceSpans": [
            resource(&[("telemetry.sdk.language", "go")], vec![span(TRACE), span(TRACE)]),
            resource(&python, vec![span(TRACE), span("00"), json!(7), span(TRACE), span("zz")]),
            resource(&[], vec![json!("no span"), span("00")]),
        ]});
        let decoded = from_json(body.to_string().as_bytes()).unwrap();
        assert_eq!((decoded.accepted, decoded.rejected), (4, 5));
        let indices: Vec<usize> = decoded.rejections.iter().map(|it| it.index).collect();
        assert_eq!(indices, [3, 4, 6, 7, 8]);
        assert!(decoded.rejections[0].message.contains("trace_id"));
        assert!(decoded.rejections[1].message.starts_with("unreadable span"));
        let sdk = Sdk { name: "opentelemetry/python".to_owned(), version: Some("1.2".to_owned()) };
        assert_eq!(decoded.sdk, Some(sdk));
    }

    #[test]
    fn only_the_first_rejected_spans_are_described() {
        let mut spans = vec![json!(7); 6];
        spans.extend(vec![span("00"); 6]);
        spans.reverse();
        let decoded =
            from_json(json!({"resourceSpans": [resource(&[], spans)]}).to_string().as_bytes()).unwrap();
        let indices: Vec<usize> = decoded.rejections.iter().map(|it| it.index).collect();
        assert_eq!((decoded.rejected, indices.len()), (12, MAX_DESCRIBED_SPANS));
        assert_eq!(indices, [0, 1, 2, 3, 4]);
        assert!(
            decoded.rejections.iter().all(|it| it.message.contains("trace_id")),
            "{:?}",
            decoded.rejections
        );
    }

    #[test]
    fn sdk_of_a_resource_is_bounded_and_without_nul() {
        let long = "x".repeat(500);
        for (attributes, expected) in [
            (vec![("telemetry.sdk.language", "go")], Some(("go".to_owned(), None))),
            (vec![("telemetry.sdk.name", "a\0b")], Some(("a\u{fffd}b".to_owned(), None))),
            (vec![("telemetry.sdk.name", long.as_str())], Some(("x".repeat(100), None))),
            (vec![("telemetry.sdk.name", " "), ("telemetry.sdk.version", "1")], None),
            (vec![], None),
        ] {
            let body = json!({"resourceSpans": [resource(&attributes, vec![span("00")])]});
            let sdk = from_json(body.to_string().as_bytes()).unwrap().sdk.map(|it| (it.name, it.version));
            assert_eq!(sdk, expected, "{attributes:?}");
        }
    }
}
