//! Elements, their attributes and the content between their tags.

use std::{collections::HashSet, rc::Rc};

use super::{
    Fault, MAX_ENTITY_DEPTH, UNITS_PER_STEP,
    cursor::{Cursor, Reference},
    dtd::{Dtd, Entity},
    names::{self, Bound, Scope},
};
use crate::budget::spend;

/// Maximum number of attributes of an element that are compared pairwise.
const MAX_PAIRWISE_ATTRIBUTES: usize = 16;
/// Number of bytes of a default namespace declaration that count as one step.
const BYTES_PER_STEP: usize = 64;

/// Bytes of character data for one unit of the time budget.
const BYTES_PER_UNIT: u64 = 16;

/// The state of the parser of a document.
pub(super) struct Checker {
    pub(super) dtd: Dtd,
    pub(super) namespaces: bool,
    /// The number of bytes to which entities may still expand.
    left: usize,
    /// The open entities, the innermost last.
    opened: Vec<String>,
    scope: Scope,
}

impl Checker {
    pub(super) fn new(dtd: Dtd, namespaces: bool, left: usize) -> Self {
        Self { dtd, namespaces, left, opened: Vec::new(), scope: Scope::new() }
    }

    /// Reads the outermost element.
    pub(super) fn root(&mut self, cursor: &mut Cursor) -> Result<(), Fault> {
        self.elements(cursor, true)
    }

