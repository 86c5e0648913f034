//! Tests of redaction: values of 40 kinds in texts and JSON, and hostile patterns and texts.

use api::project::RedactionPattern;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn settings(detectors: &[&str], patterns: &[(&str, &str)]) -> RedactionSettings {
    let pattern = |it: &(&str, &str)| RedactionPattern { name: it.0.to_owned(), pattern: it.1.to_owned() };
    RedactionSettings {
        detectors: detectors.iter().map(|it| (*it).to_owned()).collect(),
        patterns: patterns.iter().map(pattern).collect(),
    }
}

fn redactor(detectors: &[&str], patterns: &[(&str, &str)]) -> Redactor {
    Redactor::new(&settings(detectors, patterns)).unwrap()
}

fn both() -> Redactor {
    redactor(&["all"], &[("employee_id", r"\bEMP-[0-9]{6}\b")])
}

fn redact(redactor: &Redactor, text: &str) -> String {
    redactor.text(text, &mut RedactionCounts::new()).unwrap_or_else(|| text.to_owned())
}

#[track_caller]
fn redacts(text: &str, expected: &str) {
    assert_eq!(redact(&both(), text), expected);
}

#[test]
fn value_of_each_detector_is_masked() {
    for (value, kind) in [
        ("jane.roe@acme.io", "email"),
        ("jane.roe@example.com", "email"),
        ("jane [at] acme [dot] io", "email"),
        ("+49 30 901820", "phone"),
        ("4111 1111 1111 1111", "payment_card"),
        ("DE89370400440532013000", "iban"),
        ("856-45-6789", "national_id"),
        ("84.17.52.201", "ip_address"),
        ("2a00:1450:4001:81b::200e", "ip_address"),
        ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "secret"),
        ("EMP-004711", "employee_id"),
    ] {
        let text = format!("Before, {value} after.");
        let mut counts = RedactionCounts::new();
        let redacted = both().text(&text, &mut counts).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(redacted, format!("Before, [REDACTED:{kind}] after."));
        assert_eq!(counts, RedactionCounts::from([(kind.to_owned(), 1)]), "{text}");
    }
}

#[test]
fn text_without_values_is_unchanged() {
    for text in [
        "",
        "The weather is nice.",
        "gen_ai.operation.name",
        r#"{"a": [1, 2.50, null, true], "b\n": "\u00e9"}"#,
        "Order 4711, 3 items, 2026-01-31",
        "{not json",
        "\"",
        "[",
        r#""\"#,
        r#""\u"#,
    ] {
        assert_eq!(both().text(text, &mut RedactionCounts::new()), None, "{text}");
    }
}

#[test]
fn only_the_configured_kinds_are_masked() {
    let emails = redactor(&["email"], &[]);
    assert_eq!(
        redact(&emails, "joe@acme.io 4111111111111111 EMP-004711"),
        "[REDACTED:email] 4111111111111111 EMP-004711"
    );
    let nothing = redactor(&[], &[]);
    assert_eq!(nothing.text("joe@acme.io", &mut RedactionCounts::new()), None);
}

#[test]
fn json_outside_of_masked_strings_keeps_its_bytes() {
    redacts(
        "{ \"to\" : \"joe@acme.io\",\n\t\"n\":1.50e3,\"é\\u00e9\":\"a\\/b\" }",
        "{ \"to\" : \"[REDACTED:email]\",\n\t\"n\":1.50e3,\"é\\u00e9\":\"a\\/b\" }",
    );
}

