//! Prints how well labelled messages are clustered, and the processor time that this takes. See
//! docs/benchmarks.md.
//!
//! This is a benchmark of the crate `clustering`, so that it does not build the server.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../crates/clustering/tests/labelled/mod.rs"]
mod labelled;
mod processor_time;

use std::process::ExitCode;
use std::time::Duration;

use labelled::score::{cluster, confusions, score};
use labelled::{Half, LabelledMessage, Random, shuffle};
use processor_time::spent;

/// Maximum processor time of clustering 100,000 messages.
const MAX_PROCESSOR_TIME: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let is_verbose = std::env::args().any(|it| it == "-v");
    let files: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    println!(
        "{:<28} {:>7} {:>9} {:>8} {:>7} {:>9} {:>7} {:>7} {:>7} {:>8}",
        "rows", "count", "templates", "clusters", "purity", "precision", "recall", "F1", "orders", "µs each"
    );
    if files.is_empty() {
        for (name, file) in
            [("providers", labelled::PROVIDER_TEMPLATES), ("system logs", labelled::SYSTEM_LOG_TEMPLATES)]
        {
            for half in [Half::Development, Half::HeldOut] {
                let names: Vec<String> = labelled::templates(file)
                    .into_iter()
                    .filter(|it| it.half == half)
                    .map(|it| it.text)
                    .collect();
                let messages = labelled::messages(file, half, 10_000, 7);
                measure(
                    &format!("{name}, {half:?}"),
                    messages,
                    &names,
                    is_verbose && half == Half::Development,
                );
            }
        }
        return if hundred_thousand() <= MAX_PROCESSOR_TIME { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut names: Vec<String> = Vec::new();
        let mut messages = Vec::new();
        for (label, message) in text.lines().filter_map(|it| it.split_once('\t')) {
            let position = names.iter().position(|it| it == label).unwrap_or_else(|| {
                names.push(label.to_owned());
                names.len() - 1
            });
            messages.push(LabelledMessage { label: position, text: message.replace("\\n", "\n") });
        }
        let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
        measure(&name, messages, &names, is_verbose);
    }
    ExitCode::SUCCESS
}

/// Clusters messages in order and twice shuffled, and prints the figures.
fn measure(name: &str, messages: Vec<LabelledMessage>, names: &[String], is_verbose: bool) {
    let (clusters, set) = cluster(&messages);
    let shortest = (0..3)
        .map(|_| {
            let began = spent();
            cluster(&messages);
            spent() - began
        })
        .min()
        .unwrap_or(Duration::ZERO);
    let labels: Vec<usize> = messages.iter().map(|it| it.label).collect();
    let figures = score(&labels, &clusters);
    // The agreement of the clusters of two orders, as the F1 of pairs.
    let agreement = (1..=4)
        .map(|seed| {
            let mut order: Vec<usize> = (0..messages.len()).collect();
            shuffle(&mut order, &mut Random::new(seed));
            let shuffled: Vec<LabelledMessage> = order.iter().map(|it| messages[*it].clone()).collect();
            let (other, _) = cluster(&shuffled);
            let first: Vec<usize> = order.iter().map(|it| clusters[*it] as usize).collect();
            score(&first, &other).pair_f1()
        })
        .fold(1.0, f64::min);
    println!(
        "{name:<28} {:>7} {:>9} {:>8} {:>7.4} {:>9.4} {:>7.4} {:>7.4} {agreement:>7.4} {:>8.1}",
        messages.len(),
        figures.templates,
        figures.clusters,
        figures.purity,
        figures.precision,
        figures.recall,
        figures.pair_f1(),
        shortest.as_secs_f64() * 1e6 / messages.len() as f64
    );
    if is_verbose {
        println!("{}", confusions(&messages, &clusters, &set, names));
    }
}

/// Clusters 100,000 messages of 200 templates of providers, of both halves. Returns the processor time.
fn hundred_thousand() -> Duration {
    let chosen: Vec<_> = labelled::templates(labelled::PROVIDER_TEMPLATES).into_iter().take(200).collect();
    let messages = labelled::generate(&chosen, 100_000, 11);
    let names: Vec<String> = chosen.iter().map(|it| it.text.clone()).collect();
    let began = spent();
    cluster(&messages);
    let time = spent() - began;
    println!("100,000 messages of 200 templates: {:.2} s", time.as_secs_f64());
    measure("200 templates, both halves", messages, &names, false);
    time
}
