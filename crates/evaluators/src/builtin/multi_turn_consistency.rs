//! Evaluates whether a conversation is free of contradictions.

use crate::{
    definition::{Definition, Method},
    judge::{Level, PreferredProvider, Rubric, TracePart},
};

/// The definition of the evaluator `multi_turn_consistency`.
pub static DEFINITION: Definition = Definition {
    name: "multi_turn_consistency",
    display_name: "Multi-Turn Consistency",
    tags: &["quality"],
    description: "Whether the output agrees with the earlier conversation: facts, \
                  decisions, promises, the user's wishes, the assistant's role. Needs the output and \
                  earlier turns, from the same session or from the list of messages in the input. 1.0 \
                  when nothing conflicts, 0.0 when the output goes against the conversation.",
    version: 1,
    method: Method::Llm(&RUBRIC),
};

static RUBRIC: Rubric = Rubric {
    question: "Is the output consistent with the earlier turns of the conversation?",
    steps: &[
        "From the earlier turns, note what was settled: facts that the user or the assistant stated, \
         decisions, promises, preferences and limits of the user, names, numbers, language and form of \
         address, the role of the assistant.",
        "Read the last message of the user: it may change or take back what was settled.",
        "Compare the output with what still holds.",
        "Choose the level by the gravest conflict.",
    ],
    counts: &[
        "A statement that contradicts what the assistant said before, without saying that it corrects \
         itself.",
        "Forgetting what the user told: asking for it again, or acting against it.",
        "A promise, plan or format that was agreed and is dropped without a word.",
        "Taking one person, thing or earlier question for another.",
        "A change of persona or language without a reason.",
    ],
    ignores: &[
        "A correction that is named as one.",
        "A change that the user asked for, or new information that justifies it.",
        "Other words for the same thing; not repeating what was said.",
        "Whether the earlier statements were true.",
        "Earlier turns that are not shown.",
    ],
    levels: &[
        Level {
            score: 1.0,
            meaning: "Nothing conflicts with the conversation; what was settled is kept and \
             used.",
        },
        Level { score: 0.75, meaning: "A slight slip of form, or one detail overlooked that does no harm." },
        Level {
            score: 0.5,
            meaning: "A fact or wish of the user is overlooked, or a lesser statement is \
             contradicted.",
        },
        Level { score: 0.25, meaning: "Something that matters is contradicted or forgotten." },
        Level { score: 0.0, meaning: "The output goes against the conversation or belongs to another one." },
    ],
    needs: &[TracePart::Turns, TracePart::Output],
    uses: &[TracePart::Input],
    prefers: PreferredProvider::OpenAi,
};
