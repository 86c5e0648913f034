//! What the console can change on the server, in the words that a dialog asks and tells with.
//!
//! Each is one request. When its answer is lost, [`Change::landed`] judges from a fresh list
//! whether it happened; nothing here is ever sent twice.

use api::{
    Timestamp,
    eval::{Evaluation, EvaluationContext, NewEvaluation},
    eval_rule::{EvalRule, NewEvalRule},
    key::ApiKey,
    project::{Project, ProjectStatus},
};
use uuid::Uuid;

/// One request that changes something.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Make an API key.
    CreateKey {
        /// Its name.
        name: String,
        /// It may only read.
        query: bool,
        /// Where its traces go; the server's choice if absent.
        project: Option<Uuid>,
    },
    /// End an API key.
    RevokeKey {
        /// Which one.
        id: Uuid,
        /// Its name.
        name: String,
    },
    /// Make a project.
    CreateProject {
        /// Its name.
        name: String,
    },
    /// Archive a project, or let it take traces again.
    SetStatus {
        /// Which one.
        id: Uuid,
        /// Its name.
        name: String,
        /// What it is to be.
        status: ProjectStatus,
    },
    /// Ship prompts that passed their test without approval, or not.
    SetAutoship {
        /// Which project.
        id: Uuid,
        /// Its name.
        name: String,
        /// What it is to be.
        on: bool,
    },
    /// Run an evaluation.
    Evaluate(Box<NewEvaluation>),
    /// Make a rule.
    CreateRule(Box<NewEvalRule>),
    /// Enable or disable a rule.
    SetEnabled {
        /// Which one.
        id: Uuid,
        /// Its metric.
        name: String,
        /// What it is to be.
        on: bool,
        /// It is enabled but paused, and is to try again.
        paused: bool,
    },
    /// Delete a rule.
    DeleteRule {
        /// Which one.
        id: Uuid,
        /// Its metric.
        name: String,
    },
    /// Try a rule on a trace. Nothing is stored, but a judge costs as ever.
    TestRule {
        /// Which one.
        id: Uuid,
        /// Its metric.
        name: String,
        /// The trace.
        trace: Uuid,
    },
}

/// The list that a change shows in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touches {
    /// API keys.
    Keys,
    /// Projects.
    Projects,
    /// Rules.
    Rules,
    /// Evaluations.
    Evaluations,
    /// None: it leaves nothing behind.
    Nothing,
}

/// What fresh lists say of a change whose answer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// It happened; with the record that it made, where it makes one to go to.
    Yes(Option<Uuid>),
    /// This record may be the result of the change, or of another client.
    Perhaps(Uuid),
    /// It did not happen.
    No,
}

impl ChangeOutcome {
    const fn of(happened: bool) -> Self {
        if happened { Self::Yes(None) } else { Self::No }
    }
}

/// Fresh lists, to see in them what happened.
#[derive(Clone, Copy, Debug)]
pub struct Lists<'a> {
    /// API keys.
    pub keys: &'a [ApiKey],
    /// Projects.
    pub projects: &'a [Project],
    /// Rules.
    pub rules: &'a [EvalRule],
    /// Evaluations of the trace and the metric, asked for shortly before the change or since.
    pub evaluations: &'a [Evaluation],
    /// When the change was sent, by this machine's clock.
    pub sent: Timestamp,
}

