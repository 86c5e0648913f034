//! YAML 1.2.
//!
//! The parser produces a stream of events and builds no value, so nested aliases do not multiply the work.

use saphyr_parser::{Event, Parser};

use super::place;
use crate::budget;

/// Approximate units of work to parse one event (see [`budget`]).
const EVENT_UNITS: u64 = 500;
/// Maximum nesting of collections.
const MAX_DEPTH: usize = 1_000;

/// The type of a document's root node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outermost {
    /// A mapping of keys to values.
    Mapping,
    /// A sequence of values.
    Sequence,
    /// A scalar: text, number or null.
    Scalar,
}

/// Returns the types of the documents in a YAML stream.
///
/// # Errors
/// Returns the reason with its position, if the text is not valid YAML.
pub(crate) fn documents(text: &str) -> Result<Vec<Outermost>, String> {
    // The parser accepts raw control characters, which YAML allows only as escapes.
    let is_control = |it: char| it < ' ' && !matches!(it, '\t' | '\n' | '\r');
    if let Some(at) = text.find(is_control) {
        return Err(format!("{}: a control character, which YAML does not allow", place(text, at)));
    }
    let mut found = Vec::new();
    let mut open = 0_usize;
    for event in Parser::new_from_str(text) {
        budget::spend(EVENT_UNITS);
        let (event, span) = event.map_err(|it| {
            let at = it.marker();
            format!("line {} column {}: {}", at.line(), at.col() + 1, it.info())
        })?;
        let outermost = match event {
            Event::MappingStart(..) => Some(Outermost::Mapping),
            Event::SequenceStart(..) => Some(Outermost::Sequence),
            Event::Scalar(..) | Event::Alias(_) => Some(Outermost::Scalar),
            _ => None,
        };
        if open == 0 {
            found.extend(outermost);
        }
        match event {
            Event::MappingStart(..) | Event::SequenceStart(..) => open += 1,
            Event::MappingEnd | Event::SequenceEnd => open = open.saturating_sub(1),
            _ => {}
        }
        if open > MAX_DEPTH {
            return Err(format!("line {}: it nests more than {MAX_DEPTH} levels", span.start.line()));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn yaml_documents_have_an_outermost_type() {
        assert_eq!(documents("a: 1\nb: [1, 2]"), Ok(vec![Outermost::Mapping]));
        assert_eq!(documents("- a\n- b: {c: d}"), Ok(vec![Outermost::Sequence]));
        assert_eq!(documents("plain text"), Ok(vec![Outermost::Scalar]));
        assert_eq!(
            documents("---\na: 1\n---\n- 2\n...\n"),
            Ok(vec![Outermost::Mapping, Outermost::Sequence])
        );
        assert_eq!(documents("# nothing"), Ok(vec![]));
        for text in
            ["a: b: c", "a:\n\tb: 1", "[1, 2", "\"a", "a: *none", "- a\n b: 1\n  - c", "key: [a\n]]", "@a"]
        {
            assert!(documents(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn evaluation_of_hostile_texts_terminates() {
        let mut bomb = String::from("a0: &a0 [x, x]\n");
        for i in 1..30 {
            bomb.push_str(&format!("a{i}: &a{i} [*a{p}, *a{p}, *a{p}, *a{p}]\n", p = i - 1));
        }
        assert_eq!(documents(&bomb), Ok(vec![Outermost::Mapping]));
        for text in [
            "[".repeat(1_000_000),
            "- ".repeat(1_000_000),
            "{".repeat(1_000_000),
            "? ".repeat(200_000),
            "a: ".repeat(200_000),
            "\"".to_owned() + &"x".repeat(2_000_000),
            "\u{0}".repeat(1_000),
            "&a ".repeat(100_000),
            "!".repeat(100_000),
            "|\n".to_owned() + &" x\n".repeat(200_000),
        ] {
            // The test only checks that parsing ends, without an endless loop or exhausted memory.
            _ = documents(&text);
        }
    }
}
