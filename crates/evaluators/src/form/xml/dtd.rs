//! The document type declaration and its internal subset.

use std::{
    collections::{BTreeMap, HashMap},
    rc::Rc,
};

use super::{
    Fault, MAX_ENTITY_DEPTH, UNITS_PER_STEP, chars,
    content::Checker,
    cursor::{Cursor, Reference},
    names,
};
use crate::budget::spend;

/// The declarations of a document type that affect well-formedness.
#[derive(Default)]
pub(super) struct Dtd {
    /// Entities by name.
    pub(super) entities: HashMap<String, Entity>,
    /// Parameter entities by name.
    parameters: HashMap<String, Entity>,
    /// Default namespace declarations, by element and attribute. All elements of a name share them.
    pub(super) namespaces: HashMap<String, BTreeMap<Rc<str>, Rc<str>>>,
    /// Whether there are external declarations, which are not read.
    pub(super) unread: bool,
    /// Whether a parameter entity was not read; declarations after it do not count.
    stopped: bool,
    /// Whether the document declares itself standalone.
    pub(super) standalone: bool,
}

/// An entity.
#[derive(Clone)]
pub(super) enum Entity {
    /// An internal entity with its replacement text.
    Internal(Rc<str>),
    /// An external entity.
    External,
    /// An external entity that is not XML.
    Unparsed,
}

impl Checker {
    /// Reads `<!DOCTYPE …>`.
    pub(super) fn doctype(&mut self, cursor: &mut Cursor) -> Result<(), Fault> {
        cursor.eat("<!DOCTYPE");
        cursor.need_spaces()?;
        let (at, name) = (cursor.at(), cursor.name()?);
        self.qualified(at, name)?;
        if cursor.spaces() && matches!(cursor.peek(), Some(b'S' | b'P')) {
            external(cursor, true)?;
            self.dtd.unread = true;
            cursor.spaces();
        }
        if cursor.eat("[") {
            self.subset(cursor)?;
            cursor.need("]", "an internal subset that is not closed, or an invalid declaration")?;
            cursor.spaces();
        }
        cursor.need(">", "a document type declaration that is not closed")
    }

    /// Reads declarations up to the first text that is not a declaration.
    fn subset(&mut self, cursor: &mut Cursor) -> Result<(), Fault> {
        loop {
            spend(UNITS_PER_STEP);
            cursor.spaces();
            let at = cursor.at();
            if cursor.comment()? || cursor.instruction()? {
            } else if cursor.eat("<!ELEMENT") {
                self.element(cursor)?;
            } else if cursor.eat("<!ATTLIST") {
                self.attributes(cursor)?;
            } else if cursor.eat("<!ENTITY") {
                self.entity(cursor)?;
            } else if cursor.eat("<!NOTATION") {
                cursor.need_spaces()?;
                self.plain_name(cursor)?;
                cursor.need_spaces()?;
                external(cursor, false)?;
                close(cursor)?;
            } else if cursor.eat("%") {
                let name = cursor.name()?;
                cursor.need(";", "a reference without its semicolon")?;
                self.parameter(name).map_err(|it| (at, it))?;
            } else {
                return Ok(());
            }
        }
    }

