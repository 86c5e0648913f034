//! Reads request bodies: content types, encodings, limits of size, time and memory.

use std::{io::Read, sync::Arc, time::Duration};

use api::{
    ErrorCode,
    object::{Object, count_structures},
};
use axum::{
    body::{Body, Bytes},
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use http_body_util::BodyExt;
use hyper::body::Frame;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use uuid::Uuid;

use super::{grpc::FramingError, json_type_error};
use crate::{
    access::Caller,
    app::App,
    error::{Error, Result, problem},
    memory::{MemoryHolder, Reservation},
};

/// Maximum time that a body waits for memory of its tenant.
const BODY_MEMORY_WAIT: Duration = Duration::from_secs(2);
/// Initial size of a body's buffer in bytes, and the minimum by which it grows.
const BUFFER_STEP_BYTES: usize = 64 * 1024;
/// Maximum number of objects and lists in a JSON ingest body.
const MAX_STRUCTURES: usize = 100_000;
/// Memory in bytes of a decoded object or list in such a body: the two bytes `{}` become a row of
/// several hundred bytes.
const STRUCTURE_BYTES: usize = 1_024;
/// Maximum size in bytes of bodies other than ingest.
const MAX_SMALL_BODY_BYTES: usize = 4 * 1024 * 1024;
/// Factor by which a list of digits grows as a tree of JSON values.
const VALUE_EXPANSION: usize = 16;
/// The period over which the sending rate is measured.
const RATE_WINDOW: Duration = Duration::from_secs(5);
/// Minimum number of bytes of a body that must arrive in each period: 4 KiB per second.
const MIN_WINDOW_BYTES: usize = 20 * 1024;

/// A body in memory, counted against its tenant's share until it is dropped.
pub struct BufferedBody {
    /// The body, decompressed.
    pub bytes: Bytes,
    memory: Reservation,
}

impl BufferedBody {
    /// Drops the body and keeps its bytes reserved.
    pub fn into_memory(self) -> Reservation {
        self.memory
    }

    /// Reserves memory for the decoded objects and lists of a JSON body.
    ///
    /// # Errors
    ///
    /// Fails with `payload_too_large` when the body has too many of them, and with `overloaded` when
    /// there is no memory.
    pub async fn reserve_structures(&mut self) -> Result<()> {
        let structures = count_structures(&self.bytes);
        if structures > MAX_STRUCTURES {
            return Err(problem(
                ErrorCode::PayloadTooLarge,
                format!("the body has more than {MAX_STRUCTURES} objects and lists; send several requests"),
            ));
        }
        self.reserve(structures * STRUCTURE_BYTES).await
    }

    /// Reserves more memory while the body is processed.
    ///
    /// # Errors
    ///
    /// Fails with `overloaded` when there is no memory.
    pub async fn reserve(&mut self, bytes: usize) -> Result<()> {
        Ok(self.memory.grow(bytes, BODY_MEMORY_WAIT).await?)
    }
}

/// The parsed JSON body of a small request.
pub struct ApiJson<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for ApiJson<T> {
    type Rejection = Error;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self> {
        let (parts, body) = request.into_parts();
        require_json(&parts.headers)?;
        let tenant = parts.extensions.get::<Caller>().map(|it| it.tenant_id);
        let limit = app.config.max_body_bytes.min(MAX_SMALL_BODY_BYTES);
        let body = read_up_to(app, tenant, &parts.headers, body, limit).await?;
        let BufferedBody { bytes, mut memory } = body;
        memory.grow(bytes.len() * VALUE_EXPANSION, BODY_MEMORY_WAIT).await?;
        Ok(Self(parse(&bytes)?))
    }
}

/// The parsed JSON body of a small request that may have none.
pub struct OptionalJson<T>(pub T);

impl<T: DeserializeOwned + Default> FromRequest<Arc<App>> for OptionalJson<T> {
    type Rejection = Error;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self> {
        let (parts, body) = request.into_parts();
        let tenant = parts.extensions.get::<Caller>().map(|it| it.tenant_id);
        let limit = app.config.max_body_bytes.min(MAX_SMALL_BODY_BYTES);
        let BufferedBody { bytes, mut memory } = read_up_to(app, tenant, &parts.headers, body, limit).await?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        require_json(&parts.headers)?;
        memory.grow(bytes.len() * VALUE_EXPANSION, BODY_MEMORY_WAIT).await?;
        Ok(Self(parse(&bytes)?))
    }
}

/// Parses a JSON object.
///
/// # Errors
///
/// Fails with `invalid_json` with line and column for text that is not JSON; `invalid_body` with the field for JSON of
/// the wrong shape.
pub fn parse<'a, T: serde::Deserialize<'a>>(bytes: &'a [u8]) -> Result<T> {
    let parsed = serde_json::from_slice::<Object<T>>(bytes);
    parsed.map(|Object(it)| it).map_err(|error| match error.is_data() {
        true => json_type_error::describe::<T>(bytes, &error),
        false => problem(ErrorCode::InvalidJson, api::plain::json_error(&error)),
    })
}

/// Returns the media type of the body, in lower case and without parameters.
pub fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

/// Rejects bodies that are not declared as JSON.
///
/// # Errors
///
/// Fails with `unsupported_media_type`.
pub fn require_json(headers: &HeaderMap) -> Result<()> {
    match media_type(headers).as_deref() {
        Some("application/json") => Ok(()),
        _ => Err(problem(ErrorCode::UnsupportedMediaType, "the Content-Type must be application/json")),
    }
}

/// Reads a body to its end and decompresses it. Its memory counts for `tenant`.
///
/// # Errors
///
/// Fails with `payload_too_large` beyond the limit, compressed or not; with `unsupported_media_type`
/// for an unknown encoding; with `invalid_body` for damaged, stalled or very slow bodies; with
/// `overloaded` when the tenant has too much in memory.
pub async fn read(app: &App, tenant: Option<Uuid>, headers: &HeaderMap, body: Body) -> Result<BufferedBody> {
    read_up_to(app, tenant, headers, body, app.config.max_body_bytes).await
}

async fn read_up_to(
    app: &App,
    tenant: Option<Uuid>,
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<BufferedBody> {
    let content_encoding = content_encoding(headers)?;
    let BufferedBody { bytes, mut memory } = read_compressed_up_to(app, tenant, headers, body, limit).await?;
    if content_encoding == ContentEncoding::None {
        return Ok(BufferedBody { bytes, memory });
    }
    let compressed_bytes = memory.bytes();
    let decompressed = decompress(content_encoding, &bytes, limit, &mut memory).await?;
    drop(bytes);
    memory.shrink(compressed_bytes);
    Ok(BufferedBody { bytes: decompressed.into(), memory })
}

/// Reads a body to its end without decompressing it.
///
/// # Errors
///
/// Fails like [`read`], except that compressed bodies are not decompressed.
pub async fn read_compressed(
    app: &App,
    tenant: Option<Uuid>,
    headers: &HeaderMap,
    body: Body,
) -> Result<BufferedBody> {
    read_compressed_up_to(app, tenant, headers, body, app.config.max_body_bytes).await
}

async fn read_compressed_up_to(
    app: &App,
    tenant: Option<Uuid>,
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<BufferedBody> {
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|it| it > limit) {
        return Err(too_large(limit));
    }
    let holder = tenant.map_or(MemoryHolder::Anonymous, MemoryHolder::Tenant);
    let Some(_permit) = app.arriving_bodies.try_acquire(&holder) else {
        return Err(problem(
            ErrorCode::Overloaded,
            "too many request bodies of this tenant are arriving at once; try again shortly",
        ));
    };
    let mut memory = app.memory.reservation(holder);
    let timeout = Duration::from_secs(app.config.body_timeout);
    let bytes = tokio::time::timeout(timeout, collect_body(body, limit, declared.unwrap_or(0), &mut memory))
        .await
        .map_err(|_| problem(ErrorCode::InvalidBody, "the body did not arrive in time"))??;
    Ok(BufferedBody { bytes: bytes.into(), memory })
}

async fn collect_body(
    mut body: Body,
    limit: usize,
    expected: usize,
    memory: &mut Reservation,
) -> Result<Vec<u8>> {
    // The buffer grows as the body arrives: an announced length takes no memory.
    let mut bytes = Vec::new();
    let mut window = TransferWindow::begin();
    while let Some(frame) = window.next(&mut body).await? {
        let Ok(data) = frame.into_data() else { continue };
        let length = bytes.len() + data.len();
        if length > limit {
            return Err(too_large(limit));
        }
        if length > bytes.capacity() {
            let expected_length = if expected >= length { expected } else { limit };
            let capacity =
                length.max(bytes.capacity() * 2).max(BUFFER_STEP_BYTES).min(expected_length.max(length));
            // Both buffers exist until the content is copied.
            let wait_began = Instant::now();
            memory.grow(capacity, BODY_MEMORY_WAIT).await?;
            window.skip(wait_began.elapsed());
            let mut larger = Vec::with_capacity(capacity);
            larger.extend_from_slice(&bytes);
            memory.shrink(bytes.capacity());
            bytes = larger;
        }
        bytes.extend_from_slice(&data);
        window.received += data.len();
    }
    Ok(bytes)
}

/// The current period of the minimum sending rate.
struct TransferWindow {
    end: Instant,
    received: usize,
}

impl TransferWindow {
    fn begin() -> Self {
        Self { end: Instant::now() + RATE_WINDOW, received: 0 }
    }

    /// Excludes time in which the server did not read the body.
    fn skip(&mut self, time: Duration) {
        self.end += time;
    }

    /// Returns the next frame; `None` at the end of the body.
    async fn next(&mut self, body: &mut Body) -> Result<Option<Frame<Bytes>>> {
        loop {
            match tokio::time::timeout_at(self.end, body.frame()).await {
                Ok(None) => return Ok(None),
                Ok(Some(Ok(frame))) => return Ok(Some(frame)),
                Ok(Some(Err(error))) => {
                    let message = match error.into_inner().downcast::<FramingError>() {
                        Ok(framing_error) => framing_error.to_string(),
                        Err(_) => "the connection ended before the body was complete".to_owned(),
                    };
                    return Err(problem(ErrorCode::InvalidBody, message));
                }
                Err(_) if self.received >= MIN_WINDOW_BYTES => *self = Self::begin(),
                Err(_) => {
                    return Err(problem(
                        ErrorCode::InvalidBody,
                        format!(
                            "the body arrives too slowly: at least {MIN_WINDOW_BYTES} bytes are expected every {} s",
                            RATE_WINDOW.as_secs()
                        ),
                    ));
                }
            }
        }
    }
}

async fn decompress(
    content_encoding: ContentEncoding,
    compressed: &[u8],
    limit: usize,
    memory: &mut Reservation,
) -> Result<Vec<u8>> {
    let damaged =
        || problem(ErrorCode::InvalidBody, "the body can't be decompressed with its Content-Encoding");
    let mut reader: Box<dyn Read + Send + '_> = match content_encoding {
        ContentEncoding::Gzip => Box::new(flate2::read::MultiGzDecoder::new(compressed)),
        ContentEncoding::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(compressed).map_err(|_| damaged())?;
            // 8 MiB, which every decoder must support; a larger window would let the sender claim our
            // memory.
            decoder.window_log_max(23).map_err(|_| damaged())?;
            Box::new(decoder)
        }
        ContentEncoding::None => Box::new(compressed),
    };
    let mut bytes: Vec<u8> = Vec::new();
    let mut step = (compressed.len() * 4).clamp(64 * 1024, 4 * 1024 * 1024);
    loop {
        // The output grows in steps, and each step reserves memory.
        memory.grow(step, BODY_MEMORY_WAIT).await?;
        let before = bytes.len();
        bytes.reserve_exact(step);
        let step_bytes = u64::try_from(step).unwrap_or(u64::MAX);
        reader.by_ref().take(step_bytes).read_to_end(&mut bytes).map_err(|_| damaged())?;
        if bytes.len() > limit {
            return Err(too_large(limit));
        }
        if bytes.len() - before < step {
            return Ok(bytes);
        }
        step = (step * 2).min(4 * 1024 * 1024);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ContentEncoding {
    None,
    Gzip,
    Zstd,
}

fn content_encoding(headers: &HeaderMap) -> Result<ContentEncoding> {
    let unknown =
        || problem(ErrorCode::UnsupportedMediaType, "the Content-Encoding must be gzip, zstd or identity");
    let mut values = headers.get_all(header::CONTENT_ENCODING).iter();
    let Some(value) = values.next() else { return Ok(ContentEncoding::None) };
    if values.next().is_some() {
        return Err(unknown());
    }
    match value.to_str().map(|it| it.trim().to_ascii_lowercase()).as_deref() {
        Ok("" | "identity") => Ok(ContentEncoding::None),
        Ok("gzip" | "x-gzip") => Ok(ContentEncoding::Gzip),
        Ok("zstd") => Ok(ContentEncoding::Zstd),
        _ => Err(unknown()),
    }
}

fn too_large(limit: usize) -> Error {
    problem(ErrorCode::PayloadTooLarge, format!("the body is larger than {limit} bytes"))
}
