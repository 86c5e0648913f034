//! `--fields`: selects members of rows, in the given order.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::View;
use crate::error::{CliError, Result};

/// JSON to write: complete, or reduced to selected members in their order.
pub enum SelectedFields {
    /// An unchanged value.
    Whole(Value),
    /// An object with members in the requested order.
    Members(Vec<(String, SelectedFields)>),
    /// A list of rows.
    Rows(Vec<SelectedFields>),
}

impl Serialize for SelectedFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Self::Whole(value) => value.serialize(serializer),
            Self::Members(members) => {
                serializer.collect_map(members.iter().map(|(name, value)| (name, value)))
            }
            Self::Rows(rows) => serializer.collect_seq(rows),
        }
    }
}

/// Refuses fields that the view does not have.
pub fn check(fields: &[String], view: &View) -> Result<()> {
    let known = |field: &&String| view.fields.contains(&field.split('.').next().unwrap_or_default());
    match fields.iter().find(|field| !known(field)) {
        None => Ok(()),
        Some(field) => {
            let hint = format!("fields: {}", view.fields.join(", "));
            Err(CliError::usage(format!("--fields: there is no field `{field}`")).hint(hint))
        }
    }
}

/// Selects the members of one object if fields are given; a missing member is null.
pub fn item(item: &Value, fields: &[String]) -> SelectedFields {
    if fields.is_empty() {
        return SelectedFields::Whole(item.clone());
    }
    let pick =
        |field: &String| (field.clone(), SelectedFields::Whole(at(item, field).cloned().unwrap_or_default()));
    SelectedFields::Members(fields.iter().map(pick).collect())
}

/// Selects the members of the rows of a list document; its other members stay.
pub fn document(document: Value, view: &View, fields: &[String]) -> SelectedFields {
    let Value::Object(document) = document else {
        return SelectedFields::Whole(document);
    };
    if fields.is_empty() {
        return SelectedFields::Whole(Value::Object(document));
    }
    let rows = |rows: &Value| {
        SelectedFields::Rows(rows.as_array().into_iter().flatten().map(|row| item(row, fields)).collect())
    };
    let member = |(name, value): (&String, &Value)| {
        let picked = if name == view.plural { rows(value) } else { SelectedFields::Whole(value.clone()) };
        (name.clone(), picked)
    };
    SelectedFields::Members(Map::iter(&document).map(member).collect())
}

/// Returns the value at a dotted path.
pub fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    // The name of a member may contain a dot.
    value.get(path).or_else(|| path.split('.').try_fold(value, |value, name| value.get(name)))
}
