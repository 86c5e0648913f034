//! Figures on public rows that the authors of the rules did not write. The rows are not part of this
//! repository: `docs/evaluators.md` names their sources and licences.
//!
//! `LOUPE_TEST_PUBLIC_ROWS` names their folder; without it nothing is measured.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::{collections::BTreeSet, path::PathBuf};

use evaluators::{Subject, builtin};
use serde_json::{Value, json};

/// Returns the file of this name, if there is a folder.
#[allow(clippy::disallowed_methods, reason = "where the rows are comes from the environment")]
fn file(name: &str) -> Option<String> {
    let folder = PathBuf::from(std::env::var_os("LOUPE_TEST_PUBLIC_ROWS")?);
    std::fs::read_to_string(folder.join(name)).ok()
}

/// Returns the score and the reasoning of a rule.
fn judged(metric: &str, config: &Value, output: &str) -> Option<(f64, String)> {
    let rule = builtin::find(metric).and_then(|it| it.rule()).expect("it is a rule");
    let rule = rule(config.as_object().expect("an object")).expect("a good config");
    let verdict = rule.judge(&Subject { output: Some(output.to_owned()), ..Subject::default() });
    verdict.ok().map(|it| (it.score, it.reasoning))
}

/// Names of the kinds of `pii_leakage` in the data set. The evaluator does not look for the others.
const KINDS: [(&str, &str); 6] = [
    ("PHONE_NUMBER", "phone"),
    ("CREDIT_CARD", "payment_card"),
    ("US_SSN", "national_id"),
    ("IBAN_CODE", "iban"),
    ("EMAIL_ADDRESS", "email"),
    ("IP_ADDRESS", "ip_address"),
];

/// Sentences of presidio-research, `data/synth_dataset_v2.json` (MIT). The halves have different templates.
#[test]
fn personal_data_in_sentences_of_presidio() {
    let Some(text) = file("synth_dataset_v2.json") else { return };
    let rows: Vec<Value> = serde_json::from_str(&text).expect("a list of rows");
    for half in [0, 1] {
        let (mut right, mut missed, mut clean, mut alarmed) = (0_u32, 0_u32, 0_u32, 0_u32);
        for row in rows.iter().filter(|it| it["template_id"].as_u64().unwrap_or(0) % 2 == half) {
            let text = row["full_text"].as_str().expect("a text");
            let spans = row["spans"].as_array().expect("a list");
            let kind = |span: &Value| {
                let name = span["entity_type"].as_str().expect("a name");
                KINDS.iter().find(|it| it.0 == name).map(|it| it.1)
            };
            let wanted: BTreeSet<&str> = spans.iter().filter_map(kind).collect();
            // Driving licence numbers are not a kind; the test ignores whether one is taken for another
            // kind.
            if wanted.is_empty() && spans.iter().any(|it| it["entity_type"] == "US_DRIVER_LICENSE") {
                continue;
            }
            let (_, reasoning) = judged("pii_leakage", &json!({}), text).expect("a verdict");
            let told = reasoning.split_once(": ").map_or("", |it| it.1);
            let found: BTreeSet<&str> = KINDS
                .iter()
                .map(|it| it.1)
                .filter(|it| told.split(", ").any(|one| one.starts_with(it)))
                .collect();
            if wanted.is_empty() {
                *(if found.is_empty() { &mut clean } else { &mut alarmed }) += 1;
            }
            right += u32::try_from(wanted.intersection(&found).count()).expect("few");
            missed += u32::try_from(wanted.difference(&found).count()).expect("few");
            // Only mistakes in the development half are shown.
            if half == 0 && wanted != found {
                println!("wanted {wanted:?}, found {found:?}: {text}");
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
fn sentiment_of_sentences_of_reviews() {
    for name in ["amazon_cells_labelled.txt", "imdb_labelled.txt", "yelp_labelled.txt"] {
        let Some(text) = file(name) else { continue };
        for half in [0, 1] {
            // Counts by expected and found class. A neutral or missing verdict is neither class.
            let mut counts = [[0_u32; 3]; 2];
            for row in text.split('\n').enumerate().filter(|it| it.0 % 2 == half).map(|it| it.1) {
                let Some((sentence, label)) = row.trim_end().rsplit_once('\t') else { continue };
                let wanted = usize::from(label.trim() == "1");
                let is = |word: &str| {
                    judged("sentiment_match", &json!({"expected": word}), sentence.trim())
                        .is_some_and(|it| it.0 == 1.0)
                };
                let found = if is("negative") {
                    0
                } else if is("positive") {
                    1
                } else {
                    2
                };
                counts[wanted][found] += 1;
                if half == 0 && found != wanted {
                    println!("{label} found {found}: {}", sentence.trim());
                }
            }
            let f1 = |class: usize| {
                let right = f64::from(counts[class][class]);
                let wanted = f64::from(counts[class].iter().sum::<u32>());
                let found = f64::from(counts[0][class] + counts[1][class]);
                2.0 * right / (wanted + found)
            };
            let half = ["development", "held out"][half];
            println!(
                "{name} {half}: macro F1 {:.3}; rows are wanted, columns found: {counts:?}",
                f64::midpoint(f1(0), f1(1))
            );
        }
    }
}
