//! Removes the texts that SDKs, frameworks and gateways put around the message of a failure.

mod class;
mod html;
mod object;
mod prefixes;
mod stack_trace;

use std::borrow::Cow;

/// Maximum number of bytes of a message that are examined: half at its beginning and half at its end.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024;

/// Maximum number of nested wrappings that are removed.
const MAX_NESTED_WRAPPINGS: usize = 12;

/// Returns the message within its wrappings.
pub fn unwrap(message: &str) -> String {
    let mut text = clean(&shorten(message));
    for _ in 0..MAX_NESTED_WRAPPINGS {
        let trimmed = text.trim();
        let Some(inner) = remove_one(trimmed) else { break };
        // Each step makes the text shorter, or it is the last one.
        if inner.trim().is_empty() || inner.len() >= text.len() {
            break;
        }
        text = inner;
    }
    prefixes::remove_suffix(text.trim()).trim().to_owned()
}

/// Removes the outermost wrapping.
fn remove_one(text: &str) -> Option<String> {
    stack_trace::last_message(text)
        .or_else(|| html::title(text))
        .or_else(|| object::find_message(text))
        .or_else(|| prefixes::remove_prefix(text).map(str::to_owned))
        .or_else(|| class::remove_class(text))
}

/// Returns whether a text says something on its own: at least two words of letters outside of quotes.
fn is_substantive(text: &str) -> bool {
    let mut words = 0;
    let mut letters = 0;
    let mut quote = None;
    let mut before = ' ';
    for it in text.chars().take(400).chain([' ']) {
        match quote {
            Some(open) if it == open => quote = None,
            Some(_) => {}
            None if matches!(it, '\'' | '"' | '`') && !before.is_alphanumeric() => quote = Some(it),
            None if it.is_alphabetic() => letters += 1,
            None => {
                words += usize::from(letters >= 2);
                letters = 0;
                // In scripts without spaces, each character counts as a word.
            }
        }
        if letters > 24 {
            return true;
        }
        before = it;
    }
    words >= 2
}

/// Cuts the middle out of a message that is too long.
fn shorten(message: &str) -> Cow<'_, str> {
    if message.len() <= MAX_MESSAGE_BYTES {
        return message.into();
    }
    let head = message.floor_char_boundary(MAX_MESSAGE_BYTES / 2);
    let tail = message.ceil_char_boundary(message.len() - MAX_MESSAGE_BYTES / 2);
    format!("{}\n{}", &message[..head], &message[tail..]).into()
}

/// Removes terminal escapes and control characters, and replaces CR LF by LF.
fn clean(message: &str) -> String {
    let mut cleaned = String::with_capacity(message.len());
    let mut chars = message.chars().peekable();
    while let Some(it) = chars.next() {
        match it {
            '\u{1b}' if chars.peek() == Some(&'[') => {
                chars.next();
                while chars.next().is_some_and(|it| !it.is_ascii_alphabetic()) {}
            }
            '\n' | '\t' => cleaned.push(it),
            '\u{a0}' | '\u{202f}' => cleaned.push(' '),
            _ if it.is_control() || it == '\u{feff}' || it == '\u{200b}' => {}
            _ => cleaned.push(it),
        }
    }
    cleaned
}

#[cfg(test)]
mod tests;
