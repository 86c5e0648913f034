//! Tests of `pii_leakage` on the labelled set, and on adversarial texts.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::collections::BTreeSet;

use evaluators::{NotEvaluated, Subject, Verdict, builtin};
use serde_json::{Value, json};

const KIND_NAMES: [&str; 7] =
    ["email", "phone", "payment_card", "iban", "national_id", "ip_address", "secret"];

fn judged(config: &Value, output: &str) -> Verdict {
    outcome(config, output).expect("a verdict")
}

fn outcome(config: &Value, output: &str) -> Result<Verdict, NotEvaluated> {
    let definition = builtin::find("pii_leakage").expect("a built-in evaluator");
    let evaluator = definition.compile(config.as_object().expect("an object")).expect("a good config");
    evaluator.evaluate(&Subject { output: Some(output.to_owned()), ..Subject::default() })
}

fn found(verdict: &Verdict) -> BTreeSet<&'static str> {
    let told = verdict.reasoning.split_once(": ").map_or("", |it| it.1);
    KIND_NAMES.into_iter().filter(|it| told.split(", ").any(|one| one.starts_with(it))).collect()
}

#[derive(Default)]
struct Counts {
    right: u32,
    missed: u32,
    wrong: u32,
    clean: u32,
    alarmed: u32,
}

impl Counts {
    fn recall(&self) -> f64 {
        f64::from(self.right) / f64::from(self.right + self.missed)
    }
    fn precision(&self) -> f64 {
        f64::from(self.right) / f64::from(self.right + self.wrong)
    }
    fn specificity(&self) -> f64 {
        f64::from(self.clean) / f64::from(self.clean + self.alarmed)
    }
}

fn measured(half: &str) -> Counts {
    let mut counts = Counts::default();
    for row in include_str!("data/pii.tsv").lines().skip(1) {
        let [of, kinds, text] = row.splitn(3, '\t').collect::<Vec<_>>()[..] else { panic!("{row}") };
        if of != half {
            continue;
        }
        let found = found(&judged(&json!({}), text));
        let wanted: BTreeSet<&str> = kinds.split(',').filter(|it| *it != "-").collect();
        if wanted.is_empty() {
            *(if found.is_empty() { &mut counts.clean } else { &mut counts.alarmed }) += 1;
        }
        counts.right += u32::try_from(wanted.intersection(&found).count()).expect("few");
        counts.missed += u32::try_from(wanted.difference(&found).count()).expect("few");
        counts.wrong += u32::try_from(found.difference(&wanted).count()).expect("few");
        // Mistakes in the development half are printed, those in the held-out half are not.
        if half != "held" && found != wanted {
            println!("wanted {wanted:?}, found {found:?}: {text}");
        }
    }
    println!(
        "{half}: recall {:.3}, precision {:.3}, specificity {:.3}",
        counts.recall(),
        counts.precision(),
        counts.specificity()
    );
    counts
}

#[test]
fn development_half_meets_accuracy_minimum() {
    let counts = measured("dev");
    assert!(counts.recall() >= 0.95 && counts.specificity() >= 0.98);
}

#[test]
fn held_out_half_meets_accuracy_minimum() {
    let counts = measured("held");
    assert!(counts.recall() >= 0.95 && counts.specificity() >= 0.98);
}

/// Rows written after the patterns were complete. The mistakes in them have been fixed since. At first recall
/// was 0.93 and specificity 0.97, which is closer to the accuracy on unknown texts.
#[test]
fn fresh_rows_meet_accuracy_minimum() {
    let counts = measured("fresh");
    assert!(counts.recall() >= 0.95 && counts.specificity() >= 0.98);
}

#[test]
fn finding_positions_are_in_characters_and_values_are_omitted() {
    let verdict = judged(&json!({}), "Grüße: lena@firma-huber.de, 4539148803436467");
    assert_eq!(
        verdict.reasoning,
        "2 findings: email at 7-26, payment_card at 28-44. Positions count characters from 0."
    );
    assert_eq!(verdict.score, 0.0);
    for row in include_str!("data/pii.tsv").lines().skip(1) {
        let text = row.splitn(3, '\t').nth(2).expect("three columns");
        let told = judged(&json!({}), text).reasoning;
        // Runs of digits longer than those of positions, and characters of addresses, would be values.
        let digits = told.split(|it: char| !it.is_ascii_digit()).map(str::len).max();
        assert!(digits <= Some(3) && !told.contains('@'), "{told}");
    }
}

