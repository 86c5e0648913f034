//! Evaluates whether an answer addresses the question.

use crate::{
    definition::{Definition, Method},
    judge::{Level, PreferredProvider, Rubric, TracePart},
};

/// The definition of the evaluator `answer_relevance`.
pub static DEFINITION: Definition = Definition {
    name: "answer_relevance",
    display_name: "Answer Relevance",
    tags: &["quality"],
    description: "Whether the output addresses what was asked: all of it, and nothing beside the point. \
                  Not whether it is true (`factual_accuracy`) or supported (`groundedness`). Needs input \
                  and output; earlier turns are shown when there are any. 1.0 is a direct and complete \
                  answer, 0.0 one to another question.",
    version: 1,
    method: Method::Llm(&RUBRIC),
};

static RUBRIC: Rubric = Rubric {
    question: "Does the output address what the input asks for, completely and without straying?",
    steps: &[
        "Find what the last message of the user asks for: every question, task and condition in it. Use \
         earlier turns only to understand what it refers to.",
        "Go through the output and note which of these it takes up, which it leaves out, and what it \
         says that serves none of them.",
        "Choose the level by how much of the request is taken up and how much of the output serves it.",
    ],
    counts: &[
        "A question or a part of the task that is left unanswered.",
        "An answer to another question, however close, or to a misread one.",
        "Long passages that the request has no use for, or that stand in place of the answer.",
        "Evading: general remarks where something definite was asked for.",
    ],
    ignores: &[
        "Whether what is said is true, supported or polite: other evaluators ask that.",
        "Brevity, when everything asked for is there; a short greeting, or one sentence that offers more \
         help.",
        "A question back, when the request really can't be answered without it.",
        "A refusal with its reason, when the request calls for one: it addresses the request. A refusal \
         of a harmless request does not.",
    ],
    levels: &[
        Level {
            score: 1.0,
            meaning: "Everything asked for is addressed directly; nothing of weight is \
             beside the point.",
        },
        Level {
            score: 0.75,
            meaning: "The main request is addressed; a lesser part is missing, or some of \
             the text is of no use for it.",
        },
        Level {
            score: 0.5,
            meaning: "Half of it: an important part of the request is missing, or half of \
             the output is beside the point.",
        },
        Level { score: 0.25, meaning: "It touches the subject, but hardly anything asked for is answered." },
        Level { score: 0.0, meaning: "It does not address the request at all." },
    ],
    needs: &[TracePart::Input, TracePart::Output],
    uses: &[TracePart::Turns],
    prefers: PreferredProvider::OpenAi,
};
