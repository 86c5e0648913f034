//! The request that a change sends, and its response.

use api::{
    client::{Auth, JUDGE_TIMEOUT, calls},
    eval::Evaluation,
    eval_rule::{EvalRule, EvalRuleChange, NewRuleTest, RuleTest},
    key::{ApiKey, NewApiKey},
    project::{NewProject, ProjectChange, ProjectStatus},
};
use uuid::Uuid;

use crate::{
    change::Change,
    net::{Effect, NetError, Response},
    shell::{Purpose, Shell},
};

/// What the server stored for a change.
pub enum StoredChange {
    /// The API key, with its secret.
    Key(Box<ApiKey>),
    /// The result of a rule test.
    Tested(Box<RuleTest>),
    /// The evaluation of this id.
    Evaluation(Uuid),
    /// The rule of this id.
    Rule(Uuid),
    /// A record that the console reads from its list.
    Listed,
}

/// Sends a change. The request is never repeated.
pub fn send(shell: &mut Shell, change: &Change) -> Effect {
    let auth = if shell.has_session() { Auth::Session } else { Auth::Key };
    let purpose = Purpose::Change;
    match change {
        Change::CreateKey { name, query, project } => {
            let scopes = query.then(|| vec![api::Scope::Query.as_str().to_owned()]);
            let new = NewApiKey { name: name.clone(), scopes, project_id: *project, expires_at: None };
            shell.send(purpose, calls::create_api_key(&new))
        }
        Change::RevokeKey { id, .. } => shell.send(purpose, calls::revoke_api_key(*id)),
        Change::CreateProject { name } => {
            let new = NewProject { name: name.clone(), ..NewProject::default() };
            shell.send(purpose, calls::create_project(&new))
        }
        Change::SetStatus { id, status: ProjectStatus::Archived, .. } => {
            shell.send(purpose, calls::archive_project(*id))
        }
        Change::SetStatus { id, status: ProjectStatus::Active, .. } => {
            shell.send(purpose, calls::unarchive_project(*id))
        }
        Change::SetAutoship { id, on, .. } => {
            let change = ProjectChange { prompt_autoship_enabled: Some(*on), ..ProjectChange::default() };
            shell.send(purpose, calls::change_project(*id, &change))
        }
        Change::Evaluate(new) => shell.send(purpose, calls::evaluate(new).with(auth)),
        Change::CreateRule(new) => shell.send(purpose, calls::create_eval_rule(new).with(auth)),
        Change::SetEnabled { id, on, .. } => {
            let change = EvalRuleChange { enabled: Some(*on), ..EvalRuleChange::default() };
            shell.send(purpose, calls::update_eval_rule(*id, &change).with(auth))
        }
        Change::DeleteRule { id, .. } => shell.send(purpose, calls::delete_eval_rule(*id).with(auth)),
        Change::TestRule { id, trace, .. } => {
            let call = calls::test_eval_rule(*id, &NewRuleTest { trace_id: *trace }).with(auth);
            shell.send_within(purpose, call, JUDGE_TIMEOUT)
        }
    }
}

/// Returns what the server stored for a change.
///
/// # Errors
/// The response belongs to another change.
pub fn stored(change: &Change, response: Response) -> Result<StoredChange, NetError> {
    Ok(match change {
        Change::CreateKey { .. } => StoredChange::Key(Box::new(response.decoded()?)),
        Change::TestRule { .. } => StoredChange::Tested(Box::new(response.decoded()?)),
        Change::Evaluate(_) => StoredChange::Evaluation(response.decoded::<Evaluation>()?.id),
        Change::CreateRule(_) => StoredChange::Rule(response.decoded::<EvalRule>()?.id),
        Change::RevokeKey { .. }
        | Change::CreateProject { .. }
        | Change::SetStatus { .. }
        | Change::SetAutoship { .. }
        | Change::SetEnabled { .. }
        | Change::DeleteRule { .. } => StoredChange::Listed,
    })
}
