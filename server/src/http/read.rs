//! Reading request bodies: content types, encodings, limits, time, memory.

use std::{io::Read, sync::Arc, time::Duration};

use api::{ErrorCode, object::Object};
use axum::{
    body::{Body, Bytes},
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    app::App,
    error::{Error, Result, problem},
};

/// A body in memory, counted against the memory for bodies until it is dropped.
pub struct Held {
    /// The body, unpacked.
    pub bytes: Bytes,
    memory: Vec<OwnedSemaphorePermit>,
}

impl Held {
    /// Lets the body go and keeps its share of the memory.
    pub fn into_memory(self) -> Vec<OwnedSemaphorePermit> {
        self.memory
    }
}

/// A JSON body of a small request.
pub struct ApiJson<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for ApiJson<T> {
    type Rejection = Error;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self> {
        let (parts, body) = request.into_parts();
        require_json(&parts.headers)?;
        let held = read(app, &parts.headers, body).await?;
        Ok(Self(parse(&held.bytes)?))
    }
}

/// Parses a JSON object, telling what is no JSON from what has the wrong shape.
///
/// # Errors
/// `invalid_json` or `invalid_body`, with line and column.
pub fn parse<'a, T: serde::Deserialize<'a>>(bytes: &'a [u8]) -> Result<T> {
    let parsed = serde_json::from_slice::<Object<T>>(bytes);
    parsed.map(|Object(it)| it).map_err(|error| {
        let code = if error.is_data() { ErrorCode::InvalidBody } else { ErrorCode::InvalidJson };
        let message = if error.is_data() { error.to_string() } else { api::plain::json_error(&error) };
        problem(code, message)
    })
}

/// The media type of the body, in lower case and without parameters.
pub fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

/// Refuses what is not declared to be JSON.
///
/// # Errors
/// `unsupported_media_type`.
pub fn require_json(headers: &HeaderMap) -> Result<()> {
    match media_type(headers).as_deref() {
        Some("application/json") => Ok(()),
        _ => Err(problem(ErrorCode::UnsupportedMediaType, "the Content-Type must be application/json")),
    }
}

/// Reads a body to its end and unpacks it.
///
/// # Errors
/// `payload_too_large` beyond the limit, packed or not; `unsupported_media_type` for an
/// unknown encoding; `invalid_body` for damaged or stalled ones; `overloaded` when too many
/// bodies are held already.
pub async fn read(app: &App, headers: &HeaderMap, body: Body) -> Result<Held> {
    let packing = packing(headers)?;
    let Held { bytes, mut memory } = packed(app, headers, body).await?;
    if packing == Packing::None {
        return Ok(Held { bytes, memory });
    }
    // Unpacked in steps, each of which must find room.
    let bytes = unpack(app, packing, &bytes, app.config.max_body_bytes, &mut memory)?;
    Ok(Held { bytes: bytes.into(), memory })
}

/// Reads a body to its end as it is sent.
///
/// # Errors
/// As [`read`], but for what unpacking finds.
pub async fn packed(app: &App, headers: &HeaderMap, body: Body) -> Result<Held> {
    let limit = app.config.max_body_bytes;
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|it| it > limit) {
        return Err(too_large(limit));
    }
    let mut memory = Vec::new();
    let within = Duration::from_secs(app.config.body_timeout);
    let bytes = tokio::time::timeout(within, collect(app, body, declared.unwrap_or(0), &mut memory))
        .await
        .map_err(|_| problem(ErrorCode::InvalidBody, "the body did not arrive in time"))??;
    Ok(Held { bytes: bytes.into(), memory })
}

async fn collect(
    app: &App,
    mut body: Body,
    expected: usize,
    memory: &mut Vec<OwnedSemaphorePermit>,
) -> Result<Vec<u8>> {
    let limit = app.config.max_body_bytes;
    // Taken as it arrives: a length that is only announced takes nothing from others.
    let mut room = 0;
    let mut bytes = Vec::with_capacity(expected.min(1024 * 1024));
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| problem(ErrorCode::InvalidBody, "the body broke off"))?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > limit {
            return Err(too_large(limit));
        }
        if bytes.len() + data.len() > room {
            let more = data.len().max(256 * 1024);
            reserve(app, more, memory)?;
            room += more;
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

fn unpack(
    app: &App,
    packing: Packing,
    packed: &[u8],
    limit: usize,
    memory: &mut Vec<OwnedSemaphorePermit>,
) -> Result<Vec<u8>> {
    let damaged =
        || problem(ErrorCode::InvalidBody, "the body can't be unpacked as its Content-Encoding says");
    let mut reader: Box<dyn Read + '_> = match packing {
        Packing::Gzip => Box::new(flate2::read::MultiGzDecoder::new(packed)),
        Packing::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(packed).map_err(|_| damaged())?;
            // 8 MiB, what every decoder must support; more would be the sender's claim on our memory.
            decoder.window_log_max(23).map_err(|_| damaged())?;
            Box::new(decoder)
        }
        Packing::None => Box::new(packed),
    };
    let mut bytes = Vec::new();
    let mut step = (packed.len() * 4).clamp(64 * 1024, 4 * 1024 * 1024);
    loop {
        reserve(app, step, memory)?;
        let before = bytes.len();
        let room = u64::try_from(step).unwrap_or(u64::MAX);
        reader.by_ref().take(room).read_to_end(&mut bytes).map_err(|_| damaged())?;
        if bytes.len() > limit {
            return Err(too_large(limit));
        }
        if bytes.len() - before < step {
            return Ok(bytes);
        }
        step = (step * 2).min(4 * 1024 * 1024);
    }
}

fn reserve(app: &App, bytes: usize, memory: &mut Vec<OwnedSemaphorePermit>) -> Result<()> {
    let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
    let permit = Arc::clone(&app.body_memory)
        .try_acquire_many_owned(kib)
        .map_err(|_| problem(ErrorCode::Overloaded, "too many large bodies at once; try again shortly"))?;
    memory.push(permit);
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Packing {
    None,
    Gzip,
    Zstd,
}

fn packing(headers: &HeaderMap) -> Result<Packing> {
    let unknown =
        || problem(ErrorCode::UnsupportedMediaType, "the Content-Encoding must be gzip, zstd or identity");
    let mut values = headers.get_all(header::CONTENT_ENCODING).iter();
    let Some(value) = values.next() else { return Ok(Packing::None) };
    if values.next().is_some() {
        return Err(unknown());
    }
    match value.to_str().map(|it| it.trim().to_ascii_lowercase()).as_deref() {
        Ok("" | "identity") => Ok(Packing::None),
        Ok("gzip" | "x-gzip") => Ok(Packing::Gzip),
        Ok("zstd") => Ok(Packing::Zstd),
        _ => Err(unknown()),
    }
}

fn too_large(limit: usize) -> Error {
    problem(ErrorCode::PayloadTooLarge, format!("the body is larger than {limit} bytes"))
}
