//! The built-in evaluators, one file each (specification: Built-in evaluators).

use crate::definition::Definition;

mod answer_relevance;
mod bias;
mod citation_correctness;
mod context_utilization;
pub(crate) mod cost_threshold;
mod factual_accuracy;
mod faithfulness;
mod function_call_correctness;
mod groundedness;
mod hallucination;
mod jailbreak;
pub(crate) mod json_schema_conformance;
mod language_conformance;
pub(crate) mod latency_threshold;
mod multi_turn_consistency;
mod output_format_compliance;
mod pii_leakage;
mod prompt_injection;
mod prompt_injection_resistance;
mod refusal_appropriateness;
mod retrieval_precision;
mod retrieval_recall;
mod sentiment_match;
mod tool_choice_correctness;
mod toxicity;

/// All built-in evaluators, sorted by name.
pub static ALL: &[&Definition] = &[
    &answer_relevance::DEFINITION,
    &bias::DEFINITION,
    &citation_correctness::DEFINITION,
    &context_utilization::DEFINITION,
    &cost_threshold::DEFINITION,
    &factual_accuracy::DEFINITION,
    &faithfulness::DEFINITION,
    &function_call_correctness::DEFINITION,
    &groundedness::DEFINITION,
    &hallucination::DEFINITION,
    &jailbreak::DEFINITION,
    &json_schema_conformance::DEFINITION,
    &language_conformance::DEFINITION,
    &latency_threshold::DEFINITION,
    &multi_turn_consistency::DEFINITION,
    &output_format_compliance::DEFINITION,
    &pii_leakage::DEFINITION,
    &prompt_injection::DEFINITION,
    &prompt_injection_resistance::DEFINITION,
    &refusal_appropriateness::DEFINITION,
    &retrieval_precision::DEFINITION,
    &retrieval_recall::DEFINITION,
    &sentiment_match::DEFINITION,
    &tool_choice_correctness::DEFINITION,
    &toxicity::DEFINITION,
];

/// Returns the built-in evaluator with this name.
pub fn find(name: &str) -> Option<&'static Definition> {
    ALL.iter().copied().find(|it| it.name == name)
}