#[test]
fn escaped_values_in_json_are_masked() {
    redacts(r#"{"a":"x joe\u0040acme.io y"}"#, r#"{"a":"x [REDACTED:email] y"}"#);
    redacts(r#"{"a":"\u006a\u006f\u0065\u0040acme.io"}"#, r#"{"a":"[REDACTED:email]"}"#);
    redacts(r#"{"a":"\n\"EMP\u002d004711\" é"}"#, r#"{"a":"\n\"[REDACTED:employee_id]\" é"}"#);
    redacts(r#"{"a":"\ud83d\ude00 joe@acme.io \\ b"}"#, "{\"a\":\"\u{1f600} [REDACTED:email] \\\\ b\"}");
}

#[test]
fn json_in_json_is_redacted_at_every_depth() {
    let mut text = json!({"password": "hunter22", "mail": "joe@acme.io", "id": "EMP-004711"}).to_string();
    for _ in 0..4 {
        text = json!({"arguments": text, "é": 1}).to_string();
        let redacted = redact(&both(), &text);
        for secret in ["hunter22", "joe", "004711"] {
            assert!(!redacted.contains(secret), "{redacted}");
        }
        let mut value: Value = serde_json::from_str(&redacted).unwrap();
        while let Some(inner) = value["arguments"].as_str() {
            value = serde_json::from_str(inner).unwrap();
        }
        assert_eq!(
            value,
            json!({"password": "[REDACTED:secret]", "mail": "[REDACTED:email]", "id": "[REDACTED:employee_id]"})
        );
    }
}

#[test]
fn escapes_within_json_in_json_are_masked() {
    let inner = r#"{"mail":"joe\u0040acme.io"}"#;
    let text = json!({"arguments": inner}).to_string();
    assert!(text.contains(r"\\u0040"));
    let expected = json!({"arguments": r#"{"mail":"[REDACTED:email]"}"#}).to_string();
    redacts(&text, &expected);
}

#[test]
fn keys_are_masked_and_stay_different() {
    redacts(
        r#"{"a@acme.io":1,"b@acme.io":{"c@acme.io":2},"x":3}"#,
        r#"{"[REDACTED:email]":1,"[REDACTED:email]_2":{"[REDACTED:email]":2},"x":3}"#,
    );
}

#[test]
fn numbers_in_json_become_placeholders() {
    redacts(r#"{"card":4111111111111111,"n":12}"#, r#"{"card":"[REDACTED:payment_card]","n":12}"#);
    let digits = redactor(&[], &[("account", "[0-9]{8}")]);
    assert_eq!(redact(&digits, "[12345678, 1]"), r#"["[REDACTED:account]", 1]"#);
    assert_eq!(digits.json_strings("[12345678]", &mut RedactionCounts::new()), None);
    let strings = digits.json_strings(r#"[12345678,"12345678"]"#, &mut RedactionCounts::new());
    assert_eq!(strings.as_deref(), Some(r#"[12345678,"[REDACTED:account]"]"#));
}

#[test]
fn label_in_json_key_or_attribute_key_counts() {
    redacts(r#"{"password":"hunter22"}"#, r#"{"password":"[REDACTED:secret]"}"#);
    redacts(r#"{"ssn":856456789}"#, r#"{"ssn":"[REDACTED:national_id]"}"#);
    let labelled = |label: &str, text: &str| both().labelled_text(label, text, &mut RedactionCounts::new());
    assert_eq!(labelled("ssn", "856456789").as_deref(), Some("[REDACTED:national_id]"));
    assert_eq!(labelled("user.password", "hunter22").as_deref(), Some("[REDACTED:secret]"));
    assert_eq!(labelled("note", "856456789"), None);
    assert_eq!(labelled("note", "EMP-004711").as_deref(), Some("[REDACTED:employee_id]"));
}

#[test]
fn ids_of_calls_are_no_telephone_numbers() {
    for text in
        [r#"{"tool_call_id":"1234567890","call_id":2345678901}"#, r#"{"tool_calls":[{"id":"3456789012"}]}"#]
    {
        assert_eq!(both().text(text, &mut RedactionCounts::new()), None, "{text}");
    }
    assert_eq!(both().labelled_text("gen_ai.tool.call.id", "1234567890", &mut RedactionCounts::new()), None);
    redacts(r#"{"phone":2345678901}"#, r#"{"phone":"[REDACTED:phone]"}"#);
    redacts(r#"{"tool_call":{"phone":2345678901}}"#, r#"{"tool_call":{"phone":"[REDACTED:phone]"}}"#);
    redacts(
        r#"{"call_id":"x","callback_phone":"2345678901"}"#,
        r#"{"call_id":"x","callback_phone":"[REDACTED:phone]"}"#,
    );
    assert_eq!(both().labelled_text("toolCallId", "1234567890", &mut RedactionCounts::new()), None);
    let labelled = |label, text| both().labelled_text(label, text, &mut RedactionCounts::new());
    assert_eq!(labelled("callback_password", "hunter22").as_deref(), Some("[REDACTED:secret]"));
    assert_eq!(labelled("callback_ssn", "856456789").as_deref(), Some("[REDACTED:national_id]"));
}

#[test]
fn value_of_a_secret_name_is_masked_as_a_whole() {
    for value in [r#""correct horse battery""#, r#""a""#, "1234", r#""x\ny""#, r#""{\"a\":1}""#] {
        redacts(&format!(r#"{{"a":1,"password": {value} }}"#), r#"{"a":1,"password": "[REDACTED:secret]" }"#);
    }
    redacts(r#"{"pass\u0077ord":"x"}"#, r#"{"pass\u0077ord":"[REDACTED:secret]"}"#);
    let inner = json!({"user": "u", "password": "plain words", "n": [1]}).to_string();
    let expected = json!({"user": "u", "password": "[REDACTED:secret]", "n": [1]}).to_string();
    redacts(&json!({"arguments": inner}).to_string(), &json!({"arguments": expected}).to_string());
    for text in [
        r#"{"password":"","secret":null,"api_key":true,"password":{"type":"string"}}"#,
        r#"{"max_tokens":4096,"total_tokens":1234567,"token_count":12345678,"time_to_first_token":0.25}"#,
        r#"{"usage":{"prompt_tokens":11,"completion_tokens":22,"prompt_tokens_details":{"cached_tokens":3}}}"#,
        r#"{"content":[{"token":"Hello","logprob":-0.1,"bytes":[72]},{"token":" world"},{"token":50256}]}"#,
        r#"{"password":"[REDACTED:secret]"}"#,
    ] {
        assert_eq!(both().text(text, &mut RedactionCounts::new()), None, "{text}");
    }
    let labelled = |label, text| both().labelled_text(label, text, &mut RedactionCounts::new());
    assert_eq!(labelled("app.password", "plain words").as_deref(), Some("[REDACTED:secret]"));
    assert_eq!(labelled("gen_ai.usage.output_tokens", "12345678"), None);
    assert!(!both().searches_small_numbers("pin") && both().searches_small_numbers("app.password"));
    for (pattern, is_number) in
        [("[0-9]{4}", true), ("v?[0-9.]{3}", true), ("EMP-[0-9]{6}", false), ("[f-h]{3}|xyz", false)]
    {
        let redactor = redactor(&[], &[("a", pattern)]);
        assert_eq!(redactor.searches_small_numbers("pin"), is_number, "{pattern}");
    }
}

#[test]
fn numbers_beside_signs_and_with_a_zero_fraction_are_masked() {
    redacts(
        "pay/4111111111111111 id-4111111111111111",
        "pay/[REDACTED:payment_card] id-[REDACTED:payment_card]",
    );
    redacts("user_DE89370400440532013000", "user_[REDACTED:iban]");
    redacts("**84.17.52.201** ~4111111111111111~", "**[REDACTED:ip_address]** ~[REDACTED:payment_card]~");
    redacts(r#"{"n":4111111111111111.0}"#, r#"{"n":"[REDACTED:payment_card]"}"#);
    redacts("lib-24.117.33.120 3.4111111111111111", "lib-24.117.33.120 3.4111111111111111");
}

#[test]
fn percent_encoded_address_is_masked() {
    redacts("https://x.io/?to=joe%40acme.io&a=50%", "https://x.io/?to=[REDACTED:email]&a=50%");
    redacts(r#"{"to":"joe%40acme.io\n"}"#, r#"{"to":"[REDACTED:email]\n"}"#);
}

#[test]
fn numbers_of_texts_in_records_are_masked() {
    let record = json!({"id": 12345678, "input": json!({"account": 12345678}).to_string()}).to_string();
    let digits = redactor(&["all"], &[("account", "[0-9]{8}")]);
    let redacted = digits.json_strings(&record, &mut RedactionCounts::new()).unwrap();
    let inner = json!({"account": "[REDACTED:account]"}).to_string();
    assert_eq!(redacted, json!({"id": 12345678, "input": inner}).to_string());
}

#[test]
fn short_text_with_label_is_masked_like_one_text() {
    let labels = ["session.id", "phone", "ssn", "iban", "passport", "acct 1234567", "authorization"];
    let secret_labels =
        ["apiCallKey", "accessCallKey", "ｐａｓｓｗｏｒｄ", "pass\u{200b}word", r"pass\u0077ord"];
    for label in labels.into_iter().chain(secret_labels) {
        for text in [
            "gpt-4o",
            "POST",
            "v1.2.3",
            "a/b/c",
            "2026",
            "AB123C",
            "hunter22",
            "qWeRtYuIoPaSdFgH1j",
            "NO09ABCDEFGHIJK",
        ] {
            let labelled = format!("{}: {text}", without_call(label));
            let ranges = both().detected(&labelled);
            let is_found = ranges.iter().any(|it| it.end > labelled.len() - text.len());
            let is_masked = both().labelled_text(label, text, &mut RedactionCounts::new()).is_some();
            assert_eq!(is_masked, is_found || both().masks_whole(label, text), "{label} {text}");
        }
    }
}

#[test]
fn number_of_six_digits_beside_letters_is_masked() {
    for text in ["131052+308T", "CH54 0076 20AB CDEF GHIJ K", "LU19 0019 40AB CDEF GHJK", "AB 12 34 56 C"] {
        let sent = format!("hetu nino iban {text}");
        let redacted = both().text(&sent, &mut RedactionCounts::new());
        assert!(redacted.is_some_and(|it| !it.contains(text)), "{text}");
    }
}

#[test]
fn truncated_json_is_redacted_to_its_end() {
    redacts(
        r#"{"a":"joe@acme.io","b":"EMP-004711 and"#,
        r#"{"a":"[REDACTED:email]","b":"[REDACTED:employee_id] and"#,
    );
    redacts(r#"[joe@acme.io, "x"]"#, r#"[[REDACTED:email], "x"]"#);
}

#[test]
fn redacted_text_is_not_redacted_again() {
    for text in ["joe@acme.io EMP-004711", r#"{"password":"hunter22","joe@acme.io":4111111111111111}"#] {
        let once = redact(&both(), text);
        assert_eq!(redact(&both(), &once), once);
    }
}

#[test]
fn foreign_digits_and_invisible_characters_do_not_hide_values() {
    redacts("card ４１１１１１１１１１１１１１１１ ok", "card [REDACTED:payment_card] ok");
    redacts("joe\u{200b}@acme.io é", "[REDACTED:email] é");
}

#[test]
fn adjacent_matches_of_a_pattern_are_one_placeholder() {
    let digits = redactor(&[], &[("digits", "[0-9]{3}")]);
    assert_eq!(redact(&digits, &"123".repeat(10_000)), "[REDACTED:digits]");
}

#[test]
fn huge_text_is_redacted_in_linear_time() {
    let text = json!({"a": "joe@acme.io \\\"\n".repeat(50_000)}).to_string();
    let mut counts = RedactionCounts::new();
    both().text(&text, &mut counts).unwrap();
    assert_eq!(counts["email"], 50_000);
    let deep = "[".repeat(1_000_000);
    assert_eq!(both().text(&deep, &mut counts), None);
    let mut nested = "joe@acme.io".to_owned();
    for _ in 0..12 {
        nested = json!([nested]).to_string();
    }
    assert!(!redact(&both(), &nested).contains("joe"));
}

#[test]
fn invalid_settings_name_the_field() {
    let long = "a".repeat(501);
    for (detectors, patterns, field) in [
        (vec!["name"], vec![], "detectors[0]"),
        (vec!["email"; 9], vec![], "detectors"),
        (vec![], vec![("", "abc")], "patterns[0].name"),
        (vec![], vec![("a-b", "abc")], "patterns[0].name"),
        (vec![], vec![("email", "abc")], "patterns[0].name"),
        (vec![], vec![("a", "abc"), ("a", "abd")], "patterns[1].name"),
        (vec![], vec![("a", "")], "patterns[0].pattern"),
        (vec![], vec![("a", long.as_str())], "patterns[0].pattern"),
        (vec![], vec![("a", "(abc")], "patterns[0].pattern"),
        (vec![], vec![("a", r"(abc)\1")], "patterns[0].pattern"),
        (vec![], vec![("a", "(?=abc)")], "patterns[0].pattern"),
        (vec![], vec![("a", "x*")], "patterns[0].pattern"),
        (vec![], vec![("a", "^$")], "patterns[0].pattern"),
        (vec![], vec![("a", "x")], "patterns[0].pattern"),
        (vec![], vec![("a", ".+")], "patterns[0].pattern"),
        (vec![], vec![("a", "(?s).{4,}")], "patterns[0].pattern"),
        (vec![], vec![("a", r"\w{3,}")], "patterns[0].pattern"),
        (vec![], vec![("a", r"[^a]{3}[a-z]")], "patterns[0].pattern"),
        (vec![], vec![("a", r"(\w{100}){100}")], "patterns[0].pattern"),
        (vec![], vec![("a", r"((a{0,100}){0,100}){0,100}bcd")], "patterns[0].pattern"),
        (vec![], vec![("a", "abc[^\\s\\S]")], "patterns[0].pattern"),
    ] {
        let problem = Redactor::new(&settings(&detectors, &patterns)).unwrap_err();
        assert_eq!(problem.field, field, "{patterns:?} {problem}");
    }
    let names: Vec<String> = (0..21).map(|i| format!("p{i}")).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|it| (it.as_str(), "abc")).collect();
    assert_eq!(Redactor::new(&settings(&[], &many)).unwrap_err().field, "patterns");
}

#[test]
fn many_patterns_are_filtered_by_one_expression() {
    let names: Vec<(String, String)> =
        (0..20).map(|i| (format!("p{i}"), format!(r"\b(?i)key{i}-[0-9]{{4}}\b"))).collect();
    let patterns: Vec<(&str, &str)> = names.iter().map(|it| (it.0.as_str(), it.1.as_str())).collect();
    let redactor = redactor(&[], &patterns);
    assert!(redactor.patterns.may_match("xKEY7-1234x") && !redactor.patterns.may_match("key-1234"));
    assert_eq!(redact(&redactor, "KEY7-1234 key19-0000"), "[REDACTED:p7] [REDACTED:p19]");
}

#[test]
fn dense_matches_are_bounded_in_memory_and_growth() {
    let names: Vec<(String, String)> =
        (0..20).map(|i| (format!("p{i}"), format!("[0-9]{{3}}|{}x{{3}}", "z".repeat(i + 1)))).collect();
    let patterns: Vec<(&str, &str)> = names.iter().map(|it| (it.0.as_str(), it.1.as_str())).collect();
    let digits = redactor(&[], &patterns);
    let text = "1234 ".repeat(400_000);
    let ranges = digits.with_matches(&text, Vec::new());
    assert!(ranges.len() <= patterns::MAX_RANGES + 1 && ranges.capacity() <= 4 * patterns::MAX_RANGES);
    let redacted = redact(&digits, &text);
    assert!(redacted.len() <= 2 * text.len() + MAX_GROWTH_BYTES + 64, "{}", redacted.len());
    assert!(redacted.ends_with("[REDACTED:p0]"));
    let mut counts = RedactionCounts::new();
    let json = format!("{{\"a\":[{}1]}}", "123,".repeat(100_000));
    assert_eq!(digits.text(&json, &mut counts).as_deref(), Some(r#"{"redacted":"[REDACTED:text]"}"#));
}

#[test]
fn hostile_pattern_is_refused_or_searched_in_bounded_time() {
    for pattern in ["[A-Z]*[0-9]{3}|[A-Z]{3}", "[A-Z]{0,2000}[0-9]{3}|[A-Z]{3}", r"abc\B[0-9]"] {
        let problem = Redactor::new(&settings(&[], &[("a", pattern)])).unwrap_err();
        assert_eq!(problem.field, "patterns[0].pattern");
    }
    let problem = Redactor::new(&settings(&[], &[("a", "x+yz")])).unwrap_err();
    assert!(problem.message.contains("{0,64}"), "{problem}");
    let hostile = redactor(&[], &[("a", "[A-Z]{0,250}[0-9]{3}|[A-Z]{3}")]);
    let started = std::time::Instant::now();
    assert_eq!(redact(&hostile, &"A".repeat(10_000_000)), "[REDACTED:a]");
    assert!(started.elapsed().as_secs() < 60);
    let repeated = settings(&[], &[("a", "[0-9]{3}"), ("b", "[0-9]{3}")]);
    assert_eq!(Redactor::new(&repeated).unwrap_err().field, "patterns[1].pattern");
    assert_eq!(redact(&both(), "日本 EMP-004711 日本"), "日本 [REDACTED:employee_id] 日本");
}

/// Values that are masked wherever they stand alone, and ordinary texts.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("joe@acme.io".to_owned()),
        Just("EMP-004711".to_owned()),
        Just("4111 1111 1111 1111".to_owned()),
        Just("plain text".to_owned()),
        Just("a\"b\\c\n\u{1f600}é/".to_owned()),
        "[ a-z\"\\\\\n{}\\[\\]:,é]{0,8}",
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(word(), 1..4).prop_map(|words| words.join(" ; "))
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-1_000_i64..1_000).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(text(), inner.clone(), 0..4)
                .prop_map(|it| Value::Object(it.into_iter().collect())),
            // JSON as a string, as in the arguments of tools.
            inner.prop_map(|it| Value::from(it.to_string())),
        ]
    })
}

/// Encodes a text as a JSON string in which all characters are escapes.
fn escaped(text: &str) -> String {
    text.encode_utf16().map(|it| format!("\\u{it:04x}")).collect()
}

/// Returns whether two values have the same shape and the same numbers, booleans and nulls.
fn is_same_shape(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::String(_), Value::String(_)) => true,
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|it| is_same_shape(it.0, it.1))
        }
        (Value::Object(left), Value::Object(right)) => left.len() == right.len(),
        (left, right) => left == right,
    }
}

fn has_secret(text: &str) -> bool {
    ["joe@acme", "EMP-004711", "4111 1111"].iter().any(|it| text.contains(it))
}

fn strings_have_secret(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            has_secret(text) || serde_json::from_str::<Value>(text).is_ok_and(|it| strings_have_secret(&it))
        }
        Value::Array(items) => items.iter().any(strings_have_secret),
        Value::Object(members) => members.iter().any(|(key, it)| has_secret(key) || strings_have_secret(it)),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn redacted_json_has_its_structure_and_no_secret(value in value()) {
        let redactor = both();
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let redacted = redact(&redactor, &text);
            let parsed: Value = serde_json::from_str(&redacted).unwrap();
            prop_assert!(!strings_have_secret(&parsed), "{redacted}");
            prop_assert!(is_same_shape(&value, &parsed), "{text} {redacted}");
            if !strings_have_secret(&value) && redacted != text {
                prop_assert!(false, "{text} {redacted}");
            }
        }
    }

    #[test]
    fn escaped_json_is_redacted_like_plain_json(text in text()) {
        let json = format!("{{\"a\":\"{}\"}}", escaped(&text));
        let redacted: Value = serde_json::from_str(&redact(&both(), &json)).unwrap();
        prop_assert!(!strings_have_secret(&redacted), "{json} {redacted}");
    }

    #[test]
    fn any_text_is_redacted_without_panic(text in "\\PC{0,64}|[\\[\\]{}\":,\\\\u0-9a-f@.\n -]{0,64}") {
        let redactor = both();
        let mut counts = RedactionCounts::new();
        let redacted = redactor.text(&text, &mut counts);
        prop_assert_eq!(redacted.is_some(), counts.values().sum::<u64>() > 0);
        redactor.json_strings(&text, &mut counts);
        redactor.labelled_text("phone", &text, &mut counts);
    }
}

/// Returns the values of 40 kinds that other suites send as well: kind, text, and the part that must not remain.
fn canaries() -> Vec<[&'static str; 3]> {
    let parts =
        |line: &'static str| -> [&'static str; 3] { line.split('|').collect::<Vec<_>>().try_into().unwrap() };
    include_str!("canaries.txt").lines().map(parts).collect()
}

#[test]
fn canary_is_masked_in_text_and_everywhere_in_json() {
    let redactor = both();
    let canaries = canaries();
    assert_eq!(canaries.len(), 40);
    let mut failures = Vec::new();
    for [kind, text, needle] in canaries {
        let inner = json!({"x": [text], "y": text}).to_string();
        for sent in [
            text.to_owned(),
            format!("Please note {text} and reply."),
            format!("**{text}**"),
            format!("#{text}"),
            format!("note:{text}"),
            format!("k={text}"),
            format!("item 7 {text}"),
            format!("_{text}_"),
            json!({"value": text}).to_string(),
            json!({"order_id": text}).to_string(),
            json!({ text: 1 }).to_string(),
            json!({"arguments": inner}).to_string(),
            json!([{"role": "user", "content": format!("Say:\n\"{text}\"\\ ok")}]).to_string(),
            format!("{{\"a\":\"{}\"}}", escaped(text)),
        ] {
            let mut counts = RedactionCounts::new();
            let redacted = redactor.text(&sent, &mut counts).unwrap_or(sent.clone());
            // The pattern requires a boundary of a word, which `_` is not.
            if kind == "employee_id" && sent.starts_with('_') {
                continue;
            }
            if redacted.contains(needle) || redacted.contains(&escaped(needle)) || !counts.contains_key(kind)
            {
                failures.push(format!("{kind}: {sent} -> {redacted}"));
            }
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
