//! Rules for every operation of the OpenAPI document: descriptions of responses, bounds of `limit`, and
//! query parameters that are absent or have a value, but are never null.

use api::page::{DEFAULT_LIMIT, MAX_LIMIT};
use axum::http::StatusCode;
use utoipa::{
    Number,
    openapi::{
        RefOr, Schema,
        path::{Operation, ParameterIn},
        schema::{SchemaType, Type},
    },
};

/// Adds the common parts to an operation.
pub fn complete(operation: &mut Operation) {
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response
            && response.description.is_empty()
        {
            response.description = reason(status).to_owned();
        }
    }
    for parameter in operation.parameters.iter_mut().flatten() {
        let RefOr::T(parameter) = parameter else { continue };
        if parameter.parameter_in == ParameterIn::Path {
            continue;
        }
        if let Some(schema) = &mut parameter.schema {
            not_null(schema);
            if parameter.name == "limit" {
                bound(schema);
            }
        }
    }
}

/// Returns the standard phrase of a status; OpenAPI requires a description for every response.
fn reason(status: &str) -> &'static str {
    status.parse().ok().and_then(|it: StatusCode| it.canonical_reason()).unwrap_or("the answer")
}

/// Removes null from a schema that the type `Option` of a parameter produced.
fn not_null(schema: &mut RefOr<Schema>) {
    let only = match schema {
        RefOr::T(Schema::Object(object)) => {
            object.schema_type = without_null(&object.schema_type);
            None
        }
        RefOr::T(Schema::Array(array)) => {
            array.schema_type = without_null(&array.schema_type);
            None
        }
        RefOr::T(Schema::OneOf(one_of)) => {
            one_of.items.retain(|it| !is_null(it));
            if one_of.items.len() == 1 { one_of.items.pop() } else { None }
        }
        _ => None,
    };
    if let Some(only) = only {
        *schema = only;
    }
}

fn is_null(schema: &RefOr<Schema>) -> bool {
    matches!(schema, RefOr::T(Schema::Object(it)) if it.schema_type == SchemaType::Type(Type::Null))
}

fn without_null(schema_type: &SchemaType) -> SchemaType {
    let SchemaType::Array(types) = schema_type else { return schema_type.clone() };
    let types: Vec<Type> = types.iter().filter(|it| **it != Type::Null).cloned().collect();
    match <[Type; 1]>::try_from(types) {
        Ok([one]) => SchemaType::Type(one),
        Err(types) => SchemaType::Array(types),
    }
}

fn bound(schema: &mut RefOr<Schema>) {
    if let RefOr::T(Schema::Object(object)) = schema {
        object.minimum = Some(Number::UInt(1));
        object.maximum = Some(Number::UInt(MAX_LIMIT as usize));
        object.default = Some(DEFAULT_LIMIT.into());
    }
}
