//! OTLP requests for tests, in the JSON form, with only the fields that the suites vary.

use serde_json::{Value, json};

/// A span under construction. Times are microseconds since the epoch.
#[derive(Clone, Debug)]
pub struct Span {
    trace: u128,
    id: u64,
    parent: Option<u64>,
    name: String,
    start: i64,
    end: Option<i64>,
    error: Option<String>,
    attributes: Vec<Value>,
    events: Vec<Value>,
}

impl Span {
    /// Creates a span without a parent that lasts one second.
    pub fn new(trace: u128, id: u64, name: &str, start: i64) -> Self {
        Self {
            trace,
            id,
            parent: None,
            name: name.to_owned(),
            start,
            end: Some(start + 1_000_000),
            error: None,
            attributes: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Sets the parent.
    #[must_use]
    pub fn under(mut self, parent: u64) -> Self {
        self.parent = Some(parent);
        self
    }

    /// Sets the end; `None` leaves the span without an end.
    #[must_use]
    pub fn until(mut self, end: Option<i64>) -> Self {
        self.end = end;
        self
    }

    /// Sets the status to an error with this message.
    #[must_use]
    pub fn failed(mut self, message: &str) -> Self {
        self.error = Some(message.to_owned());
        self
    }

    /// Adds an attribute: a text, an integer, a float, a boolean or a list of texts.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.attributes.push(json!({"key": key, "value": any_value(&value.into())}));
        self
    }

    /// Adds an event at the start of the span.
    #[must_use]
    pub fn noting(mut self, name: &str) -> Self {
        self.events.push(json!({"name": name, "timeUnixNano": nanos(self.start), "attributes": [
            {"key": "noted", "value": {"stringValue": name}}]}));
        self
    }

    /// Makes the span a model call with these tokens.
    #[must_use]
    pub fn calls(self, model: &str, prompt: i64, completion: i64) -> Self {
        self.with("gen_ai.operation.name", "chat")
            .with("gen_ai.response.model", model)
            .with("gen_ai.usage.input_tokens", prompt)
            .with("gen_ai.usage.output_tokens", completion)
    }

    /// Returns the JSON form.
    pub fn json(&self) -> Value {
        let mut span = json!({
            "traceId": format!("{:032x}", self.trace),
            "spanId": format!("{:016x}", self.id),
            "name": self.name,
            "kind": 1,
            "startTimeUnixNano": nanos(self.start),
            "attributes": self.attributes,
            "events": self.events,
        });
        if let Some(parent) = self.parent {
            span["parentSpanId"] = format!("{parent:016x}").into();
        }
        if let Some(end) = self.end {
            span["endTimeUnixNano"] = nanos(end).into();
        }
        if let Some(error) = &self.error {
            span["status"] = json!({"code": 2, "message": error});
        }
        span
    }
}

/// Builds a request with these spans.
pub fn request<'a>(spans: impl IntoIterator<Item = &'a Span>) -> Value {
    request_of(&[], spans)
}

/// Builds a request of a resource with these attributes.
pub fn request_of<'a>(resource: &[(&str, &str)], spans: impl IntoIterator<Item = &'a Span>) -> Value {
    let resource: Vec<Value> =
        resource.iter().map(|(key, value)| json!({"key": key, "value": {"stringValue": value}})).collect();
    let spans: Vec<Value> = spans.into_iter().map(Span::json).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{"scope": {"name": "test"}, "spans": spans}],
    }]})
}

/// Builds a request of an instrumentation with this scope.
pub fn request_from<'a>(scope: &str, spans: impl IntoIterator<Item = &'a Span>) -> Value {
    let mut request = request(spans);
    request["resourceSpans"][0]["scopeSpans"][0]["scope"]["name"] = scope.into();
    request
}

/// Converts to nanoseconds, as text: the JSON form of protobuf has 64-bit numbers as texts.
fn nanos(micros: i64) -> String {
    format!("{micros}000")
}

fn any_value(value: &Value) -> Value {
    match value {
        Value::Bool(it) => json!({"boolValue": it}),
        Value::Number(it) if it.is_i64() => json!({"intValue": it.to_string()}),
        Value::Number(it) => json!({"doubleValue": it}),
        Value::Array(items) => {
            json!({"arrayValue": {"values": items.iter().map(any_value).collect::<Vec<_>>()}})
        }
        Value::String(it) => json!({"stringValue": it}),
        Value::Null | Value::Object(_) => json!({}),
    }
}
