//! The query parameters of trace filters in the OpenAPI document.

use utoipa::{
    IntoParams, Number,
    openapi::{
        KnownFormat, Ref, RefOr, Required, Schema, SchemaFormat,
        path::{Parameter as ApiParameter, ParameterBuilder, ParameterIn},
        schema::{ArrayBuilder, ObjectBuilder, Type},
    },
};

use super::{FilterDefinition, TraceFilter, ValueType};

/// All query parameters of trace filters, for the annotation of a handler.
pub struct TraceFilterParameters;

impl IntoParams for TraceFilterParameters {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<ApiParameter> {
        TraceFilter::ALL.iter().flat_map(|it| parameters(it.definition())).collect()
    }
}

fn parameters(filter: &FilterDefinition) -> impl Iterator<Item = ApiParameter> {
    filter.parameters.iter().enumerate().map(|(index, parameter)| {
        ParameterBuilder::new()
            .name(parameter.name)
            .parameter_in(ParameterIn::Query)
            .description(Some(parameter.description))
            .required(Required::False)
            .schema(Some(schema(filter.value_type, index)))
            .build()
    })
}

/// Returns the schema of a filter's parameter with this index.
fn schema(value_type: ValueType, index: usize) -> RefOr<Schema> {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let format = |it| Some(SchemaFormat::KnownFormat(it));
    match (value_type, index) {
        (ValueType::Id, _) => text().format(format(KnownFormat::Uuid)).into(),
        // The third parameter of tags may be repeated.
        (ValueType::Tags, 2) => ArrayBuilder::new().items(text()).into(),
        (ValueType::Text | ValueType::Failure | ValueType::Tags | ValueType::Words, _) => text().into(),
        (ValueType::Switch, _) => ObjectBuilder::new().schema_type(Type::Boolean).into(),
        (ValueType::Time, _) => Ref::from_schema_name("Timestamp").into(),
        (ValueType::Duration | ValueType::Count, _) => ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(format(KnownFormat::Int64))
            .minimum(Some(Number::UInt(0)))
            .into(),
        (ValueType::Money, _) => {
            ObjectBuilder::new().schema_type(Type::Number).format(format(KnownFormat::Double)).into()
        }
    }
}
