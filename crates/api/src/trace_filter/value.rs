//! The values of trace filters.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::FilterDefinition;
use crate::FailureType;

/// Minimum and maximum of a range, both inclusive. Durations are in milliseconds, money is in pico-dollars.
pub type Bounds = (Option<i64>, Option<i64>);

/// A condition on tags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tag {
    /// A tag with this key and this value.
    Pair(String, String),
    /// A tag with this key and any value.
    Key(String),
    /// A tag in its written form: a key with any value, or `key:value`, where both may contain colons.
    Written(String),
}

/// Maximum number of colons in a written tag. Every colon is one more way to divide it into key and value.
const MAX_TAG_COLONS: usize = 16;

impl Tag {
    /// Returns the condition for a tag in its written form; `None` when it has too many colons.
    pub fn written(text: &str) -> Option<Self> {
        match text.matches(':').count() {
            0 => Some(Self::Key(text.to_owned())),
            1..=MAX_TAG_COLONS => Some(Self::Written(text.to_owned())),
            _ => None,
        }
    }
}

/// The value of a filter that is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FilterValue<'a> {
    /// A UUID.
    Id(Uuid),
    /// A text that must be equal.
    Text(&'a str),
    /// Whether something must be present or absent.
    Switch(bool),
    /// A failure type of at least one span.
    Failure(FailureType),
    /// A time in microseconds.
    Time(i64),
    /// A range with at least one bound.
    Range(Bounds),
    /// Conditions on tags.
    Tags(&'a [Tag]),
    /// Words in lower case.
    Words(&'a [String]),
}

impl FilterValue<'_> {
    /// Returns a range; `None` without bounds.
    pub(super) fn range(bounds: Bounds) -> Option<Self> {
        (bounds != (None, None)).then_some(Self::Range(bounds))
    }
}

/// Reads the values of filters from a request, by the type of the value. A filter without a parameter in the
/// request has no value.
pub trait FilterSource {
    /// The error for an invalid value.
    type Error;

    /// Reads a UUID.
    ///
    /// # Errors
    /// Fails when the value is invalid.
    fn id(&self, filter: &FilterDefinition) -> Result<Option<Uuid>, Self::Error>;

    /// Reads a text.
    ///
    /// # Errors
    /// Fails when the value is invalid.
    fn text(&self, filter: &FilterDefinition) -> Result<Option<String>, Self::Error>;

    /// Reads `true` or `false`.
    ///
    /// # Errors
    /// Fails when the value is invalid.
    fn switch(&self, filter: &FilterDefinition) -> Result<Option<bool>, Self::Error>;

    /// Reads a failure type.
    ///
    /// # Errors
    /// Fails when the value is invalid.
    fn failure(&self, filter: &FilterDefinition) -> Result<Option<FailureType>, Self::Error>;

    /// Reads a time in microseconds.
    ///
    /// # Errors
    /// Fails when the value is invalid.
    fn time(&self, filter: &FilterDefinition) -> Result<Option<i64>, Self::Error>;

    /// Reads a range of whole numbers, such as counts or milliseconds.
    ///
    /// # Errors
    /// Fails when a bound is invalid or the range is empty.
    fn number_range(&self, filter: &FilterDefinition) -> Result<Bounds, Self::Error>;

    /// Reads a range of amounts in pico-dollars.
    ///
    /// # Errors
    /// Fails when a bound is invalid or the range is empty.
    fn money_range(&self, filter: &FilterDefinition) -> Result<Bounds, Self::Error>;

    /// Reads conditions on tags.
    ///
    /// # Errors
    /// Fails when a condition is incomplete or there are too many.
    fn tags(&self, filter: &FilterDefinition) -> Result<Vec<Tag>, Self::Error>;

    /// Reads words, in lower case.
    ///
    /// # Errors
    /// Fails when there is no word.
    fn words(&self, filter: &FilterDefinition) -> Result<Vec<String>, Self::Error>;
}
