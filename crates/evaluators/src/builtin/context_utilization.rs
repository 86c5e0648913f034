//! Evaluates whether an answer uses the retrieved context.

use crate::{
    definition::{Definition, Method},
    judge::{Level, PreferredProvider, Rubric, TracePart},
};

/// The definition of the evaluator `context_utilization`.
pub static DEFINITION: Definition = Definition {
    name: "context_utilization",
    display_name: "Context Utilization",
    tags: &["quality", "retrieval"],
    description: "Whether the output uses what the retrieved documents hold that matters for the \
                  question. An output can be fully supported (`groundedness`) and yet leave the best \
                  document unused. Needs input, output and documents. 1.0 when everything relevant is \
                  used, 0.0 when the documents are ignored.",
    version: 1,
    method: Method::Llm(&RUBRIC),
};

static RUBRIC: Rubric = Rubric {
    question: "Does the output use what the documents hold that is relevant to the input?",
    steps: &[
        "From the input, work out what an answer needs.",
        "Go through the documents and list the pieces of information that serve the answer. Leave out \
         what is irrelevant or said twice.",
        "For each piece, see whether the output uses it: states it, builds on it, or weighs it against \
         another.",
        "Score by the share of relevant pieces used, weighed by how much they matter.",
    ],
    counts: &[
        "Relevant information of the documents that is missing although the answer would be better with \
         it.",
        "An answer from general knowledge where the documents hold the specific one.",
        "A claim that nothing was found although it is in the documents.",
        "One document used and another that contradicts or limits it passed over.",
    ],
    ignores: &[
        "Irrelevant documents that were not used: leaving them out is right.",
        "Details that a person asking this would not want.",
        "Statements beyond the documents: `groundedness` asks about those.",
        "That no citation is given.",
    ],
    levels: &[
        Level {
            score: 1.0,
            meaning: "All that is relevant is used; or the documents hold nothing relevant \
             and the output says so or does without.",
        },
        Level { score: 0.75, meaning: "What matters most is used; a useful detail is missing." },
        Level {
            score: 0.5,
            meaning: "About half of what is relevant is used, or one important piece is \
             missing.",
        },
        Level { score: 0.25, meaning: "Little of it is used; the answer is mostly general." },
        Level { score: 0.0, meaning: "The relevant documents are ignored or said not to exist." },
    ],
    needs: &[TracePart::Input, TracePart::Output, TracePart::Documents],
    uses: &[],
    prefers: PreferredProvider::OpenAi,
};
