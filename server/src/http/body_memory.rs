//! Response bodies whose bytes stay counted until they are written to the client's connection.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::{Request, State},
    http::header,
    middleware::Next,
    response::{IntoResponse, Response},
};
use hyper::body::{Frame, SizeHint};
use uuid::Uuid;

use crate::{
    app::App,
    error::{Error, Result},
    memory::{MEMORY_WAIT, MemoryHolder, Reservation},
};

/// Maximum size in bytes of a response that is not counted, because the connection buffers it immediately.
const UNCOUNTED_BYTES: usize = 64 * 1024;
/// Memory of a compressor in bytes, at the fastest level of zstd.
const COMPRESSOR_BYTES: usize = 1024 * 1024;

/// The memory of a response body; an extension of the response.
#[derive(Clone, Debug)]
pub struct BodyMemory {
    reservation: Arc<Reservation>,
    /// Whether the request changed nothing, so that it can still get a 503.
    is_refusable: bool,
}

impl BodyMemory {
    /// Counts `reservation` until the body is sent or dropped.
    pub fn new(reservation: Reservation) -> Self {
        Self { reservation: Arc::new(reservation), is_refusable: true }
    }
}

/// Counts a response that was built as a whole, unless it is small or counted already.
///
/// # Errors
///
/// Fails when the tenant's share stays used up for too long.
pub async fn count_response(app: &App, tenant: Uuid, response: Response) -> Result<Response> {
    count_for_holder(app, MemoryHolder::Tenant(tenant), response).await
}

/// Counts the response to a write as far as the share allows: a stored write must be acknowledged.
pub fn count_write_response(app: &App, tenant: Uuid, mut response: Response) -> Response {
    let bytes = uncounted_bytes(&response);
    let mut reservation = app.memory.reservation(MemoryHolder::Tenant(tenant));
    if bytes > 0 && reservation.try_grow(bytes).is_ok() {
        let memory = BodyMemory { reservation: Arc::new(reservation), is_refusable: false };
        response.extensions_mut().insert(memory);
    }
    response
}

/// Counts the responses of routes without a token, like [`count_response`].
pub async fn count_public_response(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let counted = count_for_holder(&app, MemoryHolder::Anonymous, response).await;
    counted.unwrap_or_else(IntoResponse::into_response)
}

async fn count_for_holder(app: &App, holder: MemoryHolder, mut response: Response) -> Result<Response> {
    let bytes = uncounted_bytes(&response);
    if bytes > 0 {
        let mut memory = app.memory.reservation(holder);
        memory.grow(bytes, MEMORY_WAIT).await?;
        response.extensions_mut().insert(BodyMemory::new(memory));
    }
    Ok(response)
}

/// Returns the bytes of a response that must be counted; 0 when it is small or counted already.
fn uncounted_bytes(response: &Response) -> usize {
    let bytes =
        response.body().size_hint().exact().and_then(|it| usize::try_from(it).ok()).unwrap_or_default();
    match bytes > UNCOUNTED_BYTES && response.extensions().get::<BodyMemory>().is_none() {
        true => bytes,
        false => 0,
    }
}

/// Attaches the memory of a response to its body. The outermost layer does this, so that the output of
/// the compression is counted too.
pub fn attach(mut response: Response) -> Response {
    let Some(mut memory) = response.extensions_mut().remove::<BodyMemory>() else { return response };
    // The state of the compressor exists until the client has read the body.
    if response.headers().contains_key(header::CONTENT_ENCODING)
        && let Some(reservation) = Arc::get_mut(&mut memory.reservation)
        && let Err(exhausted) = reservation.try_grow(COMPRESSOR_BYTES)
        && memory.is_refusable
    {
        return Error::from(exhausted).into_response();
    }
    response.map(|body| Body::new(CountedBody { body, memory }))
}

/// Returns the bytes, which stay counted until the connection has written them.
pub fn counted_bytes(bytes: Bytes, memory: Reservation) -> Bytes {
    Bytes::from_owner(CountedBytes { bytes, _memory: BodyMemory::new(memory) })
}

struct CountedBody {
    body: Body,
    memory: BodyMemory,
}

/// A chunk of a body. The connection keeps chunks after the body has ended.
struct CountedBytes {
    bytes: Bytes,
    _memory: BodyMemory,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(context));
        let count_bytes = |bytes| Bytes::from_owner(CountedBytes { bytes, _memory: self.memory.clone() });
        Poll::Ready(frame.map(|it| it.map(|frame| frame.map_data(count_bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
