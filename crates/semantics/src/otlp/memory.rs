//! Operations on an agent's memory: `search_memory` and those that change records, as defined by the GenAI conventions.

use super::{attributes::Attributes, keys::Key, text};

/// The operation that finds records.
pub(super) const SEARCH_OPERATION: &str = "search_memory";
/// The operations whose span contains the records that they store.
const STORE_OPERATIONS: &[&str] = &["create_memory", "update_memory", "upsert_memory"];

/// Returns the query of a search, or the records that are stored.
pub(super) fn input(attributes: &mut Attributes) -> Option<String> {
    if attributes.str(Key::OperationName).is_some_and(|it| STORE_OPERATIONS.contains(&it)) {
        return attributes.take_text(Key::MemoryRecords).map(text::readable);
    }
    attributes.take_text(Key::MemoryQuery)
}

/// Returns the records that a search found.
pub(super) fn documents(attributes: &mut Attributes) -> Option<String> {
    if attributes.str(Key::OperationName) != Some(SEARCH_OPERATION) {
        return None;
    }
    attributes.take_text(Key::MemoryRecords).map(text::readable)
}

#[cfg(test)]
mod tests {
    use super::{super::attributes::tests::attributes, *};

    #[test]
    fn memory_records_are_found_or_stored() {
        let records = r#"[{"id":"mem_1","content":"prefers dark mode"}]"#;
        let sent = |operation: &str| {
            let mut sent = attributes(&[
                ("gen_ai.operation.name", operation),
                ("gen_ai.memory.query.text", "preferences"),
                ("gen_ai.memory.records", records),
            ]);
            let documents = documents(&mut sent);
            (input(&mut sent), documents)
        };
        let text = |it: &str| Some(it.to_owned());
        assert_eq!(sent("search_memory"), (text("preferences"), text(records)));
        for operation in STORE_OPERATIONS {
            assert_eq!(sent(operation), (text(records), None), "{operation}");
        }
        assert_eq!(sent("delete_memory"), (text("preferences"), None));
    }
}
