//! Evaluates whether the retrieved documents are relevant to the question.

use crate::{
    definition::{Definition, Method},
    judge::{Level, PreferredProvider, Rubric, TracePart},
};

/// The definition of the evaluator `retrieval_precision`.
pub static DEFINITION: Definition = Definition {
    name: "retrieval_precision",
    display_name: "Retrieval Precision",
    tags: &["retrieval"],
    description: "Whether the retrieved documents are relevant to the query: the share of them that is. \
                  Nothing is asked about what is missing (`retrieval_recall`) or about the answer. Needs \
                  input and documents. 1.0 when all are relevant, 0.0 when none is.",
    version: 1,
    method: Method::Llm(&RUBRIC),
};

static RUBRIC: Rubric = Rubric {
    question: "Which share of the documents is relevant to the input?",
    steps: &[
        "Work out what the last message of the user wants to know.",
        "Go through the documents one by one in their order and decide for each: relevant (it holds \
         information that helps to answer), partly relevant (right subject, hardly a help), or not \
         relevant. Judge each on its own.",
        "The score is the number of relevant ones, partly relevant ones counting half, divided by the \
         number of documents. In the reasoning name the ones that are not relevant by their ids or \
         places.",
        "If one section holds several passages as one text, judge passage by passage.",
    ],
    counts: &[
        "A document on another subject, product, version, person or time than the one asked about.",
        "A document that only shares words with the question.",
        "Boilerplate: menus, legal notices, empty or broken text.",
    ],
    ignores: &[
        "Whether the documents together suffice for an answer.",
        "Whether a document is true, well written or long.",
        "A document that says the same as another: it is as relevant as the other.",
        "Scores that the search gave.",
    ],
    levels: &[
        Level { score: 1.0, meaning: "All documents are relevant." },
        Level { score: 0.75, meaning: "Three quarters of them are." },
        Level { score: 0.5, meaning: "Half of them are." },
        Level { score: 0.25, meaning: "A quarter of them is." },
        Level { score: 0.0, meaning: "None is." },
    ],
    needs: &[TracePart::Input, TracePart::Documents],
    uses: &[],
    prefers: PreferredProvider::OpenAi,
};
