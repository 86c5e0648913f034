//! Lists that come in pages and are shown as a whole.

use api::{eval_rule::EvalRule, evaluator::Evaluator, key::ApiKey, project::Project};
use serde::de::DeserializeOwned;

/// A list that comes in pages.
pub trait List: DeserializeOwned + Send + Sync + 'static {
    /// A row.
    type Item: Send + 'static;
    /// The rows, and where the next page begins.
    fn into_rows(self) -> (Vec<Self::Item>, Option<String>);
}

impl List for api::project::ProjectList {
    type Item = Project;

    fn into_rows(self) -> (Vec<Project>, Option<String>) {
        (self.projects, self.next_cursor)
    }
}

impl List for api::eval_rule::EvalRuleList {
    type Item = EvalRule;

    fn into_rows(self) -> (Vec<EvalRule>, Option<String>) {
        (self.eval_rules, self.next_cursor)
    }
}

impl List for api::evaluator::EvaluatorList {
    type Item = Evaluator;

    fn into_rows(self) -> (Vec<Evaluator>, Option<String>) {
        (self.evaluators, self.next_cursor)
    }
}

impl List for api::key::ApiKeyList {
    type Item = ApiKey;

    fn into_rows(self) -> (Vec<ApiKey>, Option<String>) {
        (self.apikeys, self.next_cursor)
    }
}
