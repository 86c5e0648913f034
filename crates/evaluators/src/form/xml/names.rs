//! Namespaces in XML 1.0: the scopes of prefixes.

use std::{
    collections::{HashMap, HashSet},
    rc::Rc,
};

const XML_NAMESPACE: &str = "http://www.w3.org/XML/1998/namespace";
const XMLNS_NAMESPACE: &str = "http://www.w3.org/2000/xmlns/";

/// The prefixes in scope, each with its namespaces, the innermost last. The default namespace is ignored,
/// because it cannot cause an error.
pub(super) struct Scope(HashMap<Rc<str>, Vec<Rc<str>>>);

/// The prefixes that an element binds.
pub(super) type Bound = Vec<Rc<str>>;

impl Scope {
    pub(super) fn new() -> Self {
        Self(HashMap::from([("xml".into(), vec![XML_NAMESPACE.into()])]))
    }

    /// Binds the namespaces that an element declares, given by attribute and value; returns the prefixes to
    /// pass to [`Self::leave`].
    pub(super) fn enter(&mut self, declared: Vec<(Rc<str>, Rc<str>)>) -> Result<Bound, &'static str> {
        let mut bound = Vec::new();
        for (name, uri) in declared {
            split(&name)?;
            let prefix = name.strip_prefix("xmlns:");
            match (prefix, &*uri) {
                (Some("xmlns"), _) => return Err("the prefix xmlns is declared"),
                (Some("xml"), XML_NAMESPACE) => continue,
                (Some("xml"), _) => return Err("the prefix xml is bound to another namespace"),
                (_, XML_NAMESPACE | XMLNS_NAMESPACE) => return Err("a reserved namespace is bound"),
                (Some(_), "") => return Err("a prefix is bound to no namespace"),
                (Some(prefix), _) => {
                    let prefix = match self.0.get_key_value(prefix) {
                        Some((known, _)) => known.clone(),
                        None => prefix.into(),
                    };
                    self.0.entry(prefix.clone()).or_default().push(uri);
                    bound.push(prefix);
                }
                (None, _) => {}
            }
        }
        Ok(bound)
    }

    /// Unbinds the prefixes of an element.
    pub(super) fn leave(&mut self, bound: &[Rc<str>]) {
        for prefix in bound {
            self.0.get_mut(prefix).map(Vec::pop);
        }
    }

    /// Checks that the names of an element and its attributes resolve, and that the attributes are distinct.
    pub(super) fn check(&self, element: &str, attributes: &[&str]) -> Result<(), &'static str> {
        let (prefix, _) = split(element)?;
        if prefix == Some("xmlns") {
            return Err("an element with the prefix xmlns");
        }
        prefix.map_or(Ok(""), |it| self.bound(it))?;
        if !attributes.iter().any(|it| it.contains(':')) {
            return Ok(());
        }
        let mut seen = HashSet::new();
        for name in attributes.iter().filter(|it| !declares(it)) {
            let (Some(prefix), local) = split(name)? else { continue };
            if !seen.insert((self.bound(prefix)?, local)) {
                return Err("two attributes of the same name by different prefixes");
            }
        }
        Ok(())
    }

    fn bound(&self, prefix: &str) -> Result<&str, &'static str> {
        let innermost = self.0.get(prefix).and_then(|it| it.last());
        innermost.map(|it| &**it).ok_or("a prefix that is bound to no namespace")
    }
}

/// Returns whether an attribute declares a namespace.
pub(super) fn declares(attribute: &str) -> bool {
    attribute == "xmlns" || attribute.starts_with("xmlns:")
}

/// Splits a name into its prefix and local part.
pub(super) fn split(name: &str) -> Result<(Option<&str>, &str), &'static str> {
    let Some((prefix, local)) = name.split_once(':') else { return Ok((None, name)) };
    let begins = |it: &str| it.starts_with(super::chars::begins_name);
    if !begins(prefix) || !begins(local) || local.contains(':') {
        return Err("a name whose colon separates no prefix");
    }
    Ok((Some(prefix), local))
}
