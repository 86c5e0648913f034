//! Compares the roll-up tree with a list of the same facts.

use std::{collections::BTreeMap, sync::Arc};

use api::metrics::Interval;
use proptest::prelude::*;
use store::metrics::{
    fact::Fact,
    level::Level,
    range::ranges,
    tree::{Facts, apply, by_start, put},
    wire,
};

use super::query_result::{ComputedMetrics, MetricsQuery, MetricsResult};

const DAY: i64 = 86_400_000_000;

/// The nodes as stored in a database.
#[derive(Default)]
struct Tree(BTreeMap<(Level, i64), Vec<u8>>);

impl Tree {
    fn fold(&mut self, facts: Facts) {
        let mut level = Some(Level::DAY);
        let mut todo = by_start(Level::DAY, facts);
        while let Some(here) = level {
            let mut below: BTreeMap<i64, Facts> = BTreeMap::new();
            for (start, facts) in todo {
                let stored = self.0.get(&(here, start)).map(|it| wire::decode(it).unwrap());
                let change = apply(here, start, stored.unwrap_or_default(), facts);
                for (level, start, node) in change.nodes {
                    assert_eq!(wire::decode(&wire::encode(&node)).unwrap(), node);
                    if node.is_empty() {
                        self.0.remove(&(level, start));
                    } else {
                        self.0.insert((level, start), wire::encode(&node));
                    }
                }
                below.extend(change.below);
            }
            (todo, level) = (below, here.next());
        }
    }

    fn run(&self, query: MetricsQuery) -> ComputedMetrics {
        let mut result = MetricsResult::new(query.clone());
        for range in ranges(query.from, query.to, query.widest()) {
            for ((level, start), bytes) in self.0.range((range.level, range.from)..=(range.level, range.to)) {
                let node = wire::EncodedNode::open(bytes).unwrap();
                if !range.leaves || node.facts().is_some() {
                    assert_eq!(result.add_node(*level, *start, &node).unwrap(), None);
                }
            }
        }
        result.values()
    }
}

/// Returns the values computed from the list.
fn by_hand(facts: &[Fact], query: &MetricsQuery) -> ComputedMetrics {
    let mut result = MetricsResult::new(query.clone());
    for fact in facts {
        result.add(fact, 1);
    }
    result.values()
}

fn fact() -> impl Strategy<Value = Fact> {
    let at = prop_oneof![
        0..3 * DAY,
        (0..200_i64).prop_map(|it| DAY + it),
        (0..50_i64).prop_map(|it| DAY + it * 60_000_000),
    ];
    (
        at,
        0..4_u8,
        any::<bool>(),
        proptest::option::of(0..3_i16),
        proptest::option::of(0..100_000_i64),
        0..9_i64,
    )
        .prop_map(|(at, model, error, feedback, latency_ms, cost)| Fact {
            at,
            model: (model > 0).then(|| Arc::from(format!("model-{model}"))),
            error,
            feedback,
            latency_ms,
            cost,
            tokens: cost * 100,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn rollup_tree_gives_same_values_as_list(
        facts in proptest::collection::vec(fact(), 1..700),
        gone in proptest::collection::vec(any::<prop::sample::Index>(), 0..200),
        batch in 1..300_usize,
        ends in (0..3 * DAY, 0..3 * DAY),
        interval in proptest::option::of(prop_oneof![Just(Interval::Hour), Just(Interval::Day)]),
        model in proptest::option::of(Just("model-2".to_owned())),
    ) {
        let mut tree = Tree::default();
        let mut kept = facts.clone();
        for batch in facts.chunks(batch) {
            let mut sum = Facts::new();
            for fact in batch {
                put(&mut sum, fact.clone(), 1);
            }
            tree.fold(sum);
        }
        let mut sum = Facts::new();
        for index in gone {
            if !kept.is_empty() {
                let at = index.index(kept.len());
                put(&mut sum, kept.swap_remove(at), -1);
            }
        }
        tree.fold(sum);

        for (from, to) in [(0, 3 * DAY), (ends.0.min(ends.1), ends.0.max(ends.1)), (DAY, DAY + 100)] {
            let query = MetricsQuery { from, to, model: model.clone(), interval, by_model: true };
            let (found, right) = (tree.run(query.clone()), by_hand(&kept, &query));
            prop_assert_eq!(found.all, right.all);
            prop_assert_eq!(found.series, right.series);
            prop_assert_eq!(found.groups, right.groups);
        }
        for fact in kept {
            tree.fold(Facts::from([(fact, -1)]));
        }
        prop_assert!(tree.0.is_empty());
    }
}

#[test]
fn percentiles_are_within_one_percent_of_exact() {
    let mut seed = 7_u64;
    let mut latencies: Vec<i64> = (0..5_000)
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (f64::from((seed >> 33) as u32 % 100_000) / 9_000.0).exp() as i64
        })
        .collect();
    let facts: Vec<Fact> = latencies
        .iter()
        .map(|it| Fact {
            at: 5,
            model: None,
            error: false,
            feedback: None,
            latency_ms: Some(*it),
            cost: 0,
            tokens: 0,
        })
        .collect();
    let query = MetricsQuery { from: 0, to: 9, model: None, interval: None, by_model: false };
    let found = by_hand(&facts, &query).all;
    latencies.sort_unstable();
    for (percent, found) in [(50, found.latency_p50), (95, found.latency_p95), (99, found.latency_p99)] {
        let rank = (latencies.len() - 1) as f64 * f64::from(percent) / 100.0;
        let (low, high) = (latencies[rank as usize] as f64, latencies[rank as usize + 1] as f64);
        let exact = low + (high - low) * rank.fract();
        assert!((found.unwrap() - exact).abs() <= exact / 100.0, "{percent}: {found:?} {exact}");
    }
}

/// A model name per trace does not make nodes longer.
#[test]
fn models_beyond_the_limit_are_added_up_together() {
    let mut tree = Tree::default();
    let mut sum = Facts::new();
    for i in 0..2_000 {
        let model = Some(Arc::from(format!("m{i:04}")));
        put(
            &mut sum,
            Fact { at: i, model, error: false, feedback: None, latency_ms: Some(i), cost: 1, tokens: 1 },
            1,
        );
    }
    tree.fold(sum);
    let query = MetricsQuery { from: 0, to: DAY - 1, model: None, interval: None, by_model: true };
    let found = tree.run(query);
    assert_eq!(found.all.trace_count, 2_000);
    assert_eq!(found.groups.len(), super::query_result::MAX_GROUPS);
    assert!(found.truncated);
    assert!(tree.0.values().map(Vec::len).max().unwrap() < 20_000);

    let query =
        MetricsQuery { from: 0, to: DAY - 1, model: Some("m1999".into()), interval: None, by_model: false };
    let mut result = MetricsResult::new(query);
    let day = wire::EncodedNode::open(&tree.0[&(Level::DAY, 0)]).unwrap();
    assert!(result.add_node(Level::DAY, 0, &day).unwrap().is_some(), "the totals of the model are unknown");
}
