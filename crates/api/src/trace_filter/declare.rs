//! The macro that turns the table of trace filters into types.

/// Declares [`TraceFilter`](super::TraceFilter), the filters as keys, and
/// [`TraceConditions`](super::TraceConditions), their values.
macro_rules! trace_filters {
    ($($(#[$doc:meta])* $filter:ident, $field:ident: $kind:ident = $($part:ident($($argument:tt)*))*;)+) => {
        /// A filter of trace lists.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum TraceFilter { $($(#[$doc])* $filter),+ }

        impl TraceFilter {
            /// Every filter, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$filter),+];

            /// Returns the definition of the filter.
            pub fn definition(self) -> &'static FilterDefinition {
                match self {
                    $(Self::$filter => {
                        const DEFINITION: FilterDefinition =
                            FilterDefinition::internal(ValueType::$kind)$(.$part($($argument)*))*;
                        &DEFINITION
                    })+
                }
            }
        }

        /// The values of the filters of a trace list. All conditions must hold.
        #[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct TraceConditions { $($(#[$doc])* pub $field: value_of!($kind)),+ }

        impl TraceConditions {
            /// Reads the values of all filters from a request.
            ///
            /// # Errors
            /// Fails with the source's error for the first invalid value.
            pub fn read_from<S: FilterSource>(source: &S) -> Result<Self, S::Error> {
                Ok(Self { $($field: read_value!($kind, source, TraceFilter::$filter.definition())),+ })
            }

            /// Returns the value of a filter; `None` if the filter is not set.
            pub fn value(&self, filter: TraceFilter) -> Option<FilterValue<'_>> {
                match filter { $(TraceFilter::$filter => filter_value!($kind, self.$field)),+ }
            }
        }

        // Cursors are signed for the conditions in this form, so it does not follow the name of the type.
        impl fmt::Debug for TraceConditions {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct("Filter")$(.field(stringify!($field), &self.$field))+.finish()
            }
        }
    };
}

/// The Rust type of a [`ValueType`](super::ValueType). Times are microseconds.
macro_rules! value_of {
    (Id) => { Option<Uuid> };
    (Text) => { Option<String> };
    (Switch) => { Option<bool> };
    (Failure) => { Option<FailureType> };
    (Time) => { Option<i64> };
    (Duration) => { Bounds };
    (Count) => { Bounds };
    (Money) => { Bounds };
    (Tags) => { Vec<Tag> };
    (Words) => { Vec<String> };
}

/// Reads a value with the function of [`FilterSource`](super::FilterSource) for its type.
macro_rules! read_value {
    (Id, $source:expr, $filter:expr) => {
        $source.id($filter)?
    };
    (Text, $source:expr, $filter:expr) => {
        $source.text($filter)?
    };
    (Switch, $source:expr, $filter:expr) => {
        $source.switch($filter)?
    };
    (Failure, $source:expr, $filter:expr) => {
        $source.failure($filter)?
    };
    (Time, $source:expr, $filter:expr) => {
        $source.time($filter)?
    };
    (Duration, $source:expr, $filter:expr) => {
        $source.number_range($filter)?
    };
    (Count, $source:expr, $filter:expr) => {
        $source.number_range($filter)?
    };
    (Money, $source:expr, $filter:expr) => {
        $source.money_range($filter)?
    };
    (Tags, $source:expr, $filter:expr) => {
        $source.tags($filter)?
    };
    (Words, $source:expr, $filter:expr) => {
        $source.words($filter)?
    };
}

/// Converts a field to a [`FilterValue`](super::FilterValue); `None` if it does not restrict.
macro_rules! filter_value {
    (Id, $field:expr) => {
        $field.map(FilterValue::Id)
    };
    (Text, $field:expr) => {
        $field.as_deref().map(FilterValue::Text)
    };
    (Switch, $field:expr) => {
        $field.map(FilterValue::Switch)
    };
    (Failure, $field:expr) => {
        $field.map(FilterValue::Failure)
    };
    (Time, $field:expr) => {
        $field.map(FilterValue::Time)
    };
    (Duration, $field:expr) => {
        FilterValue::range($field)
    };
    (Count, $field:expr) => {
        FilterValue::range($field)
    };
    (Money, $field:expr) => {
        FilterValue::range($field)
    };
    (Tags, $field:expr) => {
        (!$field.is_empty()).then_some(FilterValue::Tags(&$field))
    };
    (Words, $field:expr) => {
        (!$field.is_empty()).then_some(FilterValue::Words(&$field))
    };
}
