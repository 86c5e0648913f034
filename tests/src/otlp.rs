//! OTLP requests for tests, in the JSON form. Only what the suites vary can be said.

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
    /// A span without a parent, of one second.
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

    /// Below this span.
    #[must_use]
    pub fn under(mut self, parent: u64) -> Self {
        self.parent = Some(parent);
        self
    }

    /// Ends then; not at all with none.
    #[must_use]
    pub fn until(mut self, end: Option<i64>) -> Self {
        self.end = end;
        self
    }

    /// Failed with this message.
    #[must_use]
    pub fn failed(mut self, message: &str) -> Self {
        self.error = Some(message.to_owned());
        self
    }

    /// With an attribute: a text, a whole number, a number, a truth value or a list of texts.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.attributes.push(json!({"key": key, "value": any_value(&value.into())}));
        self
    }

    /// With an event at its start.
    #[must_use]
    pub fn noting(mut self, name: &str) -> Self {
        self.events.push(json!({"name": name, "timeUnixNano": nanos(self.start), "attributes": [
            {"key": "noted", "value": {"stringValue": name}}]}));
        self
    }

    /// A call of a model with these tokens.
    #[must_use]
    pub fn calls(self, model: &str, prompt: i64, completion: i64) -> Self {
        self.with("gen_ai.operation.name", "chat")
            .with("gen_ai.response.model", model)
            .with("gen_ai.usage.input_tokens", prompt)
            .with("gen_ai.usage.output_tokens", completion)
    }

    /// As it stands in a request.
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

/// A request with these spans.
pub fn request<'a>(spans: impl IntoIterator<Item = &'a Span>) -> Value {
    request_of(&[], spans)
}

/// A request of a resource with these attributes.
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

/// 64-bit numbers are texts in the JSON form of protobuf.
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
