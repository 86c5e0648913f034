//! Tests of schemas that are designed to be slow, and of the messages about failures.

use serde_json::{Value, json};

use super::*;

fn compile(schema: &Value) -> Schema {
    Schema::compile(schema, None, false, "schema").unwrap()
}

fn refused(schema: &Value) -> ConfigProblem {
    Schema::compile(schema, None, false, "schema").err().unwrap().remove(0)
}

fn check(schema: &Value, value: &Value) -> SchemaCheck {
    compile(schema).check(value, value.to_string().len())
}

fn failures_of(schema: Value, value: Value) -> String {
    match check(&schema, &value) {
        SchemaCheck::Fails(told, more) => {
            format!("{} +{more}", told.iter().map(Failure::sentence).collect::<Vec<_>>().join("; "))
        }
        other => panic!("{other:?}"),
    }
}

/// Returns nested lists.
fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!([inner]))
}

#[test]
fn failures_name_locations_and_never_values() {
    let person = json!({
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 3}, "age": {"type": "integer", "minimum": 0}},
        "required": ["name", "id"], "additionalProperties": false
    });
    assert_eq!(
        failures_of(person, json!({"name": "secret", "age": -7, "extra": 1, "a@b.example": 2})),
        "it lacks \"id\"; /age is below 0; /name is longer than 3 characters; it has members that the schema \
         does not allow (extra, …) +0"
    );
    assert_eq!(
        failures_of(
            json!({"additionalProperties": {"type": "string"}}),
            json!({"4111111111111111": 1, "b": 2})
        ),
        "/… is not of type string; /b is not of type string +0"
    );
    let items = json!({"items": {"enum": ["a", "b"]}});
    let many = failures_of(items, json!([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]));
    assert!(many.starts_with("/0 is not one of [\"a\",\"b\"]; /1 "), "{many}");
    assert!(many.ends_with("/9 is not one of [\"a\",\"b\"] +2"), "{many}");
}

/// Definitions `n0` to `n{count}`, each made from a reference to the next; the last is `last`.
fn chain(count: usize, last: Value, link: impl Fn(Value) -> Value) -> Value {
    let mut definitions = Map::new();
    for i in 0..count {
        definitions.insert(format!("n{i}"), link(json!({"$ref": format!("#/$defs/n{}", i + 1)})));
    }
    definitions.insert(format!("n{count}"), last);
    json!({"$defs": definitions, "$ref": "#/$defs/n0"})
}

#[test]
fn schema_with_doubling_alternatives_per_reference_is_refused_or_terminates() {
    let doubling = |count, last| chain(count, last, |next| json!({"anyOf": [next, next]}));
    assert!(refused(&doubling(40, json!({"type": "string"}))).message.contains("too many alternatives"));
    assert!(refused(&doubling(9, json!(false))).message.contains("too many alternatives"));
    assert_eq!(failures_of(doubling(5, json!(false)), json!(1)), "it matches none of the alternatives +0");
    assert_eq!(
        failures_of(doubling(12, json!({"type": "string"})), json!(1)),
        "it matches none of the alternatives +0"
    );
}

#[test]
fn schema_with_doubling_alternatives_per_level_terminates() {
    for keyword in ["anyOf", "oneOf", "allOf"] {
        let schema = json!({"type": "array", keyword: [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]});
        let outcome = check(&schema, &nested(100));
        assert!(
            matches!(outcome, SchemaCheck::Fails(..) | SchemaCheck::TooManySteps),
            "{keyword}: {outcome:?}"
        );
    }
}

