//! Handlers of model prices.

use std::{collections::BTreeMap, sync::Arc};

use api::model::{Model, ModelList, ModelPrice};
use axum::{
    Json,
    extract::{Path, State},
};
use semantics::prices::{Origin, invalid_rate};
use serde_json::json;
use store::row_text::MAX_LABEL;

use crate::{
    access::{Access, Caller, Keys},
    app::App,
    audit::{self, AuditAction, AuditEvent},
    cursor::NamePosition,
    error::{Problem, Result},
    feature::Feature,
    http::{
        query::Query,
        read::ApiJson,
        route::{Route, route},
    },
};

/// A model's price was set.
const PRICE_SET: AuditAction = AuditAction::new("model_price.set", "model");

/// Maximum number of prices of a tenant: all of them are in memory during ingest.
const MAX_TENANT_PRICES: usize = 1_000;

/// Prices of models.
pub const FEATURE: Feature = Feature { routes, ..Feature::NONE };

fn routes() -> Vec<Route> {
    vec![
        route!(list, Access::viewer().keys(Keys::Query)),
        route!(set, Access::owner().keys(Keys::Full)).audited(PRICE_SET),
    ]
}

/// List all prices that apply to the tenant, by name.
#[utoipa::path(get, path = "/v1/models", tag = "Models", params(
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = ModelList)))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller, query: Query) -> Result<Json<ModelList>> {
    let (tenant, limit) = (caller.tenant_id, query.limit()?);
    let after: Option<NamePosition> =
        query.get("cursor").map(|it| app.cursors.verify(tenant, "models", it)).transpose()?;
    let mut models: BTreeMap<String, Model> = app
        .prices
        .iter()
        .map(|(name, price, origin)| (name.to_owned(), to_wire(name, *price, origin)))
        .collect();
    for (name, price) in store::prices::all(&app.db.read, tenant).await? {
        models.insert(name.clone(), to_wire(&name, price, Origin::Tenant));
    }
    let mut models: Vec<Model> = match after {
        Some(NamePosition(name)) => {
            models.split_off(&name).into_values().filter(|it| it.name != name).collect()
        }
        None => models.into_values().collect(),
    };
    let next_cursor =
        app.cursors.page(tenant, "models", &mut models, limit, |it| NamePosition(it.name.clone()));
    Ok(Json(ModelList {
        models,
        has_more: next_cursor.is_some(),
        next_cursor,
        builtin_updated: app.prices.updated().to_owned(),
    }))
}

/// Set the tenant's price of a model. It applies to spans received from now on.
#[utoipa::path(put, path = "/v1/models/{name}", tag = "Models", request_body = ModelPrice,
    params(("name" = String, Path, description = "name of the model, without provider prefix and date")),
    responses((status = 200, body = Model)))]
pub async fn set(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    ApiJson(price): ApiJson<ModelPrice>,
) -> Result<Json<Model>> {
    if name.trim().is_empty() || name.chars().nth(MAX_LABEL).is_some() || name.contains('\0') {
        return Err(Problem::field("name", format!("must have 1 to {MAX_LABEL} characters")).into());
    }
    if let Some(field) = invalid_rate(&price) {
        return Err(Problem::field(field, "must be between 0 and 1,000,000 US dollars").into());
    }
    let now = app.clock.now();
    let own = store::prices::all(app.db.current(), caller.tenant_id).await?;
    if own.len() >= MAX_TENANT_PRICES && !own.contains_key(&name) {
        return Err(Problem::field(
            "name",
            format!("the tenant has {MAX_TENANT_PRICES} prices of its own already"),
        )
        .into());
    }
    let txn = app.db.begin().await?;
    store::prices::set(&txn, caller.tenant_id, &name, &price, now).await?;
    audit::record(&txn, &caller, AuditEvent::of(PRICE_SET).on(&name).with(json!(price)), now).await?;
    app.commit(txn).await?;
    Ok(Json(to_wire(&name, price, Origin::Tenant)))
}

fn to_wire(name: &str, price: ModelPrice, origin: Origin) -> Model {
    Model { name: name.to_owned(), price, source: origin.as_str().to_owned() }
}