    /// Expands a parameter entity and reads its text as declarations.
    fn parameter(&mut self, name: &str) -> Result<(), &'static str> {
        let Some(Entity::Internal(text)) = self.dtd.parameters.get(name).cloned() else {
            self.dtd.unread = true;
            self.dtd.stopped = !self.dtd.standalone;
            return Ok(());
        };
        self.open(&format!("%{name}"), text.len())?;
        let mut cursor = Cursor::new(&text, self.namespaces);
        self.subset(&mut cursor).map_err(|it| it.1)?;
        self.close();
        // An entity in the declarations means that other declarations may be external.
        self.dtd.unread = true;
        if cursor.is_done() {
            Ok(())
        } else {
            Err("a parameter entity that contains incomplete declarations")
        }
    }

    /// Reads a name that must not contain a colon.
    fn plain_name<'a>(&self, cursor: &mut Cursor<'a>) -> Result<&'a str, Fault> {
        let at = cursor.at();
        let name = cursor.name()?;
        if self.namespaces && name.contains(':') {
            return Err((at, "a colon in the name of an entity or a notation"));
        }
        Ok(name)
    }

    fn qualified(&self, at: usize, name: &str) -> Result<(), Fault> {
        if self.namespaces { names::split(name).map(drop).map_err(|it| (at, it)) } else { Ok(()) }
    }

    fn element(&self, cursor: &mut Cursor) -> Result<(), Fault> {
        cursor.need_spaces()?;
        let (at, name) = (cursor.at(), cursor.name()?);
        self.qualified(at, name)?;
        cursor.need_spaces()?;
        if !cursor.eat("EMPTY") && !cursor.eat("ANY") {
            model(cursor)?;
        }
        close(cursor)
    }

    fn attributes(&mut self, cursor: &mut Cursor) -> Result<(), Fault> {
        cursor.need_spaces()?;
        let (at, element) = (cursor.at(), cursor.name()?);
        self.qualified(at, element)?;
        let mut declared: Vec<(Rc<str>, Rc<str>)> = Vec::new();
        loop {
            let spaced = cursor.spaces();
            if cursor.eat(">") {
                break;
            }
            let at = cursor.at();
            if !spaced {
                return Err((at, "white space is missing"));
            }
            let name = cursor.name()?;
            self.qualified(at, name)?;
            cursor.need_spaces()?;
            kind(cursor)?;
            cursor.need_spaces()?;
            if cursor.eat("#REQUIRED") || cursor.eat("#IMPLIED") {
                continue;
            }
            if cursor.eat("#FIXED") {
                cursor.need_spaces()?;
            }
            let at = cursor.at();
            let mut value = String::new();
            let default = cursor.quoted()?;
            self.attribute(default, &mut value).map_err(|it| (at, it))?;
            if self.namespaces && names::declares(name) && !self.dtd.stopped {
                declared.push((name.into(), value.into()));
            }
        }
        if !declared.is_empty() {
            let known = self.dtd.namespaces.entry(element.to_owned()).or_default();
            for (name, uri) in declared {
                // The first declaration of a name counts.
                known.entry(name).or_insert(uri);
            }
        }
        Ok(())
    }

    fn entity(&mut self, cursor: &mut Cursor) -> Result<(), Fault> {
        cursor.need_spaces()?;
        let parameter = cursor.eat("%");
        if parameter {
            cursor.need_spaces()?;
        }
        let name = self.plain_name(cursor)?;
        cursor.need_spaces()?;
        let entity = if matches!(cursor.peek(), Some(b'"' | b'\'')) {
            let at = cursor.at();
            let text = cursor.quoted()?;
            Entity::Internal(replacement(text).map_err(|it| (at, it.1))?.into())
        } else {
            external(cursor, true)?;
            let mut ahead = cursor.clone();
            if !parameter && ahead.spaces() && ahead.eat("NDATA") {
                ahead.need_spaces()?;
                *cursor = ahead;
                self.plain_name(cursor)?;
                Entity::Unparsed
            } else {
                Entity::External
            }
        };
        close(cursor)?;
        if !self.dtd.stopped {
            // The first declaration of a name counts.
            let known = if parameter { &mut self.dtd.parameters } else { &mut self.dtd.entities };
            known.entry(name.to_owned()).or_insert(entity);
        }
        Ok(())
    }
}

/// Returns the replacement text of an entity's value: character references are expanded, entity references
/// stay.
fn replacement(value: &str) -> Result<String, Fault> {
    let mut cursor = Cursor::new(value, false);
    let mut text = String::with_capacity(value.len());
    while let Some(next) = cursor.rest().chars().next() {
        let from = cursor.at();
        match next {
            '%' => return Err((from, "a percent sign within a declaration")),
            '&' => match cursor.reference()? {
                Reference::Char(it) => text.push(it),
                Reference::Entity(_) => text.push_str(&value[from..cursor.at()]),
            },
            _ => {
                cursor.skip(next.len_utf8());
                text.push(next);
            }
        }
    }
    Ok(text)
}

