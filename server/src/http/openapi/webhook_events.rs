//! The webhook events in the OpenAPI document: the request that a webhook receives for each type of event.

use api::{
    Timestamp, anomaly::Anomaly, control::ActionPendingApproval, deployment::DeploymentEvent,
    eval::EvaluationFailed, failure::FailureDetected, webhook::EventType,
};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ContentBuilder, HttpMethod, KnownFormat, ObjectBuilder, OpenApi, PathItem, PathsBuilder, Ref, RefOr,
        ResponseBuilder, Schema, SchemaFormat, Type, path::OperationBuilder,
        request_body::RequestBodyBuilder, schema::SchemaType,
    },
};

/// Adds the events that the server sends, with the schemas of their data.
pub fn add(document: &mut OpenApi) {
    let failure = data::<FailureDetected>(document);
    let anomaly = data::<Anomaly>(document);
    let evaluation = data::<EvaluationFailed>(document);
    let action = data::<ActionPendingApproval>(document);
    let deployment = data::<DeploymentEvent>(document);
    let ping = ObjectBuilder::new().property("webhook_id", uuid(Type::String)).required("webhook_id").into();
    let mut webhooks = PathsBuilder::new();
    for (event, summary, data) in [
        (EventType::FailureDetected, "A trace matched a failure rule.", failure),
        (EventType::AnomalyDetected, "A metric of a project differs from its usual values.", anomaly),
        (EventType::EvaluationFailed, "An evaluation ended without a score.", evaluation),
        (EventType::ControlActionPendingApproval, "A control action waits for approval.", action),
        (EventType::PromptDeploymentAbPassed, "A prompt deployment passed its test.", deployment.clone()),
        (
            EventType::PromptDeploymentRegressed,
            "A shipped prompt deployment became worse than its baseline.",
            deployment,
        ),
        (EventType::Ping, "A test of the webhook.", ping),
    ] {
        let content = ContentBuilder::new().schema(Some(payload(event, data))).build();
        let received =
            ResponseBuilder::new().description("any status from 200 to 299: the event is delivered");
        let operation = OperationBuilder::new()
            .tag("Webhook events")
            .summary(Some(summary))
            .request_body(Some(RequestBodyBuilder::new().content("application/json", content).build()))
            .response("2XX", received);
        webhooks = webhooks.path(event.as_str(), PathItem::new(HttpMethod::Post, operation));
    }
    document.webhooks = Some(webhooks.build());
}

/// Adds the schema of a type, and of those that it refers to. Returns a reference to it.
fn data<T: ToSchema>(document: &mut OpenApi) -> RefOr<Schema> {
    let mut schemas = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut schemas);
    document.components.get_or_insert_default().schemas.extend(schemas);
    Ref::from_schema_name(T::name()).into()
}

fn uuid(schema_type: impl Into<SchemaType>) -> RefOr<Schema> {
    let format = SchemaFormat::KnownFormat(KnownFormat::Uuid);
    ObjectBuilder::new().schema_type(schema_type).format(Some(format)).into()
}

/// Returns the schema of the body of a delivery.
fn payload(event: EventType, data: RefOr<Schema>) -> Schema {
    let event_type = ObjectBuilder::new().schema_type(Type::String).enum_values(Some([event.as_str()]));
    let fields = [
        ("id", uuid(Type::String)),
        ("type", event_type.into()),
        ("created_at", Timestamp::schema()),
        ("tenant_id", uuid(Type::String)),
        ("project_id", uuid(SchemaType::from_iter([Type::String, Type::Null]))),
        ("data", data),
    ];
    let object =
        |it: ObjectBuilder, (name, schema)| it.property::<_, RefOr<Schema>>(name, schema).required(name);
    fields.into_iter().fold(ObjectBuilder::new(), object).into()
}
