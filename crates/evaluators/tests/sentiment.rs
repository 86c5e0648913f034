//! Tests of the code evaluator `sentiment_match` on the labelled set, and on adversarial texts.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout)]

use api::EvaluatorType;
use evaluators::{NotEvaluated, Subject, Verdict, builtin};
use serde_json::{Value, json};

const SENTIMENT_NAMES: [&str; 3] = ["negative", "neutral", "positive"];

fn judged(expected: &str, output: &str) -> Result<Verdict, NotEvaluated> {
    let definition = builtin::find("sentiment_match").expect("a built-in evaluator");
    let config = json!({"expected": expected});
    let evaluator = definition.compile(config.as_object().expect("an object")).expect("a good config");
    evaluator.evaluate(&Subject { output: Some(output.to_owned()), ..Subject::default() })
}

/// Returns the macro F1: the mean of the F1 of three classes.
fn measured(half: &str) -> f64 {
    let mut counts = [[0_u32; 3]; 3];
    for row in include_str!("data/sentiment.tsv").lines().skip(1) {
        let [of, label, text] = row.splitn(3, '\t').collect::<Vec<_>>()[..] else { panic!("{row}") };
        if of != half {
            continue;
        }
        let wanted = SENTIMENT_NAMES.iter().position(|it| *it == label).expect("one of three");
        let found = (0..3).find(|it| judged(SENTIMENT_NAMES[*it], text).is_ok_and(|it| it.score == 1.0));
        // A missing verdict counts as wrong.
        counts[wanted][found.unwrap_or((wanted + 1) % 3)] += 1;
        if half == "dev" && found != Some(wanted) {
            println!("{label}, not {:?}: {text}", judged(label, text).map(|it| it.reasoning));
        }
    }
    let f1 = |class: usize| {
        let right = f64::from(counts[class][class]);
        let wanted = f64::from(counts[class].iter().sum::<u32>());
        let found = f64::from(counts.iter().map(|it| it[class]).sum::<u32>());
        2.0 * right / (wanted + found)
    };
    let mean = (f1(0) + f1(1) + f1(2)) / 3.0;
    println!("{half}: macro F1 {mean:.3}; rows are wanted, columns found: {counts:?}");
    mean
}

#[test]
fn development_half_meets_accuracy_minimum() {
    assert!(measured("dev") >= 0.92);
}

#[test]
fn held_out_half_meets_accuracy_minimum() {
    assert!(measured("held") >= 0.92);
}

#[test]
fn score_one_step_apart_counts_half() {
    let text = "I love it, thank you!";
    let scores = SENTIMENT_NAMES.map(|it| judged(it, text).expect("a verdict").score);
    assert_eq!(scores, [0.0, 0.5, 1.0]);
}

#[test]
fn config_without_expectation_selects_judge() {
    let definition = builtin::find("sentiment_match").expect("it is built in");
    let selected_type = |config: Value| definition.selected_type(config.as_object().expect("an object"));
    assert_eq!(selected_type(json!({})), EvaluatorType::Llm);
    assert_eq!(selected_type(json!({"expected": "neutral"})), EvaluatorType::Rule);
    for (config, field) in [(json!({"expected": "glad"}), "expected"), (json!({"expected": 1}), "expected")] {
        let problems = definition.check(config.as_object().expect("an object")).expect_err("a problem");
        assert_eq!(problems[0].field, field);
    }
}

#[test]
fn other_languages_are_not_evaluated() {
    let problem = judged("positive", "Das Essen war kalt und der Kellner unfreundlich, nie wieder.")
        .expect_err("not English");
    assert!(problem.to_string().contains("English only"), "{problem}");
    let problem = judged("neutral", "12345").expect_err("no words");
    assert!(problem.to_string().contains("no words"), "{problem}");
}

#[test]
fn work_on_long_texts_terminates() {
    for piece in ["good ", "not ", "could ", "!", "GOOD bad ", "a", "😀", "never again ", "\n", "no no "] {
        let text = piece.repeat(10_000_000 / piece.len());
        let _ = judged("neutral", &text);
    }
}
