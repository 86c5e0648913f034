//! Computes the cost of a span.
//!
//! Prices of models are found by [`crate::prices`]; costs of spans are summed by [`crate::rollup`].
//!
//! **Invariant:** tokens are never estimated. Without a known price or a reported token count there is
//! no cost at all, which differs from a cost of zero.

use std::sync::Arc;

use serde::Serialize;

use crate::money::{self, Pico};
use crate::prices::{Origin, Price, Rate};
use crate::usage::{Buckets, Usage};

/// The properties of a span that determine its cost.
#[derive(Clone, Copy, Debug)]
pub struct CostInput<'a> {
    /// Whether the span is a model call.
    pub is_llm: bool,
    /// `metadata.cost_usd` in US dollars; used for model calls only.
    pub metadata_cost_usd: Option<f64>,
    /// The span's own cost in US dollars.
    pub own_cost: Option<f64>,
    /// Model name as sent.
    pub model: Option<&'a str>,
    /// The requested model, if a different one responded. Its price applies when the price of `model`
    /// is unknown.
    pub request_model: Option<&'a str>,
    /// Token counts as sent.
    pub usage: &'a Usage,
}

/// A span's cost and its derivation.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// The cost in pico-dollars.
    pub pico: Pico,
    /// The derivation.
    pub details: CostDerivation,
}

/// The derivation of a cost, which `metadata.cost_details` shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum CostDerivation {
    /// `metadata.cost_usd`.
    Metadata,
    /// The span's own cost.
    Span,
    /// The price table of the server.
    PriceTable(PricedTokens),
    /// A price that the tenant set.
    Tenant(PricedTokens),
}

/// Tokens and their price.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PricedTokens {
    /// Base name of the model.
    pub model: Arc<str>,
    /// US dollars per million tokens.
    pub rates: Price,
    /// Token counts; empty buckets are omitted.
    pub buckets: Buckets,
}

/// Computes the cost of a span; `None` if nothing determines it.
///
/// Uses the first valid amount of: `metadata.cost_usd` of a model call; the span's own cost; its tokens
/// times the price that `price` returns for its model, else for the requested model. `price` is called
/// only if tokens were reported.
pub fn span_cost(input: &CostInput<'_>, price: impl FnMut(&str) -> Option<Rate>) -> Option<Cost> {
    let told = input.metadata_cost_usd.filter(|_| input.is_llm).and_then(money::from_usd);
    if let Some(pico) = told {
        return Some(Cost { pico, details: CostDerivation::Metadata });
    }
    if let Some(pico) = input.own_cost.and_then(money::from_usd) {
        return Some(Cost { pico, details: CostDerivation::Span });
    }
    if !input.usage.is_reported() {
        return None;
    }
    let rate = [input.model, input.request_model].into_iter().flatten().find_map(price)?;
    let buckets = input.usage.buckets();
    let pico = total(&buckets, &rate.price);
    let tokens = PricedTokens { model: rate.model, rates: rate.price, buckets };
    let details = match rate.origin {
        Origin::Tenant => CostDerivation::Tenant(tokens),
        Origin::File | Origin::Builtin => CostDerivation::PriceTable(tokens),
    };
    Some(Cost { pico, details })
}

/// Returns the cost of the buckets in pico-dollars. A missing rate defaults to the input or output
/// rate.
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
            let details = serde_json::to_value(&it.details).unwrap();
            (money::to_usd(it.pico), details["source"].as_str().unwrap().to_owned())
        });
        assert_eq!(got, expected.map(|(usd, source)| (usd, source.to_owned())), "{input:?}");
    }

    #[test]
    fn cost_prefers_metadata_then_own_cost_then_price() {
        let usage = usage();
        let all = CostInput { metadata_cost_usd: Some(0.5), own_cost: Some(0.25), ..input(&usage) };
        check(all, Some((0.5, "metadata")));
        check(CostInput { metadata_cost_usd: None, ..all }, Some((0.25, "span")));
        check(input(&usage), Some((0.0035, "price_table")));
    }

    #[test]
    fn metadata_cost_is_used_for_model_calls_only() {
        let usage = usage();
        let other = CostInput { is_llm: false, metadata_cost_usd: Some(0.5), ..input(&usage) };
        check(other, Some((0.0035, "price_table")));
    }

    #[test]
    fn cost_of_zero_is_kept() {
        let usage = usage();
        check(CostInput { metadata_cost_usd: Some(0.0), ..input(&usage) }, Some((0.0, "metadata")));
        check(CostInput { own_cost: Some(0.0), ..input(&usage) }, Some((0.0, "span")));
    }

    #[test]
    fn invalid_cost_is_skipped() {
        let usage = usage();
        for wrong in [-1.0, f64::NAN, f64::INFINITY, 1e9] {
            let all = CostInput { metadata_cost_usd: Some(wrong), own_cost: Some(0.25), ..input(&usage) };
            check(all, Some((0.25, "span")));
            check(CostInput { own_cost: Some(wrong), ..all }, Some((0.0035, "price_table")));
        }
    }

    #[test]
    fn cost_is_none_without_price_model_or_tokens() {
        let (usage, nothing) = (usage(), Usage::default());
        assert_eq!(span_cost(&input(&usage), |_| None), None);
        check(CostInput { model: None, ..input(&usage) }, None);
        let unasked = span_cost(&input(&nothing), |_| panic!("the price is not looked up without tokens"));
        assert_eq!(unasked, None);
    }

    #[test]
    fn requested_model_prices_call_of_unknown_response_model() {
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
        assert_eq!(seen, ["claude"], "the model of the response comes first");
    }

    #[test]
    fn missing_bucket_rate_defaults_to_input_or_output_rate() {
        let buckets =
            Buckets { input: 1, cached_input: 10, cache_write: 100, output: 1000, reasoning: 10_000 };
        assert_eq!(total(&buckets, &PRICE), 2_500_000 + 12_500_000 + 250_000_000 + 110_000_000_000);
        let own = Price { cache_write_per_million: Some(3.0), reasoning_per_million: Some(0.0), ..PRICE };
        assert_eq!(total(&buckets, &own), 2_500_000 + 12_500_000 + 300_000_000 + 10_000_000_000);
    }

    #[test]
    fn cost_details_contain_source_model_rates_and_buckets() {
        let usage = Usage { cached: Some(400), cached_in_prompt: true, ..usage() };
        let cost = span_cost(&input(&usage), |_| Some(rate(Origin::Tenant))).unwrap();
        let details = serde_json::to_string(&cost.details).unwrap();
        insta::assert_snapshot!(details, @r#"{"source":"tenant","model":"gpt-4o","rates":{"input_per_million":2.5,"output_per_million":10.0,"cached_input_per_million":1.25},"buckets":{"input":600,"cached_input":400,"output":100}}"#);
        assert_eq!(cost.pico, 1_500_000_000 + 500_000_000 + 1_000_000_000);
    }
}
