//! `--fields`: selects members of rows, in the given order.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::View;
use crate::error::{CliError, Result};

/// JSON to write: complete, or reduced to selected members in their order.
pub enum Picked {
    /// An unchanged value.
    Whole(Value),
    /// An object with members in the requested order.
    Members(Vec<(String, Picked)>),
    /// A list of rows.
    Rows(Vec<Picked>),
}

impl Serialize for Picked {
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
pub fn item(item: &Value, fields: &[String]) -> Picked {
    if fields.is_empty() {
        return Picked::Whole(item.clone());
    }
    let pick = |field: &String| (field.clone(), Picked::Whole(at(item, field).cloned().unwrap_or_default()));
    Picked::Members(fields.iter().map(pick).collect())
}

/// Selects the members of the rows of a list document; its other members stay.
pub fn document(document: Value, view: &View, fields: &[String]) -> Picked {
    let Value::Object(document) = document else {
        return Picked::Whole(document);
    };
    if fields.is_empty() {
        return Picked::Whole(Value::Object(document));
    }
    let rows = |rows: &Value| {
        Picked::Rows(rows.as_array().into_iter().flatten().map(|row| item(row, fields)).collect())
    };
    let member = |(name, value): (&String, &Value)| {
        let picked = if name == view.plural { rows(value) } else { Picked::Whole(value.clone()) };
        (name.clone(), picked)
    };
    Picked::Members(Map::iter(&document).map(member).collect())
}

/// Returns the value at a dotted path.
pub fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    // The name of a member may contain a dot.
    value.get(path).or_else(|| path.split('.').try_fold(value, |value, name| value.get(name)))
}
