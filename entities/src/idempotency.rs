//! Table `idempotency`: responses that are returned again to requests with the same `Idempotency-Key`.

use sea_orm::entity::prelude::*;

/// An idempotency key and, once the request is finished, its response.
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
    /// The request that holds the key, so that an abandoned request cannot store the response of its
    /// successor.
    pub holder: Uuid,
    /// Status of the response; null while the request is in progress.
    pub status: Option<i16>,
    /// Content type of the response.
    pub content_type: Option<String>,
    /// Body of the response, without secrets.
    pub answer: Option<Vec<u8>>,
    /// In progress: time at which the request counts as abandoned. Finished: time at which the row is
    /// purged. Microseconds.
    pub expires_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
