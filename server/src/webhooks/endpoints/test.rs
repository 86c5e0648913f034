//! The handler that sends a `ping`.

use std::{sync::Arc, time::Duration};

use api::{
    ErrorCode, Plan, Timestamp,
    webhook::{EventType, WebhookTest},
};
use axum::{
    Json,
    extract::{Path, State},
};
use outbound::AddressRejection;
use serde_json::json;
use store::new_id;

use crate::{
    access::Caller,
    app::App,
    error::{Problem, Result, not_found, problem},
    http::query::path_id,
    webhooks::{
        address::url_problem,
        event::Payload,
        send::{self, WebhookMessage},
        target::WebhookTarget,
    },
};

/// Maximum number of waiting tests of a tenant, and the maximum waiting time.
const MAX_WAITING_TESTS: usize = 64;
const TEST_WAIT: Duration = Duration::from_secs(10);

/// Test a webhook.
///
/// Sends a `ping` now, signed like every delivery, whether or not the webhook is enabled. The delivery log does not
/// contain it. `status` is 0 when there is no complete response within 10 seconds; `error` then has the reason.
#[utoipa::path(post, path = "/v1/webhooks/{id}/test", tag = "Webhooks", params(("id" = Uuid, Path, description = "id of the webhook")),
    responses((status = 200, body = WebhookTest)))]
pub async fn test(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<WebhookTest>> {
    let tenant = caller.tenant_id;
    if caller.plan < Plan::Pro {
        let low = Problem::plan_too_low(Plan::Pro, caller.plan);
        return Err(Problem { code: ErrorCode::PlanForbidden, ..low }.into());
    }
    let row = store::webhooks::get(app.db.current(), tenant, path_id(&id)?).await?;
    let row = row.ok_or_else(|| not_found("webhook"))?;
    match app.outbound.check(&row.url).await {
        // A name that does not resolve at the moment is a receiver that cannot be reached.
        Ok(_) | Err(AddressRejection::Unresolvable) => {}
        Err(rejection) => return Err(url_problem("url", rejection, &row.url).into()),
    }
    let Some(_permit) = app.webhook_tests.acquire(&tenant, MAX_WAITING_TESTS, TEST_WAIT).await else {
        return Err(problem(
            ErrorCode::Overloaded,
            "too many tests of webhooks are running; try again shortly",
        ));
    };
    let target = WebhookTarget::new(&app, &row)?;
    let (event, event_type, data) = (new_id(), EventType::Ping, json!({"webhook_id": row.id}));
    let created_at = Timestamp::from_micros(app.clock.now());
    let payload =
        Payload { id: event, event_type, created_at, tenant_id: tenant, project_id: None, data: &data };
    let message =
        WebhookMessage { event, event_type, delivery: new_id(), payload: payload.to_text()?.into() };
    let result = send::send(&app, &target, message).await;
    let error = result.error.filter(|_| result.status == 0);
    Ok(Json(WebhookTest { status: result.status, body: result.body.unwrap_or_default(), error }))
}
