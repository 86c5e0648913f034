//! The changes that the console can make on the server, with the texts of their dialogs.
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
    /// Create an API key.
    CreateKey {
        /// The name.
        name: String,
        /// Whether the key is limited to reading.
        query: bool,
        /// The project of its traces; none leaves the choice to the server.
        project: Option<Uuid>,
    },
    /// Revoke an API key.
    RevokeKey {
        /// The id.
        id: Uuid,
        /// The name.
        name: String,
    },
    /// Create a project.
    CreateProject {
        /// The name.
        name: String,
    },
    /// Archive or unarchive a project.
    SetStatus {
        /// The id.
        id: Uuid,
        /// The name.
        name: String,
        /// The new value.
        status: ProjectStatus,
    },
    /// Turn shipping without approval on or off for prompts that passed their test.
    SetAutoship {
        /// The id of the project.
        id: Uuid,
        /// The name.
        name: String,
        /// The new value.
        on: bool,
    },
    /// Run an evaluation.
    Evaluate(Box<NewEvaluation>),
    /// Create a rule.
    CreateRule(Box<NewEvalRule>),
    /// Enable or disable a rule.
    SetEnabled {
        /// The id.
        id: Uuid,
        /// The metric of the rule.
        name: String,
        /// The new value.
        on: bool,
        /// Whether the rule is enabled but paused, and resumes.
        paused: bool,
    },
    /// Delete a rule.
    DeleteRule {
        /// The id.
        id: Uuid,
        /// The metric of the rule.
        name: String,
    },
    /// Test a rule on a trace. Nothing is stored, but calls of a judge are charged.
    TestRule {
        /// The id.
        id: Uuid,
        /// The metric of the rule.
        name: String,
        /// The trace.
        trace: Uuid,
    },
}

/// The list that shows a change.
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
    /// No list: the change stores nothing.
    Nothing,
}

/// The outcome of a change whose response was lost, as fresh lists show it.
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

/// Fresh lists that show whether a change happened.
#[derive(Clone, Copy, Debug)]
pub struct Lists<'a> {
    /// API keys.
    pub keys: &'a [ApiKey],
    /// Projects.
    pub projects: &'a [Project],
    /// Rules.
    pub rules: &'a [EvalRule],
    /// Evaluations of the trace and the metric that were created since shortly before the change.
    pub evaluations: &'a [Evaluation],
    /// When the change was sent, by this machine's clock.
    pub sent: Timestamp,
}

impl Change {
    /// Returns the title of the dialog.
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

    /// Returns the label of the button.
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

    /// Returns the consequences, in one or two sentences.
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
                "New traces that its filter and sample select are judged. Earlier traces are not."
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

    /// Returns the name of the record that changes.
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

    /// Returns the id of the record that changes, if it exists already.
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

    /// Returns the list that shows the change.
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

    /// Returns the notice after success.
    pub fn done(&self) -> String {
        let name = self.name();
        match self {
            Self::CreateKey { .. } => format!("API key {name} was created"),
            Self::RevokeKey { .. } => format!("API key {name} was revoked"),
            Self::CreateProject { .. } => format!("project {name} was created"),
            Self::SetStatus { status: ProjectStatus::Archived, .. } => format!("project {name} is archived"),
            Self::SetStatus { status: ProjectStatus::Active, .. } => format!("project {name} is active"),
            Self::SetAutoship { on: true, .. } => format!("autoship of {name} is on"),
            Self::SetAutoship { on: false, .. } => format!("autoship of {name} is off"),
            Self::Evaluate(_) => format!("evaluation with {name} was requested"),
            Self::CreateRule(_) => format!("the rule for {name} was created"),
            Self::SetEnabled { on: true, .. } => format!("the rule for {name} is enabled"),
            Self::SetEnabled { on: false, .. } => format!("the rule for {name} is disabled"),
            Self::DeleteRule { .. } => format!("the rule for {name} was deleted"),
            Self::TestRule { .. } => format!("the rule for {name} was tested"),
        }
    }

    /// Determines from fresh lists whether the change happened. `before` are the ids of the list before it.
    pub fn landed(&self, before: &[Uuid], lists: Lists<'_>) -> ChangeOutcome {
        let Lists { keys, projects, rules, evaluations, sent } = lists;
        let project = |id: &Uuid| projects.iter().find(|project| project.id == *id);
        ChangeOutcome::of(match self {
            Self::Evaluate(new) => {
                let newest =
                    evaluations.iter().find(|it| is_same_request(it, new) && !before.contains(&it.id));
                return match newest {
                    Some(it) if it.created_at >= sent => ChangeOutcome::Yes(Some(it.id)),
                    // The clocks can differ, or another client created a similar one a moment before.
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

/// Returns whether an evaluation matches a request made by hand.
fn is_same_request(it: &Evaluation, new: &NewEvaluation) -> bool {
    let by_hand = it.rule_id.is_none() && it.bulk_id.is_none() && it.context == EvaluationContext::Fresh;
    let kind = new.evaluator_type.as_deref().is_none_or(|kind| kind == it.evaluator_type.as_str());
    // Only judges have tiers, and the server chooses one where none was named.
    let tier = it.model_tier.zip(new.model_tier.as_deref()).is_none_or(|(it, new)| it.as_str() == new);
    let same = it.trace_id == new.trace_id && it.metric_name == new.metric_name && it.span_id == new.span_id;
    by_hand && kind && tier && same
}
