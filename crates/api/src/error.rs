//! The error body and the machine-readable codes.

use serde::{Deserialize, Serialize};

use crate::enums::Plan;

/// Body of every error response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ErrorBody {
    /// A message for people, whose wording may change. If the address of a webhook is rejected, this is the
    /// code.
    pub error: String,
    /// The machine-readable code, see [`ErrorCode`].
    pub code: String,
    /// Identifier of the request, also in the header `X-Request-Id`.
    pub request_id: String,
    /// The message for people, where `error` is the code (a webhook's address), and on the 403 of an archived
    /// project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The lowest plan that unlocks the feature, on `plan_upgrade_required`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_plan: Option<Plan>,
    /// The invalid fields and their errors, on a 422.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldError>,
    /// The stored trace with the same ID, on the 409 of an ingest request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<uuid::Uuid>,
    /// Whether the stored trace equals the one sent, on the 409 of an ingest request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identical: Option<bool>,
}

/// An invalid field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FieldError {
    /// Path of the field, for example `spans[2].name`.
    pub field: String,
    /// Why the value is invalid.
    pub message: String,
}

macro_rules! codes {
    ($($(#[$meta:meta])* $variant:ident = $word:literal, $status:literal);+ $(;)?) => {
        /// Machine-readable reason of an error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($(#[$meta])* $variant),+ }

        impl ErrorCode {
            /// Every code, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the value of `code` in the body.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Returns the HTTP status that the code comes with.
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status),+ }
            }

            /// Returns the code with this name, if this version knows it.
            pub fn of(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|it| it.as_str() == word)
            }
        }
    };
}

codes! {
    /// The request is not valid HTTP/1.1: its head cannot be parsed, or `Host` is missing, repeated or wrong.
    InvalidRequest = "invalid_request", 400;
    /// The body is not JSON (or not OTLP).
    InvalidJson = "invalid_json", 400;
    /// A JSON value has the wrong type or a required field is missing.
    InvalidBody = "invalid_body", 400;
    /// A query or path parameter cannot be read.
    InvalidQuery = "invalid_query", 400;
    /// The cursor is damaged, or belongs to another tenant, list or filter.
    InvalidCursor = "invalid_cursor", 400;
    /// Only one of `tag_key` and `tag_value` was given.
    TagsFilterIncomplete = "error.tags_filter_incomplete", 400;
    /// The token is missing or not valid.
    Unauthorized = "unauthorized", 401;
    /// The feature is not part of the plan.
    PlanUpgradeRequired = "plan_upgrade_required", 402;
    /// The monthly quota of traces is used up.
    IngestQuotaExceeded = "ingest_quota_exceeded", 402;
    /// The monthly quota of LLM evaluations is used up.
    EvalQuotaExceeded = "eval_quota_exceeded", 402;
    /// The tenant has as many eval rules as its plan allows.
    EvalRulesQuotaExceeded = "eval_rules_quota_exceeded", 402;
    /// The tenant has as many members as its plan allows.
    SeatLimitExceeded = "seat_limit_exceeded", 402;
    /// The caller's role is not sufficient.
    ForbiddenRole = "forbidden_role", 403;
    /// Tests of webhooks are not part of the plan.
    PlanForbidden = "plan_forbidden", 403;
    /// The key's scopes do not allow this call.
    ScopeForbidden = "scope_forbidden", 403;
    /// Only a dashboard session may call this.
    SessionRequired = "session_required", 403;
    /// The token's signature is valid, but its tenant does not exist.
    UnknownTenant = "unknown_tenant", 403;
    /// The user was removed from the tenant.
    MemberRemoved = "member_removed", 403;
    /// Ingest into an archived project.
    ProjectArchived = "error.project.archived", 403;
    /// No such resource for this tenant.
    NotFound = "not_found", 404;
    /// No such method on this path.
    MethodNotAllowed = "method_not_allowed", 405;
    /// The resource exists already.
    Conflict = "conflict", 409;
    /// The state of the resource does not allow the change.
    InvalidState = "invalid_state", 409;
    /// The last active project of a tenant cannot be archived.
    CannotArchiveLast = "error.project.cannot_archive_last", 409;
    /// A request with the same idempotency key is still in progress.
    IdempotencyInFlight = "idempotency_in_flight", 409;
    /// The body is over the limit, compressed or not.
    PayloadTooLarge = "payload_too_large", 413;
    /// The content type or encoding is not supported.
    UnsupportedMediaType = "unsupported_media_type", 415;
    /// The body has the right shape, but a value is not allowed.
    ValidationFailed = "validation_failed", 422;
    /// The address of a webhook is not `https`, or not an unambiguous URL.
    WebhookUrlNotHttps = "webhook.url.not_https", 422;
    /// The address of a webhook is not public, or its name resolves to an address that is not.
    WebhookUrlPrivateIp = "webhook.url.private_ip", 422;
    /// The host name of a webhook does not resolve in DNS.
    WebhookUrlUnresolvable = "webhook.url.unresolvable", 422;
    /// The plan requires the tenant's own judge, and the tenant has stored no credential for one.
    ProviderCredentialsMissing = "provider_credentials_missing", 422;
    /// The plan uses the platform's judge, and the operator has configured none.
    JudgeNotConfigured = "judge_not_configured", 422;
    /// The idempotency key was used with another body.
    IdempotencyKeyReused = "idempotency_key_reused", 422;
    /// The rate limit is exceeded.
    RateLimited = "rate_limited", 429;
    /// The request line and headers have more than 16 KiB, or more than 100 headers.
    HeadersTooLarge = "headers_too_large", 431;
    /// An internal error of the server.
    Internal = "internal", 500;
    /// An external service that the response depends on failed.
    UpstreamFailed = "upstream_failed", 502;
    /// The server cannot queue more work, or its database is unavailable.
    Overloaded = "overloaded", 503;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_codes_are_unique_and_found_by_name() {
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::of(code.as_str()), Some(*code));
        }
        assert_eq!(ErrorCode::of("nonsense"), None);
    }
}
