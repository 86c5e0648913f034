//! Messages about invalid JSON and invalid schemas. They never contain a value of the judged JSON.

use jsonschema::{
    ReferencingError, ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};

use super::MAX_REPORTED_FAILURES;
use crate::{config_problem::ConfigProblem, sentence::cut};

/// Maximum number of characters of a name in a message.
const MAX_NAME_CHARS: usize = 60;
/// Maximum number of characters of a path in a message.
const MAX_PATH_CHARS: usize = 200;
/// Maximum number of names in a message.
const MAX_LISTED_NAMES: usize = 3;

/// A failed location with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The JSON Pointer; empty for the whole value.
    pub path: String,
    /// The requirement, as the continuation of a sentence that names the location.
    pub why: String,
}

impl Failure {
    pub(super) fn of(error: &ValidationError) -> Self {
        let path: String = error.instance_path().as_str().split('/').map(shown).collect::<Vec<_>>().join("/");
        Self { path: cut(&path, MAX_PATH_CHARS).into_owned(), why: why(error.kind()) }
    }

    /// Returns the failure as a sentence without its full stop.
    pub(crate) fn sentence(&self) -> String {
        match self.path.as_str() {
            "" => format!("it {}", self.why),
            path => format!("{path} {}", self.why),
        }
    }
}

/// Returns a member name of the judged JSON for a message. Names are needed to find the location, but in an
/// object that serves as a table they are data, and data is not repeated.
fn shown(name: &str) -> &str {
    let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '$' | '~');
    let digits = name.chars().filter(char::is_ascii_digit).count();
    if name.len() <= MAX_NAME_CHARS && digits <= 7 && name.chars().all(plain) { name } else { "…" }
}

fn names(all: &[String]) -> String {
    let mut listed: Vec<&str> =
        all.iter().map(|it| shown(it)).filter(|it| *it != "…").take(MAX_LISTED_NAMES).collect();
    if listed.len() < all.len() {
        listed.push("…");
    }
    listed.join(", ")
}

fn why(kind: &Kind) -> String {
    match kind {
        Kind::AdditionalItems { limit } => format!("has more than {limit} items"),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!("has members that the schema does not allow ({})", names(unexpected))
        }
        Kind::UnevaluatedItems { unexpected } => {
            format!("has {} items that the schema does not allow", unexpected.len())
        }
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => "matches none of the alternatives".into(),
        Kind::OneOfMultipleValid { .. } => "matches more than one of the alternatives of oneOf".into(),
        Kind::Constant { expected_value } => {
            format!("is not {}", cut(&expected_value.to_string(), MAX_PATH_CHARS))
        }
        Kind::Enum { options } => format!("is not one of {}", cut(&options.to_string(), MAX_PATH_CHARS)),
        Kind::Contains => "contains too few or too many items of the required kind".into(),
        Kind::ContentEncoding { content_encoding } => format!("is not encoded as {content_encoding}"),
        Kind::ContentMediaType { content_media_type } => format!("is not {content_media_type}"),
        Kind::FromUtf8 { .. } => "does not decode to text".into(),
        Kind::ExclusiveMaximum { limit } => format!("is not below {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("is not above {limit}"),
        Kind::Maximum { limit } => format!("is above {limit}"),
        Kind::Minimum { limit } => format!("is below {limit}"),
        Kind::MultipleOf { multiple_of } => format!("is not a multiple of {multiple_of}"),
        Kind::MaxItems { limit } => format!("has more than {limit} items"),
        Kind::MinItems { limit } => format!("has fewer than {limit} items"),
        Kind::MaxLength { limit } => format!("is longer than {limit} characters"),
        Kind::MinLength { limit } => format!("is shorter than {limit} characters"),
        Kind::MaxProperties { limit } => format!("has more than {limit} members"),
        Kind::MinProperties { limit } => format!("has fewer than {limit} members"),
        Kind::FalseSchema => "is not allowed".into(),
        Kind::Format { format } => format!("is not in the format {format}"),
        Kind::Not { .. } => "matches a schema that it must not match".into(),
        Kind::Pattern { pattern } => format!("does not match {}", cut(pattern, MAX_PATH_CHARS)),
        Kind::PropertyNames { error } => format!("has a member whose name {}", why(error.kind())),
        Kind::Required { property } => format!("lacks {property}"),
        Kind::Type { kind: TypeKind::Single(expected) } => format!("is not of type {expected}"),
        Kind::Type { kind: TypeKind::Multiple(expected) } => {
            let all: Vec<String> = expected.iter().map(|it| it.to_string()).collect();
            format!("is of none of the types {}", all.join(", "))
        }
        Kind::UniqueItems => "has equal items".into(),
        // A message of this crate's own keyword, which continues the sentence.
        Kind::Custom { message, .. } => message.clone(),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } | Kind::Referencing(_) => {
            format!("fails {}", kind.keyword())
        }
    }
}

