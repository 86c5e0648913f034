//! Floors for the figures on the labelled messages of `tests/data`.
//!
//! Rules and constants were chosen on the development half; the held-out half says how well they carry over.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod labelled;

use labelled::score::{Score, cluster, confusions, score};
use labelled::{Half, LabelledMessage, PROVIDER_TEMPLATES, Random, SYSTEM_LOG_TEMPLATES, shuffle};

const MESSAGE_COUNT: usize = 6_000;

/// Clusters messages of a half and returns the figures. Prints the confusions of the development half.
fn figures(file: &str, half: Half) -> Score {
    let messages = labelled::messages(file, half, MESSAGE_COUNT, 7);
    let (clusters, set) = cluster(&messages);
    let figures = score(&labels(&messages), &clusters);
    println!("{half:?}: {figures:?}, pair F1 {:.4}", figures.pair_f1());
    if half == Half::Development {
        let names: Vec<String> =
            labelled::templates(file).into_iter().filter(|it| it.half == half).map(|it| it.text).collect();
        println!("{}", confusions(&messages, &clusters, &set, &names));
    }
    figures
}

fn labels(messages: &[LabelledMessage]) -> Vec<usize> {
    messages.iter().map(|it| it.label).collect()
}

#[test]
fn providers_messages_reach_the_floors() {
    for (half, f1) in [(Half::Development, 0.97), (Half::HeldOut, 0.95)] {
        let figures = figures(PROVIDER_TEMPLATES, half);
        assert!(figures.pair_f1() >= f1 && figures.purity >= 0.98, "{half:?}: {figures:?}");
    }
}

#[test]
fn system_log_messages_reach_the_floors() {
    for half in [Half::Development, Half::HeldOut] {
        let figures = figures(SYSTEM_LOG_TEMPLATES, half);
        assert!(figures.pair_f1() >= 0.97 && figures.purity >= 0.98, "{half:?}: {figures:?}");
    }
}

#[test]
fn two_hundred_templates_give_few_more_clusters() {
    let chosen: Vec<_> = labelled::templates(PROVIDER_TEMPLATES).into_iter().take(200).collect();
    let messages = labelled::generate(&chosen, 20_000, 11);
    let (clusters, _) = cluster(&messages);
    let figures = score(&labels(&messages), &clusters);
    println!("{figures:?}");
    assert_eq!(figures.templates, 200);
    assert!(figures.clusters <= 220 && figures.purity >= 0.98, "{figures:?}");
}

#[test]
fn other_order_gives_nearly_the_same_clusters() {
    for file in [PROVIDER_TEMPLATES, SYSTEM_LOG_TEMPLATES] {
        let messages = labelled::messages(file, Half::HeldOut, MESSAGE_COUNT, 5);
        let (clusters, _) = cluster(&messages);
        for seed in 1..=3 {
            let mut order: Vec<usize> = (0..messages.len()).collect();
            shuffle(&mut order, &mut Random::new(seed));
            let shuffled: Vec<LabelledMessage> = order.iter().map(|it| messages[*it].clone()).collect();
            let (other, _) = cluster(&shuffled);
            let first: Vec<usize> = order.iter().map(|it| clusters[*it] as usize).collect();
            let agreement = score(&first, &other).pair_f1();
            assert!(agreement >= 0.96, "pair F1 between two orders: {agreement}");
        }
    }
}

#[test]
fn same_messages_give_the_same_clusters() {
    let messages = labelled::messages(PROVIDER_TEMPLATES, Half::Development, 2_000, 3);
    let (first, set) = cluster(&messages);
    let (second, other) = cluster(&messages);
    assert_eq!(first, second);
    let rows = |set: &clustering::ClusterSet<u64>| set.ids().map(|it| set.stored(it)).collect::<Vec<_>>();
    assert_eq!(rows(&set), rows(&other));
}

#[test]
fn set_reloaded_between_batches_gives_the_same_clusters() {
    let messages = labelled::messages(PROVIDER_TEMPLATES, Half::Development, 2_000, 9);
    let (expected, _) = cluster(&messages);
    let mut set = clustering::ClusterSet::default();
    let mut next = 0;
    let mut found = Vec::new();
    for batch in messages.chunks(37) {
        for it in batch {
            let failure =
                clustering::FailureText { failure_type: "other", span_name: "chat", message: &it.text };
            let id = || {
                next += 1;
                next
            };
            found.push(set.assign(&failure, id).cluster);
        }
        let rows = set.ids().filter_map(|it| set.stored(it)).collect();
        set = clustering::ClusterSet::load(rows);
    }
    assert_eq!(found, expected);
}
