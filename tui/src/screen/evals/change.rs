//! The changes of Evals: evaluations and rules.

use api::{
    client::{Auth, JUDGE_TIMEOUT, calls},
    eval::{Evaluation, EvaluationContext, EvaluationFilter, EvaluationList, NewEvaluation},
    eval_rule::{EvalRule, EvalRuleChange, NewEvalRule, NewRuleTest},
};
use uuid::Uuid;

use super::{rules::update as rules, state::Evals};
use crate::{
    change::{Change, ChangeOutcome, CheckContext, SentState},
    evaluations::first_page,
    net::{Effect, NetError, Request, RequestId, Response},
    shell::{ScreenChanges, Shell},
};
use present::format::short_id;

/// Number of evaluations that are read to find the one whose response was lost.
const MAX_CHECKED_ROWS: u32 = 50;

/// A change of evaluations or rules.
#[derive(Clone, Debug, PartialEq)]
pub enum EvalsChange {
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

impl EvalsChange {
    /// Returns the project whose rules show the change: a rule can be created in a project that is not shown.
    fn listed_project(&self, shown: Option<Uuid>) -> Option<Uuid> {
        match (self, shown) {
            (Self::CreateRule(new), Some(_)) => Some(new.project_id),
            (_, shown) => shown,
        }
    }
}

impl Change for EvalsChange {
    fn title(&self) -> &'static str {
        match self {
            Self::Evaluate(_) => "Run an evaluation",
            Self::CreateRule(_) => "New rule",
            Self::SetEnabled { paused: true, .. } => "Resume a rule",
            Self::SetEnabled { on: true, .. } => "Enable a rule",
            Self::SetEnabled { on: false, .. } => "Disable a rule",
            Self::DeleteRule { .. } => "Delete a rule",
            Self::TestRule { .. } => "Test a rule",
        }
    }

    fn verb(&self) -> &'static str {
        match self {
            Self::Evaluate(_) => "Run",
            Self::CreateRule(_) => "Add",
            Self::SetEnabled { paused: true, .. } => "Resume",
            Self::SetEnabled { on: true, .. } => "Enable",
            Self::SetEnabled { on: false, .. } => "Disable",
            Self::DeleteRule { .. } => "Delete",
            Self::TestRule { .. } => "Test",
        }
    }

    fn consequences(&self) -> &'static str {
        match self {
            Self::SetEnabled { paused: true, .. } => {
                "The rule runs again on the next trace. If its judge still fails, the rule pauses again."
            }
            Self::SetEnabled { on: true, .. } => {
                "The rule evaluates new traces that its filter and its sample select, but no earlier ones."
            }
            Self::SetEnabled { on: false, .. } => {
                "The rule no longer evaluates new traces. Its evaluations and its settings are kept."
            }
            Self::DeleteRule { .. } => {
                "The rule stops at once and can't be restored. Its evaluations are kept."
            }
            Self::Evaluate(_) | Self::CreateRule(_) | Self::TestRule { .. } => "",
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::SetEnabled { name, .. } | Self::DeleteRule { name, .. } | Self::TestRule { name, .. } => {
                name
            }
            Self::Evaluate(new) => &new.metric_name,
            Self::CreateRule(new) => &new.metric_name,
        }
    }

    fn id(&self) -> Option<Uuid> {
        match self {
            Self::Evaluate(_) | Self::CreateRule(_) => None,
            Self::SetEnabled { id, .. } | Self::DeleteRule { id, .. } | Self::TestRule { id, .. } => {
                Some(*id)
            }
        }
    }

    fn done(&self) -> String {
        let name = self.name();
        match self {
            Self::Evaluate(_) => format!("evaluation with {name} was requested"),
            Self::CreateRule(_) => format!("the rule for {name} was created"),
            Self::SetEnabled { on: true, .. } => format!("the rule for {name} is enabled"),
            Self::SetEnabled { on: false, .. } => format!("the rule for {name} is disabled"),
            Self::DeleteRule { .. } => format!("the rule for {name} was deleted"),
            Self::TestRule { .. } => format!("the rule for {name} was tested"),
        }
    }

    fn request(&self, request: RequestId, auth: Auth) -> Request {
        match self {
            Self::Evaluate(new) => Request::new(request, calls::evaluate(new).with(auth)),
            Self::CreateRule(new) => Request::new(request, calls::create_eval_rule(new).with(auth)),
            Self::SetEnabled { id, on, .. } => {
                let change = EvalRuleChange { enabled: Some(*on), ..EvalRuleChange::default() };
                Request::new(request, calls::update_eval_rule(*id, &change).with(auth))
            }
            Self::DeleteRule { id, .. } => Request::new(request, calls::delete_eval_rule(*id).with(auth)),
            Self::TestRule { id, trace, .. } => {
                let call = calls::test_eval_rule(*id, &NewRuleTest { trace_id: *trace }).with(auth);
                Request::new(request, call).within(JUDGE_TIMEOUT)
            }
        }
    }

    fn check(&self, request: RequestId, context: CheckContext) -> Option<Request> {
        match self {
            Self::Evaluate(new) => {
                let filter = EvaluationFilter {
                    trace_id: Some(new.trace_id),
                    metric_name: Some(new.metric_name.clone()),
                    from: Some(context.since),
                    ..EvaluationFilter::default()
                };
                Some(Request::new(request, first_page(&filter, MAX_CHECKED_ROWS)))
            }
            Self::CreateRule(_) | Self::SetEnabled { .. } | Self::DeleteRule { .. } => {
                let project = self.listed_project(context.project);
                Some(Request::all(request, move |page| calls::eval_rules(project, page)))
            }
            Self::TestRule { .. } => None,
        }
    }
}

