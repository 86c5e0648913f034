//! Streams a line-based response in blocks.

use api::client::{Download, Error};

use crate::error::CliError;

/// Reads a response in blocks: of whole lines if `whole_lines` is set, otherwise as they arrive, so that
/// long lines are not kept in memory.
pub struct ResponseBlocks {
    download: Download,
    whole_lines: bool,
    rest: Vec<u8>,
}

impl ResponseBlocks {
    /// Creates a reader of a response.
    pub fn new(download: Download, whole_lines: bool) -> Self {
        Self { download, whole_lines, rest: Vec::new() }
    }

    /// Returns the next block; `None` after the last. An incomplete response is an error.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, CliError> {
        loop {
            let Some(bytes) = self.download.chunk().await.map_err(broken)? else {
                let last = std::mem::take(&mut self.rest);
                return Ok(Some(last).filter(|last| !last.is_empty()));
            };
            if !self.whole_lines {
                return Ok(Some(bytes));
            }
            if let Some(lines) = take_lines(&mut self.rest, &bytes) {
                return Ok(Some(lines));
            }
        }
    }
}

/// Creates the error for a connection that was lost during the response.
fn broken(error: Error) -> CliError {
    let why = error.cause();
    CliError { message: format!("the export is not complete: {why}"), ..error.into() }
}

/// Returns the number of lines in a block.
pub fn count(block: &[u8]) -> usize {
    block.iter().filter(|byte| **byte == b'\n').count()
}

/// Appends bytes to `rest` and removes and returns its complete lines.
fn take_lines(rest: &mut Vec<u8>, bytes: &[u8]) -> Option<Vec<u8>> {
    let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else {
        rest.extend_from_slice(bytes);
        return None;
    };
    let mut lines = std::mem::take(rest);
    lines.extend_from_slice(&bytes[..=end]);
    rest.extend_from_slice(&bytes[end + 1..]);
    Some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_split_by_the_network_are_joined() {
        let mut rest = Vec::new();
        let blocks: Vec<Option<Vec<u8>>> = ["a", "b\ncc", "", "\n", "d\ne\n"]
            .iter()
            .map(|it| take_lines(&mut rest, it.as_bytes()))
            .collect();
        let texts: Vec<String> =
            blocks.into_iter().flatten().map(|it| String::from_utf8(it).unwrap()).collect();
        assert_eq!(texts, ["ab\n", "cc\n", "d\ne\n"]);
        assert!(rest.is_empty());
        assert_eq!(count(b"a\nb\n"), 2);
    }
}