#[test]
fn schema_that_refers_to_itself_is_rejected() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"anyOf": [{"$ref": "#"}, {"not": {"$ref": "#"}}]}),
        json!({"$dynamicAnchor": "a", "allOf": [{"$dynamicRef": "#a"}]}),
        json!({"$id": "https://example.com/a", "allOf": [{"$ref": "a"}]}),
        json!({"$defs": {"a b": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a%20b"}}}),
    ] {
        assert!(refused(&schema).message.contains("refers to itself"), "{schema}");
    }
}

#[test]
fn recursive_schema_below_members_is_accepted() {
    let tree = json!({
        "type": "object", "required": ["value"],
        "properties": {"children": {"items": {"$ref": "#"}}, "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}
    });
    assert_eq!(
        check(&tree, &json!({"value": 1, "children": [{"value": 2, "next": null}]})),
        SchemaCheck::Conforms
    );
    assert_eq!(
        failures_of(tree, json!({"value": 1, "children": [{"value": 2}, {}]})),
        "/children/1 lacks \"value\" +0"
    );
}

#[test]
fn reference_chains_deeper_than_the_stack_are_refused() {
    let long = |count| chain(count, json!({"type": "string"}), |next| json!({"allOf": [next]}));
    assert!(refused(&long(3_000)).message.contains("in a chain"));
    // The stack is as small as those of the server's threads.
    let small = std::thread::Builder::new().stack_size(2 * 1024 * 1024);
    let done = small.spawn(move || check(&long(90), &json!(1))).unwrap().join().unwrap();
    assert!(matches!(done, SchemaCheck::Fails(..)), "{done:?}");
}

#[test]
fn recursion_down_the_deepest_json_fits_a_small_stack() {
    let schema = json!({
        "$defs": {"node": {"allOf": [{"anyOf": [{"allOf": [{"oneOf": [{"items": {"$ref": "#/$defs/node"}}]}]}]}]}},
        "$ref": "#/$defs/node"
    });
    let small = std::thread::Builder::new().stack_size(2 * 1024 * 1024);
    let done = small.spawn(move || check(&schema, &nested(120))).unwrap().join().unwrap();
    assert!(matches!(done, SchemaCheck::Conforms | SchemaCheck::TooManySteps), "{done:?}");
}

#[test]
fn large_json_is_checked_and_a_million_failures_are_not_listed() {
    let numbers = Value::Array((0..1_000_000).map(Value::from).collect());
    assert_eq!(check(&json!({"items": {"type": "integer"}}), &numbers), SchemaCheck::Conforms);
    assert_eq!(check(&json!({"uniqueItems": true}), &numbers), SchemaCheck::Conforms);
    let SchemaCheck::Fails(told, _) = check(&json!({"items": {"type": "string"}}), &numbers) else {
        panic!()
    };
    assert!(told.len() <= MAX_REPORTED_FAILURES);
}

#[test]
fn patterns_run_in_linear_time_or_are_refused() {
    let value = json!(format!("{}!", "a".repeat(100_000)));
    for pattern in ["^(a+)+$", "^(a|aa)+$", "^(a|a?)+$", "(.*a){20}b"] {
        let outcome = check(&json!({"pattern": pattern}), &value);
        assert!(matches!(outcome, SchemaCheck::Fails(..)), "{pattern}: {outcome:?}");
    }
    for pattern in ["(?=a)b", "(a)\\1", "(?<!a)b", "(\\w{1,200}){1,200}"] {
        let problem = refused(&json!({"properties": {"a": {"pattern": pattern}}}));
        assert!(problem.field.starts_with("schema"), "{pattern}: {problem:?}");
        let reason = if pattern.contains("200") { "grows too large" } else { "linear time" };
        assert!(problem.message.contains(reason), "{pattern}: {problem:?}");
    }
    let many: Value = (0..300).map(|it| (format!("^{it}$"), json!({}))).collect::<Map<_, _>>().into();
    assert!(refused(&json!({"patternProperties": many})).message.contains("200 regular expressions"));
}

#[test]
fn invalid_schema_is_rejected_with_its_location() {
    let check = |schema: Value, field: &str, part: &str| {
        let problem = refused(&schema);
        assert_eq!(problem.field, field, "{problem:?}");
        assert!(problem.message.contains(part), "{problem:?}");
    };
    check(json!("text"), "schema", "must be a JSON Schema");
    check(json!({"type": "text"}), "schema.type", "");
    check(
        json!({"properties": {"a": {"minimum": "1"}}}),
        "schema.properties.a.minimum",
        "is not of type number",
    );
    for uri in ["https://example.com/schema.json", "file:///etc/passwd", "other.json"] {
        check(json!({"$ref": uri}), "schema", "nothing is fetched: put it under `$defs`");
    }
    check(json!({"$ref": "#/$defs/none"}), "schema", "refers to /$defs/none, which the schema does not have");
    check(json!({"$ref": "#none"}), "schema", "refers to the anchor none, which the schema does not have");
    check(json!({"$ref": "http://["}), "schema", "not a valid URI");
    check(json!({"$schema": "https://example.com/meta"}), "schema", "$schema, which is not known");
    check((0..200).fold(json!({}), |it, _| json!({"not": it})), "schema", "nests more than");
    check(json!({"const": "x".repeat(MAX_SCHEMA_BYTES)}), "schema", "longer than");
}

#[test]
fn compilation_of_hostile_schemas_terminates() {
    let asking = |last: Value, count| {
        chain(
            count,
            last,
            |next| json!({"anyOf": [next, next], "properties": {"a": next, "b": next}, "unevaluatedProperties": false}),
        )
    };
    assert!(refused(&asking(json!({"type": "string"}), 60)).message.contains("too many alternatives"));
    compile(&asking(json!({"type": "string"}), 12));
    // The chain has no alternatives and leads one level further down at each step.
    compile(&chain(
        100,
        json!({"type": "string"}),
        |next| json!({"properties": {"a": next, "b": next}, "unevaluatedProperties": false}),
    ));
}
