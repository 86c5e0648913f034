//! Tests of prices: the built-in table, name resolution, overrides.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::HashMap;

use super::*;
use crate::usage::Usage;
use crate::{cost, money};

fn check(cases: &[(&str, Option<&str>)]) {
    let table = PriceTable::builtin();
    for (model, expected) in cases {
        assert_eq!(table.resolve(model).map(|(name, _)| name), *expected, "{model}");
    }
}

fn price(input: f64, output: f64) -> Price {
    Price { input_per_million: input, output_per_million: output, ..FREE_PRICE }
}

fn own(name: &str, price: Price) -> Overrides {
    [(name.to_owned(), price)].into_iter().collect()
}

#[test]
fn builtin_price_table_is_valid() {
    let document: PriceDocument = serde_json::from_str(BUILTIN_PRICES_JSON).unwrap();
    let mut seen: HashMap<String, String> = HashMap::new();
    for provider in &document.providers {
        assert!(!provider.source.page.is_empty() && !provider.models.is_empty());
        for (name, row) in &provider.models {
            assert_eq!(invalid_rate(&row.price), None, "{name}");
            assert!(row.price.input_per_million > 0.0, "{name}");
            let cached = row.price.cached_input_per_million.unwrap_or(0.0);
            assert!(cached <= row.price.input_per_million, "{name}: cached above full price");
            for spelling in row.aliases.iter().chain([name]) {
                let before = seen.insert(names::key(spelling), name.clone());
                assert_eq!(before, None, "{spelling} of {name} is listed twice");
            }
        }
    }
    let table = PriceTable::builtin();
    assert_eq!(table.sources().len(), document.providers.len());
    assert_eq!(table.sources().iter().map(|it| it.read.as_str()).max(), Some(table.updated()));
    assert!(table.iter().all(|(name, _, _)| table.resolve(name).unwrap().0 == name));
}

#[test]
fn model_name_is_found_in_any_case_and_spelling() {
    check(&[
        ("gpt-4o", Some("gpt-4o")),
        ("GPT-4o-Mini", Some("gpt-4o-mini")),
        (" gpt-4.1 ", Some("gpt-4.1")),
        ("gpt-35-turbo", Some("gpt-3.5-turbo")),
        ("claude-3.5-sonnet", Some("claude-3-5-sonnet")),
        ("claude-sonnet-4-5", Some("claude-sonnet-4-5")),
        ("text-embedding-3-small", Some("text-embedding-3-small")),
        ("text-embedding-ada-002", Some("text-embedding-ada-002")),
    ]);
}

#[test]
fn model_name_date_and_latest_are_dropped() {
    check(&[
        ("gpt-4o-2024-08-06", Some("gpt-4o")),
        ("gpt-4o-2024-05-13", Some("gpt-4o-2024-05-13")),
        ("gpt-4o-mini-2024-07-18", Some("gpt-4o-mini")),
        ("gpt-5-mini-2025-08-07", Some("gpt-5-mini")),
        ("o3-mini-2025-01-31", Some("o3-mini")),
        ("claude-sonnet-4-5-20250929", Some("claude-sonnet-4-5")),
        ("claude-sonnet-4-20250514", Some("claude-sonnet-4")),
        ("claude-3-5-haiku-latest", Some("claude-3-5-haiku")),
        ("claude-3-5-haiku@20241022", Some("claude-3-5-haiku")),
        ("claude-opus-4-1@default", Some("claude-opus-4-1")),
        ("gemini-1.5-pro-002", Some("gemini-1.5-pro")),
        ("gemini-2.5-pro-preview-05-06", Some("gemini-2.5-pro")),
        ("gemini-2.5-flash-lite-preview-06-17", Some("gemini-2.5-flash-lite")),
        ("gemini-2.5-flash-preview-09-2025", Some("gemini-2.5-flash")),
        ("mistral-large-latest", Some("mistral-large")),
        ("mistral-large-2402", Some("mistral-large-2402")),
        ("gpt-4-0613", Some("gpt-4")),
        ("gpt-4-1106-preview", Some("gpt-4-turbo")),
    ]);
}

