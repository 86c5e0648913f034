//! Lists that conventions flatten into attributes: `…0.message.role`, `…0.message.content`.
//!
//! [`assemble`] restores them as JSON. The path segments that are mere wrappers are the same in every
//! convention that does this.

use std::collections::{BTreeMap, btree_map::Entry};

use opentelemetry_proto::tonic::common::v1::any_value::Value;

use super::{text::push_json_str, value::write_json};

/// Maximum depth of a path; no convention uses more than eight segments.
const MAX_PATH_DEPTH: usize = 16;
/// Maximum number of fields of one object: look-up is linear, and no message has a tenth of these.
const MAX_OBJECT_FIELDS: usize = 256;

enum IndexedNode {
    Leaf(Value),
    Object(Vec<(String, IndexedNode)>),
    List(BTreeMap<u32, IndexedNode>),
}

/// Assembles the JSON list from paths and values; `None` for an empty list.
pub(super) fn assemble(attributes: Vec<(String, Value)>) -> Option<String> {
    let mut root = IndexedNode::List(BTreeMap::new());
    for (path, value) in attributes {
        let words: Vec<&str> = path.splitn(MAX_PATH_DEPTH, '.').filter(|word| !is_wrapping(word)).collect();
        insert(&mut root, &words, value);
    }
    if matches!(&root, IndexedNode::List(items) if items.is_empty()) {
        return None;
    }
    let mut out = String::new();
    write(&mut out, root);
    Some(out)
}

fn is_wrapping(word: &str) -> bool {
    matches!(word, "message" | "message_content" | "tool_call" | "document")
}

/// Inserts a value. Values that contradict the shape seen first are dropped.
fn insert(node: &mut IndexedNode, path: &[&str], value: Value) {
    let Some((word, rest)) = path.split_first() else { return };
    let next = match (node, word.parse::<u32>()) {
        (IndexedNode::List(items), Ok(index)) => match items.entry(index) {
            Entry::Occupied(item) => item.into_mut(),
            Entry::Vacant(item) => {
                item.insert(new_node(rest, value));
                return;
            }
        },
        (IndexedNode::Object(fields), _) => match fields.iter().position(|(name, _)| name == word) {
            Some(at) => &mut fields[at].1,
            None if fields.len() == MAX_OBJECT_FIELDS => return,
            None => {
                fields.push(((*word).to_owned(), new_node(rest, value)));
                return;
            }
        },
        _ => return,
    };
    insert(next, rest, value);
}

/// Creates a node that contains the value at the path.
fn new_node(path: &[&str], value: Value) -> IndexedNode {
    let Some(word) = path.first() else { return IndexedNode::Leaf(value) };
    let mut node = if word.parse::<u32>().is_ok() {
        IndexedNode::List(BTreeMap::new())
    } else {
        IndexedNode::Object(Vec::new())
    };
    insert(&mut node, path, value);
    node
}

fn write(out: &mut String, node: IndexedNode) {
    match node {
        IndexedNode::Leaf(value) => write_json(out, &value),
        IndexedNode::Object(mut fields) => {
            drop_repeated_contents(&mut fields);
            out.push('{');
            for (at, (name, node)) in fields.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                push_json_str(out, &name);
                out.push(':');
                write(out, node);
            }
            out.push('}');
        }
        IndexedNode::List(items) => {
            out.push('[');
            for (at, node) in items.into_values().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(out, node);
            }
            out.push(']');
        }
    }
}

/// Removes a message's `contents` if its `content` has the same text: some senders send both.
fn drop_repeated_contents(fields: &mut Vec<(String, IndexedNode)>) {
    let field = |name: &str| fields.iter().find(|it| it.0 == name).map(|it| &it.1);
    if let (Some(IndexedNode::Leaf(Value::StringValue(content))), Some(IndexedNode::List(parts))) =
        (field("content"), field("contents"))
        && texts(parts).is_some_and(|it| it == *content)
    {
        fields.retain(|it| it.0 != "contents");
    }
}

/// Returns the text of parts that are all text.
fn texts(parts: &BTreeMap<u32, IndexedNode>) -> Option<String> {
    let mut texts = Vec::with_capacity(parts.len());
    for part in parts.values() {
        let IndexedNode::Object(fields) = part else { return None };
        for (name, value) in fields {
            match (name.as_str(), value) {
                ("text", IndexedNode::Leaf(Value::StringValue(text))) => texts.push(text.as_str()),
                ("type", IndexedNode::Leaf(Value::StringValue(kind))) if kind.contains("text") => {}
                _ => return None,
            }
        }
    }
    Some(texts.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pairs: &[(&str, &str)], expected: Option<&str>) {
        let given = pairs
            .iter()
            .map(|(path, text)| ((*path).to_owned(), Value::StringValue((*text).to_owned())))
            .collect();
        assert_eq!(assemble(given).as_deref(), expected);
    }

    #[test]
    fn flattened_messages_are_assembled_in_order() {
        check(
            &[("1.message.role", "assistant"), ("0.message.role", "user"), ("0.message.content", "Hi")],
            Some(r#"[{"role":"user","content":"Hi"},{"role":"assistant"}]"#),
        );
        check(
            &[
                ("0.message.tool_calls.0.tool_call.id", "c1"),
                ("0.message.tool_calls.0.tool_call.function.name", "f"),
                ("0.message.contents.0.message_content.text", "a"),
            ],
            Some(r#"[{"tool_calls":[{"id":"c1","function":{"name":"f"}}],"contents":[{"text":"a"}]}]"#),
        );
    }

    #[test]
    fn contents_that_repeat_content_are_dropped() {
        let parts = "0.message.contents.0.message_content.text";
        check(
            &[("0.message.role", "user"), (parts, "Hi"), ("0.message.content", "Hi")],
            Some(r#"[{"role":"user","content":"Hi"}]"#),
        );
        check(
            &[(parts, "Hi"), ("0.message.content", "Hello")],
            Some(r#"[{"contents":[{"text":"Hi"}],"content":"Hello"}]"#),
        );
        check(
            &[
                (parts, "Hi"),
                ("0.message.contents.1.message_content.image.image.url", "u"),
                ("0.message.content", "Hi"),
            ],
            Some(r#"[{"contents":[{"text":"Hi"},{"image":{"image":{"url":"u"}}}],"content":"Hi"}]"#),
        );
    }

    #[test]
    fn malformed_paths_are_dropped() {
        check(&[], None);
        check(&[("x.role", "user")], None);
        check(
            &[("0.a", "1"), ("0.a.b", "2"), ("0", "3"), ("4294967295.a", "4")],
            Some(r#"[{"a":"1"},{"a":"4"}]"#),
        );
    }
}
