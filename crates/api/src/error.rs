//! The error body and the machine-readable codes.

use serde::{Deserialize, Serialize};

use crate::enums::Plan;

/// Body of every answer that is not a success.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ErrorBody {
    /// A sentence for people; it may change.
    pub error: String,
    /// The machine-readable code, see [`ErrorCode`].
    pub code: String,
    /// Identifier of the request, also in the header `X-Request-Id`.
    pub request_id: String,
    /// The sentence again, on the 403 of an archived project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The lowest plan that unlocks the feature, on `plan_upgrade_required`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_plan: Option<Plan>,
    /// What is wrong with which field, on a 422.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldError>,
    /// The trace that is already stored, on the 409 of an ingest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<uuid::Uuid>,
    /// Whether the stored trace is the one sent, on the 409 of an ingest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identical: Option<bool>,
}

/// One field that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FieldError {
    /// Path of the field, for example `spans[2].name`.
    pub field: String,
    /// What is wrong with it.
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

            /// The word in the body's `code`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The HTTP status that the code comes with.
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status),+ }
            }

            /// The code of a word, if this version knows it.
            pub fn of(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|it| it.as_str() == word)
            }
        }
    };
}

codes! {
    /// The request is not valid HTTP/1.1: its head can't be parsed, or `Host` is missing, repeated or wrong.
    InvalidRequest = "invalid_request", 400;
    /// The body is not JSON (or not OTLP).
    InvalidJson = "invalid_json", 400;
    /// A JSON value has the wrong type or a required field is missing.
    InvalidBody = "invalid_body", 400;
    /// A query or path parameter can't be read.
    InvalidQuery = "invalid_query", 400;
    /// The cursor is damaged, or of another tenant, list or filter.
    InvalidCursor = "invalid_cursor", 400;
    /// Only one of `tag_key` and `tag_value` was given.
    TagsFilterIncomplete = "error.tags_filter_incomplete", 400;
    /// The token is missing or not valid.
    Unauthorized = "unauthorized", 401;
    /// The feature is not part of the plan.
    PlanUpgradeRequired = "plan_upgrade_required", 402;
    /// The month's traces are used up.
    IngestQuotaExceeded = "ingest_quota_exceeded", 402;
    /// The month's evaluations by judges are used up.
    EvalQuotaExceeded = "eval_quota_exceeded", 402;
    /// The plan's eval rules are all there.
    EvalRulesQuotaExceeded = "eval_rules_quota_exceeded", 402;
    /// Every seat of the plan is taken.
    SeatLimitExceeded = "seat_limit_exceeded", 402;
    /// The role is too low.
    ForbiddenRole = "forbidden_role", 403;
    /// The key's scopes do not allow this call.
    ScopeForbidden = "scope_forbidden", 403;
    /// Only a dashboard session may call this.
    SessionRequired = "session_required", 403;
    /// The token is signed well, but its tenant does not exist.
    UnknownTenant = "unknown_tenant", 403;
    /// The session's subject was removed from the tenant.
    MemberRemoved = "member_removed", 403;
    /// Ingest into an archived project.
    ProjectArchived = "error.project.archived", 403;
    /// No such resource for this tenant.
    NotFound = "not_found", 404;
    /// No such method on this path.
    MethodNotAllowed = "method_not_allowed", 405;
    /// The resource exists already.
    Conflict = "conflict", 409;
    /// The tenant's last active project can't be archived.
    CannotArchiveLast = "error.project.cannot_archive_last", 409;
    /// A request with the same idempotency key has not been answered yet.
    IdempotencyInFlight = "idempotency_in_flight", 409;
    /// The body is over the limit, compressed or not.
    PayloadTooLarge = "payload_too_large", 413;
    /// The content type or encoding is not served.
    UnsupportedMediaType = "unsupported_media_type", 415;
    /// The shape is right, but a value is not allowed.
    ValidationFailed = "validation_failed", 422;
    /// The tenant's own judge is needed, and it has stored no credential for one.
    ProviderCredentialsMissing = "provider_credentials_missing", 422;
    /// The platform's judge is needed, and the operator configured none.
    JudgeNotConfigured = "judge_not_configured", 422;
    /// The idempotency key was used with another body.
    IdempotencyKeyReused = "idempotency_key_reused", 422;
    /// The minute's requests are used up.
    RateLimited = "rate_limited", 429;
    /// The request line and headers have more than 16 KiB, or more than 100 headers.
    HeadersTooLarge = "headers_too_large", 431;
    /// Something is wrong on this side.
    Internal = "internal", 500;
    /// Somebody else's service that is needed for the answer failed.
    UpstreamFailed = "upstream_failed", 502;
    /// The server has more work than it can queue, or its database is away.
    Overloaded = "overloaded", 503;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_found_by_word() {
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::of(code.as_str()), Some(*code));
        }
        assert_eq!(ErrorCode::of("nonsense"), None);
    }
}
