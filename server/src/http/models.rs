//! Model prices.

use std::{collections::BTreeMap, sync::Arc};

use api::model::{Model, ModelList, ModelPrice};
use axum::{
    Json,
    extract::{Path, State},
};
use semantics::prices::{Origin, invalid_rate};
use serde_json::json;

use super::read::ApiJson;
use crate::{
    access::Caller,
    app::App,
    audit::{self, Action, Event},
    error::{Problem, Result},
    ingest::part::MAX_LABEL,
    store,
};

/// Prices that a tenant can set: all of them are in memory while it ingests.
const MAX_PRICES: usize = 1_000;

/// List all prices that apply to the tenant, by name.
#[utoipa::path(get, path = "/v1/models", tag = "Models", responses((status = 200, body = ModelList)))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<ModelList>> {
    let mut models: BTreeMap<String, Model> = app
        .prices
        .iter()
        .map(|(name, price, origin)| (name.to_owned(), wire(name, *price, origin)))
        .collect();
    for (name, price) in store::prices::all(&app.db.read, caller.tenant_id).await? {
        models.insert(name.clone(), wire(&name, price, Origin::Tenant));
    }
    Ok(Json(ModelList {
        models: models.into_values().collect(),
        has_more: false,
        next_cursor: None,
        builtin_updated: app.prices.updated().to_owned(),
    }))
}

/// Set the tenant's own price of a model. It applies to spans received from now on.
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
        return Err(Problem::field(field, "must lie between 0 and 1,000,000 US dollars").into());
    }
    let now = app.clock.now();
    let own = store::prices::all(app.db.current(), caller.tenant_id).await?;
    if own.len() >= MAX_PRICES && !own.contains_key(&name) {
        return Err(
            Problem::field("name", format!("the tenant has {MAX_PRICES} prices of its own already")).into()
        );
    }
    let txn = app.db.begin().await?;
    store::prices::set(&txn, caller.tenant_id, &name, &price, now).await?;
    audit::record(&txn, &caller, Event::of(Action::PriceSet).on(&name).with(json!(price)), now).await?;
    app.commit(txn).await?;
    Ok(Json(wire(&name, price, Origin::Tenant)))
}

fn wire(name: &str, price: ModelPrice, origin: Origin) -> Model {
    Model { name: name.to_owned(), price, source: origin.as_str().to_owned() }
}
