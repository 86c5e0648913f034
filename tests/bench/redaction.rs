//! Measures the processor time that redaction takes for the texts of a span: 2 KB of prose or of messages in JSON, and the
//! attributes of a span, with all detectors and three patterns. It prints the time of each and no verdict. See
//! docs/benchmarks.md.
//!
//! This is a benchmark of the crate `evaluators`, so that it does not build the server.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod processor_time;

use std::time::{Duration, Instant};

use api::project::{RedactionPattern, RedactionSettings};
use evaluators::redaction::{RedactionCounts, Redactor};
use processor_time::spent;
use serde_json::json;

/// Measured time of each row, after a warm-up of a tenth of that time.
const MEASURED_TIME: Duration = Duration::from_secs(1);
/// Length of the text of a span in bytes.
const SPAN_TEXT_BYTES: usize = 2_048;

/// Sentences as in the messages of an assistant, without values that are masked.
const SPAN_SENTENCES: [&str; 6] = [
    "The customer asked whether the parcel would arrive before the weekend, and which options there are.",
    "According to the handbook, section 4.2, a refund is possible within 30 days of the purchase.",
    "I looked at the order: it has 3 items, costs 149.90 EUR and was sent on 2026-03-14 at 09:30.",
    "Summarize the conversation in two sentences; do not mention prices, and use the tone of the brand.",
    "The model returned 512 tokens. Its answer was cut because of the limit, so the call is repeated.",
    "See https://docs.acme.io/shipping/options?lang=en for details; ask the team if anything is unclear.",
];

/// The attributes of a span of a model call.
const SPAN_ATTRIBUTES: [(&str, &str); 14] = [
    ("gen_ai.operation.name", "chat"),
    ("gen_ai.provider.name", "openai"),
    ("gen_ai.request.model", "gpt-4o-mini-2024-07-18"),
    ("gen_ai.response.model", "gpt-4o-mini-2024-07-18"),
    ("gen_ai.response.id", "chatcmpl-9J3uyL0vdn1sQEnq"),
    ("server.address", "api.openai.com"),
    ("session.id", "0190a000-0000-7000-8000-000000000000"),
    ("user.id", "user-41"),
    ("http.route", "/v1/chat/completions"),
    ("http.request.method", "POST"),
    ("deployment.environment", "production"),
    ("code.function", "answer_customer"),
    ("thread.name", "worker-3"),
    ("traceloop.workflow.name", "support"),
];

fn main() {
    let settings = |detectors: &[&str], patterns: &[(&str, &str)]| RedactionSettings {
        detectors: detectors.iter().map(|it| (*it).to_owned()).collect(),
        patterns: patterns
            .iter()
            .map(|it| RedactionPattern { name: it.0.to_owned(), pattern: it.1.to_owned() })
            .collect(),
    };
    let patterns = [
        ("employee_id", r"\bEMP-[0-9]{6}\b"),
        ("case", "CASE-[A-Z]{2}[0-9]{4}"),
        ("plate", r"\b[A-Z]{1,3}-[A-Z]{2} [0-9]{1,4}\b"),
    ];
    let prose: String = SPAN_SENTENCES.iter().cycle().flat_map(|it| [*it, " "]).take(60).collect();
    let prose = prose[..SPAN_TEXT_BYTES].to_owned();
    let quoted = |text: &str| format!("{text}\n\"quoted\"\n");
    let messages: Vec<_> = (0..5)
        .map(|i| json!({"role": "user", "parts": [{"type": "text", "content": quoted(&prose[i * 350..(i + 1) * 350])}]}))
        .collect();
    let messages = json!(messages).to_string();
    let nested = json!({"tool": "send", "arguments": json!({"text": prose}).to_string()}).to_string();
    let values = prose.replace("the order", "jane.roe@acme.io, 4111 1111 1111 1111,");
    let plain =
        "The quick fox jumps over a lazy dog while the sun is low. ".repeat(40)[..SPAN_TEXT_BYTES].to_owned();
    println!("{:<44} {:>8} {:>8} {:>8}", "text", "bytes", "µs each", "masked");
    for (what, redactor) in [
        ("all detectors", Redactor::new(&settings(&["all"], &[])).unwrap()),
        ("all detectors, 3 patterns", Redactor::new(&settings(&["all"], &patterns)).unwrap()),
        ("3 patterns", Redactor::new(&settings(&[], &patterns)).unwrap()),
    ] {
        for (name, text) in [
            ("words", &plain),
            ("prose", &prose),
            ("messages", &messages),
            ("nested JSON", &nested),
            ("with values", &values),
        ] {
            measure(&format!("{name}: {what}"), text.len(), |counts| {
                std::hint::black_box(redactor.text(text, counts));
            });
        }
        let bytes = SPAN_ATTRIBUTES.iter().map(|it| it.0.len() + it.1.len()).sum();
        measure(&format!("attributes: {what}"), bytes, |counts| {
            for (key, value) in SPAN_ATTRIBUTES {
                std::hint::black_box(redactor.labelled_text(key, value, counts));
            }
        });
    }
}

fn measure(name: &str, bytes: usize, redact: impl Fn(&mut RedactionCounts)) {
    let mut counts = RedactionCounts::new();
    redact(&mut counts);
    let masked: u64 = counts.values().sum();
    let warm = Instant::now();
    while warm.elapsed() < MEASURED_TIME / 10 {
        redact(&mut RedactionCounts::new());
    }
    let (mut rounds, began, before) = (0_u32, Instant::now(), spent());
    while began.elapsed() < MEASURED_TIME {
        // One reading of the clock serves many rounds.
        for _ in 0..20 {
            redact(&mut RedactionCounts::new());
        }
        rounds += 20;
    }
    let each = (spent() - before).as_secs_f64() / f64::from(rounds);
    println!("{name:<44} {bytes:>8} {:>8.2} {masked:>8}", each * 1e6);
}