impl Change {
    /// Title of the dialog that asks.
    pub const fn title(&self) -> &'static str {
        match self {
            Self::CreateKey { .. } => "New API key",
            Self::RevokeKey { .. } => "Revoke an API key",
            Self::CreateProject { .. } => "New project",
            Self::SetStatus { status: ProjectStatus::Archived, .. } => "Archive a project",
            Self::SetStatus { status: ProjectStatus::Active, .. } => "Unarchive a project",
            Self::SetAutoship { .. } => "Autoship",
            Self::Evaluate(_) => "Run an evaluation",
            Self::CreateRule(_) => "New rule",
            Self::SetEnabled { paused: true, .. } => "Resume a rule",
            Self::SetEnabled { on: true, .. } => "Enable a rule",
            Self::SetEnabled { on: false, .. } => "Disable a rule",
            Self::DeleteRule { .. } => "Delete a rule",
            Self::TestRule { .. } => "Test a rule",
        }
    }

    /// The word on the button that does it.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::CreateKey { .. } | Self::CreateProject { .. } => "Create",
            Self::RevokeKey { .. } => "Revoke",
            Self::SetStatus { status: ProjectStatus::Archived, .. } => "Archive",
            Self::SetStatus { status: ProjectStatus::Active, .. } => "Unarchive",
            Self::SetAutoship { on: true, .. } => "Turn on",
            Self::SetAutoship { on: false, .. } => "Turn off",
            Self::Evaluate(_) => "Run",
            Self::CreateRule(_) => "Add",
            Self::SetEnabled { paused: true, .. } => "Resume",
            Self::SetEnabled { on: true, .. } => "Enable",
            Self::SetEnabled { on: false, .. } => "Disable",
            Self::DeleteRule { .. } => "Delete",
            Self::TestRule { .. } => "Test",
        }
    }

    /// What it means, in a sentence or two.
    pub const fn meaning(&self) -> &'static str {
        match self {
            Self::RevokeKey { .. } => {
                "Whatever uses this key is refused at once and for good. Its traces are kept."
            }
            Self::SetStatus { status: ProjectStatus::Archived, .. } => {
                "Ingest is suspended for every key of the project at once: it answers 403, and SDKs that \
                 run now stop sending until they are restarted. Data, keys and history are kept."
            }
            Self::SetStatus { status: ProjectStatus::Active, .. } => {
                "The project takes traces again at once, with the keys it has."
            }
            Self::SetAutoship { on: true, .. } => {
                "Prompt deployments of this project that passed their test ship without anyone's approval."
            }
            Self::SetAutoship { on: false, .. } => {
                "Prompt deployments of this project wait for approval, also when they passed their test."
            }
            Self::SetEnabled { paused: true, .. } => {
                "The rule tries again with the next trace. If its judge still can't work, it pauses again."
            }
            Self::SetEnabled { on: true, .. } => {
                "New traces that its filter and sample select are judged. Traces of before are not."
            }
            Self::SetEnabled { on: false, .. } => {
                "New traces are no longer judged by it. Its evaluations and its settings are kept."
            }
            Self::DeleteRule { .. } => {
                "It stops at once and can't be brought back. Its evaluations are kept."
            }
            Self::CreateKey { .. }
            | Self::CreateProject { .. }
            | Self::Evaluate(_)
            | Self::CreateRule(_)
            | Self::TestRule { .. } => "",
        }
    }

    /// What it is done to.
    pub fn name(&self) -> &str {
        match self {
            Self::CreateKey { name, .. }
            | Self::RevokeKey { name, .. }
            | Self::CreateProject { name }
            | Self::SetStatus { name, .. }
            | Self::SetAutoship { name, .. }
            | Self::SetEnabled { name, .. }
            | Self::DeleteRule { name, .. }
            | Self::TestRule { name, .. } => name,
            Self::Evaluate(new) => &new.metric_name,
            Self::CreateRule(new) => &new.metric_name,
        }
    }

    /// The record that it is done to, where there is one already.
    pub const fn id(&self) -> Option<Uuid> {
        match self {
            Self::CreateKey { .. } | Self::CreateProject { .. } | Self::Evaluate(_) | Self::CreateRule(_) => {
                None
            }
            Self::RevokeKey { id, .. }
            | Self::SetStatus { id, .. }
            | Self::SetAutoship { id, .. }
            | Self::SetEnabled { id, .. }
            | Self::DeleteRule { id, .. }
            | Self::TestRule { id, .. } => Some(*id),
        }
    }

    /// The list that it shows in.
    pub const fn touches(&self) -> Touches {
        match self {
            Self::CreateKey { .. } | Self::RevokeKey { .. } => Touches::Keys,
            Self::CreateProject { .. } | Self::SetStatus { .. } | Self::SetAutoship { .. } => {
                Touches::Projects
            }
            Self::CreateRule(_) | Self::SetEnabled { .. } | Self::DeleteRule { .. } => Touches::Rules,
            Self::Evaluate(_) => Touches::Evaluations,
            Self::TestRule { .. } => Touches::Nothing,
        }
    }

    /// What to tell once it happened.
    pub fn done(&self) -> String {
        let name = self.name();
        match self {
            Self::CreateKey { .. } => format!("key {name} was made"),
            Self::RevokeKey { .. } => format!("key {name} is revoked"),
            Self::CreateProject { .. } => format!("project {name} was made"),
            Self::SetStatus { status: ProjectStatus::Archived, .. } => format!("project {name} is archived"),
            Self::SetStatus { status: ProjectStatus::Active, .. } => format!("project {name} is active"),
            Self::SetAutoship { on: true, .. } => format!("autoship of {name} is on"),
            Self::SetAutoship { on: false, .. } => format!("autoship of {name} is off"),
            Self::Evaluate(_) => format!("{name} was asked for"),
            Self::CreateRule(_) => format!("the rule of {name} was made"),
            Self::SetEnabled { on: true, .. } => format!("the rule of {name} is enabled"),
            Self::SetEnabled { on: false, .. } => format!("the rule of {name} is disabled"),
            Self::DeleteRule { .. } => format!("the rule of {name} is deleted"),
            Self::TestRule { .. } => format!("the rule of {name} was tried"),
        }
    }

    /// Whether a fresh list shows that it happened. `before` are the ids of the list as it was.
    pub fn landed(&self, before: &[Uuid], lists: Lists<'_>) -> ChangeOutcome {
        let Lists { keys, projects, rules, evaluations, sent } = lists;
        let project = |id: &Uuid| projects.iter().find(|project| project.id == *id);
        ChangeOutcome::of(match self {
            Self::Evaluate(new) => {
                let newest =
                    evaluations.iter().find(|it| is_same_request(it, new) && !before.contains(&it.id));
                return match newest {
                    Some(it) if it.created_at >= sent => ChangeOutcome::Yes(Some(it.id)),
                    // The clocks may differ, or another asked for the same a moment before.
                    Some(it) => ChangeOutcome::Perhaps(it.id),
                    None => ChangeOutcome::No,
                };
            }
            Self::CreateRule(new) => {
                let made = rules.iter().find(|rule| {
                    let same = rule.metric_name == new.metric_name && rule.project_id == new.project_id;
                    same && !before.contains(&rule.id)
                });
                return made.map_or(ChangeOutcome::No, |rule| ChangeOutcome::Yes(Some(rule.id)));
            }
            Self::SetEnabled { id, on, paused, .. } => {
                let rule = rules.iter().find(|rule| rule.id == *id);
                rule.is_some_and(|it| it.enabled == *on && !(*paused && it.paused_reason.is_some()))
            }
            Self::DeleteRule { id, .. } => !rules.iter().any(|rule| rule.id == *id),
            Self::TestRule { .. } => false,
            Self::CreateKey { name, .. } => {
                keys.iter().any(|key| key.name == *name && !before.contains(&key.id))
            }
            Self::RevokeKey { id, .. } => !keys.iter().any(|key| key.id == *id),
            Self::CreateProject { name } => {
                projects.iter().any(|project| project.name == *name && !before.contains(&project.id))
            }
            Self::SetStatus { id, status, .. } => project(id).is_some_and(|it| it.status == *status),
            Self::SetAutoship { id, on, .. } => {
                project(id).is_some_and(|it| it.prompt_autoship_enabled == *on)
            }
        })
    }
}

/// Whether an evaluation is of the kind that was asked for, by hand.
fn is_same_request(it: &Evaluation, new: &NewEvaluation) -> bool {
    let by_hand = it.rule_id.is_none() && it.bulk_id.is_none() && it.context == EvaluationContext::Fresh;
    let kind = new.evaluator_type.as_deref().is_none_or(|kind| kind == it.evaluator_type.as_str());
    // Only judges have tiers, and the server chooses one where none was named.
    let tier = it.model_tier.zip(new.model_tier.as_deref()).is_none_or(|(it, new)| it.as_str() == new);
    let same = it.trace_id == new.trace_id && it.metric_name == new.metric_name && it.span_id == new.span_id;
    by_hand && kind && tier && same
}
