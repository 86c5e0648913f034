//! Plain sentences for errors of libraries, whose messages are written for programmers.
//!
//! The programs show these instead of messages such as `os error 111` or `expected ident at line 1`.

use std::io;

/// Describes an error of a file, a pipe or a connection, such as "permission denied".
pub fn io_error(error: &io::Error) -> String {
    use io::ErrorKind as Kind;
    let sentence = match error.kind() {
        Kind::NotFound => "there is no such file or folder",
        Kind::PermissionDenied => "permission denied",
        Kind::AlreadyExists => "it exists already",
        Kind::IsADirectory => "it is a folder, not a file",
        Kind::NotADirectory => "a part of the path is not a folder",
        Kind::DirectoryNotEmpty => "the folder is not empty",
        Kind::InvalidData => "it is not text in UTF-8",
        Kind::UnexpectedEof => "it ends too early",
        Kind::StorageFull => "the disk is full",
        Kind::QuotaExceeded => "the disk quota is used up",
        Kind::ReadOnlyFilesystem => "the file system is read-only",
        Kind::FileTooLarge => "the file is too large",
        Kind::InvalidFilename => "the file name is not allowed here",
        Kind::ConnectionRefused => "the connection was refused: nothing listens there",
        Kind::ConnectionReset | Kind::ConnectionAborted | Kind::BrokenPipe => "the connection was closed",
        Kind::HostUnreachable | Kind::NetworkUnreachable | Kind::NetworkDown => {
            "there is no route to it in the network"
        }
        Kind::TimedOut => "there was no response in time",
        Kind::AddrInUse => "the address is in use by another program",
        Kind::AddrNotAvailable => "the address does not belong to this machine",
        _ => return of_system(error),
    };
    sentence.to_owned()
}

/// Describes the error in a JSON text and its position.
pub fn json_error(error: &serde_json::Error) -> String {
    use serde_json::error::Category;
    let place = format!("line {}, column {}", error.line(), error.column());
    match error.classify() {
        Category::Io => {
            let kind = error.io_error_kind().unwrap_or(io::ErrorKind::Other);
            io_error(&io::Error::from(kind))
        }
        Category::Eof => format!("the JSON ends too early, at {place}"),
        Category::Syntax => format!("not valid JSON at {place}"),
        Category::Data if error.line() == 0 => "the JSON does not have the expected shape".to_owned(),
        Category::Data => format!("the JSON does not have the expected shape at {place}"),
    }
}

/// Returns the system's message without the error number at its end.
fn of_system(error: &io::Error) -> String {
    let text = error.to_string();
    match (error.raw_os_error(), text.split_once(" (os error ")) {
        (Some(_), Some((words, _))) => {
            let mut letters = words.chars();
            letters.next().map_or_else(String::new, |it| it.to_lowercase().chain(letters).collect())
        }
        _ => "the system reports an error without a reason".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn system_errors_are_shown_without_number() {
        for code in [1, 2, 5, 13, 17, 20, 21, 23, 24, 28, 30, 98, 104, 110, 111, 113] {
            let text = io_error(&io::Error::from_raw_os_error(code));
            assert!(!text.contains("os error") && !text.is_empty(), "{code}: {text}");
            assert!(text.starts_with(|it: char| it.is_lowercase()), "{code}: {text}");
        }
        assert!(!io_error(&io::Error::other("custom")).contains("custom"));
    }

    #[test]
    fn json_errors_name_line_and_column() {
        let error = |text: &str| json_error(&serde_json::from_str::<serde_json::Value>(text).unwrap_err());
        assert_eq!(error("nope"), "not valid JSON at line 1, column 2");
        assert_eq!(error("{\"a\":\n"), "the JSON ends too early, at line 2, column 0");
        let shape = serde_json::from_str::<Vec<u8>>("{}").unwrap_err();
        assert_eq!(json_error(&shape), "the JSON does not have the expected shape at line 1, column 0");
    }
}
