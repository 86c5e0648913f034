//! Table `body`: texts of the spans that came together, compressed as one piece.
//!
//! Spans of one trace repeat each other's texts, so a piece of several compresses better
//! than each alone, and is one row instead of many.

use sea_orm::entity::prelude::*;

/// One compressed piece.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "body")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// A time-ordered UUID, so that rows are appended.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// Zstandard frame of the entries.
    pub data: Vec<u8>,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
