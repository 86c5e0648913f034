//! Webhooks, and the log of their deliveries.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Timestamp, enums::words};

words! {
    /// What happened, in a webhook's subscriptions and in the payload of a delivery.
    EventType {
        /// A trace matched a failure rule.
        FailureDetected = "failure.detected",
        /// A metric of a project differs significantly from its usual values.
        AnomalyDetected = "anomaly.detected",
        /// An evaluation ended without a score.
        EvaluationFailed = "evaluation.failed",
        /// A control action waits for approval.
        ControlActionPendingApproval = "control_action.pending_approval",
        /// A prompt deployment passed its test.
        PromptDeploymentAbPassed = "prompt_deployment.ab_passed",
        /// A shipped prompt deployment became worse than its baseline.
        PromptDeploymentRegressed = "prompt_deployment.regressed",
        /// A test of the webhook. It is sent to every webhook, whatever its subscriptions.
        Ping = "ping",
    }
}

words! {
    /// The progress of a delivery.
    DeliveryStatus {
        /// Another attempt follows.
        Pending = "pending",
        /// The receiver returned a status from 200 to 299.
        Delivered = "delivered",
        /// All attempts failed.
        Dead = "dead",
        /// The webhook was disabled or deleted before the delivery succeeded.
        Cancelled = "cancelled",
    }
}

/// An HTTPS address that receives a signed request when a subscribed event occurs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Webhook {
    /// The webhook's ID.
    pub id: Uuid,
    /// The address.
    pub url: String,
    /// The subscribed events.
    pub events: Vec<EventType>,
    /// Whether events are delivered.
    pub enabled: bool,
    /// Why the server disabled the webhook; null when it is enabled, or a user disabled it.
    pub disabled_reason: Option<String>,
    /// Time of the last successful delivery.
    pub last_delivery_at: Option<Timestamp>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// Body of `POST /v1/webhooks`.
#[derive(Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewWebhook {
    /// The address, `https` with a public host.
    pub url: String,
    /// The secret that signs requests, at least 16 characters. A secret that begins with `whsec_` is used as
    /// Standard Webhooks defines it in `webhook-signature`.
    pub secret: String,
    /// The subscribed events, default `["failure.detected"]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Vec<EventType>>))]
    pub events: Option<Vec<String>>,
    /// Whether events are delivered, default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

impl std::fmt::Debug for NewWebhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewWebhook")
            .field("url", &self.url)
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

/// Body of `PATCH /v1/webhooks/{id}`. Absent fields keep their values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WebhookChange {
    /// The address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The subscribed events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Vec<EventType>>))]
    pub events: Option<Vec<String>>,
    /// Whether events are delivered. True also clears `disabled_reason`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// A page of webhooks, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WebhookList {
    /// The webhooks.
    pub webhooks: Vec<Webhook>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

/// Result of `POST /v1/webhooks/{id}/test`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WebhookTest {
    /// HTTP status that the receiver returned; 0 without a complete response.
    pub status: u16,
    /// The first 4 KiB of the receiver's response.
    pub body: String,
    /// Why there is no complete response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Body of `POST /v1/webhooks/{id}/rotate-secret`.
#[derive(Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewWebhookSecret {
    /// The new secret, at least 16 characters. Absent: the server generates one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// Result of `POST /v1/webhooks/{id}/rotate-secret`.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RotatedSecret {
    /// The webhook's ID.
    pub id: Uuid,
    /// The new secret if the server generated it; it is shown only once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Time until which requests are also signed with the previous secret.
    pub previous_secret_expires_at: Timestamp,
}

/// The delivery of an event to a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WebhookDelivery {
    /// The delivery's ID, in the header `X-Service-Delivery`.
    pub id: Uuid,
    /// The webhook.
    pub webhook_id: Uuid,
    /// The event's ID: `id` in the payload. It is the same in every attempt and redelivery.
    pub event_id: Uuid,
    /// What happened.
    pub event_type: EventType,
    /// The progress.
    pub status: DeliveryStatus,
    /// The attempts so far, first to last.
    pub attempts: Vec<DeliveryAttempt>,
    /// Time of the next attempt; null when there is none.
    pub next_attempt_at: Option<Timestamp>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the final status.
    pub completed_at: Option<Timestamp>,
}

/// A request that a delivery sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DeliveryAttempt {
    /// The number of the attempt, from 1 on.
    pub attempt: u32,
    /// Time at which it started.
    pub started_at: Timestamp,
    /// HTTP status that the receiver returned; 0 without a complete response.
    pub status: u16,
    /// Duration in milliseconds.
    pub latency_ms: i64,
    /// Why the attempt failed.
    pub error: Option<String>,
    /// The first 4 KiB of the receiver's response; the first 128 characters when the webhook has 20 newer long responses.
    pub response_body: Option<String>,
}

/// A page of deliveries, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WebhookDeliveryList {
    /// The deliveries.
    pub deliveries: Vec<WebhookDelivery>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}