/// Returns the problems of a config that has these options. The caller wrote the config, so messages may repeat
/// its names and values. `variant` is the kind of config that the schema describes.
pub(super) fn problems(
    error: &ValidationError,
    options: &[String],
    variant: Option<&str>,
) -> Vec<ConfigProblem> {
    let field = dotted("", error.instance_path().as_str());
    let below = |name: &str| if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") };
    match error.kind() {
        Kind::Required { property } => {
            vec![ConfigProblem::new(below(property.as_str().unwrap_or_default()), "is required")]
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let of = variant.map_or_else(String::new, |it| format!(" of {it}"));
            let options = match (field.as_str(), options) {
                ("", [_, ..]) => format!("; options are {}", options.join(", ")),
                _ => String::new(),
            };
            let problem = |name: &String| {
                ConfigProblem::new(
                    cut(&below(name), MAX_PATH_CHARS),
                    format!("is not an option{of}{options}"),
                )
            };
            unexpected.iter().take(MAX_REPORTED_FAILURES).map(problem).collect()
        }
        kind => vec![ConfigProblem::new(cut(&field, MAX_PATH_CHARS), why(kind))],
    }
}

/// Explains why a reference in a schema cannot be resolved.
fn unresolved(why: &ReferencingError) -> String {
    let shown = |it: &str| cut(it, MAX_PATH_CHARS).into_owned();
    match why {
        ReferencingError::Unretrievable { uri, .. } => format!(
            "refers to {}, which is not in the schema; nothing is fetched: put it under `$defs` and refer to it there",
            shown(uri)
        ),
        ReferencingError::PointerToNowhere { pointer } => {
            format!("refers to {}, which the schema does not have", shown(pointer))
        }
        ReferencingError::InvalidPercentEncoding { pointer, .. }
        | ReferencingError::InvalidArrayIndex { pointer, .. } => {
            format!("refers to {}, which is not a valid JSON Pointer", shown(pointer))
        }
        ReferencingError::NoSuchAnchor { anchor } => {
            format!("refers to the anchor {}, which the schema does not have", shown(anchor))
        }
        ReferencingError::InvalidAnchor { anchor } => {
            format!("names {}, which is not a valid anchor", shown(anchor))
        }
        ReferencingError::InvalidUri(_) => "has a reference that is not a valid URI".into(),
        ReferencingError::UnknownSpecification { specification } => format!(
            "names {} as its $schema, which is not known: drafts 4, 6, 7, 2019-09 and 2020-12 are",
            shown(specification)
        ),
        ReferencingError::CircularMetaschema { uri } => {
            format!("names {} as its $schema, which refers to itself", shown(uri))
        }
    }
}

/// Converts a JSON Pointer to a dotted path of a config.
fn dotted(before: &str, pointer: &str) -> String {
    let names = pointer.split('/').skip(1).map(|it| it.replace("~1", "/").replace("~0", "~"));
    let before = Some(before.to_owned()).filter(|it| !it.is_empty());
    before.into_iter().chain(names).collect::<Vec<_>>().join(".")
}

/// Explains why a schema does not compile.
pub(super) fn uncompiled(error: &ValidationError, field: &str) -> ConfigProblem {
    let path = dotted(field, error.instance_path().as_str());
    let message = match error.kind() {
        Kind::Referencing(why) => unresolved(why),
        Kind::Format { format } if format == "regex" => {
            "is not a regular expression that runs in linear time: look-around and back references are not \
             supported, and it must not grow too large"
                .into()
        }
        Kind::Custom { message, .. } => message.clone(),
        kind => format!("{}, so the schema is not valid", why(kind)),
    };
    ConfigProblem::new(cut(&path, MAX_PATH_CHARS), cut(&message, 2 * MAX_PATH_CHARS))
}
