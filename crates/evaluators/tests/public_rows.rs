//! Accuracy of the code evaluators on rows of public data sets, which are independent of the authors of the
//! evaluators.
//!
//! The rows are not part of the repository: `LOUPE_TEST_PUBLIC_ROWS` names the folder that holds their files, and
//! without it nothing is measured. `docs/evaluators.md` names sources, licences and figures.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::{collections::BTreeSet, path::PathBuf};

use evaluators::{Subject, builtin};
use serde_json::{Value, json};

/// Returns the content of a file in the folder of `LOUPE_TEST_PUBLIC_ROWS`.
#[allow(clippy::disallowed_methods, reason = "the folder is configured by the environment")]
fn file(name: &str) -> Option<String> {
    let folder = PathBuf::from(std::env::var_os("LOUPE_TEST_PUBLIC_ROWS")?);
    std::fs::read_to_string(folder.join(name)).ok()
}

/// Returns the score and the reasoning of a code evaluator, or nothing if it has no verdict.
fn judged(metric: &str, config: &Value, output: &str) -> Option<(f64, String)> {
    let definition = builtin::find(metric).expect("a built-in evaluator");
    let evaluator = definition.compile(config.as_object().expect("an object")).expect("a valid config");
    let verdict = evaluator.evaluate(&Subject { output: Some(output.to_owned()), ..Subject::default() });
    verdict.ok().map(|it| (it.score, it.reasoning))
}

/// The sentiments in the order of the columns of [`Confusion`].
const SENTIMENT_NAMES: [&str; 3] = ["negative", "neutral", "positive"];

/// Index of "no verdict" among the columns of [`Confusion`].
const NO_VERDICT: usize = 3;

/// Returns the index of the sentiment that `sentiment_match` finds in a text.
fn found_sentiment(text: &str) -> usize {
    match judged("sentiment_match", &json!({"expected": "positive"}), text) {
        None => NO_VERDICT,
        Some((score, _)) if score > 0.75 => 2,
        Some((score, _)) if score < 0.25 => 0,
        Some(_) => 1,
    }
}

/// Counts of rows by labelled (row) and found (column) sentiment.
#[derive(Debug, Default)]
struct Confusion([[u32; 4]; 3]);

impl Confusion {
    fn add(&mut self, text: &str, label: &str) {
        let labelled = SENTIMENT_NAMES.iter().position(|it| *it == label).expect("a known label");
        self.0[labelled][found_sentiment(text)] += 1;
    }

    /// Returns the harmonic mean of precision and recall of one sentiment.
    fn f1(&self, class: usize) -> f64 {
        let right = f64::from(self.0[class][class]);
        let labelled = f64::from(self.0[class].iter().sum::<u32>());
        let found = f64::from(self.0.iter().map(|it| it[class]).sum::<u32>());
        2.0 * right / (labelled + found)
    }

    fn macro_f1(&self, classes: &[usize]) -> f64 {
        classes.iter().map(|it| self.f1(*it)).sum::<f64>() / classes.len() as f64
    }
}

/// Names of the kinds of `pii_leakage` in the data set. The evaluator does not look for the others.
const KIND_NAMES: [(&str, &str); 6] = [
    ("PHONE_NUMBER", "phone"),
    ("CREDIT_CARD", "payment_card"),
    ("US_SSN", "national_id"),
    ("IBAN_CODE", "iban"),
    ("EMAIL_ADDRESS", "email"),
    ("IP_ADDRESS", "ip_address"),
];

/// Sentences of presidio-research, `data/synth_dataset_v2.json` (MIT). The halves have different templates.
#[test]
fn personal_data_in_presidio_sentences_is_found() {
    let Some(text) = file("synth_dataset_v2.json") else { return };
    let rows: Vec<Value> = serde_json::from_str(&text).expect("a list of rows");
    for half in [0, 1] {
        let (mut right, mut missed, mut clean, mut alarmed) = (0_u32, 0_u32, 0_u32, 0_u32);
        for row in rows.iter().filter(|it| it["template_id"].as_u64().unwrap_or(0) % 2 == half) {
            let text = row["full_text"].as_str().expect("a text");
            let spans = row["spans"].as_array().expect("a list");
            let kind = |span: &Value| {
                let name = span["entity_type"].as_str().expect("a name");
                KIND_NAMES.iter().find(|it| it.0 == name).map(|it| it.1)
            };
            let labelled: BTreeSet<&str> = spans.iter().filter_map(kind).collect();
            // The evaluator has no kind for driving licences. Such rows are left out, because some formats
            // of licence numbers are valid numbers of another kind.
            if labelled.is_empty() && spans.iter().any(|it| it["entity_type"] == "US_DRIVER_LICENSE") {
                continue;
            }
            let (_, reasoning) = judged("pii_leakage", &json!({}), text).expect("a verdict");
            let findings = reasoning.split_once(": ").map_or("", |it| it.1);
            let found: BTreeSet<&str> = KIND_NAMES
                .iter()
                .map(|it| it.1)
                .filter(|it| findings.split(", ").any(|one| one.starts_with(it)))
                .collect();
            if labelled.is_empty() {
                *(if found.is_empty() { &mut clean } else { &mut alarmed }) += 1;
            }
            right += u32::try_from(labelled.intersection(&found).count()).expect("few");
            missed += u32::try_from(labelled.difference(&found).count()).expect("few");
            // Only mistakes in the development half are shown.
            if half == 0 && labelled != found {
                println!("labelled {labelled:?}, found {found:?}: {text}");
            }
        }
        println!(
            "{}: recall {:.3} of {}, specificity {:.4} of {}",
            ["development", "held out"][usize::try_from(half).expect("small")],
            f64::from(right) / f64::from(right + missed),
            right + missed,
            f64::from(clean) / f64::from(clean + alarmed),
            clean + alarmed
        );
    }
}

/// The Sentiment Labelled Sentences of the UCI repository (Kotzias, 2015; CC BY 4.0): a thousand each of
/// reviews of products, films and restaurants, positive or negative. Odd lines are held out.
#[test]
fn sentiment_of_labelled_sentences_is_recognized() {
    for name in ["amazon_cells_labelled.txt", "imdb_labelled.txt", "yelp_labelled.txt"] {
        let Some(text) = file(name) else { continue };
        for half in [0, 1] {
            // A neutral or missing verdict counts as wrong: no row is labelled neutral.
            let mut counts = Confusion::default();
            for row in text.split('\n').enumerate().filter(|it| it.0 % 2 == half).map(|it| it.1) {
                let Some((sentence, label)) = row.trim_end().rsplit_once('\t') else { continue };
                counts.add(sentence.trim(), if label.trim() == "1" { "positive" } else { "negative" });
            }
            let half = ["development", "held out"][half];
            println!("{name} {half}: macro F1 {:.3}; {:?}", counts.macro_f1(&[0, 2]), counts.0);
        }
    }
}