#[test]
fn model_name_provider_and_region_are_dropped() {
    check(&[
        ("openai/gpt-4o", Some("gpt-4o")),
        ("openai:gpt-4o-mini", Some("gpt-4o-mini")),
        ("azure/gpt-4o-2024-08-06", Some("gpt-4o")),
        ("azure/eu/gpt-4o", Some("gpt-4o")),
        ("openrouter/anthropic/claude-3.5-sonnet:beta", Some("claude-3-5-sonnet")),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", Some("claude-3-5-sonnet")),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", Some("claude-sonnet-4-5")),
        ("bedrock/eu.anthropic.claude-opus-4-6-v1", Some("claude-opus-4-6")),
        ("anthropic.claude-3-sonnet-20240229-v1:0:200k", Some("claude-3-sonnet")),
        ("anthropic.claude-v2:1", Some("claude-2")),
        (
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova-pro-v1:0",
            Some("nova-pro"),
        ),
        ("us.meta.llama3-3-70b-instruct-v1:0", Some("llama3-3-70b-instruct")),
        ("us.deepseek.r1-v1:0", Some("deepseek.r1-v1:0")),
        ("amazon.titan-embed-text-v2:0", Some("titan-embed-text-v2")),
        ("models/gemini-2.5-flash", Some("gemini-2.5-flash")),
        ("vertex_ai/gemini-2.0-flash-001", Some("gemini-2.0-flash")),
        ("publishers/google/models/gemini-2.5-pro", Some("gemini-2.5-pro")),
        ("google-gla:gemini-2.5-pro", Some("gemini-2.5-pro")),
        ("groq/llama-3.3-70b-versatile", Some("llama-3.3-70b-versatile")),
        ("groq/openai/gpt-oss-120b", Some("gpt-oss-120b")),
        ("together_ai/meta-llama/Llama-3.3-70B-Instruct-Turbo", Some("llama-3.3-70b-instruct-turbo")),
        ("accounts/fireworks/models/llama-v3p1-405b-instruct", Some("llama-v3p1-405b-instruct")),
        ("cohere.embed-english-v3", Some("embed-english-v3.0")),
    ]);
}

#[test]
fn deployment_named_after_its_model_is_found() {
    check(&[
        ("gpt-4o-prod", Some("gpt-4o")),
        ("prod-gpt-4o-mini", Some("gpt-4o-mini")),
        ("my_gpt-4o_deployment", Some("gpt-4o")),
        ("gpt-35-turbo-16k-swedencentral", Some("gpt-3.5-turbo-16k")),
        ("gpt-4o-2024-08-06-eu-staging", Some("gpt-4o")),
    ]);
}

#[test]
fn unknown_model_is_not_guessed() {
    check(&[
        ("gpt-4o-mini-x", None),
        ("gpt-4o-x", None),
        ("gpt-4o-2", None),
        ("gpt-99", None),
        ("deepseek-ai/DeepSeek-R1", None),
        ("deepseek.v3.2", None),
        ("gpt-4o-2024", None),
        ("gpt-4o-99999999", None),
        ("gpt-4o-audio", None),
        ("claude-sonnet-4-9", None),
        ("claude", None),
        ("gpt", None),
        ("mistral-large-2499", None),
        ("my-finetune-v2", None),
        ("gemini-2.5-flash-native-audio", None),
        ("llama3.1:8b", None),
        ("gpt-4o:extended", None),
        ("ft:gpt-5:acme::abc", None),
        ("prod", None),
        ("gemini-2.0-flash-exp", None),
        ("", None),
        ("/", None),
        (":::@--", None),
    ]);
}

#[test]
fn fine_tuned_model_has_its_own_price() {
    check(&[
        ("ft:gpt-4o-mini-2024-07-18:acme::9abc", Some("ft:gpt-4o-mini")),
        ("ft:gpt-3.5-turbo-0125:acme:support:id", Some("ft:gpt-3.5-turbo")),
        ("openai/ft:gpt-4o:acme::1", Some("ft:gpt-4o")),
        ("gpt-4o-mini-2024-07-18.ft-0a1b2c", Some("ft:gpt-4o-mini")),
    ]);
}

#[test]
fn free_variant_costs_nothing() {
    let table = PriceTable::builtin();
    let (name, price) = table.resolve("openrouter/openai/gpt-oss-120b:free").unwrap();
    assert_eq!((name, *price), ("gpt-oss-120b", FREE_PRICE));
    assert_eq!(table.resolve("unheard-of:free"), None);
    let rate = table.rate("gpt-oss-120b:free", &own("gpt-oss-120b", price_of_one())).unwrap();
    assert_eq!(rate.price, FREE_PRICE);
}

fn price_of_one() -> Price {
    price(1.0, 1.0)
}

#[test]
fn unusual_model_names_are_not_found() {
    let table = PriceTable::builtin();
    for model in ["é-2024-08-06", "gpt-4o-é", "\u{fffd}@1", "a-é4-08-06", "us.us.us.us", "-", "- - "] {
        assert_eq!(table.resolve(model), None, "{model}");
    }
    assert_eq!(table.resolve(&"a/".repeat(100_000)), None);
}

