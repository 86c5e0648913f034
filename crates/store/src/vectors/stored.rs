//! A vector as either database holds it: halves, little endian and without zeros at the end in a
//! blob of SQLite, `halfvec(1536)` of PostgreSQL in its binary form. And its bits, `bit(1536)`, which
//! only PostgreSQL holds.

use api::search::DIMENSIONS;
use sqlx::{
    Decode, Encode, Postgres, Sqlite, Type,
    encode::IsNull,
    error::BoxDynError,
    postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueRef},
    sqlite::{SqliteArgumentsBuffer, SqliteTypeInfo, SqliteValueRef},
};

use super::read_numbers;
use crate::vectors::{UnitVector, coarse};

/// A vector on its way into the database, or into a statement.
#[derive(Clone, Debug)]
pub struct StoredVector(Vec<u8>);

impl StoredVector {
    /// The stored form of a vector.
    pub fn of(vector: &UnitVector) -> Self {
        Self(vector.halves().flat_map(u16::to_le_bytes).collect())
    }

    /// The bits of the vector.
    pub fn coarse(&self) -> Coarse {
        Coarse(coarse::signs(&read_numbers(&self.0)))
    }

    /// The vector that is stored; nothing for one without a direction.
    pub fn read(&self) -> Option<UnitVector> {
        UnitVector::of(&read_numbers(&self.0)).ok()
    }
}

/// The bits of a vector on their way into PostgreSQL.
#[derive(Clone, Copy, Debug)]
pub struct Coarse([u8; coarse::BYTES]);

impl Type<Sqlite> for StoredVector {
    fn type_info() -> SqliteTypeInfo {
        <Vec<u8> as Type<Sqlite>>::type_info()
    }
}

impl Encode<'_, Sqlite> for StoredVector {
    fn encode_by_ref(&self, buffer: &mut SqliteArgumentsBuffer) -> Result<IsNull, BoxDynError> {
        <Vec<u8> as Encode<'_, Sqlite>>::encode_by_ref(&self.0, buffer)
    }
}

impl Type<Postgres> for StoredVector {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("halfvec")
    }
}

impl PgHasArrayType for StoredVector {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::array_of("halfvec")
    }
}

impl Encode<'_, Postgres> for StoredVector {
    /// The number of dimensions, two unused bytes, and the numbers, all big endian.
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        let mut bytes = Vec::with_capacity(4 + 2 * DIMENSIONS);
        bytes.extend(u16::try_from(DIMENSIONS)?.to_be_bytes());
        bytes.extend([0; 2]);
        bytes.extend(self.0.chunks_exact(2).flat_map(|it| [it[1], it[0]]));
        bytes.resize(4 + 2 * DIMENSIONS, 0);
        buffer.extend_from_slice(&bytes);
        Ok(IsNull::No)
    }
}

impl Type<Postgres> for Coarse {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("bit")
    }
}

impl PgHasArrayType for Coarse {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::array_of("bit")
    }
}

impl Encode<'_, Postgres> for Coarse {
    /// The number of bits, big endian, and the bits, the first one in front.
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        buffer.extend_from_slice(&u32::try_from(DIMENSIONS)?.to_be_bytes());
        buffer.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }
}

impl<'r> Decode<'r, Sqlite> for StoredVector {
    fn decode(value: SqliteValueRef<'r>) -> Result<Self, BoxDynError> {
        <Vec<u8> as Decode<'r, Sqlite>>::decode(value).map(Self)
    }
}

impl<'r> Decode<'r, Postgres> for StoredVector {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        let numbers = value.as_bytes()?.get(4..).unwrap_or_default();
        Ok(Self(numbers.chunks_exact(2).flat_map(|it| [it[1], it[0]]).collect()))
    }
}
