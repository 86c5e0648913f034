//! The types of a row of the table of trace filters.

/// The definition of a trace filter: everything that clients see of it.
#[derive(Debug)]
pub struct FilterDefinition {
    /// The type of the value, which decides how texts are parsed and compared.
    pub value_type: ValueType,
    /// The query parameters; a range has two, minimum and maximum. Empty for filters that requests cannot set.
    pub parameters: &'static [Parameter],
    /// The term of the filter grammar, with its flags; none if the filter is available over HTTP only.
    pub term: Option<Term>,
}

/// The type of a filter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// A UUID.
    Id,
    /// A text that must be equal.
    Text,
    /// `true` or `false`.
    Switch,
    /// One of the failure types, except `other`.
    Failure,
    /// A point in time.
    Time,
    /// A range of durations, in milliseconds.
    Duration,
    /// A range of whole numbers.
    Count,
    /// A range of amounts in US dollars.
    Money,
    /// Tags, as pairs of a key and a value or as keys. The parameters are the key, the value, and the written form.
    Tags,
    /// Words that texts contain.
    Words,
}

/// A query parameter.
#[derive(Debug)]
pub struct Parameter {
    /// The name.
    pub name: &'static str,
    /// The description in the OpenAPI document.
    pub description: &'static str,
}

/// A term of the filter grammar.
#[derive(Debug)]
pub struct Term {
    /// The name before the colon.
    pub name: &'static str,
    /// An example of a term.
    pub example: &'static str,
    /// The traces that it selects, in one line.
    pub help: &'static str,
    /// Words for completion; empty when the value is free.
    pub completions: &'static [&'static str],
    /// The flags of the command line that are equivalent to terms.
    pub flags: &'static [Flag],
}

/// A flag of the command line.
#[derive(Debug)]
pub struct Flag {
    /// The name without dashes.
    pub name: &'static str,
    /// The help, in one line.
    pub help: &'static str,
    /// How the flag becomes the value of a term.
    pub value: FlagValue,
}

/// How a flag becomes the value of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagValue {
    /// The flag takes no value; this is the value of the term.
    Fixed(&'static str),
    /// The flag takes a value.
    Given {
        /// The name of the value in the help.
        name: &'static str,
        /// Text that the term has before the value.
        prefix: &'static str,
    },
}

impl FilterDefinition {
    /// Returns whether a query parameter belongs to the filter.
    pub fn has_parameter(&self, name: &str) -> bool {
        self.parameters.iter().any(|it| it.name == name)
    }

    /// Returns the names of minimum and maximum if the filter is a range.
    pub fn range_parameters(&self) -> Option<(&'static str, &'static str)> {
        match (self.value_type, self.parameters) {
            (ValueType::Duration | ValueType::Count | ValueType::Money, [min, max]) => {
                Some((min.name, max.name))
            }
            _ => None,
        }
    }
}

// Rows of the table are written with these functions, so that each names only the parts that it has.
impl FilterDefinition {
    /// Begins the definition of a filter that requests cannot set.
    pub(super) const fn internal(value_type: ValueType) -> Self {
        Self { value_type, parameters: &[], term: None }
    }

    /// Sets the query parameters.
    pub(super) const fn parameters(self, parameters: &'static [Parameter]) -> Self {
        Self { parameters, ..self }
    }

    /// Sets the term of the filter grammar.
    pub(super) const fn term(self, term: Term) -> Self {
        Self { term: Some(term), ..self }
    }
}

impl Parameter {
    /// Creates a parameter.
    pub(super) const fn new(name: &'static str, description: &'static str) -> Self {
        Self { name, description }
    }
}

impl Flag {
    /// Creates a flag without a value.
    pub(super) const fn fixed(name: &'static str, value: &'static str, help: &'static str) -> Self {
        Self { name, help, value: FlagValue::Fixed(value) }
    }

    /// Creates a flag whose value is the value of the term.
    pub(super) const fn plain(name: &'static str, value_name: &'static str, help: &'static str) -> Self {
        Self { name, help, value: FlagValue::Given { name: value_name, prefix: "" } }
    }

    /// Creates a flag for the minimum of a range.
    pub(super) const fn minimum(name: &'static str, value_name: &'static str, help: &'static str) -> Self {
        Self { name, help, value: FlagValue::Given { name: value_name, prefix: ">=" } }
    }

    /// Creates a flag for the maximum of a range.
    pub(super) const fn maximum(name: &'static str, value_name: &'static str, help: &'static str) -> Self {
        Self { name, help, value: FlagValue::Given { name: value_name, prefix: "<=" } }
    }
}
