//! Members: the users of a tenant.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Role, Timestamp, enums::words};

words! {
    /// Whether a member has a seat.
    MemberStatus {
        /// Has a seat and may sign in.
        Active = "active",
        /// Rejected with `member_removed`; the seat is free.
        Removed = "removed",
    }
}

/// One member of a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Member {
    /// Identifies the member in paths.
    pub id: Uuid,
    /// The `sub` of the member's tokens.
    pub subject: String,
    /// The role in the newest token.
    pub role: Role,
    /// Active or removed.
    pub status: MemberStatus,
    /// Time of the first request.
    pub created_at: Timestamp,
    /// Time of the last request, to the hour.
    pub last_seen_at: Timestamp,
}

/// Body of `PATCH /v1/members/{id}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MemberChange {
    /// `active` restores a removed member; `removed` removes the member, like DELETE.
    #[cfg_attr(feature = "schema", schema(value_type = MemberStatus))]
    pub status: String,
}

/// A page of members, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MemberList {
    /// The members, removed ones included.
    pub members: Vec<Member>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}
