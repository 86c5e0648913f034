//! Table `body`: text blocks, and text pages with the blocks of several traces. A block contains the compressed texts of the
//! spans of one chunk.
//!
//! Spans of one trace repeat each other's texts, so compressing them together saves space, and one row
//! replaces many.

use sea_orm::entity::prelude::*;

/// A text block or a text page.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "body")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// A time-ordered UUID, so that rows are appended.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// A Zstandard frame with the texts, or the blocks of a page.
    pub data: Vec<u8>,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
