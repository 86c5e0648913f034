//! Problems of configs and schemas, which name the field.

/// A problem of a config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Dotted path below `config`, such as `schema.type`; empty for the config itself.
    pub field: String,
    /// The problem and its remedy.
    pub message: String,
}

impl ConfigProblem {
    /// Creates a problem of one field.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

/// Returns a problem as the only one.
pub(crate) fn one_problem(field: &str, message: impl Into<String>) -> Vec<ConfigProblem> {
    vec![ConfigProblem::new(field, message)]
}
