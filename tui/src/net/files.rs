//! Writes files that the user exports.

use std::io;

use tokio::{fs::OpenOptions, io::AsyncWriteExt};

/// Writes a new file, readable by its owner only.
///
/// # Errors
/// Fails when it exists already or cannot be written.
pub async fn write_new(path: &str, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    options.mode(0o600);
    let mut file = options.open(path).await?;
    file.write_all(text.as_bytes()).await?;
    file.flush().await
}
