//! Handlers of sessions.

use std::sync::Arc;

use api::{
    Timestamp,
    session::{Session, SessionList},
    trace_filter::TraceConditions,
};
use axum::{Json, extract::State};
use semantics::money;
use store::traces::SessionSums;

use crate::{
    access::{Access, Caller, Keys},
    app::App,
    error::Result,
    http::{
        query::Query,
        route::{Route, route},
    },
};

/// Returns the route of sessions.
pub fn routes() -> Vec<Route> {
    vec![route!(list, Access::viewer().keys(Keys::Query))]
}

/// List sessions by the start of their newest trace, newest first.
///
/// Only traces that match are counted. A page may be short, with `has_more`, when sessions are very
/// long.
#[utoipa::path(get, path = "/v1/sessions", tag = "Sessions", params(
    ("project_id" = Option<Uuid>, Query, description = "of this project"),
    ("user_id" = Option<String>, Query, description = "of this end user"),
    ("from" = Option<Timestamp>, Query, description = "with traces that started at this time or later"),
    ("to" = Option<Timestamp>, Query, description = "with traces that started at this time or earlier"),
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`, with the same filters"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = SessionList)))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller, query: Query) -> Result<Json<SessionList>> {
    let (from, to) = Query::ordered(("from", "to"), (query.time("from")?, query.time("to")?))?;
    let filter = TraceConditions {
        project_id: query.uuid("project_id")?,
        user_id: query.text("user_id"),
        from,
        to,
        ..TraceConditions::default()
    };
    let limit = query.limit()?;
    let scope = format!("sessions {filter:?}");
    let after = query.get("cursor").map(|it| app.cursors.verify(caller.tenant_id, &scope, it)).transpose()?;
    let page = store::traces::sessions(&app.db, caller.tenant_id, &filter, after, limit).await?;
    let next_cursor = page.next.map(|it| app.cursors.sign(caller.tenant_id, &scope, it));
    Ok(Json(SessionList {
        sessions: page.rows.into_iter().map(to_wire).collect(),
        has_more: next_cursor.is_some(),
        next_cursor,
    }))
}

fn to_wire(sums: SessionSums) -> Session {
    let SessionSums { session_id, traces, errors, first, last, cost, tokens } = sums;
    Session {
        session_id,
        trace_count: traces,
        error_count: errors,
        first_seen: Timestamp::from_micros(first),
        last_seen: Timestamp::from_micros(last),
        cost: cost.map(|it| it / money::PICO_PER_USD as f64),
        total_token_count: tokens as i64,
    }
}