impl ScreenChanges for Evals {
    type Change = EvalsChange;

    fn changed(
        &mut self,
        shell: &mut Shell,
        change: &EvalsChange,
        response: Response,
    ) -> Result<Vec<Effect>, NetError> {
        match change {
            EvalsChange::Evaluate(_) => self.wanted = Some(response.decoded::<Evaluation>()?.id),
            EvalsChange::CreateRule(_) => self.rules.wanted = Some(response.decoded::<EvalRule>()?.id),
            EvalsChange::TestRule { id, .. } => rules::tested(self, *id, Box::new(response.decoded()?)),
            EvalsChange::SetEnabled { .. } | EvalsChange::DeleteRule { .. } => {}
        }
        shell.notify(change.done());
        Ok(renew(self, shell, change))
    }

    fn checked(
        &mut self,
        shell: &mut Shell,
        change: &EvalsChange,
        sent: SentState<'_>,
        response: Response,
    ) -> Result<(ChangeOutcome, Vec<Effect>), NetError> {
        let EvalsChange::Evaluate(new) = change else {
            return Ok((check_rules(self, shell, change, sent, response.decoded()?), Vec::new()));
        };
        let list: EvaluationList = response.decoded()?;
        let is_made = |it: &&Evaluation| is_same_request(it, new) && !sent.records.contains(&it.id);
        let Some(made) = list.evaluations.iter().find(is_made) else {
            return Ok((ChangeOutcome::NotMade, Vec::new()));
        };
        self.wanted = Some(made.id);
        let outcome = if made.created_at >= sent.at {
            ChangeOutcome::Made
        } else {
            // The clocks can differ, or another client created a similar one a moment before.
            let (name, id) = (&new.metric_name, short_id(made.id));
            let what = "may be the requested one or another client's";
            ChangeOutcome::NeedsAttention(format!("{name}: the response was lost; evaluation {id} {what}"))
        };
        Ok((outcome, renew(self, shell, change)))
    }

    fn change_refused(&mut self, shell: &mut Shell, change: &EvalsChange) -> Vec<Effect> {
        renew(self, shell, change)
    }
}

/// Requests the lists that show a change.
fn renew(evals: &mut Evals, shell: &mut Shell, change: &EvalsChange) -> Vec<Effect> {
    match change {
        // The used quota is shown on screen 7.
        EvalsChange::Evaluate(_) => vec![shell.load_me(), Effect::ShowEvaluations],
        EvalsChange::CreateRule(_) | EvalsChange::SetEnabled { .. } | EvalsChange::DeleteRule { .. } => {
            rules::load(evals, shell)
        }
        EvalsChange::TestRule { .. } => Vec::new(),
    }
}

/// Stores a fresh list of rules and returns whether it shows a change. A rule that was created is selected.
fn check_rules(
    evals: &mut Evals,
    shell: &Shell,
    change: &EvalsChange,
    sent: SentState<'_>,
    listed: Vec<EvalRule>,
) -> ChangeOutcome {
    let rule = |id: &Uuid| listed.iter().find(|rule| rule.id == *id);
    let outcome = match change {
        EvalsChange::CreateRule(new) => {
            let made = listed.iter().find(|rule| {
                let same = rule.metric_name == new.metric_name && rule.project_id == new.project_id;
                same && !sent.records.contains(&rule.id)
            });
            evals.rules.wanted = made.map(|rule| rule.id).or(evals.rules.wanted);
            ChangeOutcome::of(made.is_some())
        }
        EvalsChange::SetEnabled { id, on, paused, .. } => {
            let is_resumed = |it: &EvalRule| !(*paused && it.paused_reason.is_some());
            ChangeOutcome::of(rule(id).is_some_and(|it| it.enabled == *on && is_resumed(it)))
        }
        EvalsChange::DeleteRule { id, .. } => ChangeOutcome::of(rule(id).is_none()),
        EvalsChange::Evaluate(_) | EvalsChange::TestRule { .. } => ChangeOutcome::NotMade,
    };
    if change.listed_project(shell.project_id()) == shell.project_id() {
        evals.rules.fill(listed);
    }
    outcome
}

/// Returns whether an evaluation matches a request of the user.
fn is_same_request(it: &Evaluation, new: &NewEvaluation) -> bool {
    let by_hand = it.rule_id.is_none() && it.bulk_id.is_none() && it.context == EvaluationContext::Fresh;
    let kind = new.evaluator_type.as_deref().is_none_or(|kind| kind == it.evaluator_type.as_str());
    // Only judges have tiers, and the server chooses one where none was named.
    let tier = it.model_tier.zip(new.model_tier.as_deref()).is_none_or(|(it, new)| it.as_str() == new);
    let same = it.trace_id == new.trace_id && it.metric_name == new.metric_name && it.span_id == new.span_id;
    by_hand && kind && tier && same
}
