//! Removes the class of an exception before its message.

use super::is_substantive;

/// Endings of the names of exception classes.
const CLASS_ENDINGS: &[&str] = &[
    "Error",
    "Exception",
    "Timeout",
    "Warning",
    "Fault",
    "Failure",
    "Exceeded",
    "Err",
    "Interrupt",
    "Panic",
];

/// General classes, which add no information to the message after them.
const GENERAL_CLASSES: &[&str] = &[
    "AI_APICallError",
    "AI_RetryError",
    "APIError",
    "APIStatusError",
    "AuthenticationError",
    "BadRequestError",
    "ClientError",
    "Error",
    "Exception",
    "InternalServerError",
    "NotFoundError",
    "PermissionDeniedError",
    "RateLimitError",
    "ResponseError",
    "RuntimeError",
    "RuntimeException",
    "ServerError",
    "ServiceUnavailableError",
];

/// Maximum length of a class with its module path.
const MAX_CLASS_BYTES: usize = 160;

/// Removes an exception class. Keeps the class, without its module, if the message says little without it, as in
/// `KeyError: 'city'`.
pub fn remove_class(text: &str) -> Option<String> {
    let end = text
        .bytes()
        .position(|it| !(it.is_ascii_alphanumeric() || it == b'_' || it == b'.' || it == b'$'))
        .unwrap_or(text.len());
    if end > MAX_CLASS_BYTES || !is_class(&text[..end]) {
        return None;
    }
    let class = &text[..end];
    let name = class.rsplit(['.', '$']).find(|it| !it.is_empty())?;
    let rest = &text[end..];
    if rest.is_empty() {
        return (name.len() < class.len()).then(|| name.to_owned());
    }
    let message = if let Some(inner) = representation(rest) { inner } else { separated(rest)? };
    let message = message.trim();
    if message.is_empty() || is_general(name) || is_substantive(message) {
        return Some(if message.is_empty() { name.to_owned() } else { message.to_owned() });
    }
    let kept = format!("{name}: {message}");
    (kept.len() < text.len()).then_some(kept)
}

fn is_general(name: &str) -> bool {
    GENERAL_CLASSES.contains(&name)
}

fn is_class(path: &str) -> bool {
    let name = path.rsplit(['.', '$']).next().unwrap_or(path);
    if !name.starts_with(|it: char| it.is_ascii_uppercase()) {
        return false;
    }
    let has_ending = CLASS_ENDINGS.iter().any(|it| name.ends_with(it)) || name.starts_with("AI_");
    let has_module = path.len() > name.len()
        && path.starts_with(|it: char| it.is_ascii_lowercase() || it == '_')
        && name.bytes().any(|it| it.is_ascii_lowercase());
    // `UnexpectedModelBehavior`: three words written as one.
    let humps = name
        .as_bytes()
        .windows(2)
        .filter(|it| it[0].is_ascii_uppercase() && it[1].is_ascii_lowercase())
        .count();
    has_ending || has_module || (path.len() == name.len() && humps >= 3)
}

/// Returns the text after the separator that follows a class.
fn separated(rest: &str) -> Option<&str> {
    if let Some(code) = rest.strip_prefix(" [") {
        // Node.js: `TypeError [ERR_INVALID_URL]: Invalid URL`.
        let (_, message) = code.split_once("]: ")?;
        return Some(message);
    }
    [": ", ":\n", " - ", "\n"]
        .iter()
        .find_map(|it| rest.strip_prefix(it))
        .or_else(|| (rest == ":").then_some(""))
}

/// Returns the first argument of Python's representation of an exception, `('message')`, if it ends the text.
fn representation(rest: &str) -> Option<&str> {
    let arguments = rest.strip_prefix('(')?.strip_suffix(')')?;
    let quote = arguments.chars().next().filter(|it| matches!(it, '\'' | '"'))?;
    let end = arguments.rfind(quote).filter(|it| *it > 0)?;
    // Several arguments are not a message.
    let inner = &arguments[1..end];
    (!inner.contains("', '") && arguments[end + 1..].trim_matches([',', ' ']).is_empty()).then_some(inner)
}