fn close(cursor: &mut Cursor) -> Result<(), Fault> {
    cursor.spaces();
    cursor.need(">", "a declaration that is not closed, or has extra content")
}

/// Reads `SYSTEM "…"` or `PUBLIC "…" "…"`; for notations the second text is optional.
fn external(cursor: &mut Cursor, system: bool) -> Result<(), Fault> {
    let at = cursor.at();
    if cursor.eat("SYSTEM") {
        cursor.need_spaces()?;
        return cursor.quoted().map(drop);
    }
    cursor.need("PUBLIC", "neither SYSTEM nor PUBLIC nor a text")?;
    cursor.need_spaces()?;
    if !cursor.quoted()?.chars().all(chars::is_public) {
        return Err((at, "a public identifier with invalid characters"));
    }
    let mut ahead = cursor.clone();
    let spaced = ahead.spaces();
    if system || (spaced && matches!(ahead.peek(), Some(b'"' | b'\''))) {
        cursor.need_spaces()?;
        cursor.quoted()?;
    }
    Ok(())
}

/// Reads the type of an attribute.
fn kind(cursor: &mut Cursor) -> Result<(), Fault> {
    let mut ahead = cursor.clone();
    match ahead.token() {
        "CDATA" | "ID" | "IDREF" | "IDREFS" | "ENTITY" | "ENTITIES" | "NMTOKEN" | "NMTOKENS" => {
            *cursor = ahead;
            return Ok(());
        }
        "NOTATION" => {
            ahead.need_spaces()?;
            *cursor = ahead;
            return listed(cursor, true);
        }
        _ => {}
    }
    listed(cursor, false)
}

/// Reads `(a | b)`.
fn listed(cursor: &mut Cursor, names: bool) -> Result<(), Fault> {
    cursor.need("(", "an invalid attribute type")?;
    loop {
        cursor.spaces();
        if names {
            cursor.name()?;
        } else if cursor.token().is_empty() {
            return Err((cursor.at(), "a value is missing"));
        }
        cursor.spaces();
        if cursor.eat(")") {
            return Ok(());
        }
        cursor.need("|", "a list that is not closed")?;
    }
}

/// Reads the content model of an element.
fn model(cursor: &mut Cursor) -> Result<(), Fault> {
    cursor.need("(", "an invalid content model")?;
    cursor.spaces();
    if cursor.eat("#PCDATA") {
        return mixed(cursor);
    }
    // For each open group, the separator of its parts once the first separator was read.
    let mut groups: Vec<Option<u8>> = vec![None];
    loop {
        cursor.spaces();
        if cursor.eat("(") {
            groups.push(None);
            if groups.len() > 100 * MAX_ENTITY_DEPTH {
                return Err((cursor.at(), "a content model that nests too deep"));
            }
            continue;
        }
        cursor.name()?;
        repeat(cursor);
        loop {
            cursor.spaces();
            if cursor.eat(")") {
                repeat(cursor);
                groups.pop();
                if groups.is_empty() {
                    return Ok(());
                }
                continue;
            }
            let sign = cursor.peek().filter(|it| b",|".contains(it));
            let (Some(sign), Some(group)) = (sign, groups.last_mut()) else {
                return Err((cursor.at(), "a content model that is not closed"));
            };
            if group.is_some_and(|it| it != sign) {
                return Err((cursor.at(), "a content model with commas and bars in one group"));
            }
            *group = Some(sign);
            cursor.skip(1);
            break;
        }
    }
}

/// Reads the rest of `(#PCDATA | a | b)*`.
fn mixed(cursor: &mut Cursor) -> Result<(), Fault> {
    let mut any = false;
    loop {
        cursor.spaces();
        if cursor.eat(")") {
            let star = cursor.eat("*");
            return if any && !star { Err((cursor.at(), "mixed content without its star")) } else { Ok(()) };
        }
        cursor.need("|", "mixed content that is not closed")?;
        cursor.spaces();
        cursor.name()?;
        any = true;
    }
}

fn repeat(cursor: &mut Cursor) {
    let _ = cursor.eat("?") || cursor.eat("*") || cursor.eat("+");
}
