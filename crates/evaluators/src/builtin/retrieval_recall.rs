//! Evaluates whether the retrieved documents suffice to answer the question.

use crate::{
    definition::{Definition, Method},
    judge::{Level, PreferredProvider, Rubric, TracePart},
};

/// The definition of the evaluator `retrieval_recall`.
pub static DEFINITION: Definition = Definition {
    name: "retrieval_recall",
    display_name: "Retrieval Recall",
    tags: &["retrieval"],
    description: "Whether the retrieved documents hold what is needed to answer the query. Judged \
                  without looking at the answer, and whatever else was retrieved \
                  (`retrieval_precision`). Needs input and documents. 1.0 when they suffice, 0.0 when \
                  they hold nothing of it.",
    version: 1,
    method: Method::Llm(&RUBRIC),
};

static RUBRIC: Rubric = Rubric {
    question: "Do the documents together hold what is needed to answer the input?",
    steps: &[
        "Work out what the last message of the user wants to know and break it into the single pieces of \
         information that a full answer needs.",
        "For each piece, look for it in the documents: there in full, in part, or missing.",
        "The score is the share of pieces there, those in part counting half, weighed by how much the \
         answer depends on them. In the reasoning name what is missing.",
    ],
    counts: &[
        "A piece of information without which the question, or a part of it, can't be answered.",
        "Documents that name the thing asked about but do not say what is asked of it.",
        "Contradicting documents without anything to tell which holds.",
    ],
    ignores: &[
        "Irrelevant documents beside the right ones.",
        "Common knowledge that no answer needs a document for.",
        "Order, length and repetition of the documents.",
        "Small talk and requests that need no information: nothing is missing for those.",
    ],
    levels: &[
        Level { score: 1.0, meaning: "All that a full answer needs is there." },
        Level { score: 0.75, meaning: "The core is there; a lesser piece is missing." },
        Level { score: 0.5, meaning: "About half of what is needed is there." },
        Level { score: 0.25, meaning: "Something is there, but not what matters." },
        Level { score: 0.0, meaning: "Nothing that is needed is there." },
    ],
    needs: &[TracePart::Input, TracePart::Documents],
    uses: &[],
    prefers: PreferredProvider::OpenAi,
};
