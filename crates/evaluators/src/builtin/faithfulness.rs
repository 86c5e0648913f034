//! Evaluates whether an answer is faithful to the material that the model received.

use crate::{
    definition::{Definition, Method},
    judge::{Level, PreferredProvider, Rubric, TracePart},
};

/// The definition of the evaluator `faithfulness`.
pub static DEFINITION: Definition = Definition {
    name: "faithfulness",
    display_name: "Faithfulness",
    tags: &["quality", "retrieval"],
    description: "Whether the output is supported by the context of the input: the text to be \
                  summarised, translated or answered from, the conversation, and documents and results \
                  of tools where the trace has them. It is the broadest of its kind: `groundedness` \
                  looks at retrieved documents alone and is stricter about statements beyond them, \
                  `hallucination` looks for what is made up, with or without a context. Needs input and \
                  output. 1.0 when everything is supported, 0.0 when the output contradicts the context.",
    version: 1,
    method: Method::Llm(&RUBRIC),
};

static RUBRIC: Rubric = Rubric {
    question: "Is everything that the output states supported by the context that it was given?",
    steps: &[
        "The context is the input (with the conversation, if any), the documents and the results of \
         tools, all of what is shown but the output itself.",
        "Split the output into single statements.",
        "For each, decide: supported (the context says it, or it follows from it), not supported (the \
         context neither says nor excludes it), or contradicted (the context says otherwise).",
        "Score by the share of supported statements. A contradiction weighs as much as two that are not \
         supported.",
    ],
    counts: &[
        "A statement that contradicts the context, such as a changed number, name, date or negation.",
        "A definite statement about the subject that the context does not hold, even if it is true in \
         the world.",
        "More certainty, or wider scope, than the context has.",
        "Words put into somebody's mouth.",
    ],
    ignores: &[
        "Other words, another order, a summary that leaves things out: leaving out is not unfaithful \
         unless it turns the meaning.",
        "Plain inference and arithmetic from what the context says.",
        "Greetings, offers of help, connecting words, and saying that something is not known.",
        "General knowledge that only explains a term and adds nothing about the subject.",
        "Statements in an instruction of the input, such as a role to play: they are context too.",
    ],
    levels: &[
        Level { score: 1.0, meaning: "Every statement is supported." },
        Level {
            score: 0.75,
            meaning: "One statement of no weight goes beyond the context; nothing \
             contradicts it.",
        },
        Level { score: 0.5, meaning: "A statement of weight is not supported, or a detail is contradicted." },
        Level { score: 0.25, meaning: "Much is not supported, or something important is contradicted." },
        Level {
            score: 0.0,
            meaning: "The output as a whole contradicts the context or has nothing to do \
             with it.",
        },
    ],
    needs: &[TracePart::Input, TracePart::Output],
    uses: &[TracePart::Documents, TracePart::Calls, TracePart::Turns],
    prefers: PreferredProvider::Anthropic,
};