    /// Opens an entity.
    pub(super) fn open(&mut self, name: &str, bytes: usize) -> Result<(), &'static str> {
        if self.opened.iter().any(|it| it == name) {
            return Err("an entity that contains itself");
        }
        if self.opened.len() >= MAX_ENTITY_DEPTH {
            return Err("entities that nest too deep");
        }
        // Empty entities take time as well.
        self.left = self.left.checked_sub(bytes + 1).ok_or("entities that expand to too much")?;
        self.opened.push(name.to_owned());
        Ok(())
    }

    /// Closes the entity that was opened last.
    pub(super) fn close(&mut self) {
        self.opened.pop();
    }

    /// Reads content up to the end of the text, or one element if it is the outermost.
    fn elements<'a>(&mut self, cursor: &mut Cursor<'a>, outermost: bool) -> Result<(), Fault> {
        let mut open: Vec<(&'a str, Bound)> = Vec::new();
        loop {
            let at = cursor.at();
            spend(UNITS_PER_STEP);
            match cursor.peek() {
                None if open.is_empty() && !outermost => return Ok(()),
                None => return Err((at, "an element that is not closed")),
                Some(b'<') if cursor.eat("</") => {
                    let name = cursor.name()?;
                    cursor.spaces();
                    cursor.need(">", "an end tag that is not closed")?;
                    match open.pop() {
                        Some((started, bound)) if started == name => self.scope.leave(&bound),
                        Some(_) => return Err((at, "an end tag of another name than its start tag")),
                        None => return Err((at, "an end tag without its start tag")),
                    }
                }
                Some(b'<') => {
                    if cursor.comment()? || cursor.instruction()? {
                    } else if cursor.eat("<![CDATA[") {
                        cursor.until("]]>", "a CDATA section that is not closed")?;
                    } else if let Some(started) = self.start(cursor)? {
                        open.push(started);
                    }
                }
                Some(b'&') => match cursor.reference()? {
                    Reference::Char(_) => {}
                    Reference::Entity(name) => self.include(name).map_err(|it| (at, it))?,
                },
                Some(_) => {
                    let rest = cursor.rest();
                    let length = rest.find(['<', '&']).unwrap_or(rest.len());
                    spend(length as u64 / BYTES_PER_UNIT);
                    if let Some(end) = rest[..length].find("]]>") {
                        return Err((at + end, "]]> outside of a CDATA section"));
                    }
                    cursor.skip(length);
                }
            }
            if outermost && open.is_empty() {
                return Ok(());
            }
        }
    }

    /// Reads a start tag; returns none if the tag is self-closing.
    fn start<'a>(&mut self, cursor: &mut Cursor<'a>) -> Result<Option<(&'a str, Bound)>, Fault> {
        let at = cursor.at();
        cursor.skip(1);
        let element = cursor.name()?;
        let mut attributes = Vec::new();
        let mut declared: Vec<(Rc<str>, Rc<str>)> = Vec::new();
        // Few names are compared pairwise, many with a hash set.
        let mut many: Option<HashSet<&str>> = None;
        let empty = loop {
            let spaced = cursor.spaces();
            if cursor.eat(">") {
                break false;
            }
            if cursor.eat("/>") {
                break true;
            }
            let at = cursor.at();
            spend(UNITS_PER_STEP);
            if !spaced {
                return Err((at, "white space is missing"));
            }
            let name = cursor.name()?;
            if attributes.len() == MAX_PAIRWISE_ATTRIBUTES {
                many = Some(attributes.iter().copied().collect());
            }
            let new = many.as_mut().map_or_else(|| !attributes.contains(&name), |it| it.insert(name));
            if !new {
                return Err((at, "an attribute that occurs twice"));
            }
            cursor.equals()?;
            let mut value = String::new();
            let text = cursor.quoted()?;
            self.attribute(text, &mut value).map_err(|it| (at, it))?;
            if names::declares(name) {
                declared.push((name.into(), value.into()));
            }
            attributes.push(name);
        };
        if !self.namespaces {
            return Ok(if empty { None } else { Some((element, Vec::new())) });
        }
        if let Some(default) = self.dtd.namespaces.get(element) {
            // A declaration that applies to every element of a name costs time for each element, as entities
            // do.
            let once: usize = default.iter().map(|it| 1 + (it.0.len() + it.1.len()) / BYTES_PER_STEP).sum();
            let steps = once.saturating_mul(declared.len() + 1);
            self.left =
                self.left.checked_sub(steps).ok_or((at, "namespaces by default for too many elements"))?;
            let default = default.iter().filter(|it| !declared.iter().any(|own| own.0 == *it.0));
            let default: Vec<_> = default.map(|it| (it.0.clone(), it.1.clone())).collect();
            declared.extend(default);
        }
        let bound = self.scope.enter(declared).map_err(|it| (at, it))?;
        self.scope.check(element, &attributes).map_err(|it| (at, it))?;
        if empty {
            self.scope.leave(&bound);
            return Ok(None);
        }
        Ok(Some((element, bound)))
    }

    /// Expands an entity in content.
    fn include(&mut self, name: &str) -> Result<(), &'static str> {
        match self.find_entity(name)? {
            Some(Entity::Internal(text)) => {
                self.open(name, text.len())?;
                self.elements(&mut Cursor::new(&text, self.namespaces), false).map_err(|it| it.1)?;
                self.close();
                Ok(())
            }
            Some(Entity::Unparsed) => Err("a reference to an entity that is not XML"),
            Some(Entity::External) | None => Ok(()),
        }
    }

    /// Reads the value of an attribute and appends it to `value` with its references expanded.
    pub(super) fn attribute(&mut self, text: &str, value: &mut String) -> Result<(), &'static str> {
        let mut cursor = Cursor::new(text, false);
        while !cursor.is_done() {
            let rest = cursor.rest();
            let length = rest.find(['<', '&']).unwrap_or(rest.len());
            value.push_str(&rest[..length]);
            cursor.skip(length);
            match cursor.peek() {
                Some(b'<') => return Err("a < within an attribute"),
                Some(_) => match cursor.reference().map_err(|it| it.1)? {
                    Reference::Char(it) => value.push(it),
                    Reference::Entity(name) => match self.find_entity(name)? {
                        Some(Entity::Internal(text)) => {
                            self.open(name, text.len())?;
                            self.attribute(&text, value)?;
                            self.close();
                        }
                        Some(_) => return Err("an external entity within an attribute"),
                        None => {}
                    },
                },
                None => {}
            }
        }
        Ok(())
    }

    /// Returns the entity of this name; none if it is one of the five predefined entities, or if an external
    /// declaration that was not read may declare it.
    fn find_entity(&self, name: &str) -> Result<Option<Entity>, &'static str> {
        if matches!(name, "lt" | "gt" | "amp" | "apos" | "quot") {
            return Ok(None);
        }
        match self.dtd.entities.get(name) {
            Some(entity) => Ok(Some(entity.clone())),
            None if self.dtd.unread && !self.dtd.standalone => Ok(None),
            None => Err("a reference to an entity that is not declared"),
        }
    }
}
