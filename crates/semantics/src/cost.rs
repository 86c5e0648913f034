//! What a span costs.
//!
//! Finding a model's price is [`crate::prices`]; adding spans up is [`crate::rollup`].
//!
//! **Invariant:** tokens are never estimated. Without a known price or a reported count there is
//! no cost at all, which is not the same as a cost of zero.

use std::sync::Arc;

use serde::Serialize;

use crate::money::{self, Pico};
use crate::prices::{Origin, Price};
use crate::usage::{Buckets, Usage};

/// What is known about a span when its cost is worked out.
#[derive(Clone, Copy, Debug)]
pub struct CostInput<'a> {
    /// Whether the span is a model call.
    pub is_llm: bool,
    /// `metadata.cost_usd` in dollars; heard on model calls only.
    pub metadata_cost_usd: Option<f64>,
    /// The span's own cost in dollars.
    pub own_cost: Option<f64>,
    /// Model name as sent.
    pub model: Option<&'a str>,
    /// The requested model, if another one answered. Its price applies when that of `model` is unknown.
    pub request_model: Option<&'a str>,
    /// Token counts as sent.
    pub usage: &'a Usage,
}

/// A model's price as it was found; cheap to clone, so it can be kept per model name.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// Base name that the model's name was resolved to.
    pub model: Arc<str>,
    /// Its price.
    pub price: Price,
    /// Whose price it is.
    pub origin: Origin,
}

/// A span's cost and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// The cost in pico-dollars.
    pub pico: Pico,
    /// Text of a JSON object for `metadata.cost_details`: `source` (`metadata`, `span`,
    /// `price_table` or `tenant`), and for the last two `model`, `rates` (dollars a million
    /// tokens) and `buckets` (tokens; empty ones are left out).
    pub details: String,
}

