//! The stream of traces: server-sent events of what was committed or changed.
//!
//! The database is the source: each wake-up reads what changed after the last event. A commit
//! of this process wakes at once, those of others are found by looking once a second. With
//! several writers a change can become visible after a later one, so a short stretch before
//! the last event is read again and what was sent already is left out.

use std::{collections::HashMap, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::State,
    http::HeaderMap,
    response::sse::{Event, KeepAlive, Sse},
};
use futures::{Stream, stream};
use tokio::sync::broadcast;
use uuid::Uuid;

use super::{query::Query, standing::Standing, trace_view, traces};
use crate::{
    access::Caller,
    app::App,
    error::Result,
    store::traces::{Changes, Filter, changed_since},
};

/// Events read at once.
const BLOCK: usize = 50;
/// How far back is read again, microseconds: longer than a commit takes.
const OVERLAP: i64 = 3_000_000;
/// Pause between looks for what other processes committed.
const LOOK: Duration = Duration::from_secs(1);

/// Follow traces as they are committed or changed.
///
/// Server-sent events named `trace`, each with a trace as in the list. `Last-Event-ID` resumes:
/// a trace may then come twice, none is left out. Takes the filters of the list. The stream ends
/// when its token is revoked or over.
#[utoipa::path(get, path = "/v1/traces/stream", tag = "Traces", params(
    ("Last-Event-ID" = Option<String>, Header, description = "id of the last event received"),
    ("preview" = Option<bool>, Query, description = "cut texts at 2,048 characters")),
    responses((status = 200, description = "events", content_type = "text/event-stream")))]
pub async fn follow(
    State(app): State<Arc<App>>,
    caller: Caller,
    standing: Standing,
    headers: HeaderMap,
    query: Query,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>> {
    let filter = traces::filter(&query)?;
    let preview = query.boolean("preview")?.unwrap_or(false);
    let last = headers.get("last-event-id").and_then(|it| it.to_str().ok()).filter(|it| !it.is_empty());
    let at = match last {
        Some(id) => app.cursors.open::<(i64, Uuid)>(caller.tenant_id, SCOPE, id)?.0,
        None => app.clock.now(),
    };
    let follower = Follower {
        wake: app.changed.subscribe(),
        position: (at.saturating_sub(OVERLAP), Uuid::nil()),
        sent: HashMap::new(),
        ready: Vec::new().into_iter(),
        tenant: caller.tenant_id,
        standing,
        filter,
        preview,
        app,
    };
    let events = stream::unfold(follower, |mut follower| async move {
        let event = follower.next().await?;
        Some((Ok(event), follower))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))))
}

/// What ids of events are bound to.
const SCOPE: &str = "stream";

struct Follower {
    app: Arc<App>,
    tenant: Uuid,
    standing: Standing,
    filter: Filter,
    preview: bool,
    wake: broadcast::Receiver<Uuid>,
    /// The last change read.
    position: (i64, Uuid),
    /// Changes read within the overlap, each sent or not wanted: trace and time of change.
    sent: HashMap<Uuid, i64>,
    ready: std::vec::IntoIter<Event>,
}

impl Follower {
    /// The next event; none when the server stops, or the token is no longer good.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.next() {
                return Some(event);
            }
            if self.app.is_stopping() || !self.standing.holds(&self.app).await {
                return None;
            }
            match self.read().await {
                Ok(true) => {}
                Ok(false) => self.wait().await,
                Err(error) => {
                    tracing::warn!(%error, "the stream could not be read; trying again");
                    self.app.pause(LOOK).await;
                }
            }
        }
    }

    /// Reads what changed; false when nothing new did.
    async fn read(&mut self) -> Result<bool> {
        // One writer commits in order, so there nothing appears behind the last event's microsecond.
        let overlap = if self.app.db.commits_in_order() { 0 } else { OVERLAP };
        let mut after = (self.position.0.saturating_sub(overlap), Uuid::nil());
        let mut events = Vec::new();
        loop {
            let new = |trace: Uuid, at: i64| self.sent.get(&trace) != Some(&at);
            let Changes { rows, read, last, more } =
                changed_since(&self.app.db, self.tenant, &self.filter, after, BLOCK, new).await?;
            let Some(last) = last else { break };
            after = last;
            self.position = self.position.max(last);
            self.sent.extend(read);
            for (row, texts) in rows {
                let id = self.app.cursors.seal(self.tenant, SCOPE, (row.updated_at, row.id));
                let trace = trace_view::trace(row, texts, self.preview);
                let data = serde_json::to_string(&trace).map_err(anyhow::Error::from)?;
                events.push(Event::default().event("trace").id(id).data(data));
            }
            if !more || !events.is_empty() {
                break;
            }
        }
        let horizon = self.position.0.saturating_sub(2 * OVERLAP);
        self.sent.retain(|_, at| *at >= horizon);
        self.ready = events.into_iter();
        Ok(self.ready.len() > 0)
    }

    /// Waits for a commit of this tenant, or long enough that another process may have made one.
    async fn wait(&mut self) {
        let stopping = self.app.stopping();
        let commit = async {
            loop {
                match self.wake.recv().await {
                    Ok(tenant) if tenant != self.tenant => {}
                    // Lagged: something of ours may be among what was missed.
                    Ok(_) | Err(_) => return,
                }
            }
        };
        tokio::select! {
            () = commit => {}
            () = tokio::time::sleep(LOOK) => {}
            () = stopping.cancelled() => {}
        }
    }
}
