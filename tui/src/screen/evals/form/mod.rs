//! The forms of Evals: a new evaluation, a new rule, and the test of a rule.

mod read;

use std::sync::Arc;

use api::{
    eval::{Evaluation, EvaluatorType, ModelTier},
    evaluator::Evaluator,
};
use uuid::Uuid;

use crate::{
    change::Change,
    dialog::{
        CONFIG_FIELD, Choice, Field, FieldError, FieldName, Form, FormPurpose, METRIC_FIELD, PROJECT_FIELD,
        TYPE_FIELD,
    },
    ids::LoadedIds,
};

const TRACE_FIELD: FieldName =
    FieldName { title: "Trace", hint: "the id of a trace, or the end of the id of a loaded one" };
const SPAN_FIELD: FieldName =
    FieldName { title: "Span", hint: "judges one span; without it, the whole trace" };
const TIER_FIELD: FieldName =
    FieldName { title: "Tier", hint: "cheap costs less, premium judges better; for type llm" };
const DROP_FIELD: FieldName =
    FieldName { title: "Min drop", hint: "a smaller drop after a control action raises no alert" };
const SAMPLE_FIELD: FieldName =
    FieldName { title: "Sample", hint: "share of the matching traces, 0 to 1, or as 25%" };
const FILTER_FIELD: FieldName =
    FieldName { title: "Filter", hint: "model:M name:N tag:key:value error:true type:llm" };
const ENABLED_FIELD: FieldName = FieldName { title: "Enabled", hint: "left and right choose" };

/// The values that the form of an evaluation begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormDefaults {
    /// The trace.
    pub trace: Option<Uuid>,
    /// The span.
    pub span: Option<Uuid>,
    /// The evaluator.
    pub metric: Option<String>,
    /// The type of the evaluator.
    pub kind: Option<EvaluatorType>,
    /// The tier of the judge model.
    pub tier: Option<ModelTier>,
    /// Options of the evaluator.
    pub config: Option<String>,
}

impl FormDefaults {
    /// Returns the values of an existing evaluation. Its record does not contain the options.
    pub fn of(it: &Evaluation) -> Self {
        Self {
            trace: Some(it.trace_id),
            span: it.span_id,
            metric: Some(it.metric_name.clone()),
            kind: Some(it.evaluator_type),
            tier: it.model_tier,
            config: None,
        }
    }
}

/// Runs an evaluation.
#[derive(Clone, Copy, Debug)]
struct NewEvaluationForm;

impl FormPurpose for NewEvaluationForm {
    fn title(&self) -> &'static str {
        "Run an evaluation"
    }

    fn verb(&self) -> &'static str {
        "Run"
    }

    fn has_optional_type(&self) -> bool {
        true
    }

    fn read(&self, form: &Form, loaded: &LoadedIds) -> Result<Arc<dyn Change>, FieldError> {
        Ok(Arc::new(Self::change(form, loaded)?))
    }
}

/// Returns the form of an evaluation that begins with these values.
pub fn new_evaluation(given: FormDefaults, evaluators: &[Evaluator]) -> Form {
    let text = |id: Option<Uuid>| id.map(|id| id.to_string()).unwrap_or_default();
    let kind = given.kind.map(EvaluatorType::as_str);
    let mut tiers = Choice::of(&["cheap", "premium"]);
    tiers.at = usize::from(given.tier == Some(ModelTier::Premium));
    let first = if given.trace.is_none() { TRACE_FIELD } else { METRIC_FIELD };
    let fields = vec![
        Field::text(TRACE_FIELD, &text(given.trace)),
        Field::text(SPAN_FIELD, &text(given.span)),
        Field::choice(METRIC_FIELD, Choice::awaiting(given.metric.as_deref())),
        Field::choice(TYPE_FIELD, Choice::of(kind.as_slice())),
        Field::choice(TIER_FIELD, tiers),
        Field::text(CONFIG_FIELD, &given.config.unwrap_or_default()),
    ];
    Form::new(Arc::new(NewEvaluationForm), fields).beginning_with(first).with_evaluators(evaluators)
}

/// Creates a rule.
#[derive(Clone, Copy, Debug)]
struct NewRuleForm;

impl FormPurpose for NewRuleForm {
    fn title(&self) -> &'static str {
        "New rule"
    }

    fn verb(&self) -> &'static str {
        "Add"
    }

    fn read(&self, form: &Form, _loaded: &LoadedIds) -> Result<Arc<dyn Change>, FieldError> {
        Ok(Arc::new(Self::change(form)?))
    }
}

/// Returns the form of a rule, of this project if it is one of them.
pub fn new_rule(project: Option<Uuid>, projects: Vec<(Uuid, String)>, evaluators: &[Evaluator]) -> Form {
    let chosen = project.map(|id| id.to_string());
    let options = projects.into_iter().map(|(id, name)| (id.to_string(), name)).collect();
    let fields = vec![
        Field::choice(PROJECT_FIELD, Choice::among(options, chosen.as_deref())),
        Field::choice(METRIC_FIELD, Choice::awaiting(None)),
        Field::choice(TYPE_FIELD, Choice::default()),
        Field::choice(TIER_FIELD, Choice::of(&["cheap", "premium"])),
        Field::text(CONFIG_FIELD, ""),
        Field::text(FILTER_FIELD, ""),
        Field::text(SAMPLE_FIELD, "1"),
        Field::text(DROP_FIELD, "0"),
        Field::choice(ENABLED_FIELD, Choice::of(&["yes", "no"])),
    ];
    Form::new(Arc::new(NewRuleForm), fields).beginning_with(METRIC_FIELD).with_evaluators(evaluators)
}

/// Tests a rule on a trace.
#[derive(Clone, Debug)]
struct RuleTestForm {
    /// The id of the rule.
    id: Uuid,
    /// The metric of the rule.
    name: String,
}

impl FormPurpose for RuleTestForm {
    fn title(&self) -> &'static str {
        "Test a rule"
    }

    fn verb(&self) -> &'static str {
        "Test"
    }

    fn subject(&self) -> Option<(&str, Uuid, &'static str)> {
        Some((&self.name, self.id, "Nothing is stored; calls of a judge are charged."))
    }

    fn read(&self, form: &Form, loaded: &LoadedIds) -> Result<Arc<dyn Change>, FieldError> {
        Ok(Arc::new(self.change(form, loaded)?))
    }
}

/// Returns the form that tests a rule on a trace.
pub fn rule_test(id: Uuid, name: String, trace: Option<Uuid>) -> Form {
    let trace = trace.map(|id| id.to_string()).unwrap_or_default();
    Form::new(Arc::new(RuleTestForm { id, name }), vec![Field::text(TRACE_FIELD, &trace)])
}
