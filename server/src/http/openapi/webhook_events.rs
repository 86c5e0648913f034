//! The webhook events in the OpenAPI document: the request that a webhook receives for each type of event.

use api::{
    Timestamp, anomaly::Anomaly, eval::EvaluationFailed, failure::FailureDetected, webhook::EventType,
};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ContentBuilder, HttpMethod, ObjectBuilder, OpenApi, PathItem, Paths, Ref, RefOr, ResponseBuilder,
        Schema, Type, path::OperationBuilder, request_body::RequestBodyBuilder,
    },
};
use uuid::Uuid;

/// Adds the events that the server sends, with the schemas of their data.
pub fn add(document: &mut OpenApi) {
    let failure = data::<FailureDetected>(document);
    let anomaly = data::<Anomaly>(document);
    let evaluation = data::<EvaluationFailed>(document);
    let ping = ObjectBuilder::new().property("webhook_id", Uuid::schema()).required("webhook_id").into();
    let mut webhooks = Paths::new();
    for (event, summary, data) in [
        (EventType::FailureDetected, "A trace matched a failure rule.", failure),
        (EventType::AnomalyDetected, "A metric of a project differs from its usual values.", anomaly),
        (EventType::EvaluationFailed, "An evaluation ended without a score.", evaluation),
        (EventType::Ping, "A test of the webhook.", ping),
    ] {
        let content = ContentBuilder::new().schema(Some(payload(event, data))).build();
        let received = ResponseBuilder::new().description("any status from 200 to 299: the event is delivered");
        let operation = OperationBuilder::new()
            .tag("Webhook events")
            .summary(Some(summary))
            .request_body(Some(RequestBodyBuilder::new().content("application/json", content).build()))
            .response("2XX", received);
        webhooks = webhooks.path(event.as_str(), PathItem::new(HttpMethod::Post, operation));
    }
    document.webhooks = Some(webhooks);
}

/// Adds the schema of a type, and of those that it refers to. Returns a reference to it.
fn data<T: ToSchema>(document: &mut OpenApi) -> RefOr<Schema> {
    let mut schemas = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut schemas);
    document.components.get_or_insert_default().schemas.extend(schemas);
    Ref::from_schema_name(T::name()).into()
}

/// Returns the schema of the body of a delivery.
fn payload(event: EventType, data: RefOr<Schema>) -> Schema {
    let event_type = ObjectBuilder::new().schema_type(Type::String).enum_values(Some([event.as_str()]));
    let fields = [
        ("id", Uuid::schema()),
        ("type", event_type.into()),
        ("created_at", Timestamp::schema()),
        ("tenant_id", Uuid::schema()),
        ("project_id", Option::<Uuid>::schema()),
        ("data", data),
    ];
    let object = |it: ObjectBuilder, (name, schema)| it.property::<_, RefOr<Schema>>(name, schema).required(name);
    fields.into_iter().fold(ObjectBuilder::new(), object).into()
}
