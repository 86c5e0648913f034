//! Table `idempotency`: answers that are given again to the same `Idempotency-Key`.

use sea_orm::entity::prelude::*;

/// One key and, once it is known, the answer.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "idempotency")]
pub struct Model {
    /// The tenant.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// SHA-256 over credential, path and key.
    #[sea_orm(primary_key, auto_increment = false)]
    pub key_hash: Vec<u8>,
    /// SHA-256 of the request's body.
    pub body_hash: Vec<u8>,
    /// Which request holds it, so that one that was given up can't answer for its successor.
    pub holder: Uuid,
    /// Status of the answer; null while the request is in flight.
    pub status: Option<i16>,
    /// Content type of the answer.
    pub content_type: Option<String>,
    /// Body of the answer, without secrets.
    pub answer: Option<Vec<u8>>,
    /// In flight: when it counts as given up. Answered: when it is forgotten. Microseconds.
    pub expires_at: i64,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