/// Works out the cost of a span, or `None` when nothing says.
///
/// The first of these that is a valid amount: `metadata.cost_usd` of a model call, the span's
/// own cost, its tokens times the price that `price` finds for its model, or else for the model asked.
/// `price` is called only when tokens were reported.
pub fn span_cost(input: &CostInput<'_>, price: impl FnMut(&str) -> Option<Rate>) -> Option<Cost> {
    let told = input.metadata_cost_usd.filter(|_| input.is_llm).and_then(money::from_usd);
    if let Some(pico) = told {
        return Some(Cost { pico, details: r#"{"source":"metadata"}"#.to_owned() });
    }
    if let Some(pico) = input.own_cost.and_then(money::from_usd) {
        return Some(Cost { pico, details: r#"{"source":"span"}"#.to_owned() });
    }
    if !input.usage.is_reported() {
        return None;
    }
    let rate = [input.model, input.request_model].into_iter().flatten().find_map(price)?;
    let buckets = input.usage.buckets();
    Some(Cost { pico: total(&buckets, &rate.price), details: details(&buckets, &rate) })
}

/// The buckets at a price, in pico-dollars. A rate that is not given is that of its direction.
pub fn total(buckets: &Buckets, price: &Price) -> Pico {
    let Price {
        input_per_million: input,
        output_per_million: output,
        cached_input_per_million,
        cache_write_per_million,
        reasoning_per_million,
    } = *price;
    [
        (buckets.input, input),
        (buckets.cached_input, cached_input_per_million.unwrap_or(input)),
        (buckets.cache_write, cache_write_per_million.unwrap_or(input)),
        (buckets.output, output),
        (buckets.reasoning, reasoning_per_million.unwrap_or(output)),
    ]
    .into_iter()
    .fold(0, |sum: Pico, (tokens, rate)| sum.saturating_add(money::of_tokens(tokens, rate)))
}

#[derive(Serialize)]
struct Details<'a> {
    source: &'static str,
    model: &'a str,
    rates: &'a Price,
    buckets: &'a Buckets,
}

fn details(buckets: &Buckets, rate: &Rate) -> String {
    let source = match rate.origin {
        Origin::Tenant => "tenant",
        Origin::File | Origin::Builtin => "price_table",
    };
    let details = Details { source, model: &rate.model, rates: &rate.price, buckets };
    // Strings and numbers always serialise; the fallback keeps the field an object.
    serde_json::to_string(&details).unwrap_or_else(|_| "{}".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;

    const PRICE: Price = Price {
        input_per_million: 2.5,
        output_per_million: 10.0,
        cached_input_per_million: Some(1.25),
        cache_write_per_million: None,
        reasoning_per_million: None,
    };

    fn rate(origin: Origin) -> Rate {
        Rate { model: "gpt-4o".into(), price: PRICE, origin }
    }

    fn usage() -> Usage {
        Usage { prompt: Some(1000), completion: Some(100), ..Usage::default() }
    }

    fn input(usage: &Usage) -> CostInput<'_> {
        CostInput {
            is_llm: true,
            metadata_cost_usd: None,
            own_cost: None,
            model: Some("m"),
            request_model: None,
            usage,
        }
    }

    fn check(input: CostInput<'_>, expected: Option<(f64, &str)>) {
        let cost = span_cost(&input, |_| Some(rate(Origin::Builtin)));
        let got = cost.map(|it| {
            let details: serde_json::Value = serde_json::from_str(&it.details).unwrap();
            (money::to_usd(it.pico), details["source"].as_str().unwrap().to_owned())
        });
        assert_eq!(got, expected.map(|(usd, source)| (usd, source.to_owned())), "{input:?}");
    }

    #[test]
    fn the_order_is_metadata_then_own_cost_then_price() {
        let usage = usage();
        let all = CostInput { metadata_cost_usd: Some(0.5), own_cost: Some(0.25), ..input(&usage) };
        check(all, Some((0.5, "metadata")));
        check(CostInput { metadata_cost_usd: None, ..all }, Some((0.25, "span")));
        check(input(&usage), Some((0.0035, "price_table")));
    }

    #[test]
    fn metadata_is_heard_on_model_calls_only() {
        let usage = usage();
        let other = CostInput { is_llm: false, metadata_cost_usd: Some(0.5), ..input(&usage) };
        check(other, Some((0.0035, "price_table")));
    }

    #[test]
    fn a_cost_of_zero_is_a_cost() {
        let usage = usage();
        check(CostInput { metadata_cost_usd: Some(0.0), ..input(&usage) }, Some((0.0, "metadata")));
        check(CostInput { own_cost: Some(0.0), ..input(&usage) }, Some((0.0, "span")));
    }

    #[test]
    fn invalid_amounts_are_passed_over() {
        let usage = usage();
        for wrong in [-1.0, f64::NAN, f64::INFINITY, 1e9] {
            let all = CostInput { metadata_cost_usd: Some(wrong), own_cost: Some(0.25), ..input(&usage) };
            check(all, Some((0.25, "span")));
            check(CostInput { own_cost: Some(wrong), ..all }, Some((0.0035, "price_table")));
        }
    }

    #[test]
    fn without_price_model_or_tokens_there_is_no_cost() {
        let (usage, nothing) = (usage(), Usage::default());
        assert_eq!(span_cost(&input(&usage), |_| None), None);
        check(CostInput { model: None, ..input(&usage) }, None);
        let unasked = span_cost(&input(&nothing), |_| panic!("no tokens, so no look-up"));
        assert_eq!(unasked, None);
    }

    #[test]
    fn model_asked_prices_a_call_when_the_one_that_answered_is_unknown() {
        let usage = usage();
        let only = |known: &'static str| move |name: &str| (name == known).then(|| rate(Origin::Builtin));
        let both = CostInput { model: Some("claude"), request_model: Some("asked"), ..input(&usage) };
        assert!(span_cost(&both, only("asked")).is_some());
        assert!(span_cost(&both, only("claude")).is_some());
        assert_eq!(span_cost(&both, only("other")), None);
        let mut seen = Vec::new();
        span_cost(&both, |name| {
            seen.push(name.to_owned());
            Some(rate(Origin::Builtin))
        });
        assert_eq!(seen, ["claude"], "the model that answered comes first");
    }

    #[test]
    fn every_bucket_has_its_rate_or_that_of_its_direction() {
        let buckets =
            Buckets { input: 1, cached_input: 10, cache_write: 100, output: 1000, reasoning: 10_000 };
        assert_eq!(total(&buckets, &PRICE), 2_500_000 + 12_500_000 + 250_000_000 + 110_000_000_000);
        let own = Price { cache_write_per_million: Some(3.0), reasoning_per_million: Some(0.0), ..PRICE };
        assert_eq!(total(&buckets, &own), 2_500_000 + 12_500_000 + 300_000_000 + 10_000_000_000);
    }

    #[test]
    fn details_name_source_model_rates_and_buckets() {
        let usage = Usage { cached: Some(400), cached_in_prompt: true, ..usage() };
        let cost = span_cost(&input(&usage), |_| Some(rate(Origin::Tenant))).unwrap();
        insta::assert_snapshot!(cost.details, @r#"{"source":"tenant","model":"gpt-4o","rates":{"input_per_million":2.5,"output_per_million":10.0,"cached_input_per_million":1.25},"buckets":{"input":600,"cached_input":400,"output":100}}"#);
        assert_eq!(cost.pico, 1_500_000_000 + 500_000_000 + 1_000_000_000);
    }
}
