//! Formats of texts, each as strict as its standard.
//!
//! **Invariant.** A text of any length and nesting is parsed in time linear in its length and in memory
//! proportional to its nesting, without recursion.

pub(crate) mod csv;
pub(crate) mod fence;
pub(crate) mod json;
pub(crate) mod length;
pub(crate) mod table;
pub(crate) mod xml;
pub(crate) mod yaml;

/// The whitespace of JSON, XML and YAML. Other characters, such as a no-break space or a vertical tab, are
/// content.
pub(crate) const WHITESPACE_CHARS: [char; 4] = [' ', '\t', '\n', '\r'];

/// Returns the line and column of a byte of a text, both from 1. The column counts characters.
fn place(text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or(text);
    let line = before.bytes().filter(|it| *it == b'\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |it| it.chars().count()) + 1;
    format!("line {line} column {column}")
}

#[cfg(test)]
mod tests;
