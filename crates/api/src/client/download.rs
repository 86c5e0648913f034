//! An answer of any length, read as it comes.

use std::time::Duration;

use super::{Error, cause::sentence};

/// A connection that brings nothing for this long is given up.
const SILENCE: Duration = Duration::from_secs(60);

/// The body of an answer that is read piece by piece; [`super::Client::download`] opens it.
pub struct Download {
    answer: reqwest::Response,
}

impl Download {
    pub(super) fn new(answer: reqwest::Response) -> Self {
        Self { answer }
    }

    /// The next bytes; `None` at the end. A body that breaks off before its end is an error.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let why = match tokio::time::timeout(SILENCE, self.answer.chunk()).await {
            Ok(Ok(chunk)) => return Ok(chunk.map(|bytes| bytes.to_vec())),
            Ok(Err(error)) => format!("the answer broke off ({})", sentence(&error)),
            Err(_) => format!("nothing came for {SILENCE:?}"),
        };
        Err(Error::Unreachable { url: self.answer.url().to_string(), why, sent: true })
    }
}
