//! Continues an interrupted export: reads the partial file and determines the missing traces.
//!
//! An export is sorted by start, newest first, like the list. The rest therefore begins at the start time
//! of the last complete line, which several traces may share.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, BufRead, BufReader, Seek, SeekFrom},
    path::Path,
};

use api::{Timestamp, filter::Filter};
use serde::Deserialize;

/// The content of a partial export.
#[derive(Default)]
pub struct PartialExport {
    /// Number of complete lines.
    pub lines: usize,
    /// Bytes of the complete lines.
    bytes: u64,
    /// Start of the last trace.
    last: Option<Timestamp>,
    /// Ids of the traces that started at that time.
    known: HashSet<String>,
}

/// The members of a line that identify its trace.
#[derive(Deserialize)]
struct ExportedTrace {
    id: String,
    started_at: Timestamp,
}

impl PartialExport {
    /// Reads a partial export up to the first incomplete line. A missing file counts as empty.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut partial = Self::default();
        let mut file = match File::open(path) {
            Ok(file) => BufReader::new(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(partial),
            Err(error) => return Err(error),
        };
        let mut text = Vec::new();
        loop {
            text.clear();
            file.read_until(b'\n', &mut text)?;
            let Some(line) = parse(&text) else { return Ok(partial) };
            partial.lines += 1;
            partial.bytes += text.len() as u64;
            if partial.last != Some(line.started_at) {
                partial.known.clear();
                partial.last = Some(line.started_at);
            }
            partial.known.insert(line.id);
        }
    }

    /// Truncates a file after the complete lines, and positions it for appending.
    pub fn cut(&self, file: &mut File) -> io::Result<()> {
        file.set_len(self.bytes)?;
        file.seek(SeekFrom::Start(self.bytes)).map(drop)
    }

    /// Returns the filter for the missing traces.
    pub fn rest_of(&self, filter: &Filter) -> Filter {
        match self.last {
            Some(last) => filter.clone().until(last),
            None => filter.clone(),
        }
    }

    /// Returns the lines whose traces are not in the partial export.
    pub fn without_known(&self, block: Vec<u8>) -> Vec<u8> {
        if self.known.is_empty() {
            return block;
        }
        let known = |line: &[u8]| parse(line).is_some_and(|line| self.known.contains(&line.id));
        block.split_inclusive(|byte| *byte == b'\n').filter(|line| !known(line)).flatten().copied().collect()
    }
}

/// Parses a complete line of a trace.
fn parse(text: &[u8]) -> Option<ExportedTrace> {
    serde_json::from_slice(text.strip_suffix(b"\n")?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: &str, second: u32) -> String {
        format!("{{\"id\":\"{id}\",\"started_at\":\"2026-11-21T14:00:{second:02}Z\",\"spans\":[]}}\n")
    }

    #[test]
    fn resumed_export_begins_at_the_last_complete_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.part");
        let whole = line("a", 9) + &line("b", 8) + &line("c", 8);
        std::fs::write(&path, format!("{whole}{}", &line("d", 7)[..20])).unwrap();

        let partial = PartialExport::read(&path).unwrap();
        assert_eq!((partial.lines, partial.bytes), (3, whole.len() as u64));
        let filter = partial.rest_of(&Filter::default());
        assert_eq!(filter.param("to"), Some("2026-11-21T14:00:08.000000Z"));
        let more = line("c", 8) + &line("b", 8) + &line("d", 7);
        assert_eq!(partial.without_known(more.into_bytes()), line("d", 7).into_bytes());

        let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        partial.cut(&mut file).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), whole);
    }

    #[test]
    fn missing_partial_file_exports_everything() {
        let partial = PartialExport::read(Path::new("/nonexistent/x.part")).unwrap();
        assert!(partial.rest_of(&Filter::default()).is_empty());
        assert_eq!(partial.without_known(b"x\n".to_vec()), b"x\n");
    }
}
