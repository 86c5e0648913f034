//! Tests of templates: generalization, fingerprints and titles.

use super::{FINGERPRINT_VERSION, MAX_TEMPLATE_BYTES, Template};
use crate::align::Alignment;

fn generalize(first: &str, second: &str) -> String {
    let (first, second) = (Template::of_masked(first), Template::of_masked(second));
    let general = first.generalize(&Alignment::new(first.words(), second.words(), false));
    let again = Alignment::new(general.words(), second.words(), false);
    assert_eq!(general.generalize(&again), general, "a template that covers a message stays as it is");
    general.text().to_owned()
}

#[test]
fn differing_words_become_a_wildcard() {
    assert_eq!(
        generalize("Model gpt-4o was not found", "Model o3-mini was not found"),
        "Model <*> was not found"
    );
    assert_eq!(
        generalize("limit of 'a', 'b' tokens", "limit of 'a', 'c' tokens"),
        "limit of 'a', '<*>' tokens"
    );
    assert_eq!(generalize("user alice left", "user bob smith left"), "user <*> left");
}

#[test]
fn added_words_become_a_wildcard() {
    assert_eq!(generalize("connection lost", "connection suddenly lost"), "connection <*> lost");
    assert_eq!(generalize("connection lost", "connection lost today"), "connection lost <*>");
    assert_eq!(generalize("today connection lost", "connection lost"), "<*> connection lost");
}

#[test]
fn fingerprint_is_parsed_to_the_same_template() {
    let template =
        Template::of_message("Error code: 400 - {'error': {'message': 'Model gpt-4o has 5 (five) things.'}}");
    assert_eq!(template.fingerprint(), format!("{FINGERPRINT_VERSION}:Model gpt-4o has <*> (five) things."));
    assert_eq!(Template::parse(&template.fingerprint()), Some(template));
}

#[test]
fn fingerprint_of_other_version_is_refused() {
    for it in ["0:a b", "2:a b", "a b", ""] {
        assert_eq!(Template::parse(it), None, "{it}");
    }
}

#[test]
fn long_template_ends_with_wildcard() {
    let long = Template::of_masked(&"word ".repeat(500));
    assert!(long.text().ends_with("word <*>") && long.text().len() <= MAX_TEMPLATE_BYTES, "{}", long.text());
    assert_eq!(Template::parse(&long.fingerprint()), Some(long));
    let unbroken = Template::of_masked(&"w".repeat(5000));
    assert_eq!(Template::parse(&unbroken.fingerprint()), Some(unbroken));
}

#[test]
fn title_is_the_first_sentence() {
    let title = |text: &str| Template::of_masked(text).title();
    assert_eq!(title("The model is overloaded. Please try again later."), "The model is overloaded");
    assert_eq!(title("Overloaded"), "Overloaded");
    assert_eq!(title("v. <*> is old"), "v. <*> is old");
    assert!(title(&"word ".repeat(60)).ends_with("word…"));
}
