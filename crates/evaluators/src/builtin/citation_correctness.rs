//! Evaluates whether the cited sources exist and support the statements that cite them.

use crate::{
    definition::{Definition, Method},
    judge::{Level, PreferredProvider, Rubric, TracePart},
};

/// The definition of the evaluator `citation_correctness`.
pub static DEFINITION: Definition = Definition {
    name: "citation_correctness",
    display_name: "Citation Correctness",
    tags: &["quality", "retrieval"],
    description: "Whether every citation of the output points to something that was retrieved and that \
                  supports the statement it stands at. `groundedness` asks about all statements, cited \
                  or not. Needs output and documents. 1.0 when all citations are right or none was \
                  called for, 0.0 when they are made up.",
    version: 1,
    method: Method::Llm(&RUBRIC),
};

static RUBRIC: Rubric = Rubric {
    question: "Do the citations in the output exist among the documents, and does each support the \
               statement that it stands at?",
    steps: &[
        "List the citations of the output: numbers in brackets, ids, titles, links, names of files, \
         `according to …`, quotations with a source.",
        "For each, find the document that it names, by id, title, place in the order shown, or link. One \
         that is not there does not exist.",
        "For each that exists, read the document and decide whether it says what the cited statement \
         says: fully, partly, or not.",
        "Score by the share of citations that exist and support their statement, one that supports only \
         partly counting half. Then take a level off if statements that plainly rest on the documents \
         carry no citation although the input asked for citations.",
    ],
    counts: &[
        "A source, link, title, page or quotation that is in none of the documents.",
        "A citation of a real document that says something else, or nothing, about the statement.",
        "A quotation whose words were changed so that it means something else.",
        "Missing citations, when the input asked for them.",
    ],
    ignores: &[
        "The style of the citations.",
        "Statements without a citation, when none were asked for.",
        "A citation of the right document by another of its names.",
        "Whether the document itself is true.",
    ],
    levels: &[
        Level {
            score: 1.0,
            meaning: "Every citation exists and supports its statement; or there are none \
             and none were asked for.",
        },
        Level {
            score: 0.75,
            meaning: "All exist; one supports its statement only in part, or one of many is \
             off.",
        },
        Level {
            score: 0.5,
            meaning: "About half of the citations are right, or citations were asked for and \
             most are missing.",
        },
        Level {
            score: 0.25,
            meaning: "Most are wrong, or one important statement rests on a made-up source.",
        },
        Level { score: 0.0, meaning: "The citations are made up or support nothing." },
    ],
    needs: &[TracePart::Output, TracePart::Documents],
    uses: &[TracePart::Input],
    prefers: PreferredProvider::OpenAi,
};
