//! Tests of the complete request: which message contains which text.

use serde_json::{Map, Value, json};

use super::*;
use crate::{custom, subject::Subject};

const TOKEN_BYTES: [u8; 16] = [7; 16];

static RUBRIC: Rubric = Rubric {
    question: "Is it so?",
    steps: &["Look.", "Decide."],
    counts: &["That it is not."],
    ignores: &["Its length."],
    levels: &[Level { score: 1.0, meaning: "It is." }, Level { score: 0.0, meaning: "It is not." }],
    needs: &[TracePart::Output],
    uses: &[TracePart::Input, TracePart::Documents],
    prefers: PreferredProvider::OpenAi,
};

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("{other}"),
    }
}

fn build(
    instructions: &Instructions,
    subject: &Subject,
    config: Value,
) -> Result<JudgeRequest, crate::NotEvaluated> {
    build_request(instructions, subject, &object(config), &Token::new(TOKEN_BYTES))
}

fn subject() -> Subject {
    Subject {
        input: Some("What is it?".to_owned()),
        output: Some("It is so.\nIndeed.".to_owned()),
        ..Subject::default()
    }
}

#[test]
fn request_has_rubric_and_fenced_trace() {
    let request =
        build(&Instructions::from(&RUBRIC), &subject(), json!({"rubric": "Mind the tone."})).unwrap();
    for part in
        ["Is it so?", "1. Look.", "- That it is not.", "- Its length.", "- 1: It is.", "Mind the tone."]
    {
        assert!(request.system.contains(part), "{part} in {}", request.system);
    }
    let token = Token::new(TOKEN_BYTES);
    let token = token.as_str();
    assert_eq!(
        request.user,
        format!(
            "Judge this by your instructions.\n\n\
             BEGIN DATA {token} output\n| It is so.\n| Indeed.\nEND DATA {token} output\n\n\
             BEGIN DATA {token} input\n| What is it?\nEND DATA {token} input\n\n\
             That was all of the data. Judge it now, as your instructions say, with one JSON object."
        )
    );
    assert_eq!(request.schema, Scale::ZERO_TO_ONE.schema());
}

#[test]
fn missing_part_is_named_with_remedy() {
    let error = build(&Instructions::from(&RUBRIC), &Subject::default(), json!({})).unwrap_err();
    assert!(error.to_string().starts_with("the trace has no output: send"), "{error}");
    let failed = Subject { error: Some("boom".to_owned()), ..Subject::default() };
    let error = build(&Instructions::from(&RUBRIC), &failed, json!({})).unwrap_err();
    assert!(
        error.to_string().contains("ended in an error") && !error.to_string().contains("boom"),
        "{error}"
    );
    let custom = custom::llm::compile("{{metadata.tone}} {{config.style}} {{documents?}}", None).unwrap();
    let error = build(&custom, &subject(), json!({"style": "x"})).unwrap_err();
    assert!(error.to_string().contains("metadata has no `tone`"), "{error}");
}

#[test]
fn template_placeholders_become_section_names() {
    let custom =
        custom::llm::compile("Is {{output}} in the tone {{config.tone}} for {{metadata.user.tier}}?", None)
            .unwrap();
    let mut subject = subject();
    subject.metadata = object(json!({"user": {"tier": "gold"}}));
    let request =
        build(&custom, &subject, json!({"tone": "formal", "rubric": "not ours", "language": "x"})).unwrap();
    let task = "Is [section output] in the tone [section config.tone] for [section metadata.user.tier]?";
    assert!(request.system.contains(task), "{}", request.system);
    assert!(
        !request.system.contains("formal")
            && !request.system.contains("gold")
            && !request.system.contains("not ours")
    );
    assert!(
        request.user.contains("config.tone\n| formal\n")
            && request.user.contains("metadata.user.tier\n| gold\n")
    );
    assert!(!request.user.contains("What is it?"));
}

#[test]
fn huge_trace_is_cut_to_the_limit() {
    let huge = "long text, 日本語 \u{1}<|im_end|>\n".repeat(400_000);
    let documents: Vec<Value> = (0..5_000)
        .map(|at| json!({"id": at, "content": format!("document {at} {}", "word ".repeat(50))}))
        .collect();
    let mut subject = Subject { input: Some(huge.clone()), output: Some(huge), ..Subject::default() };
    subject.metadata = object(json!({"documents": documents}));
    let request = build(&Instructions::from(&RUBRIC), &subject, json!({})).unwrap();
    let shown = request.user.chars().count();
    assert!((MAX_SHOWN_CHARS * 8 / 10..MAX_SHOWN_CHARS + 1_000).contains(&shown), "{shown}");
    assert!(
        request.user.contains("characters left out)") && request.user.contains("more left out)"),
        "{shown}"
    );
}

#[test]
fn same_trace_gives_same_request() {
    let instructions = Instructions::from(&RUBRIC);
    let build = |token| build_request(&instructions, &subject(), &Map::new(), &Token::new(token)).unwrap();
    assert_eq!(build(TOKEN_BYTES), build(TOKEN_BYTES));
    assert_ne!(build(TOKEN_BYTES).user, build([8; 16]).user);
}
