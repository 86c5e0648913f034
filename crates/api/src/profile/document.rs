//! Changes values of a TOML text and leaves everything else in it as the user wrote it.

use toml::{Table, Value};
use toml_edit::{DocumentMut, Item, TableLike};

/// Applies the difference between two versions of a text's values to the text. Returns none if the text is not
/// TOML, or if a value has to be stored inside something that is not a table.
pub(super) fn change(text: &str, before: &Table, after: &Table) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    if document.is_empty() {
        // The parser stores the comments of a text without values as the end of the document, so new values
        // are appended to the text itself.
        let gap = if text.trim().is_empty() { "" } else { "\n" };
        return Some(format!("{text}{gap}{}", toml::to_string(after).ok()?));
    }
    change_table(document.as_table_mut(), before, after)?;
    Some(document.to_string())
}

fn change_table(table: &mut dyn TableLike, before: &Table, after: &Table) -> Option<()> {
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        table.remove(name);
    }
    for (name, value) in after.iter().filter(|(name, value)| before.get(*name) != Some(*value)) {
        let existing = table.get_mut(name);
        match (existing, value) {
            (Some(item), Value::Table(after)) if item.is_table_like() => {
                let nothing = Table::new();
                let before = before.get(name).and_then(Value::as_table).unwrap_or(&nothing);
                change_table(item.as_table_like_mut()?, before, after)?;
            }
            (Some(Item::Value(existing)), value) => {
                let mut changed = parsed(value)?;
                // The comment after the value is part of the value's decoration.
                *changed.decor_mut() = existing.decor().clone();
                *existing = changed;
            }
            (_, value) => _ = table.insert(name, item(value)?),
        }
    }
    Some(())
}

fn parsed(value: &Value) -> Option<toml_edit::Value> {
    value.to_string().parse().ok()
}

/// Converts a value; a table gets a section of its own.
fn item(value: &Value) -> Option<Item> {
    let Value::Table(values) = value else { return Some(Item::Value(parsed(value)?)) };
    let mut table = toml_edit::Table::new();
    // A section that holds only other sections needs no line of its own.
    table.set_implicit(values.values().all(Value::is_table));
    for (name, value) in values {
        table.insert(name, item(value)?);
    }
    Some(Item::Table(table))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn changed(text: &str, edit: impl FnOnce(&mut Table)) -> String {
        let before: Table = text.parse().unwrap();
        let mut after = before.clone();
        edit(&mut after);
        let changed = change(text, &before, &after).unwrap();
        assert_eq!(changed.parse::<Table>().unwrap(), after, "{changed}");
        changed
    }

    fn section<'a>(table: &'a mut Table, name: &str) -> &'a mut Table {
        table.get_mut(name).unwrap().as_table_mut().unwrap()
    }

    #[test]
    fn changed_value_keeps_its_comment_and_its_place() {
        let text = "# top\na = 1 # one\nb = [1,\n  2] # two\n\n[c] # three\nd = \"x\" # four\n";
        let text_of = |edit: fn(&mut Table)| changed(text, edit);
        assert_eq!(text_of(|_| ()), text);
        assert_eq!(text_of(|it| _ = it.insert("a".into(), 2.into())), text.replace("= 1 ", "= 2 "));
        let renamed = text_of(|it| _ = section(it, "c").insert("d".into(), "y".into()));
        assert_eq!(renamed, text.replace("\"x\"", "\"y\""));
        assert_eq!(text_of(|it| _ = it.remove("c")), "# top\na = 1 # one\nb = [1,\n  2] # two\n");
    }

    #[test]
    fn tables_of_every_spelling_take_values() {
        for text in ["[a.b]\nc = 1 # kept\n", "a.b.c = 1 # kept\n", "a = { b = { c = 1 } } # kept\n"] {
            let changed = changed(text, |it| {
                section(section(it, "a"), "b").insert("d".into(), "x\"\n".into());
            });
            assert!(changed.contains("# kept"), "{changed}");
        }
        let typed = changed("a = 1\n", |it| _ = it.insert("a".into(), Table::new().into()));
        assert!(!typed.contains('1'));
    }

    #[test]
    fn text_of_comments_alone_stays_at_the_top() {
        assert_eq!(changed("# mine\n", |it| _ = it.insert("a".into(), 1.into())), "# mine\n\na = 1\n");
        assert_eq!(changed("", |it| _ = it.insert("a".into(), 1.into())), "a = 1\n");
    }
}
