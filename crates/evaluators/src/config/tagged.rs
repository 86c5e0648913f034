//! Options whose set depends on one of them, such as the `kind` of a check.

use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{
    ConfigProblem, one_problem, parse,
    schema::{object_schema, schema_of},
};
use crate::schema::check_config;

/// The schemas of the variants of an enum with an internal tag.
pub(crate) struct TaggedOptions<T> {
    tag: &'static str,
    /// The description of the tag, which is the comment on the enum.
    description: Option<Value>,
    /// The value of the tag and the schema of each variant, in the order of declaration.
    variants: Vec<(String, Map<String, Value>)>,
    parsed: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + JsonSchema> TaggedOptions<T> {
    /// Derives the schemas of an enum with the attribute `#[serde(tag = …)]`.
    pub(crate) fn new(tag: &'static str) -> Self {
        let mut schema = schema_of::<T>();
        let alternatives = match schema.remove("oneOf") {
            Some(Value::Array(alternatives)) => alternatives,
            _ => Vec::new(),
        };
        let variant = |it: Value| match it {
            Value::Object(variant) => {
                let name = variant["properties"][tag]["const"].as_str()?.to_owned();
                Some((name, variant))
            }
            _ => None,
        };
        Self {
            tag,
            description: schema.remove("description"),
            variants: alternatives.into_iter().filter_map(variant).collect(),
            parsed: PhantomData,
        }
    }

    /// Returns the schema of an object with the options of any variant.
    pub(crate) fn union(&self) -> Value {
        let mut schema = object_schema(self.variants.iter().map(|it| it.1.clone()));
        let names: Vec<&str> = self.variants.iter().map(|it| it.0.as_str()).collect();
        let mut tag = json!({"enum": names});
        if let Some(description) = &self.description {
            tag["description"] = description.clone();
        }
        schema["properties"][self.tag] = tag;
        schema["required"] = json!([self.tag]);
        schema
    }

    /// Validates and parses options; returns them with the value of their tag. `common` is the schema of options
    /// that are allowed besides those of the variant.
    ///
    /// # Errors
    /// Returns all problems, with paths below the options.
    pub(crate) fn parse(
        &self,
        options: &Map<String, Value>,
        common: Map<String, Value>,
    ) -> Result<(&str, T), Vec<ConfigProblem>> {
        let tag = options.get(self.tag);
        let Some((name, variant)) = self.variants.iter().find(|it| tag == Some(&Value::from(it.0.as_str())))
        else {
            let names: Vec<&str> = self.variants.iter().map(|it| it.0.as_str()).collect();
            let problem = if tag.is_none() { "is required:" } else { "must be" };
            return Err(one_problem(self.tag, format!("{problem} one of {}", names.join(", "))));
        };
        check_config(&object_schema([variant.clone(), common]), options, Some(name))?;
        Ok((name, parse(options)?))
    }
}
