//! Worked examples of each format; the tests of the data sets are in `form/tests.rs`.

use serde_json::{Value, json};

use super::*;
use crate::Verdict;

fn judge(config: Value, output: &str) -> Verdict {
    let config = config.as_object().unwrap();
    DEFINITION
        .compile(config)
        .unwrap()
        .evaluate(&Subject { output: Some(output.into()), ..Subject::default() })
        .unwrap()
}

fn check(config: Value, output: &str, expected: bool) {
    let verdict = judge(config.clone(), output);
    assert_eq!(verdict.score == 1.0, expected, "{config} on {output:?}: {}", verdict.reasoning);
}

#[test]
fn each_format_accepts_and_rejects_texts() {
    check(json!({"format": "json"}), " [1] ", true);
    check(json!({"format": "json"}), "[1,]", false);
    check(json!({"format": "json", "root": "object"}), "[1]", false);
    check(json!({"format": "json", "root": "array"}), "[1]", true);
    check(json!({"format": "json"}), "```json\n1\n```", false);
    check(json!({"format": "json", "extract": true}), "So:\n```json\n1\n```", true);
    check(json!({"format": "yaml"}), "a: 1\nb:\n  - c", true);
    check(json!({"format": "yaml"}), "a: b: c", false);
    check(json!({"format": "yaml"}), "Just words.", true);
    check(json!({"format": "yaml", "root": "object"}), "Just words.", false);
    check(json!({"format": "yaml", "root": "array"}), "- a", true);
    check(json!({"format": "yaml"}), "", false);
    check(json!({"format": "yaml", "extract": true}), "```yaml\na: [1\n```", false);
    check(json!({"format": "xml"}), "\n<a><b/></a>\n", true);
    check(json!({"format": "xml"}), "<a><b></a>", false);
    check(json!({"format": "xml"}), "<x:a/>", false);
    check(json!({"format": "xml", "namespaces": false}), "<x:a/>", true);
    check(json!({"format": "csv"}), "a,b\n1,\"x\"\"y\"\n", true);
    check(json!({"format": "csv"}), "a,b\n1\n", false);
    check(json!({"format": "csv", "delimiter": ";", "header": ["a", "b"], "min_rows": 1}), "a;b\n1;2", true);
    check(json!({"format": "csv", "header": ["a", "c"]}), "a,b\n1,2", false);
    check(json!({"format": "csv", "header": ["a"], "min_rows": 1}), "a", false);
    check(json!({"format": "csv", "columns": 2}), "Here is your table:", false);
    check(json!({"format": "markdown_table"}), "| a | b |\n|---|:-:|\n| 1 | 2 |", true);
    check(json!({"format": "markdown_table"}), "| a | b |\n| 1 | 2 |", false);
    check(json!({"format": "markdown_table"}), "Table:\n\n| a |\n|---|", false);
    check(json!({"format": "markdown_table", "header": ["a", "b"], "min_rows": 1}), "a|b\n-|-\n1|2", true);
    check(json!({"format": "markdown_table"}), "a|b\n-|-\n1|2|3", false);
    check(json!({"format": "markdown_table", "ragged": true}), "a|b\n-|-\n1|2|3", true);
    check(json!({"format": "regex", "pattern": "^\\d+$"}), "12", true);
    check(json!({"format": "regex", "pattern": "\\d", "full_match": true}), "12", false);
    check(json!({"format": "regex", "pattern": ""}), "12", true);
    check(json!({"format": "regex", "pattern": "", "full_match": true}), "12", false);
    check(json!({"format": "yaml"}), "# nothing but\n# comments\n", true);
    check(json!({"format": "yaml", "root": "object"}), "# nothing", false);
    check(json!({"format": "yaml"}), "a: 1\u{b}", false);
    for blank in ['\u{b}', '\u{c}', '\u{a0}', '\u{2028}'] {
        check(json!({"format": "xml"}), &format!("{blank}<a/>"), false);
        check(json!({"format": "xml"}), &format!("<a/>{blank}"), false);
        check(json!({"format": "json"}), &format!("{blank}[1]"), false);
        check(json!({"format": "json"}), &format!("[1]{blank}"), false);
    }
    for list in ["a | b\n- | -", "a | b\n- | -\n1 | 2", "a | b\n- |-"] {
        check(json!({"format": "markdown_table"}), list, false);
    }
    check(json!({"format": "markdown_table"}), "| a | b |\n| - | - |", true);
    check(json!({"format": "length", "max_words": 2}), "one two three", false);
    check(json!({"format": "length", "min_chars": 3, "max_chars": 3}), "äöü", true);
}

#[test]
fn all_of_several_formats_are_required() {
    let both =
        json!({"all_of": [{"format": "json", "root": "object"}, {"format": "length", "max_chars": 10}]});
    check(both.clone(), "{\"a\": 1}", true);
    let verdict = judge(both, "[1, 2, 3, 4]");
    assert_eq!(
        verdict.reasoning,
        "the text is not JSON of the required format: the outermost value is not an object; the length of the text is out of bounds: it has \
         12 characters, more than 10"
    );
}

#[test]
fn invalid_config_problem_names_field() {
    let check = |config: Value, field: &str, part: &str| {
        let problems = DEFINITION.check(config.as_object().unwrap()).unwrap_err();
        assert_eq!(problems[0].field, field, "{problems:?}");
        assert!(problems[0].message.contains(part), "{problems:?}");
    };
    check(json!({}), "format", "is required");
    check(json!({"format": "toml"}), "format", "is not one of");
    check(json!({"format": "json", "delimiter": ";"}), "delimiter", "is not an option of json");
    check(json!({"format": "csv", "delimiter": "\""}), "delimiter", "must be one");
    check(json!({"format": "csv", "delimiter": "é"}), "delimiter", "must be one");
    check(json!({"format": "regex"}), "pattern", "is required");
    check(json!({"format": "regex", "pattern": "(?=a)"}), "pattern", "look-around");
    check(json!({"format": "length"}), "", "at least one of");
    check(json!({"format": "json", "all_of": []}), "all_of", "");
    check(json!({"all_of": [{"format": "json"}, {"format": "regex"}]}), "all_of.1.pattern", "is required");
    check(json!({"all_of": [{"format": "json", "pattern": "a"}]}), "all_of.0.pattern", "is not an option");
    check(json!({"all_of": [{"root": "any"}]}), "all_of.0.format", "is required");
    check(json!({"all_of": [{"format": "json"}], "root": "any"}), "root", "beside its format");
}

#[test]
fn ten_megabytes_are_evaluated_in_every_format() {
    let configs = ["json", "yaml", "xml", "csv", "markdown_table"].map(|it| json!({"format": it}));
    for config in configs {
        for text in ["x", "a,b\n", "|a|\n", "\"", "<a>", "- a\n", "&a;", "\u{0}"] {
            judge(config.clone(), &text.repeat(2_000_000 / text.len()));
        }
    }
    for (format, text) in [("json", "[1],"), ("csv", "1,2\n"), ("markdown_table", "|-|\n"), ("xml", "<a/>")] {
        judge(json!({"format": format}), &text.repeat(2_500_000));
    }
}
