//! Bounds the schemas that apply to the same location of the JSON through references, alternatives and
//! conditions.
//!
//! The step limit (see `counted`) bounds everything except compilation and schemas that lead to one another
//! without an access to the JSON. This module bounds both before compilation. The targets of references are
//! overestimated: every possible target is followed.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Maximum number of schemas that apply to one location, counted once for each path to a schema.
const MAX_TRIED: u64 = 20_000;
/// Maximum number of such schemas that do not access the JSON.
const MAX_IDLE: u64 = 256;
/// Maximum number of such schemas in total, over all schemas that need the evaluated locations of the others.
const MAX_UNEVALUATED: u64 = 200_000;
/// Maximum length of a chain of schemas.
const MAX_CHAIN: usize = 200;

/// Keywords with a list of schemas for the same location.
const LIST_KEYWORDS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords with one schema for the same location.
const SINGLE_KEYWORDS: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords with named schemas for the same location.
const NAMED_KEYWORDS: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords of references.
const REFERENCE_KEYWORDS: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Keywords that access JSON of any type.
const READING_KEYWORDS: [&str; 16] = [
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "required",
    "properties",
    "items",
    "minItems",
    "maxItems",
];

/// Checks that a schema can be compiled and evaluated in reasonable time.
///
/// # Errors
/// Returns the necessary change, as the continuation of a sentence that names the schema.
pub(super) fn bounded(schema: &Value) -> Result<(), String> {
    let Value::Object(root) = schema else { return Ok(()) };
    let mut shape = SchemaGraph::default();
    shape.collect(root, root);
    let mut reached = HashMap::new();
    let mut unevaluated = 0_u64;
    for object in shape.objects.values() {
        let reach = shape.reach(object.members, 0, &mut reached)?;
        if ["unevaluatedProperties", "unevaluatedItems"].iter().any(|it| object.members.contains_key(*it)) {
            unevaluated = unevaluated.saturating_add(reach.tried);
        }
    }
    if unevaluated > MAX_UNEVALUATED {
        return Err("has too many alternatives under unevaluatedProperties or unevaluatedItems".into());
    }
    Ok(())
}

/// The schemas reachable from an object at the same location of the JSON.
#[derive(Clone, Copy)]
struct Reach {
    tried: u64,
    idle: u64,
    chain: usize,
}

/// The objects of a schema by address; each may be a schema.
#[derive(Default)]
struct SchemaGraph<'a> {
    objects: HashMap<usize, Object<'a>>,
    anchors: HashMap<&'a str, Vec<&'a Map<String, Value>>>,
    ids: Vec<(&'a str, &'a Map<String, Value>)>,
}

struct Object<'a> {
    members: &'a Map<String, Value>,
    /// The nearest enclosing object with an ID of its own, or the outermost object.
    resource: &'a Map<String, Value>,
}

fn address(members: &Map<String, Value>) -> usize {
    std::ptr::from_ref(members).addr()
}

fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    members.get(name).and_then(Value::as_str)
}

impl<'a> SchemaGraph<'a> {
    /// Collects the objects recursively; the nesting was bounded before.
    fn collect(&mut self, members: &'a Map<String, Value>, mut resource: &'a Map<String, Value>) {
        for id in ["$id", "id"].iter().filter_map(|it| text(members, it)) {
            match id.strip_prefix('#') {
                Some(anchor) => self.anchors.entry(anchor).or_default().push(members),
                None => {
                    resource = members;
                    self.ids.push((id, members));
                }
            }
        }
        for anchor in ["$anchor", "$dynamicAnchor"].iter().filter_map(|it| text(members, it)) {
            self.anchors.entry(anchor).or_default().push(members);
        }
        if members.get("$recursiveAnchor") == Some(&Value::Bool(true)) {
            self.anchors.entry("").or_default().push(members);
        }
        self.objects.insert(address(members), Object { members, resource });
        let mut open: Vec<&'a Value> = members.values().collect();
        while let Some(value) = open.pop() {
            match value {
                Value::Object(inner) => self.collect(inner, resource),
                Value::Array(items) => open.extend(items),
                _ => {}
            }
        }
    }

