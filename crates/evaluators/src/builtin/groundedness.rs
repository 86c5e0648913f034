//! Evaluates whether an answer stays within the retrieved documents.

use crate::{
    definition::{Definition, Method},
    judge::{Level, PreferredProvider, Rubric, TracePart},
};

/// The definition of the evaluator `groundedness`.
pub static DEFINITION: Definition = Definition {
    name: "groundedness",
    display_name: "Groundedness",
    tags: &["quality", "retrieval"],
    description: "Whether the output stays within the retrieved documents: every statement about the \
                  subject can be found there. Stricter than `faithfulness`, which counts the whole input \
                  as context; unlike `citation_correctness` it does not ask for citations. Needs output \
                  and documents. 1.0 when nothing goes beyond them, 0.0 when the answer comes from \
                  elsewhere.",
    version: 1,
    method: Method::Llm(&RUBRIC),
};

static RUBRIC: Rubric = Rubric {
    question: "Does the output stay within the documents, so that each of its statements can be found in \
               one of them?",
    steps: &[
        "Split the output into single statements about the subject.",
        "For each, look for the passage in the documents that says it. The input may tell what was \
         asked, but it supports nothing.",
        "Sort the statements into found, partly found, and not found or contradicted.",
        "Score by the share found, partly found ones counting half. An output that says that the \
         documents do not hold the answer is grounded when that is so.",
    ],
    counts: &[
        "A statement that no document holds, even when it is common knowledge.",
        "A statement that a document contradicts.",
        "Things from different documents joined so that they say what neither does.",
        "Claiming that the documents say something, when they do not.",
    ],
    ignores: &[
        "Other words for the same thing, summaries, and plain arithmetic on numbers in the documents.",
        "Greetings, questions back, offers of help, and sentences about the answer itself.",
        "Repeating the question or what the user said of themselves.",
        "Relevant documents that were not used: `context_utilization` asks about those.",
    ],
    levels: &[
        Level { score: 1.0, meaning: "Every statement can be found in the documents." },
        Level { score: 0.75, meaning: "All that matters can be found; a side remark can not." },
        Level { score: 0.5, meaning: "About half can be found, or one important statement can not." },
        Level { score: 0.25, meaning: "Little can be found." },
        Level { score: 0.0, meaning: "Nothing can be found, or the documents say the opposite." },
    ],
    needs: &[TracePart::Output, TracePart::Documents],
    uses: &[TracePart::Input],
    prefers: PreferredProvider::Anthropic,
};