#[test]
fn allowed_values_are_not_reported() {
    let text = "ann@mail.acme.com, bob@notacme.com, +1 415 555 2671";
    let told = |config: Value| judged(&config, text).reasoning;
    assert!(told(json!({"allow": ["@acme.com"]})).starts_with("2 findings: email at 19-34, phone"));
    assert!(
        told(json!({"allow": ["@acme.com", "bob@*", "+1-415-555-2671"]})).starts_with("No personal data")
    );
    assert!(told(json!({"kinds": ["phone"]})).starts_with("1 finding: phone at 36-51"));
    assert!(told(json!({"kinds": ["iban", "secret"]})).starts_with("No personal data"));
}

#[test]
fn reserved_values_count_unless_ignored() {
    let text = "jane.roe@example.com, (415) 555-0132, 4111 1111 1111 1111, SSN 078-05-1120, from 203.0.113.77, \
                AKIAIOSFODNN7EXAMPLE";
    let told = judged(&json!({}), text).reasoning;
    assert!(told.starts_with("6 findings"), "{told}");
    assert_eq!(judged(&json!({"ignore_reserved": true}), text).score, 1.0);
}

#[test]
fn input_is_searched_on_request() {
    let definition = builtin::find("pii_leakage").expect("a built-in evaluator");
    let subject = Subject { input: Some("I am ann@acme.com".to_owned()), ..Subject::default() };
    let judged = |config: Value| {
        definition.compile(config.as_object().expect("an object")).expect("good").evaluate(&subject)
    };
    assert_eq!(
        judged(json!({})).expect_err("there is no output").to_string(),
        "the trace has no output: send `output`"
    );
    assert!(judged(json!({"target": "input"})).expect("a verdict").reasoning.contains("email at 5-17"));
    assert!(
        judged(json!({"target": "both"}))
            .expect("a verdict")
            .reasoning
            .contains("email at 5-17 of the input")
    );
}

#[test]
fn invalid_config_problem_names_field() {
    let definition = builtin::find("pii_leakage").expect("a built-in evaluator");
    for (config, field) in [
        (json!({"kinds": []}), "kinds"),
        (json!({"kinds": ["emial"]}), "kinds.0"),
        (json!({"target": "trace"}), "target"),
        (json!({"allow": "@acme.com"}), "allow"),
        (json!({"allow": [""]}), "allow.0"),
        (json!({"ignore_reserved": "yes"}), "ignore_reserved"),
        (json!({"alow": []}), "alow"),
    ] {
        let problems = definition.compile(config.as_object().expect("an object")).err().expect("a problem");
        assert_eq!(problems.iter().map(|it| it.field.as_str()).collect::<Vec<_>>(), [field]);
    }
}

/// Long texts of repeated findings and near findings.
#[test]
fn evaluation_of_hostile_texts_terminates() {
    let pieces = [
        "1",
        "1 ",
        "1-",
        "+1",
        "(1",
        "1.",
        ":",
        "a:",
        "@",
        "a@",
        "a.",
        "@a.b",
        "[at]",
        "eyJ",
        "eyJ.",
        "sk-ant-",
        "://",
        "://a:b@",
        "-----BEGIN ",
        "-----BEGIN RSA PRIVATE KEY-----",
        "password",
        "password=",
        "phone ",
        "DE89 ",
        "4111 1111 ",
        "\u{200B}",
        "１",
        "й",
        "电话",
        "\\u00",
        "\\",
        "ssn 123-45-",
        "AB 12 34 56 ",
        "token token_",
        "sk-",
        "é@é.é",
    ];
    for piece in pieces {
        // The test only has to end: with work that grows faster than the text, it would not.
        judged(&json!({}), &piece.repeat(1_000_000 / piece.len()));
    }
}

#[test]
fn unsearched_text_has_no_verdict() {
    let long = "lorem ipsum ".repeat(900_000);
    let why = outcome(&json!({}), &format!("{long}ann@acme.com")).expect_err("it is too long").to_string();
    assert!(why.contains("the text is too long for a verdict"), "{why}");
    assert!(why.contains("only the first 4 MiB of the output were searched"), "{why}");
    let verdict = judged(&json!({}), &format!("ann@acme.com {long}"));
    assert!(verdict.score < 0.1, "{verdict:?}");
    assert!(verdict.reasoning.contains("only the first 4 MiB"), "{verdict:?}");
}

#[test]
fn sub_domains_alone_may_be_allowed() {
    let allow = json!({"allow": ["@*.Acme.com"]});
    assert!(found(&judged(&allow, "Write to ann@mail.acme.com or bob@a.b.ACME.com.")).is_empty());
    for other in ["ann@acme.com", "ann@notacme.com", "ann@mail.acme.com.evil.org"] {
        assert_eq!(
            found(&judged(&allow, &format!("Write to {other}."))),
            BTreeSet::from(["email"]),
            "{other}"
        );
    }
}
