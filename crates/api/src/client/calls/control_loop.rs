//! The endpoints of the control loop: policies, control actions and prompt deployments.

use serde_json::json;
use uuid::Uuid;

use super::{
    super::{Auth, Call},
    Page, given, paged, segment,
};
use crate::{
    control::{ActionFilter, ControlAction, ControlActionList, DiffResponse, NewControlAction},
    deployment::{
        DeploymentDecision, DeploymentFilter, NewPromptDeployment, PromptDeployment, PromptDeploymentList,
        ServedPrompt,
    },
    policy::{NewPolicy, Policy, PolicyChange, PolicyList},
};

/// Lists policies, newest first.
pub fn policies(project: Option<Uuid>, page: &Page) -> Call<PolicyList> {
    paged(Call::get("/v1/policies").with(Auth::SessionOnly).maybe("project_id", project), page)
}

/// Returns a policy.
pub fn policy(id: Uuid) -> Call<Policy> {
    Call::get(format!("/v1/policies/{id}")).with(Auth::SessionOnly)
}

/// Creates a policy.
pub fn create_policy(new: &NewPolicy) -> Call<Policy> {
    Call::post("/v1/policies").with(Auth::SessionOnly).json(given(new))
}

/// Changes a policy.
pub fn update_policy(id: Uuid, change: &PolicyChange) -> Call<Policy> {
    Call::patch(format!("/v1/policies/{id}")).with(Auth::SessionOnly).json(json!(change))
}

/// Deletes a policy.
pub fn delete_policy(id: Uuid) -> Call<()> {
    Call::delete(format!("/v1/policies/{id}")).with(Auth::SessionOnly)
}

/// Lists control actions, newest first.
pub fn control_actions(filter: &ActionFilter, page: &Page) -> Call<ControlActionList> {
    let ActionFilter { project_id, trace_id, policy_id, action_type, status, from, to } = filter;
    let call = Call::get("/v1/control/actions").with(Auth::SessionOnly).maybe("project_id", *project_id);
    let call = call.maybe("trace_id", *trace_id).maybe("policy_id", *policy_id);
    let call = call.maybe("action_type", *action_type).maybe("status", *status);
    paged(call.maybe("from", *from).maybe("to", *to), page)
}

/// Returns a control action.
pub fn control_action(id: Uuid) -> Call<ControlAction> {
    Call::get(format!("/v1/control/actions/{id}")).with(Auth::SessionOnly)
}

/// Requests a control action on a trace.
pub fn request_action(new: &NewControlAction) -> Call<ControlAction> {
    Call::post("/v1/control/actions").with(Auth::SessionOnly).json(given(new))
}

/// Approves a control action that waits for approval.
pub fn approve_action(id: Uuid) -> Call<ControlAction> {
    Call::post(format!("/v1/control/actions/{id}/approve")).with(Auth::SessionOnly)
}

/// Rejects a control action that waits for approval.
pub fn reject_action(id: Uuid) -> Call<ControlAction> {
    Call::post(format!("/v1/control/actions/{id}/reject")).with(Auth::SessionOnly)
}

/// Returns what an action changed, or the progress of the evaluations of its output.
pub fn action_diff(id: Uuid) -> Call<DiffResponse> {
    Call::get(format!("/v1/control/actions/{id}/diff")).with(Auth::SessionOnly)
}

/// Lists prompt deployments, newest first.
pub fn deployments(filter: &DeploymentFilter, page: &Page) -> Call<PromptDeploymentList> {
    let DeploymentFilter { project_id, prompt_name, status } = filter;
    let call = Call::get("/v1/prompts/deployments").with(Auth::SessionOnly).maybe("project_id", *project_id);
    paged(call.maybe("prompt_name", prompt_name.as_ref()).maybe("status", *status), page)
}

/// Returns a prompt deployment.
pub fn deployment(id: Uuid) -> Call<PromptDeployment> {
    Call::get(format!("/v1/prompts/deployments/{id}")).with(Auth::SessionOnly)
}

/// Creates a version of a prompt.
pub fn create_deployment(new: &NewPromptDeployment) -> Call<PromptDeployment> {
    Call::post("/v1/prompts/deployments").with(Auth::SessionOnly).json(given(new))
}

/// Ships a deployment that passed its test.
pub fn approve_deployment(id: Uuid, decision: &DeploymentDecision) -> Call<PromptDeployment> {
    decide(id, "approve", decision)
}

/// Rejects a deployment. A shipped one is replaced by the version before it.
pub fn reject_deployment(id: Uuid, decision: &DeploymentDecision) -> Call<PromptDeployment> {
    decide(id, "reject", decision)
}

/// Rolls a shipped deployment back to the version before it.
pub fn roll_back_deployment(id: Uuid, decision: &DeploymentDecision) -> Call<PromptDeployment> {
    decide(id, "rollback", decision)
}

fn decide(id: Uuid, decision: &str, body: &DeploymentDecision) -> Call<PromptDeployment> {
    Call::post(format!("/v1/prompts/deployments/{id}/{decision}")).with(Auth::SessionOnly).json(given(body))
}

/// Returns the version of a prompt that an application uses. The subject determines the arm of a live test.
pub fn prompt(name: &str, project: Option<Uuid>, subject: Option<&str>) -> Call<ServedPrompt> {
    let call = Call::get(format!("/v1/prompts/{}", segment(name)));
    call.maybe("project_id", project).maybe("subject", subject)
}
