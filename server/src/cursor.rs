//! Cursors: opaque, URL-safe, signed, bound to the tenant, the list and its filters.

use api::ErrorCode;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use store::vectors::Hit;
use uuid::Uuid;

use crate::error::{Error, problem};

/// Signs and verifies cursors: the first key signs, all keys verify.
pub struct Cursors(Vec<[u8; 32]>);

/// Length of the signature in bytes.
const SIGNATURE_LENGTH: usize = 16;

/// A position in the sort order of a list.
pub trait Position: Sized {
    /// Encodes the position.
    fn to_bytes(&self) -> Vec<u8>;
    /// Decodes a position, if the bytes are valid.
    fn from_bytes(bytes: &[u8]) -> Option<Self>;
}

/// Time and key of a trace.
impl Position for (i64, i64) {
    fn to_bytes(&self) -> Vec<u8> {
        [self.0.to_be_bytes(), self.1.to_be_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (at, key) = bytes.split_at_checked(8)?;
        Some((i64::from_be_bytes(at.try_into().ok()?), i64::from_be_bytes(key.try_into().ok()?)))
    }
}

/// Time and ID.
impl Position for (i64, Uuid) {
    fn to_bytes(&self) -> Vec<u8> {
        [&self.0.to_be_bytes()[..], self.1.as_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (at, id) = bytes.split_at_checked(8)?;
        Some((i64::from_be_bytes(at.try_into().ok()?), Uuid::from_slice(id).ok()?))
    }
}

/// The position in a list ordered by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePosition(pub String);

impl Position for NamePosition {
    fn to_bytes(&self) -> Vec<u8> {
        self.0.clone().into_bytes()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        String::from_utf8(bytes.to_vec()).ok().map(Self)
    }
}

/// Distance, trace and span.
impl Position for Hit {
    fn to_bytes(&self) -> Vec<u8> {
        [&self.distance.to_be_bytes()[..], self.trace_id.as_bytes(), self.id.as_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (distance, ids) = bytes.split_at_checked(8)?;
        let (trace_id, id) = ids.split_at_checked(16)?;
        Some(Self {
            distance: f64::from_be_bytes(distance.try_into().ok()?),
            trace_id: Uuid::from_slice(trace_id).ok()?,
            id: Uuid::from_slice(id).ok()?,
        })
    }
}

impl Cursors {
    /// Creates cursors with these keys; the first one signs.
    pub fn new(keys: Vec<[u8; 32]>) -> Self {
        Self(keys)
    }

    /// Returns the cursor of a position. `scope` identifies the list and its filters.
    pub fn sign(&self, tenant: Uuid, scope: &str, position: impl Position) -> String {
        let mut bytes = position.to_bytes();
        let key = self.0.first().map_or(&[][..], |it| it);
        let tag = mac(key, tenant, scope, &bytes).finalize().into_bytes();
        bytes.extend(&tag[..SIGNATURE_LENGTH]);
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Returns the position of a cursor.
    ///
    /// # Errors
    ///
    /// Fails with `invalid_cursor` when it was not signed for this tenant and scope.
    pub fn verify<P: Position>(&self, tenant: Uuid, scope: &str, cursor: &str) -> Result<P, Error> {
        self.verified_position(tenant, scope, cursor).ok_or_else(|| {
            problem(
                ErrorCode::InvalidCursor,
                "the cursor is damaged, or belongs to another list or other filters",
            )
        })
    }

    /// Removes the row that was read beyond `limit` and returns the cursor of the next page if there is
    /// one. `position` returns the position of a row in the list.
    pub fn page<T, P: Position>(
        &self,
        tenant: Uuid,
        scope: &str,
        rows: &mut Vec<T>,
        limit: usize,
        position: impl Fn(&T) -> P,
    ) -> Option<String> {
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        rows.last().filter(|_| has_more).map(|it| self.sign(tenant, scope, position(it)))
    }

    fn verified_position<P: Position>(&self, tenant: Uuid, scope: &str, cursor: &str) -> Option<P> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let (position, tag) = bytes.split_at_checked(bytes.len().checked_sub(SIGNATURE_LENGTH)?)?;
        let signed = |key: &[u8; 32]| mac(key, tenant, scope, position).verify_truncated_left(tag).is_ok();
        if !self.0.iter().any(signed) {
            return None;
        }
        P::from_bytes(position)
    }
}

fn mac(key: &[u8], tenant: Uuid, scope: &str, position: &[u8]) -> Hmac<Sha256> {
    // HMAC accepts keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        unreachable!("HMAC accepts keys of any length")
    };
    mac.update(tenant.as_bytes());
    mac.update(position);
    mac.update(scope.as_bytes());
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_is_valid_only_for_its_tenant_and_scope() {
        let cursors = Cursors::new(vec![[7; 32]]);
        let (tenant, position) = (Uuid::from_u128(1), (-5, Uuid::from_u128(9)));
        let cursor = cursors.sign(tenant, "traces?model=x", position);
        assert_eq!(cursors.verify::<(i64, Uuid)>(tenant, "traces?model=x", &cursor).unwrap(), position);
        assert!(cursors.verify::<(i64, Uuid)>(Uuid::from_u128(2), "traces?model=x", &cursor).is_err());
        assert!(cursors.verify::<(i64, Uuid)>(tenant, "traces?model=y", &cursor).is_err());
        assert!(
            Cursors::new(vec![[8; 32], [7; 32]])
                .verify::<(i64, Uuid)>(tenant, "traces?model=x", &cursor)
                .is_ok()
        );
        assert!(
            Cursors::new(vec![[8; 32]]).verify::<(i64, Uuid)>(tenant, "traces?model=x", &cursor).is_err()
        );
    }

    #[test]
    fn cursor_with_flipped_bit_is_rejected() {
        let cursors = Cursors::new(vec![[7; 32]]);
        let cursor = cursors.sign(Uuid::nil(), "s", (1, Uuid::nil())).into_bytes();
        for i in 0..cursor.len() * 8 {
            let mut flipped = cursor.clone();
            flipped[i / 8] ^= 1 << (i % 8);
            if let Ok(text) = std::str::from_utf8(&flipped) {
                assert!(cursors.verify::<(i64, Uuid)>(Uuid::nil(), "s", text).is_err(), "bit {i}");
            }
        }
        assert!(cursors.verify::<(i64, Uuid)>(Uuid::nil(), "s", "").is_err());
    }
}
