//! The stored form of a vector. SQLite: a blob of half-precision numbers, little endian, without trailing
//! zeros. PostgreSQL: the types `halfvec(1536)` and `bit(1536)` of pgvector.

use api::search::DIMENSIONS;
use pgvector::{Bit, HalfVector};
use sqlx::{
    Decode, Encode, Postgres, Sqlite, Type,
    encode::IsNull,
    error::BoxDynError,
    postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueRef},
    sqlite::{SqliteArgumentsBuffer, SqliteTypeInfo, SqliteValueRef},
};

use super::{UnitVector, coarse, read_numbers};

/// A vector as a parameter or a column of a statement, on either database.
#[derive(Clone, Debug)]
pub struct StoredVector(Vec<u8>);

impl StoredVector {
    /// Creates the stored form of a vector.
    pub fn of(vector: &UnitVector) -> Self {
        let halves = vector.halves();
        let mut bytes = Vec::with_capacity(2 * halves.len());
        halves.iter().for_each(|it| bytes.extend_from_slice(&it.to_le_bytes()));
        Self(bytes)
    }

    /// Returns the bits that PostgreSQL compares before the vectors themselves.
    pub fn coarse(&self) -> Bit {
        Bit::from_bytes(&coarse::signs(&read_numbers(&self.0)))
    }

    /// Returns the vector; `None` if all its components are zero.
    pub fn read(&self) -> Option<UnitVector> {
        UnitVector::of(&read_numbers(&self.0)).ok()
    }
}

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

impl<'r> Decode<'r, Sqlite> for StoredVector {
    fn decode(value: SqliteValueRef<'r>) -> Result<Self, BoxDynError> {
        <Vec<u8> as Decode<'r, Sqlite>>::decode(value).map(Self)
    }
}

impl Type<Postgres> for StoredVector {
    fn type_info() -> PgTypeInfo {
        <HalfVector as Type<Postgres>>::type_info()
    }
}

impl PgHasArrayType for StoredVector {
    fn array_type_info() -> PgTypeInfo {
        HalfVector::array_type_info()
    }
}

impl Encode<'_, Postgres> for StoredVector {
    /// Writes pgvector's binary format: the number of dimensions, two unused bytes, and the numbers, all big endian.
    /// A stored vector has all [`DIMENSIONS`].
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        let mut bytes = [0; 4 + 2 * DIMENSIONS];
        bytes[..2].copy_from_slice(&u16::try_from(DIMENSIONS)?.to_be_bytes());
        for (to, it) in bytes[4..].as_chunks_mut::<2>().0.iter_mut().zip(self.0.as_chunks::<2>().0) {
            *to = [it[1], it[0]];
        }
        buffer.extend_from_slice(&bytes);
        Ok(IsNull::No)
    }
}

impl<'r> Decode<'r, Postgres> for StoredVector {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        let vector = HalfVector::decode(value)?;
        Ok(Self(vector.as_slice().iter().flat_map(|it| it.to_le_bytes()).collect()))
    }
}
