//! Finds the message of a stack trace.

/// Returns the message of the exception that a stack trace ends with.
pub fn last_message(text: &str) -> Option<String> {
    python(text).or_else(|| java(text)).or_else(|| rust(text)).or_else(|| frames(text)).map(str::to_owned)
}

const PYTHON_TRACEBACK: &str = "Traceback (most recent call last):";

fn python(text: &str) -> Option<&str> {
    let start = text.rfind(PYTHON_TRACEBACK)? + PYTHON_TRACEBACK.len();
    let body = &text[start..];
    let mut offset = 0;
    let mut last_line = "";
    for line in body.split_inclusive('\n') {
        let is_frame =
            line.starts_with(char::is_whitespace) || line.starts_with('|') || line.trim().is_empty();
        if !is_frame {
            return Some(body[offset..].trim());
        }
        if !line.trim().is_empty() {
            last_line = line.trim();
        }
        offset += line.len();
    }
    // The trace was cut off, or its lines are indented.
    if last_line.is_empty() {
        Some(text[..start - PYTHON_TRACEBACK.len()].trim()).filter(|it| !it.is_empty())
    } else {
        Some(last_line)
    }
}

/// Returns the cause that a Java stack trace ends with.
fn java(text: &str) -> Option<&str> {
    const CAUSE_LABEL: &str = "\nCaused by: ";
    let start = text.rfind(CAUSE_LABEL)? + CAUSE_LABEL.len();
    let cause = &text[start..];
    // Rust's `anyhow` numbers causes on lines of their own.
    Some(cause.lines().next().unwrap_or(cause).trim()).filter(|it| !it.is_empty())
}

/// Returns the message of a panic.
fn rust(text: &str) -> Option<&str> {
    let panic = text.strip_prefix("thread '")?;
    let start = panic.find("' panicked at ")?;
    let (_, message) = panic[start..].split_once(":\n")?;
    Some(message.split("\nnote: run with `RUST_BACKTRACE").next().unwrap_or(message))
}

/// Removes the frames below the message, as JavaScript, Java, .NET and Go print them.
fn frames(text: &str) -> Option<&str> {
    let marks =
        ["\n    at ", "\n\tat ", "\n   at ", "\n  at ", "\n\ngoroutine ", "\nStack trace:", "\nStack Trace:"];
    let end = marks.iter().filter_map(|it| text.find(it)).min()?;
    let message = text[..end].trim_end();
    Some(message.strip_prefix("panic: ").unwrap_or(message)).filter(|it| !it.is_empty())
}
