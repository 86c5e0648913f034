//! Tests of the filter grammar: a table of filters and their query parameters.

use chrono::FixedOffset;

use super::*;

fn now() -> DateTime<FixedOffset> {
    DateTime::parse_from_rfc3339("2026-11-21T14:00:00+02:00").unwrap_or_default()
}

fn saved() -> Saved {
    [("slow", "latency:>=5s from:-1h"), ("loop", "@slow"), ("bad", "latncy:>1s")]
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .into()
}

fn ask(text: &str) -> String {
    match Filter::parse(text, &saved(), &now()) {
        Ok(filter) => {
            let pairs: Vec<_> =
                filter.params().iter().map(|(name, value)| format!("{name}={value}")).collect();
            pairs.join("&")
        }
        Err(error) => format!("{}: {}", error.column(), error.message),
    }
}

#[test]
fn filter_terms_become_query_parameters() {
    for (text, query) in [
        ("", ""),
        ("model:gpt-4o  error:true", "model=gpt-4o&error=true"),
        ("failure:rate_limit", "failure_type=rate_limit"),
        ("latency:>=2s", "latency_min=2000"),
        ("latency:>2s", "latency_min=2001"),
        ("latency:<500ms", "latency_max=499"),
        ("latency:<=1.5s", "latency_max=1500"),
        ("latency:1s..5s", "latency_min=1000&latency_max=5000"),
        ("latency:>1s latency:<=5s", "latency_min=1001&latency_max=5000"),
        ("tokens:10..99", "token_count_min=10&token_count_max=99"),
        ("tokens:..99", "token_count_max=99"),
        ("tokens:7", "token_count_min=7&token_count_max=7"),
        ("tag:env=prod", "tag_key=env&tag_value=prod"),
        ("tag:note=\"a b\"", "tag_key=note&tag_value=a b"),
        ("model:\"my model: large\"", "model=my model: large"),
        ("from:-1h", "from=2026-11-21T11:00:00.000000Z"),
        ("from:yesterday to:today", "from=2026-11-19T22:00:00.000000Z&to=2026-11-20T22:00:00.000000Z"),
        ("to:2026-11-21T10:00Z", "to=2026-11-21T10:00:00.000000Z"),
        ("to:2026-11-21T10:00", "to=2026-11-21T08:00:00.000000Z"),
        ("from:2026-11-21", "from=2026-11-20T22:00:00.000000Z"),
        ("@slow error:true", "latency_min=5000&from=2026-11-21T11:00:00.000000Z&error=true"),
    ] {
        assert_eq!(ask(text), query, "{text}");
    }
}

#[test]
fn invalid_filter_term_is_reported_with_its_offset() {
    for (text, message) in [
        ("error:true latncy:>2s", "11: there is no field `latncy`"),
        ("é:1", "0: there is no field `é`"),
        ("error:yes", "6: `yes` is not true or false"),
        ("model:a OR model:b", "8: `OR` is not supported; a trace must match all terms"),
        ("-error:true", "0: terms can't be negated"),
        ("refund", "0: `refund` is free text; a filter is made of field:value terms"),
        ("tag:env=prod tag:team=a", "13: a filter can contain only one tag"),
        ("tag:env", "4: a tag needs its value: `env=...`"),
        ("latency:80", "8: `80` needs a unit: 80ms or 80s"),
        ("latency:5s..1s", "8: the range 5000..1000 is empty"),
        (
            "latency:>5s latency:<1s",
            "0: no trace can match: latency_min 5001 is greater than latency_max 999",
        ),
        ("tokens:<0", "7: no value is below zero"),
        ("tokens:99999999999999999999", "7: `99999999999999999999` is not a whole number"),
        ("from:tomorrowish", "5: `tomorrowish` is not a time"),
        ("from:-9999999999w", "5: `-9999999999w` is too long ago"),
        ("from:-99999999999w", "5: `99999999999w` is too long"),
        ("model:", "0: `model:` has no value"),
        ("model:\"gpt", "6: this quote is not closed"),
        ("failure:other", "8: `other` is not one of timeout, rate_limit, invalid_response, context_length"),
        ("@nope", "0: there is no saved filter `nope`"),
        ("@loop", "0: in the saved filter `loop`: a saved filter can't use another, here `@slow`"),
        ("@bad", "0: in the saved filter `bad`: there is no field `latncy`"),
    ] {
        assert_eq!(ask(text), message, "{text}");
    }
}

#[test]
fn misspelt_filter_field_suggests_nearest_field() {
    let hint =
        |text| Filter::parse(text, &saved(), &now()).err().and_then(|error| error.hint).unwrap_or_default();
    assert_eq!(hint("latncy:>2s"), "did you mean `latency:`?");
    assert!(hint("colour:red").starts_with("fields: model, error"));
}

#[test]
fn flags_and_filter_terms_give_same_parameters() {
    let mut filter = Filter::default();
    for (field, value) in [("latency", ">=2s"), ("tag", "env=prod"), ("tokens", ">=5")] {
        assert_eq!(filter.set(field, value, &now()), Ok(()));
    }
    assert_eq!(Ok(filter.clone()), Filter::parse("latency:>=2s tag:env=prod tokens:>=5", &saved(), &now()));
    assert!(filter.note().is_some());
    assert!(filter.set("latency", ">=3s", &now()).is_err());
}

proptest::proptest! {
    #[test]
    fn filter_parser_never_panics(text in proptest::prelude::any::<String>()) {
        if let Err(error) = Filter::parse(&text, &saved(), &now()) {
            proptest::prop_assert!(error.at <= text.len() && text.is_char_boundary(error.at));
        }
    }
}
