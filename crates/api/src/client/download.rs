//! A response of any length, read in chunks.

use std::time::Duration;

use super::{Error, cause::sentence};

/// Time after which a silent connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The body of a response that is read in chunks; opened by [`super::Client::download`].
pub struct Download {
    response: reqwest::Response,
}

impl Download {
    pub(super) fn new(response: reqwest::Response) -> Self {
        Self { response }
    }

    /// Returns the next bytes; `None` at the end. A truncated body is an error.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let why = match tokio::time::timeout(IDLE_TIMEOUT, self.response.chunk()).await {
            Ok(Ok(chunk)) => return Ok(chunk.map(|bytes| bytes.to_vec())),
            Ok(Err(error)) => format!("the response is incomplete ({})", sentence(&error)),
            Err(_) => format!("no data arrived for {IDLE_TIMEOUT:?}"),
        };
        Err(Error::Unreachable { url: self.response.url().to_string(), why, sent: true })
    }
}
