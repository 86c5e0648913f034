//! XML 1.0 (fifth edition): checks that a text is a well-formed document, also by Namespaces in XML 1.0.
//!
//! The parser reads the whole document including its internal subset, and no external entities, so it does
//! not find errors that only an external entity could cause. Entities are expanded where they are referenced,
//! up to a total limit.

mod chars;
mod content;
mod cursor;
mod dtd;
mod names;

use self::{content::Checker, cursor::Cursor, dtd::Dtd};
use crate::form::place;

/// Number of bytes to which entities may expand, in addition to the length of the text.
const MAX_EXPANDED_BYTES: usize = 1024 * 1024;
/// Maximum nesting of entities.
const MAX_ENTITY_DEPTH: usize = 64;

/// Units of the time budget for a declaration, an attribute, or a piece of content without its text.
const UNITS_PER_STEP: u64 = 20;

/// The position and reason of an error of well-formedness.
type Fault = (usize, &'static str);

/// Checks that a text is a well-formed document.
///
/// # Errors
/// Returns the reason with its position; it repeats nothing of the text.
pub(crate) fn well_formed(text: &str, namespaces: bool) -> Result<(), String> {
    document(text, namespaces).map_err(|(at, why)| format!("{}: {why}", place(text, at)))
}

fn document(text: &str, namespaces: bool) -> Result<(), Fault> {
    if let Some((at, _)) = text.char_indices().find(|it| !chars::is_char(it.1)) {
        return Err((at, "a character that XML does not allow"));
    }
    let mut cursor = Cursor::new(text, namespaces);
    cursor.eat("\u{feff}");
    let mut dtd = Dtd::default();
    if cursor.rest().starts_with("<?xml") && cursor.rest()[5..].starts_with(chars::is_space) {
        dtd.standalone = declaration(&mut cursor)?;
    }
    misc(&mut cursor)?;
    let mut checker = Checker::new(dtd, namespaces, MAX_EXPANDED_BYTES + text.len());
    if cursor.rest().starts_with("<!DOCTYPE") {
        checker.doctype(&mut cursor)?;
        misc(&mut cursor)?;
    }
    if !cursor.rest().starts_with('<') {
        return Err((cursor.at(), "text where the outermost element should begin"));
    }
    checker.root(&mut cursor)?;
    misc(&mut cursor)?;
    match cursor.is_done() {
        true => Ok(()),
        false => Err((cursor.at(), "something after the outermost element")),
    }
}

/// Reads comments, processing instructions and whitespace.
fn misc(cursor: &mut Cursor) -> Result<(), Fault> {
    loop {
        cursor.spaces();
        if !cursor.comment()? && !cursor.instruction()? {
            return Ok(());
        }
    }
}

/// Reads `<?xml version="1.0" …?>`; returns whether the document declares itself standalone.
fn declaration(cursor: &mut Cursor) -> Result<bool, Fault> {
    cursor.eat("<?xml");
    cursor.need_spaces()?;
    let version = cursor.pseudo("version")?.ok_or((cursor.at(), "an XML declaration without its version"))?;
    let minor = version.strip_prefix("1.").unwrap_or_default();
    if minor.is_empty() || !minor.bytes().all(|it| it.is_ascii_digit()) {
        return Err((cursor.at(), "the XML version is not 1.x"));
    }
    let mut spaced = cursor.spaces();
    if spaced && let Some(encoding) = cursor.pseudo("encoding")? {
        let plain = |it: u8| it.is_ascii_alphanumeric() || b"._-".contains(&it);
        if !encoding.starts_with(|it: char| it.is_ascii_alphabetic()) || !encoding.bytes().all(plain) {
            return Err((cursor.at(), "the name of the encoding is invalid"));
        }
        spaced = cursor.spaces();
    }
    let mut standalone = false;
    if spaced && let Some(value) = cursor.pseudo("standalone")? {
        standalone = match value {
            "yes" => true,
            "no" => false,
            _ => return Err((cursor.at(), "standalone is neither yes nor no")),
        };
        cursor.spaces();
    }
    cursor.need("?>", "an XML declaration that is not closed")?;
    Ok(standalone)
}

#[cfg(test)]
mod tests;
