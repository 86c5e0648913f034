//! Sample events: the requests that the server would send, with invented data.

use api::{
    FailureType, Timestamp,
    failure::{FailedTrace, Failure, FailureDetected},
    failure_rule::FiredRule,
    webhook::EventType,
};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::signature::{
    EVENT_ID_HEADER, Headers, SERVICE_SIGNATURE_HEADER, STANDARD_SIGNATURE_HEADER, TIMESTAMP_HEADER,
    service_signature, standard_signature,
};
use crate::{
    error::{CliError, Result},
    exit::Exit,
};

/// IDs of the invented tenant, project, trace and so on begin with these bits.
const SAMPLE_ID_BITS: u128 = 0x0198_0f6e_0000_7000_8000 << 48;

/// A sample event, ready to be sent.
pub struct SampleEvent {
    /// The event's ID.
    pub id: Uuid,
    /// The delivery's ID.
    pub delivery: Uuid,
    /// What happened.
    pub event_type: EventType,
    /// The exact bytes of the body.
    pub body: Vec<u8>,
}

/// The body of a request, with the members in the server's order.
#[derive(Serialize)]
struct EventPayload {
    id: Uuid,
    #[serde(rename = "type")]
    event_type: EventType,
    created_at: Timestamp,
    tenant_id: Uuid,
    project_id: Option<Uuid>,
    data: Value,
}

impl SampleEvent {
    /// Creates an event of this type with the given data, or with sample data. Fails if there is no sample of this type.
    pub fn new(event_type: EventType, data: Option<Value>, now: Timestamp) -> Result<Self> {
        let (id, delivery) = (random_id(), random_id());
        let data = match data {
            Some(data) => data,
            None => sample_data(event_type, now)?,
        };
        let project_id = (event_type != EventType::Ping).then(|| sample_id(2));
        let payload =
            EventPayload { id, event_type, created_at: now, tenant_id: sample_id(1), project_id, data };
        let body = serde_json::to_vec(&payload)
            .map_err(|_| CliError::new(Exit::Unexpected, "the sample can't be written as JSON"))?;
        Ok(Self { id, delivery, event_type, body })
    }

    /// Returns the headers of the request that is sent at `now`, signed with the secret.
    pub fn headers(&self, secret: &str, now: Timestamp) -> Headers {
        let (id, timestamp) = (self.id.to_string(), now.micros().div_euclid(1_000_000).to_string());
        let standard = standard_signature(secret, &id, &timestamp, &self.body);
        let headers = [
            (SERVICE_SIGNATURE_HEADER, service_signature(secret.as_bytes(), &self.body)),
            ("x-service-event", self.event_type.to_string()),
            ("x-service-delivery", self.delivery.to_string()),
            ("x-service-timestamp", timestamp.clone()),
            (EVENT_ID_HEADER, id),
            (TIMESTAMP_HEADER, timestamp),
            (STANDARD_SIGNATURE_HEADER, standard),
        ];
        headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

#[expect(clippy::disallowed_methods, reason = "the IDs are invented; no test depends on them")]
fn random_id() -> Uuid {
    Uuid::now_v7()
}

fn sample_id(number: u128) -> Uuid {
    Uuid::from_u128(SAMPLE_ID_BITS | number)
}

fn sample_data(event_type: EventType, now: Timestamp) -> Result<Value> {
    match event_type {
        EventType::Ping => Ok(json!({ "webhook_id": sample_id(3) })),
        EventType::FailureDetected => Ok(json!(failure_detected(now))),
        other => Err(CliError::usage(format!("there is no sample of {other}"))
            .hint("pass its data, a JSON object: --data FILE; samples: failure.detected, ping")),
    }
}

fn failure_detected(now: Timestamp) -> FailureDetected {
    let message = "upstream timeout after 30000 ms".to_owned();
    let model = Some("gpt-4o".to_owned());
    let (project_id, trace_id) = (sample_id(2), sample_id(4));
    FailureDetected {
        failure: Some(Failure {
            id: sample_id(5),
            project_id,
            trace_id,
            span_id: Some(sample_id(6)),
            span_name: "decide_refund".to_owned(),
            failure_type: FailureType::Timeout,
            message: message.clone(),
            model: model.clone(),
            cluster_id: sample_id(7),
            created_at: now,
        }),
        evaluation: None,
        trace: FailedTrace {
            id: trace_id,
            project_id,
            external_id: Some("order-77120".to_owned()),
            session_id: Some("s-2041".to_owned()),
            user_id: Some("u-42".to_owned()),
            name: Some("refund_agent".to_owned()),
            model,
            error: Some(message),
            started_at: Timestamp::from_micros(now.micros() - 30_000_000),
            ended_at: Some(now),
            latency_ms: Some(30_000),
            cost: Some(0.0096),
            total_token_count: 1_242,
            span_count: 5,
        },
        rules: vec![FiredRule { id: sample_id(8), name: "timeouts".to_owned() }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::webhooks::signature::{header, valid_header};

    const NOW: Timestamp = Timestamp::from_micros(1_795_000_000_500_000);

    #[test]
    fn sample_requests_have_the_headers_of_the_server() {
        let event = SampleEvent::new(EventType::FailureDetected, None, NOW).unwrap();
        let headers = event.headers("0123456789abcdef", NOW);
        assert_eq!(valid_header(&headers, "0123456789abcdef", &event.body), Some("x-service-signature"));
        let standard_only: Headers =
            headers.iter().filter(|(name, _)| name != "x-service-signature").cloned().collect();
        assert_eq!(valid_header(&standard_only, "0123456789abcdef", &event.body), Some("webhook-signature"));
        let body: Value = serde_json::from_slice(&event.body).unwrap();
        assert_eq!(body["id"].as_str(), header(&headers, "webhook-id"));
        assert_eq!(body["type"].as_str(), header(&headers, "x-service-event"));
        assert_eq!(header(&headers, "x-service-timestamp"), Some("1795000000"));
        assert_eq!(header(&headers, "webhook-timestamp"), Some("1795000000"));
        assert!(serde_json::from_value::<FailureDetected>(body["data"].clone()).is_ok());
    }

    #[test]
    fn events_without_a_sample_need_data() {
        assert!(SampleEvent::new(EventType::EvaluationFailed, None, NOW).is_err());
        let event = SampleEvent::new(EventType::EvaluationFailed, Some(json!({"a": 1})), NOW).unwrap();
        let body: Value = serde_json::from_slice(&event.body).unwrap();
        assert_eq!(body["data"], json!({"a": 1}));
    }
}
