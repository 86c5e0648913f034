//! A JSON representation that counts accesses, so that every check ends.
//!
//! A schema of a few lines can make a validator run for exponential time (alternatives that lead to
//! alternatives, once for each level of the JSON), or recurse as deep as its chain of references. The
//! validator cannot be interrupted, but it reads the JSON through [`Node`]. This representation counts the
//! accesses and unwinds when the limit of steps or of stack is reached. [`within`] catches the unwinding; no
//! panic is reported.

use std::{
    any::Any,
    borrow::Cow,
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    ptr,
};

use jsonschema::{
    JsonType,
    json::{Array, Json, Node, NodeIdentity, Object, cmp, unique},
};
use serde_json::{Map, Number, Value};

use crate::budget;

/// Maximum stack of a check in bytes; the server's threads have 2 MiB.
const MAX_STACK_BYTES: usize = 768 * 1024;
/// Number of bytes of a text that are read in one step.
const TEXT_BYTES_PER_STEP: usize = 8;
/// Units of work for a step (see [`budget`]).
const STEP_UNITS: u64 = 10;
/// Number of steps for a reported error, which takes memory.
const REPORT_STEPS: u64 = 100;

/// Visits of regular expression states that count as one step.
const STATES_PER_STEP: u64 = 64;
/// Maximum number of visits for one member name, because that search cannot be interrupted.
const MAX_NAME_VISITS: u64 = 50_000_000;

thread_local! {
    static STEPS_LEFT: Cell<u64> = const { Cell::new(0) };
    /// Number of regular expression states that may be visited for each byte of a name.
    static STATES_PER_BYTE: Cell<u64> = const { Cell::new(0) };
    static STACK_BOTTOM: Cell<usize> = const { Cell::new(0) };
}

/// The error of a check that exceeded its limit of steps or of stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StepLimitExceeded;

/// Runs `work` with a limit of `steps` accesses to counted JSON. The regular expressions for member names
/// have `states_per_byte` states in total.
pub(super) fn within<T>(
    steps: u64,
    states_per_byte: u64,
    work: impl FnOnce() -> T,
) -> Result<T, StepLimitExceeded> {
    let before =
        (STEPS_LEFT.replace(steps), STACK_BOTTOM.replace(here()), STATES_PER_BYTE.replace(states_per_byte));
    // Unwinding drops unfinished work, and checking does not change a validator.
    let done = catch_unwind(AssertUnwindSafe(work));
    STEPS_LEFT.set(before.0);
    STACK_BOTTOM.set(before.1);
    STATES_PER_BYTE.set(before.2);
    done.map_err(|thrown: Box<dyn Any + Send>| match thrown.downcast::<StepLimitExceeded>() {
        Ok(exhausted) => *exhausted,
        Err(other) => resume_unwind(other),
    })
}

/// Returns the approximate address of the top of the stack.
#[inline(never)]
fn here() -> usize {
    let mark = 0_u8;
    ptr::from_ref(&mark).addr()
}

/// Unwinds if the stack limit is reached.
fn stand() {
    if STACK_BOTTOM.get().abs_diff(here()) > MAX_STACK_BYTES {
        resume_unwind(Box::new(StepLimitExceeded));
    }
}

#[inline]
fn spend(steps: u64) {
    budget::spend(STEP_UNITS * steps);
    match STEPS_LEFT.get().checked_sub(steps) {
        Some(left) => STEPS_LEFT.set(left),
        None => resume_unwind(Box::new(StepLimitExceeded)),
    }
}

fn spend_text(text: &str) {
    spend(1 + (text.len() / TEXT_BYTES_PER_STEP) as u64);
}

fn spend_name(name: &str) {
    spend_text(name);
    let visits = STATES_PER_BYTE.get().saturating_mul(name.len() as u64);
    if visits > MAX_NAME_VISITS {
        resume_unwind(Box::new(StepLimitExceeded));
    }
    spend(visits / STATES_PER_STEP);
}

/// The counting JSON representation.
pub(super) struct CountedJson;

/// A JSON value that counts accesses.
#[derive(Clone, Copy)]
pub(super) struct CountedNode<'a>(pub &'a Value);

impl Json for CountedJson {
    type Node<'a> = CountedNode<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    const KEYS_PER_LOOKUP: usize = 2;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(CountedNode<'_>) -> T) -> T {
        *buffer = Value::String(string.to_owned());
        f(CountedNode(buffer))
    }
}

impl<'a> Node<'a, CountedJson> for CountedNode<'a> {
    type Object = Members<'a>;
    type Array = Elements<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Members<'a>> {
        stand();
        spend(1);
        self.0.as_object().map(Members)
    }

    fn as_array(&self) -> Option<Elements<'a>> {
        stand();
        spend(1);
        self.0.as_array().map(|it| Elements(it))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        spend(1);
        let text = self.0.as_str()?;
        spend_text(text);
        Some(Cow::Borrowed(text))
    }

    fn as_number(&self) -> Option<&'a Number> {
        spend(1);
        match self.0 {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    fn as_boolean(&self) -> Option<bool> {
        spend(1);
        self.0.as_bool()
    }

    fn is_null(&self) -> bool {
        spend(1);
        self.0.is_null()
    }

    fn json_type(&self) -> JsonType {
        spend(1);
        match self.0 {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn string_length(&self) -> Option<u64> {
        spend(1);
        let text = self.0.as_str()?;
        spend_text(text);
        Some(text.chars().count() as u64)
    }

    fn equals_value(&self, expected: &Value) -> bool {
        spend(1);
        cmp::equal(self.0, expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        spend(REPORT_STEPS);
        Cow::Borrowed(self.0)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        // The validator calls this function when it follows a reference, where recursion begins.
        stand();
        spend(1);
        Some(NodeIdentity::new(ptr::from_ref::<Value>(self.0).addr()))
    }
}

/// A JSON object that counts accesses.
pub(super) struct Members<'a>(&'a Map<String, Value>);

impl<'a> Object<'a, CountedJson> for Members<'a> {
    type Node = CountedNode<'a>;
    type MemberName = &'a str;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<CountedNode<'a>> {
        spend(1);
        self.0.get(key.as_str()).map(CountedNode)
    }

    fn members(&self) -> MembersIter<'a> {
        MembersIter(self.0.iter())
    }
}

/// The members of an object, in order.
pub(super) struct MembersIter<'a>(serde_json::map::Iter<'a>);

impl<'a> Iterator for MembersIter<'a> {
    type Item = (&'a str, CountedNode<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.0.next()?;
        spend_name(name);
        Some((name.as_str(), CountedNode(value)))
    }
}

/// A JSON array that counts accesses.
pub(super) struct Elements<'a>(&'a [Value]);

impl<'a> Array<'a, CountedJson> for Elements<'a> {
    type Node = CountedNode<'a>;
    type ElementsIter = ElementsIter<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> ElementsIter<'a> {
        ElementsIter(self.0.iter())
    }

    fn is_unique(&self) -> bool {
        spend(1 + self.0.len() as u64);
        unique::is_unique(self.0)
    }
}

/// The elements of an array, in order.
pub(super) struct ElementsIter<'a>(std::slice::Iter<'a, Value>);

impl<'a> Iterator for ElementsIter<'a> {
    type Item = CountedNode<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        spend(1);
        self.0.next().map(CountedNode)
    }
}