    fn reach(
        &self,
        members: &'a Map<String, Value>,
        depth: usize,
        reached: &mut HashMap<usize, Option<Reach>>,
    ) -> Result<Reach, String> {
        match reached.get(&address(members)) {
            Some(Some(known)) => return Ok(*known),
            Some(None) => return Err("refers to itself without going into a member or an item".into()),
            None if depth > MAX_CHAIN => return Err(too_long()),
            None => reached.insert(address(members), None),
        };
        let looking = READING_KEYWORDS.iter().any(|it| members.contains_key(*it));
        let mut reach = Reach { tried: 1, idle: 0, chain: 1 };
        let mut leads = false;
        for next in self.next(members) {
            leads = true;
            let next = match next {
                Value::Object(next) => self.reach(next, depth + 1, reached)?,
                _ => Reach { tried: 1, idle: 1, chain: 1 },
            };
            reach.tried = reach.tried.saturating_add(next.tried);
            reach.idle = reach.idle.saturating_add(next.idle);
            reach.chain = reach.chain.max(next.chain + 1);
        }
        for reference in REFERENCE_KEYWORDS.iter().filter_map(|it| text(members, it)) {
            for next in self.targets(members, reference) {
                leads = true;
                let next = self.reach(next, depth + 1, reached)?;
                reach.tried = reach.tried.saturating_add(next.tried);
                reach.idle = reach.idle.saturating_add(next.idle);
                reach.chain = reach.chain.max(next.chain + 1);
            }
        }
        reach.idle += u64::from(!leads && !looking);
        if reach.chain > MAX_CHAIN {
            return Err(too_long());
        }
        if reach.tried > MAX_TRIED || reach.idle > MAX_IDLE {
            return Err(
                "has too many alternatives that lead to one another: use fewer, or refer to each once".into(),
            );
        }
        reached.insert(address(members), Some(reach));
        Ok(reach)
    }

    /// Returns the schemas that apply together with this one.
    fn next(&self, members: &'a Map<String, Value>) -> impl Iterator<Item = &'a Value> {
        let lists = LIST_KEYWORDS.iter().filter_map(|it| members.get(*it)?.as_array()).flatten();
        let single = SINGLE_KEYWORDS.iter().filter_map(|it| members.get(*it));
        let named =
            NAMED_KEYWORDS.iter().filter_map(|it| members.get(*it)?.as_object()).flat_map(Map::values);
        lists.chain(single).chain(named).filter(|it| it.is_object() || it.is_boolean())
    }

    /// Returns the possible targets of a reference.
    fn targets(&self, from: &'a Map<String, Value>, reference: &str) -> Vec<&'a Map<String, Value>> {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let own = self.objects.get(&address(from)).map(|it| it.resource);
        let last =
            |it: &str| it.split('#').next().unwrap_or_default().rsplit(['/', ':']).next().map(str::to_owned);
        let resources: Vec<_> = if uri.is_empty() {
            own.into_iter().collect()
        } else {
            self.ids.iter().filter(|it| last(it.0) == last(uri)).map(|it| it.1).collect()
        };
        if fragment.starts_with('/') {
            return resources.into_iter().filter_map(|it| below(it, fragment)).collect();
        }
        let named = self.anchors.get(fragment).into_iter().flatten().copied();
        let dynamic = if fragment.is_empty() { resources } else { Vec::new() };
        // A plain `$ref` to `#` means its resource; recursive references also lead to anchored schemas.
        if fragment.is_empty() && text(from, "$recursiveRef").is_none() {
            return dynamic;
        }
        dynamic.into_iter().chain(named).collect()
    }
}

fn too_long() -> String {
    format!("has more than {MAX_CHAIN} schemas that lead to one another in a chain")
}

/// Returns the target of a JSON Pointer.
fn below<'a>(resource: &'a Map<String, Value>, pointer: &str) -> Option<&'a Map<String, Value>> {
    let mut names = pointer.split('/').skip(1).map(|it| decoded(it).replace("~1", "/").replace("~0", "~"));
    let mut value = resource.get(&names.next()?)?;
    for name in names {
        value = match value {
            Value::Object(members) => members.get(&name)?,
            Value::Array(items) => items.get(name.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    value.as_object()
}

/// Decodes the percent escapes of a part of a URI.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = || u8::from_str_radix(std::str::from_utf8(after.get(..2)?).ok()?, 16).ok();
        match (first, hex()) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