#[test]
fn price_file_replaces_and_adds_prices() {
    let file = r#"{
        "GPT-4o": {"input_per_million": 1, "output_per_million": 2},
        "gpt-4o-2024-08-06": {"input_per_million": 3, "output_per_million": 4, "cached_input_per_million": 0.5},
        "my-finetune-v2": {"input_per_million": 5, "output_per_million": 6}
    }"#;
    let table = PriceTable::builtin().with_overrides(&PriceTable::parse_file(file).unwrap());
    assert_eq!(table.resolve("openai/gpt-4o"), Some(("gpt-4o", &price(1.0, 2.0))));
    let dated = table.resolve("gpt-4o-2024-08-06").unwrap();
    assert_eq!((dated.0, dated.1.cached_input_per_million), ("gpt-4o-2024-08-06", Some(0.5)));
    assert_eq!(table.resolve("MY-FINETUNE-V2").unwrap().1.output_per_million, 6.0);
    let rate = table.rate("my-finetune-v2", &Overrides::default()).unwrap();
    assert_eq!(rate.origin, Origin::File);
    let names = table.iter().filter(|it| it.0.eq_ignore_ascii_case("gpt-4o")).count();
    assert_eq!(names, 1, "replaced, not added beside");
}

#[test]
fn invalid_price_file_names_the_field() {
    let message = |text| PriceTable::parse_file(text).unwrap_err().to_string();
    insta::assert_snapshot!(message(r#"{"m":{"input_per_million":-1,"output_per_million":2}}"#), @r#"input_per_million of "m" must be from 0 to 1000000 dollars"#);
    insta::assert_snapshot!(message(r#"{"m":{"input_per_million":1}}"#), @"expected a JSON object of model name to price: missing field `output_per_million` at line 1 column 28");
    assert!(PriceTable::parse_file("[]").is_err());
    assert!(PriceTable::parse_file("").is_err());
    assert!(PriceTable::parse_file("{}").unwrap().is_empty());
}

#[test]
fn tenant_price_takes_precedence() {
    let table = PriceTable::builtin();
    let check = |model: &str, own_name: &str, expected: Option<(&str, Origin)>| {
        let rate = table.rate(model, &own(own_name, price(7.0, 8.0)));
        assert_eq!(rate.as_ref().map(|it| (&*it.model, it.origin)), expected, "{model}");
    };
    check("openai/gpt-4o-2024-08-06", "gpt-4o", Some(("gpt-4o", Origin::Tenant)));
    check("gpt-35-turbo", "gpt-3.5-turbo", Some(("gpt-3.5-turbo", Origin::Tenant)));
    check("my-finetune-v2", "My-Finetune-v2", Some(("My-Finetune-v2", Origin::Tenant)));
    check("gpt-4o-mini", "gpt-4o", Some(("gpt-4o-mini", Origin::Builtin)));
    check("unheard-of", "gpt-4o", None);
}

#[test]
fn prices_agree_with_costs_of_sdks() {
    let table = PriceTable::builtin();
    let check = |model: &str, prompt: i64, completion: i64, usd: f64| {
        let usage = Usage { prompt: Some(prompt), completion: Some(completion), ..Usage::default() };
        let price = table.resolve(model).unwrap().1;
        assert_eq!(money::to_usd(cost::total(&usage.buckets(), price)), usd, "{model}");
    };
    check("gpt-4o-2024-08-06", 90, 39, 0.000_615);
    check("gpt-4o-mini-2024-07-18", 22, 11, 0.000_009_9);
    check("gpt-5-mini-2025-08-07", 30, 75, 0.000_157_5);
    check("claude-sonnet-4-5-20250929", 28, 11, 0.000_249);
    check("text-embedding-3-small", 11, 0, 0.000_000_22);
}

proptest::proptest! {
    #[test]
    fn model_look_up_never_panics(name in "[-a-z0-9.:@/_é]{0,40}|\\PC{0,40}") {
        PriceTable::builtin().resolve(&name);
    }

    #[test]
    fn unknown_name_part_is_not_dropped(part in "[b-z]{1,2}x") {
        let table = PriceTable::builtin();
        for model in [format!("gpt-4o-{part}"), format!("{part}-gpt-4o"), format!("claude-sonnet-4-5{part}")] {
            proptest::prop_assert_eq!(table.resolve(&model), None, "{}", model);
        }
    }
}
