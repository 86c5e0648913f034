//! The stored form of a vector. SQLite: a blob of half-precision numbers, little endian, without trailing
//! zeros. PostgreSQL: the types `halfvec(1536)` and `bit(1536)` of pgvector.

use api::search::DIMENSIONS;
use half::f16;
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
        Self(vector.halves().flat_map(f16::to_le_bytes).collect())
    }

    /// Returns the bits that PostgreSQL compares before the vectors themselves.
    pub fn coarse(&self) -> Bit {
        Bit::from_bytes(&coarse::signs(&read_numbers(&self.0)))
    }

    /// Returns the vector; `None` if all its components are zero.
    pub fn read(&self) -> Option<UnitVector> {
        UnitVector::of(&read_numbers(&self.0)).ok()
    }

    /// Returns the parameter of a PostgreSQL statement, which has all [`DIMENSIONS`].
    fn half_vector(&self) -> HalfVector {
        let mut numbers = Vec::with_capacity(DIMENSIONS);
        numbers.extend(self.0.as_chunks().0.iter().map(|it| f16::from_le_bytes(*it)));
        numbers.resize(DIMENSIONS, f16::ZERO);
        HalfVector::from(numbers)
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
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        self.half_vector().encode_by_ref(buffer)
    }
}

impl<'r> Decode<'r, Postgres> for StoredVector {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        let vector = HalfVector::decode(value)?;
        Ok(Self(vector.as_slice().iter().flat_map(|it| it.to_le_bytes()).collect()))
    }
}
