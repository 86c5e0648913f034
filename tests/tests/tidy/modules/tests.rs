//! Tests of the rules about modules.

use super::*;

fn sources(files: &[(&str, &str)]) -> Vec<Source> {
    files.iter().map(|(path, text)| Source::of(format!("x/src/{path}"), text)).collect()
}

#[test]
fn arrow_that_is_not_in_the_table_is_reported() {
    let sources = sources(&[
        ("lib.rs", "mod low;\nmod high;\n"),
        ("low.rs", "use crate::{\n    high::{self, Thing},\n};\n"),
        ("high/mod.rs", "mod part;\nuse part::It;\n"),
        ("high/part.rs", "fn f() { super::super::low::g(crate::low::h()) }\n"),
    ]);
    let table: &[Arrows<'_>] = &[("", &[]), ("low", &[]), ("high", &["low"])];
    let found = check("x/src/", &sources, table);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|it| it.starts_with("x/src/low.rs:1: `low` imports `high`")), "{found:?}");
    let fixed: &[Arrows<'_>] = &[("", &[]), ("low", &["high"]), ("high", &["low"])];
    let found = check("x/src/", &sources, fixed);
    assert!(matches!(&found[..], [it] if it.contains("high → low → high")), "{found:?}");
}

#[test]
fn unknown_module_and_unused_entry_are_reported() {
    let sources = sources(&[("lib.rs", "mod a;\n"), ("a.rs", ""), ("b/c.rs", "use crate::a::A;\n")]);
    let table: &[Arrows<'_>] = &[("", &["a"]), ("a", &[]), ("gone", &[])];
    let found = check("x/src/", &sources, table).join("\n");
    for part in ["x/src/b/c.rs:1: this module", "lets `` import `a`", "module `gone`"] {
        assert!(found.contains(part), "{part}: {found}");
    }
}

#[test]
fn path_in_a_serde_attribute_is_an_import() {
    let attribute = "#[serde(default, deserialize_with = \"crate::b::given\")]\nstruct S;\n";
    let sources = sources(&[("a.rs", attribute), ("b.rs", "")]);
    assert_eq!(check("x/src/", &sources, &[("a", &["b"]), ("b", &[])]), Vec::<String>::new());
    let found = check("x/src/", &sources, &[("a", &[]), ("b", &[])]).join("\n");
    assert!(found.contains("x/src/a.rs:1: `a` imports `b`"), "{found}");
}

#[test]
fn longest_entry_owns_a_file_and_tests_are_left_out() {
    let unit_test = "use crate::base::B;\n#[cfg(test)]\nmod tests {\n    use crate::other::O;\n}\n";
    let sources = sources(&[
        ("lib.rs", ""),
        ("base.rs", ""),
        ("other.rs", ""),
        ("screen/mod.rs", "pub mod one;\nuse one::One;\n"),
        ("screen/one/mod.rs", unit_test),
    ]);
    let table: &[Arrows<'_>] =
        &[("", &[]), ("base", &[]), ("other", &[]), ("screen::one", &["base"]), ("screen", &["screen::one"])];
    assert_eq!(check("x/src/", &sources, table), Vec::<String>::new());
}

#[test]
fn modules_of_a_starred_entry_do_not_import_each_other() {
    let sources = sources(&[
        ("lib.rs", ""),
        ("base.rs", ""),
        ("screen/mod.rs", "use one::One;\nuse crate::base::B;\n"),
        ("screen/one/mod.rs", "use crate::base::B;\nuse crate::screen::one::keys::K;\n"),
        ("screen/one/keys.rs", ""),
        ("screen/two.rs", "use crate::screen::one::One;\n"),
    ]);
    let table: &[Arrows<'_>] =
        &[("", &[]), ("base", &[]), ("screen::*", &["base"]), ("screen", &["base", "screen::*"])];
    let found = check("x/src/", &sources, table);
    assert!(matches!(&found[..], [it] if it.contains("`screen::two` imports `screen::one`")), "{found:?}");
}
