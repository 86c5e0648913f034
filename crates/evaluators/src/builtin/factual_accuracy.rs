//! Evaluates whether the factual statements of an answer are true.

use crate::{
    definition::{Definition, Method},
    judge::{Level, PreferredProvider, Rubric, TracePart},
};

/// The definition of the evaluator `factual_accuracy`.
pub static DEFINITION: Definition = Definition {
    name: "factual_accuracy",
    display_name: "Factual Accuracy",
    tags: &["quality"],
    description: "Whether the statements of the output about the world agree with widely known facts. It \
                  is judged by common knowledge, not by documents: for those use `groundedness` or \
                  `faithfulness`. Needs the output; the input is shown when there is one. 1.0 when all \
                  statements that can be checked are right, 0.0 when what matters is wrong.",
    version: 1,
    method: Method::Llm(&RUBRIC),
};

static RUBRIC: Rubric = Rubric {
    question: "Are the factual statements of the output right, measured by what is widely known?",
    steps: &[
        "List the statements of the output that say something definite about the world: names, dates, \
         numbers, places, causes, definitions, code and calculations included.",
        "Check each against well-established knowledge. Work calculations and logic through yourself.",
        "Sort them into right, wrong, and not to be decided by common knowledge.",
        "Score by the wrong ones: how many they are, and whether the answer rests on them.",
    ],
    counts: &[
        "A statement that contradicts what is well established.",
        "A wrong number, date, name or unit; a calculation or conclusion that does not follow.",
        "Something long outdated told as current, where that is widely known.",
        "A half-truth that leads to a wrong belief.",
    ],
    ignores: &[
        "What common knowledge can't decide: private data, the user's own affairs, news after your \
         knowledge ends, results of the application's own tools. Do not guess; it does not count either \
         way.",
        "Opinions marked as such, fiction that was asked for, and hypotheticals.",
        "Rounding that is usual in its context, and simplification that misleads nobody.",
        "Statements that the output quotes in order to correct them, and premises of the input that it \
         does not take over.",
    ],
    levels: &[
        Level { score: 1.0, meaning: "No statement is wrong; or there is nothing factual to check." },
        Level { score: 0.75, meaning: "A slip in a detail on which nothing rests." },
        Level { score: 0.5, meaning: "A wrong statement of some weight beside a mostly right answer." },
        Level {
            score: 0.25,
            meaning: "Several wrong statements, or a wrong one that the answer rests on in \
             part.",
        },
        Level { score: 0.0, meaning: "The central statement is wrong." },
    ],
    needs: &[TracePart::Output],
    uses: &[TracePart::Input],
    prefers: PreferredProvider::OpenAi,
};
