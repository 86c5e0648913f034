//! Tests of roll-ups, including independence of the order of spans.

use proptest::prelude::*;

use super::*;

fn id(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

/// Returns a span that starts at `n` milliseconds, takes one millisecond and reports nothing.
fn span(n: u128, parent: Option<u128>) -> SpanFacts<'static> {
    let start_us = n as i64 * 1000;
    SpanFacts {
        id: id(n),
        parent: parent.map(id),
        start_us,
        end_us: Some(start_us + 1000),
        latency_ms: None,
        is_llm: false,
        model: None,
        has_error: false,
        failure: None,
        prompt: None,
        completion: None,
        usage_details: UsageDetails::default(),
        cost_pico: None,
        has_input: false,
        has_output: false,
        response_id: None,
        literal: false,
    }
}

fn llm(n: u128, parent: Option<u128>, prompt: i64, completion: i64) -> SpanFacts<'static> {
    SpanFacts { is_llm: true, prompt: Some(prompt), completion: Some(completion), ..span(n, parent) }
}

/// Checks tokens and cost of the trace for several orders of its spans.
fn check(spans: &[SpanFacts<'_>], prompt: Option<i64>, total: i64, cost: Option<Pico>) {
    let mut spans = spans.to_vec();
    for _ in 0..spans.len() {
        let rolled = rollup(&spans);
        let got = (rolled.prompt_tokens, rolled.total_tokens, rolled.cost_pico);
        assert_eq!(got, (prompt, total, cost), "{spans:#?}");
        spans.rotate_left(1);
    }
}

#[test]
fn rollup_of_no_spans_is_empty() {
    assert_eq!(rollup(&[]), Rollup::default());
}

#[test]
fn rollup_takes_error_and_latency_from_root() {
    let root = SpanFacts { end_us: Some(50_000), ..span(2, None) };
    let failed = SpanFacts {
        has_error: true,
        failure: Some(FailureType::RateLimit),
        end_us: Some(90_000),
        ..span(3, Some(2))
    };
    let rolled = rollup(&[failed, span(4, None), root, span(1, Some(2))]);
    assert_eq!(rolled.root, Some(2));
    assert_eq!(rolled.first, Some(3));
    assert_eq!(rolled.error, None, "a failed child of a successful root was recovered");
    assert_eq!((rolled.started_us, rolled.ended_us), (1000, Some(90_000)));
    assert_eq!(rolled.latency_ms, Some(48));
    assert!(rolled.failures.contains(FailureType::RateLimit));
    assert!(!rolled.failures.contains(FailureType::Timeout));
    let failed_root = SpanFacts { has_error: true, ..root };
    assert_eq!(rollup(&[failed, failed_root]).error, Some(1));
}

#[test]
fn rollup_without_root_takes_first_error_and_whole_duration() {
    let failed = |n| SpanFacts { has_error: true, ..span(n, Some(99)) };
    let rolled = rollup(&[failed(5), span(1, Some(99)), failed(3)]);
    assert_eq!((rolled.root, rolled.error, rolled.first), (None, Some(2), Some(1)));
    assert_eq!(rolled.latency_ms, Some(5));
}

#[test]
fn rollup_uses_latency_when_end_is_missing() {
    let root = SpanFacts { end_us: None, latency_ms: Some(250), ..span(1, None) };
    let rolled = rollup(&[root]);
    assert_eq!((rolled.ended_us, rolled.latency_ms), (Some(251_000), Some(250)));
    let open = SpanFacts { end_us: None, ..span(1, None) };
    assert_eq!(rollup(&[open]).latency_ms, None);
    assert_eq!(rollup(&[open, span(4, Some(1))]).latency_ms, Some(4));
}

#[test]
fn rollup_takes_model_of_first_model_call() {
    let named = |n, model| SpanFacts { model: Some(model), ..span(n, None) };
    let call = |n, model| SpanFacts { model: Some(model), ..llm(n, Some(1), 1, 1) };
    let agent = named(1, "agent");
    assert_eq!(rollup(&[call(5, "b"), agent, call(3, "a")]).model, Some(2));
    assert_eq!(rollup(&[named(2, "late"), agent]).model, Some(1));
    assert_eq!(rollup(&[llm(1, None, 1, 1), named(2, "x")]).model, Some(1));
}

#[test]
fn wrapper_that_repeats_its_calls_does_not_count() {
    // A wrapper that repeats its last step, several levels above it.
    let spans = [
        llm(1, None, 180, 13),
        span(2, Some(1)),
        llm(3, Some(2), 170, 33),
        llm(4, Some(2), 178, 33),
        llm(5, Some(1), 180, 13),
    ];
    check(&spans, Some(528), 528 + 79, None);
    assert_eq!(rollup(&spans).counted, [false, true, true, true, true]);
}

#[test]
fn wrapper_counts_when_its_calls_report_nothing() {
    check(&[llm(1, None, 10, 5), span(2, Some(1))], Some(10), 15, None);
    check(&[llm(1, None, 10, 5), llm(2, Some(1), 0, 0)], Some(10), 15, None);
}

#[test]
fn wrapper_without_links_to_its_calls_counts() {
    check(&[llm(1, None, 10, 5), llm(3, Some(2), 10, 5)], Some(20), 30, None);
}

#[test]
fn siblings_with_same_response_count_once() {
    let of = |response, it| SpanFacts { response_id: Some(response), ..it };
    let spans = [
        span(1, None),
        of(7, llm(2, Some(1), 21, 11)),
        of(7, llm(3, Some(1), 21, 12)),
        of(8, llm(4, Some(1), 21, 11)),
    ];
    check(&spans, Some(42), 64, None);
    assert_eq!(rollup(&spans).counted, [true, true, false, true]);
    // A model call takes precedence over other spans.
    let other = SpanFacts { is_llm: false, ..spans[1] };
    assert_eq!(rollup(&[spans[0], other, spans[2]]).counted, [true, false, true]);
}

#[test]
fn response_counts_once_when_wrapper_repeats_it() {
    let of = |it| SpanFacts { response_id: Some(7), ..it };
    // The wrapper of the same response starts first; the call below it counts.
    check(&[of(llm(1, None, 9, 1)), of(llm(2, Some(1), 9, 1))], Some(9), 10, None);
    // The call below repeats a sibling; its wrapper must not count instead.
    check(
        &[span(1, None), llm(2, Some(1), 9, 1), of(llm(3, Some(2), 9, 1)), of(llm(4, Some(1), 9, 1))],
        Some(9),
        10,
        None,
    );
}

#[test]
fn tokens_and_cost_are_deduplicated_separately() {
    let cost = |pico, it| SpanFacts { cost_pico: Some(pico), ..it };
    let costs_only = |n| cost(500, span(n, Some(1)));
    check(&[llm(1, None, 10, 5), costs_only(2)], Some(10), 15, Some(500));
    check(&[cost(900, llm(1, None, 10, 5)), costs_only(2)], Some(10), 15, Some(500));
    check(&[cost(900, span(1, None)), llm(2, Some(1), 10, 5)], Some(10), 15, Some(900));
    check(&[cost(900, span(1, None)), cost(0, llm(2, Some(1), 10, 5))], Some(10), 15, Some(900));
    check(&[cost(0, span(1, None)), span(2, Some(1))], None, 0, Some(0));
}

#[test]
fn json_spans_are_not_deduplicated() {
    let literal = |it| SpanFacts { literal: true, response_id: Some(1), cost_pico: Some(3), ..it };
    let spans = [literal(llm(1, None, 10, 5)), literal(llm(2, Some(1), 10, 5))];
    check(&spans, Some(20), 30, Some(6));
    let repeated = SpanFacts { response_id: Some(1), ..llm(0, None, 10, 5) };
    assert_eq!(rollup(&[repeated, spans[0]]).counted, [false, true]);
}

fn details(cached: i64, reasoning: i64) -> UsageDetails {
    UsageDetails {
        cached_input_tokens: Some(cached),
        reasoning_tokens: Some(reasoning),
        ..UsageDetails::default()
    }
}

/// Checks the details of the trace for several orders of its spans.
fn check_details(spans: &[SpanFacts<'_>], expected: UsageDetails) {
    let mut spans = spans.to_vec();
    for _ in 0..spans.len() {
        assert_eq!(rollup(&spans).usage_details, expected, "{spans:#?}");
        spans.rotate_left(1);
    }
}

#[test]
fn usage_details_are_summed_for_spans_that_count() {
    let with = |cached, reasoning, it| SpanFacts { usage_details: details(cached, reasoning), ..it };
    check_details(&[llm(1, None, 10, 5)], UsageDetails::default());
    check_details(&[with(0, 0, llm(1, None, 10, 5))], details(0, 0));
    check_details(&[with(7, 2, llm(2, Some(1), 10, 5)), with(1, 1, llm(3, Some(1), 4, 2))], details(8, 3));
    // A wrapper repeats the tokens of the calls below it.
    check_details(&[with(8, 3, llm(1, None, 14, 7)), with(7, 2, llm(2, Some(1), 10, 5))], details(7, 2));
    let literal = |it| SpanFacts { literal: true, ..it };
    check_details(
        &[literal(with(8, 3, llm(1, None, 14, 7))), literal(with(7, 2, llm(2, Some(1), 10, 5)))],
        details(15, 5),
    );
}

#[test]
fn usage_details_without_tokens_count_once() {
    let only = |n, parent| SpanFacts { usage_details: details(7, 2), ..span(n, parent) };
    check_details(&[only(1, None)], details(7, 2));
    check_details(&[only(1, None), only(2, Some(1))], details(7, 2));
    check_details(&[only(1, None), llm(2, Some(1), 10, 5)], UsageDetails::default());
    let of = |it| SpanFacts { response_id: Some(1), ..it };
    check_details(&[of(only(1, None)), of(only(2, None))], details(7, 2));
    check_details(&[of(only(1, None)), of(llm(2, None, 10, 5))], UsageDetails::default());
    check(&[llm(1, None, 10, 5), only(2, Some(1))], Some(10), 15, None);
}

#[test]
fn rollup_takes_texts_of_first_and_last_call() {
    let call = |n, has_input, has_output| SpanFacts { has_input, has_output, ..llm(n, Some(1), 1, 1) };
    let calls = |spans: &[SpanFacts<'_>]| {
        let rolled = rollup(spans);
        (rolled.first_call.map(|at| spans[at].id), rolled.last_call.map(|at| spans[at].id))
    };
    assert_eq!(calls(&[span(1, None)]), (None, None));
    let spans = [call(4, true, true), span(1, None), call(2, true, true), call(3, true, true)];
    assert_eq!(calls(&spans), (Some(id(2)), Some(id(4))));
    // A second span of the last call has no texts.
    assert_eq!(calls(&[call(2, true, true), call(3, false, false)]), (Some(id(2)), Some(id(2))));
    // Earlier output is not the response of a failed call.
    let failed = SpanFacts { has_error: true, ..call(3, true, false) };
    assert_eq!(calls(&[call(2, false, true), failed]), (Some(id(3)), None));
    assert_eq!(calls(&[failed, call(4, true, true)]), (Some(id(3)), Some(id(4))));
    let tool = SpanFacts { has_input: true, has_output: true, ..span(2, Some(1)) };
    assert_eq!(calls(&[tool]), (None, None));
}

#[test]
fn parent_loops_are_cut_and_counted_once() {
    check(&[llm(1, Some(1), 10, 5)], Some(10), 15, None);
    // 1 -> 3 -> 2 -> 1: cut at 1, so 3 below 2 below 1 is the call.
    let spans = [llm(1, Some(3), 7, 0), llm(2, Some(1), 8, 0), llm(3, Some(2), 9, 0)];
    check(&spans, Some(9), 9, None);
    assert_eq!(rollup(&spans).root, None);
}

#[test]
fn token_sums_saturate_and_ignore_negative_counts() {
    check(&[llm(1, None, i64::MAX, 1), llm(2, None, i64::MAX, 1)], Some(i64::MAX), i64::MAX, None);
    check(&[llm(1, None, -5, -5), llm(2, None, 3, 0)], Some(3), 3, None);
    check(&[llm(1, None, -5, -5)], None, 0, None);
}

#[test]
fn extreme_span_times_do_not_overflow() {
    let far = SpanFacts { start_us: i64::MAX, end_us: Some(i64::MIN), ..span(1, None) };
    let past = SpanFacts { start_us: i64::MIN, end_us: None, latency_ms: Some(i64::MAX), ..span(2, Some(9)) };
    assert_eq!(rollup(&[far, past]).latency_ms, Some(0));
    assert_eq!(rollup(&[past]).latency_ms, Some(i64::MAX / 1000));
}

#[test]
fn chain_of_25_000_spans_does_not_recurse() {
    let n = 25_000;
    let mut chain: Vec<_> = (0..n).map(|at| llm(at, at.checked_sub(1), 1, 1)).collect();
    check_chain(&chain, n as usize - 1);
    chain[0].parent = Some(id(n - 1));
    check_chain(&chain, n as usize - 1);
}

fn check_chain(chain: &[SpanFacts<'_>], last: usize) {
    let rolled = rollup(chain);
    assert_eq!(rolled.total_tokens, 2);
    assert_eq!(rolled.counted.iter().position(|&it| it), Some(last));
}

#[test]
fn failure_set_contains_inserted_types() {
    let mut set = FailureSet::from(FailureType::Timeout);
    set.insert(FailureType::ContextLength);
    assert_eq!(set.bits(), 9);
    assert_eq!(FailureSet::from_bits(set.bits()), set);
    assert_eq!(FailureSet::from_bits(0xff).bits(), 0b11_1111);
    assert!(!set.is_empty() && FailureSet::default().is_empty());
}

/// Generates up to twelve spans. A parent may be missing, the span itself, or part of a cycle.
fn spans() -> impl Strategy<Value = Vec<SpanFacts<'static>>> {
    let count = || prop_oneof![Just(None), (0..5_i64).prop_map(Some)];
    let one = (
        (prop::option::of(0..14_u128), 0..4_i64, prop::option::of(0..9_i64)),
        (any::<bool>(), any::<bool>(), prop_oneof![9 => Just(false), 1 => Just(true)]),
        (count(), count(), count(), prop::option::of(0..3_u64)),
        (count(), any::<bool>(), any::<bool>()),
        prop::option::of(prop::sample::select(vec!["a", "b"])),
    );
    prop::collection::vec(one, 0..12).prop_map(|all| {
        let numbered = all.into_iter().enumerate();
        let facts = numbered.map(|(n, (place, flags, counts, said, model))| SpanFacts {
            id: id(n as u128),
            parent: place.0.map(id),
            start_us: place.1,
            end_us: place.2,
            is_llm: flags.0,
            has_error: flags.1,
            literal: flags.2,
            failure: flags.1.then_some(FailureType::Other),
            prompt: counts.0,
            completion: counts.1,
            usage_details: UsageDetails { cached_input_tokens: said.0, ..UsageDetails::default() },
            cost_pico: counts.2,
            has_input: said.1,
            has_output: said.2,
            response_id: counts.3,
            model,
            latency_ms: None,
        });
        facts.collect()
    })
}

/// Returns a roll-up with IDs instead of positions, so that two orders can be compared.
fn by_id(spans: &[SpanFacts<'_>]) -> impl PartialEq + std::fmt::Debug {
    let rolled = rollup(spans);
    let ids = |at: Option<usize>| at.map(|it| spans[it].id);
    let counted = |flags: &[bool]| {
        let mut ids: Vec<_> = spans.iter().zip(flags).filter(|(_, it)| **it).map(|(it, _)| it.id).collect();
        ids.sort_unstable();
        ids
    };
    let Rollup { root, model, error, first, first_call, last_call, .. } = rolled;
    let places = [root, model, error, first, first_call, last_call].map(ids);
    let flags = (counted(&rolled.counted), counted(&rolled.cost_counted));
    let numbers = Rollup {
        root: None,
        model: None,
        error: None,
        first: None,
        first_call: None,
        last_call: None,
        counted: vec![],
        cost_counted: vec![],
        ..rolled
    };
    (places, flags, numbers)
}

#[test]
fn literal_span_below_a_call_is_added_to_it() {
    let remediated = SpanFacts { literal: true, ..llm(2, Some(1), 10, 5) };
    check(&[llm(1, None, 70, 7), remediated], Some(80), 92, None);
}

proptest! {
    #[test]
    fn rollup_is_independent_of_span_order(
        (given, shuffled) in spans().prop_flat_map(|it| (Just(it.clone()), Just(it).prop_shuffle()))
    ) {
        prop_assert_eq!(by_id(&given), by_id(&shuffled));
    }

    #[test]
    fn each_response_counts_at_most_once_unless_literal(given in spans()) {
        let rolled = rollup(&given);
        for response in 0..3 {
            let counted = given.iter().zip(&rolled.counted).filter(|(it, counted)| {
                **counted && it.response_id == Some(response) && !it.literal
                    && (it.prompt > Some(0) || it.completion > Some(0))
            });
            prop_assert!(counted.count() <= 1);
        }
    }

    #[test]
    fn reported_tokens_are_never_lost(given in spans()) {
        let reported = given.iter().any(|it| it.prompt > Some(0) || it.completion > Some(0));
        prop_assert_eq!(rollup(&given).total_tokens > 0, reported);
    }
}
