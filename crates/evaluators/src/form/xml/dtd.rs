//! The document type declaration with its internal subset.

use std::{
    collections::{BTreeMap, HashMap},
    rc::Rc,
};

use super::{
    Fault, NESTED, UNITS_PER_STEP, chars,
    content::Checker,
    cursor::{Cursor, Reference},
    names,
};
use crate::budget::spend;

/// What a document type declaration says that matters to the form.
#[derive(Default)]
pub(super) struct Dtd {
    /// Entities by name.
    pub(super) entities: HashMap<String, Entity>,
    /// Parameter entities by name.
    parameters: HashMap<String, Entity>,
    /// Declarations of namespaces that elements have by default, by attribute. All elements of a
    /// name share them.
    pub(super) namespaces: HashMap<String, BTreeMap<Rc<str>, Rc<str>>>,
    /// There are declarations outside of the document, which are not read.
    pub(super) unread: bool,
    /// A parameter entity was not read, so what is declared after it does not count.
    stopped: bool,
    /// The document says that nothing outside of it matters.
    pub(super) standalone: bool,
}

/// An entity.
#[derive(Clone)]
pub(super) enum Entity {
    /// Its replacement text.
    Internal(Rc<str>),
    /// Elsewhere.
    External,
    /// Elsewhere, and no XML.
    Unparsed,
}

impl Checker {
    /// `<!DOCTYPE …>`
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
            cursor.need("]", "an internal subset that is not closed, or a declaration that is none")?;
            cursor.spaces();
        }
        cursor.need(">", "a document type declaration that is not closed")
    }

    /// Declarations, up to what is none.
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

    /// What a parameter entity stands for is read as declarations.
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
        // Where declarations come from an entity, others may come from elsewhere.
        self.dtd.unread = true;
        if cursor.is_done() {
            Ok(())
        } else {
            Err("a parameter entity that does not hold whole declarations")
        }
    }

    /// A name where a colon has no meaning.
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
                return Err((at, "a blank is missing"));
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
                // The first declaration of a name is the one that counts.
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
            // The first declaration of a name is the one that counts.
            let known = if parameter { &mut self.dtd.parameters } else { &mut self.dtd.entities };
            known.entry(name.to_owned()).or_insert(entity);
        }
        Ok(())
    }
}

/// What an entity's value stands for: characters by their numbers are put in, entities stay.
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
    cursor.need(">", "a declaration that is not closed, or has something too much")
}

/// `SYSTEM "…"` or `PUBLIC "…" "…"`; for notations the second text may be missing.
fn external(cursor: &mut Cursor, system: bool) -> Result<(), Fault> {
    let at = cursor.at();
    if cursor.eat("SYSTEM") {
        cursor.need_spaces()?;
        return cursor.quoted().map(drop);
    }
    cursor.need("PUBLIC", "neither SYSTEM nor PUBLIC nor a text")?;
    cursor.need_spaces()?;
    if !cursor.quoted()?.chars().all(chars::is_public) {
        return Err((at, "a public identifier with characters that it may not have"));
    }
    let mut ahead = cursor.clone();
    let spaced = ahead.spaces();
    if system || (spaced && matches!(ahead.peek(), Some(b'"' | b'\''))) {
        cursor.need_spaces()?;
        cursor.quoted()?;
    }
    Ok(())
}

/// The type of an attribute.
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

/// `(a | b)`
fn listed(cursor: &mut Cursor, names: bool) -> Result<(), Fault> {
    cursor.need("(", "a type of an attribute that is none")?;
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

/// What an element may contain.
fn model(cursor: &mut Cursor) -> Result<(), Fault> {
    cursor.need("(", "a content model that is none")?;
    cursor.spaces();
    if cursor.eat("#PCDATA") {
        return mixed(cursor);
    }
    // For each open group, the sign that separates its parts once there is one.
    let mut groups: Vec<Option<u8>> = vec![None];
    loop {
        cursor.spaces();
        if cursor.eat("(") {
            groups.push(None);
            if groups.len() > 100 * NESTED {
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

/// The rest of `(#PCDATA | a | b)*`.
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
