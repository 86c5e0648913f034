//! Traces that the user marked, stored in a file.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use api::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Maximum number of bookmarks; the oldest are dropped first.
const MAX_BOOKMARKS: usize = 500;
const FILE_NAME: &str = "bookmarks.ndjson";

/// A marked trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bookmark {
    /// Address of its server.
    pub url: String,
    /// The trace.
    pub trace: Uuid,
    /// The name of the trace, if it has one.
    pub name: Option<String>,
    /// Time at which the trace was marked.
    pub at: Timestamp,
}

/// The bookmarks of all servers, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bookmarks(Vec<Bookmark>);

impl Bookmarks {
    /// Reads the bookmarks of a folder. A missing file holds none, and a line that cannot be
    /// read is left out.
    pub fn load(dir: &Path) -> Self {
        let text = fs::read_to_string(dir.join(FILE_NAME)).unwrap_or_default();
        Self(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// Writes the bookmarks to a folder by replacing the file: a crash leaves the old file or the new one.
    ///
    /// # Errors
    /// The folder cannot be created or written to.
    pub fn save(&self, dir: &Path) -> io::Result<()> {
        let mut text = String::new();
        for bookmark in &self.0 {
            text.push_str(&serde_json::to_string(bookmark)?);
            text.push('\n');
        }
        fs::create_dir_all(dir)?;
        let temporary: PathBuf = dir.join(format!(".{FILE_NAME}.tmp"));
        fs::write(&temporary, text)?;
        fs::rename(temporary, dir.join(FILE_NAME))
    }

    /// Returns the bookmarks of a server, newest first.
    pub fn of(&self, url: &str) -> impl Iterator<Item = &Bookmark> {
        self.0.iter().rev().filter(move |it| it.url == url)
    }

    /// Returns whether a trace of a server is marked.
    pub fn has(&self, url: &str, trace: Uuid) -> bool {
        self.of(url).any(|it| it.trace == trace)
    }

    /// Marks a trace, or removes its mark. Returns whether the trace is marked now.
    pub fn toggle(&mut self, bookmark: Bookmark) -> bool {
        let marked = self.has(&bookmark.url, bookmark.trace);
        self.0.retain(|it| it.url != bookmark.url || it.trace != bookmark.trace);
        if !marked {
            self.0.push(bookmark);
            let surplus = self.0.len().saturating_sub(MAX_BOOKMARKS);
            self.0.drain(..surplus);
        }
        !marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bookmark(url: &str, n: u128) -> Bookmark {
        Bookmark { url: url.to_owned(), trace: Uuid::from_u128(n), name: None, at: Timestamp::from_micros(0) }
    }

    #[test]
    fn second_mark_removes_the_first_per_server() {
        let mut all = Bookmarks::default();
        assert!(all.toggle(bookmark("a", 1)) && all.toggle(bookmark("b", 1)) && all.toggle(bookmark("a", 2)));
        assert!(!all.toggle(bookmark("a", 1)));
        assert!(!all.has("a", Uuid::from_u128(1)) && all.has("b", Uuid::from_u128(1)));
        for n in 10..1_000 {
            all.toggle(bookmark("a", n));
        }
        assert_eq!(all.0.len(), MAX_BOOKMARKS);
    }
}
