//! Key handling of the screen Approvals, and the schedule of its requests.

use api::{
    Plan, Timestamp,
    client::calls::{self, Page},
    control::{ActionFilter, ActionStatus, ControlAction, ControlActionList, DiffResponse},
    deployment::{DeploymentFilter, DeploymentStatus, PromptDeployment, PromptDeploymentList},
    trace::Trace,
};
use present::format::clock_minute;
use uuid::Uuid;

use crate::{
    dialog::Dialog,
    input::{Input, InputKind},
    keymap::Action,
    net::{Destination, Effect, NetError, Response},
    screen::approvals::{
        FILTER_LINE, SCREEN_DIGIT,
        change::{ApprovalChange, Decision},
        excerpt,
        filter::ApprovalFilter,
        keys::{
            APPROVALS_SCOPE, APPROVE_ROW, REJECT_ROW, ROLL_BACK_ROW, SHOW_DIFF, SHOW_HISTORY, UNIFY_DIFF,
        },
        layout::{ApprovalsLayout, has_two_sides, parts},
        queue::{ApprovalRow, action_name, version_name},
        state::{Approvals, ApprovalsRequest, ApprovalsTab, OriginalSpan, RemediationState, ZoomedApproval},
        view::zoomed_len,
    },
    shell::{
        Older, PagedRow, PagedRows, Pending, RowPage, ScreenActions, ScreenRequests, Shell, notice::describe,
        trouble,
    },
    travel,
};

/// Number of rows on a page of the history. A row contains a whole template.
const ROWS_PER_PAGE: u32 = 50;
/// Microseconds between two requests for the rows while the screen is shown.
const ROWS_INTERVAL_MICROS: i64 = 10_000_000;
/// Microseconds between two requests for a remediation diff whose evaluations have not ended.
const DIFF_INTERVAL_MICROS: i64 = 4_000_000;

impl ScreenActions for Approvals {
    fn enter(&mut self, shell: &mut Shell) -> Vec<Effect> {
        // The records are requested once the project is resolved.
        if shell.is_resolving_project() {
            return Vec::new();
        }
        let mut effects = load_pending(self, shell);
        if self.tab == ApprovalsTab::History {
            effects.extend(load_history(self, shell));
        }
        effects.extend(load_related(self, shell));
        // Rows name their projects.
        effects.extend(shell.need_projects());
        effects
    }

    fn act(&mut self, shell: &mut Shell, action: Action) -> Vec<Effect> {
        if let Some(effects) = scroll_zoomed(self, shell, action) {
            return effects;
        }
        let page = layout(self, shell).rows().max(2) - 1;
        let filter = self.filter.clone();
        if self.queue_mut().travel(&filter, action, page) {
            let mut effects = load_older(self, shell);
            effects.extend(load_related(self, shell));
            return effects;
        }
        match action {
            Action::Refresh => {
                self.baselines.drop_failed();
                self.originals.drop_failed();
                // Policies and diffs change; a version and the output of a span do not.
                self.policies.clear();
                self.remediations.clear();
                return self.enter(shell);
            }
            Action::NextTab | Action::PreviousTab | SHOW_HISTORY => {
                let tab = self.tab.other();
                return show_tab(self, shell, tab);
            }
            Action::Open => {
                self.zoom = self.current().map(|row| (ZoomedApproval::Row(row.id()), 0));
            }
            SHOW_DIFF => return show_diff(self, shell),
            UNIFY_DIFF if has_two_sides(shell.size) => self.is_unified = !self.is_unified,
            UNIFY_DIFF => shell.notify("the terminal is too narrow for two sides; the diff is unified"),
            APPROVE_ROW => return decide(self, shell, Decision::Approve),
            REJECT_ROW => return decide(self, shell, Decision::Reject),
            ROLL_BACK_ROW => return decide(self, shell, Decision::RollBack),
            Action::OpenTrace => return open_trace(self, shell),
            Action::EditFilter => shell.edit(Input::new(InputKind::Screen(FILTER_LINE), &self.text)),
            Action::FindNext | Action::FindPrevious => {
                return find(self, shell, action == Action::FindNext);
            }
            Action::Back if self.find.is_some() => self.find = None,
            Action::Back if !self.text.is_empty() => {
                return set_filter(self, shell, String::new(), ApprovalFilter::default());
            }
            Action::Back if self.tab == ApprovalsTab::History => {
                return show_tab(self, shell, ApprovalsTab::Pending);
            }
            Action::Back => return vec![Effect::Go(Destination::Screen(1))],
            _ => {}
        }
        Vec::new()
    }

    fn tick(&mut self, shell: &mut Shell) -> Vec<Effect> {
        if shell.screen != SCREEN_DIGIT || shell.overlay.is_some() || shell.is_unauthorized() {
            return Vec::new();
        }
        let now = shell.now;
        let mut effects = Vec::new();
        let queue = &self.pending_queue;
        let is_open = self
            .pending
            .has(|it| matches!(it, ApprovalsRequest::PendingDeployments | ApprovalsRequest::PendingActions));
        // Nothing is scheduled while the session is refused.
        let is_restored = queue.actions.next.is_none() && !shell.is_resolving_project();
        if !is_open && (queue.deployments.is_due(now) || queue.actions.is_due(now) || is_restored) {
            effects.extend(load_pending(self, shell));
        }
        let is_due = self.past.deployments.is_due(now) || self.past.actions.is_due(now);
        if self.tab == ApprovalsTab::History && is_due {
            effects.extend(load_history(self, shell));
        }
        effects.extend(load_remediation(self, shell));
        effects.extend(load_related(self, shell));
        effects
    }

    fn project_changed(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let before = std::mem::take(self);
        *self = Self {
            tab: before.tab,
            text: before.text,
            filter: before.filter,
            history: before.history,
            is_unified: before.is_unified,
            ..Self::default()
        };
        if shell.screen == SCREEN_DIGIT { self.enter(shell) } else { self.background(shell) }
    }

    fn background(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let has_plan = shell.me.as_ref().is_some_and(|me| me.tenant.plan >= Plan::Team);
        // The screen requests its own rows while it is shown.
        if !has_plan || shell.screen == SCREEN_DIGIT || shell.is_resolving_project() {
            return Vec::new();
        }
        load_pending(self, shell)
    }

    fn reconnected(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let queues = [&self.pending_queue, &self.past];
        let has_failed = queues.iter().any(|it| it.deployments.error.is_some() || it.actions.error.is_some());
        if shell.screen == SCREEN_DIGIT && has_failed { self.enter(shell) } else { Vec::new() }
    }
}

impl ScreenRequests for Approvals {
    type Purpose = ApprovalsRequest;

    fn pending(&self) -> &Pending<ApprovalsRequest> {
        &self.pending
    }

    fn pending_mut(&mut self) -> &mut Pending<ApprovalsRequest> {
        &mut self.pending
    }

    fn fill(
        &mut self,
        shell: &mut Shell,
        purpose: ApprovalsRequest,
        sent: Timestamp,
        response: Response,
    ) -> Result<Vec<Effect>, NetError> {
        let now = shell.now;
        match purpose {
            ApprovalsRequest::PendingDeployments => {
                let has_more = response.has_more();
                let page = whole_list(response.decoded()?);
                self.pending_queue.has_more_deployments = has_more;
                self.pending_queue.deployments.renew(page, sent, now, ROWS_INTERVAL_MICROS);
            }
            ApprovalsRequest::PendingActions => {
                let has_more = response.has_more();
                let page = whole_list(response.decoded()?);
                self.pending_queue.has_more_actions = has_more;
                self.pending_queue.actions.renew(page, sent, now, ROWS_INTERVAL_MICROS);
            }
            ApprovalsRequest::Deployments => {
                let page = deployment_page(response.decoded()?);
                self.past.deployments.renew(page, sent, now, ROWS_INTERVAL_MICROS);
                self.pending.abandon(|it| *it == ApprovalsRequest::OlderDeployments);
            }
            ApprovalsRequest::OlderDeployments => {
                self.past.deployments.extend(deployment_page(response.decoded()?), sent);
            }
            ApprovalsRequest::Actions => {
                let page = action_page(response.decoded()?);
                self.past.actions.renew(page, sent, now, ROWS_INTERVAL_MICROS);
                self.pending.abandon(|it| *it == ApprovalsRequest::OlderActions);
            }
            ApprovalsRequest::OlderActions => {
                self.past.actions.extend(action_page(response.decoded()?), sent);
            }
            ApprovalsRequest::Baseline(id) => {
                self.baselines.store(id, now, Ok(response.decoded()?));
            }
            ApprovalsRequest::Original(id) => {
                let trace: Trace = response.decoded()?;
                // Without the action, its span is not known.
                if let Some(wanted) = self.action(id).map(|it| it.span_id) {
                    let spans = trace.spans.unwrap_or_default();
                    let span = spans.into_iter().find(|span| Some(span.id) == wanted);
                    self.originals.store(id, now, Ok(OriginalSpan { span }));
                }
            }
            ApprovalsRequest::Policy(id) => {
                self.policies.store(id, now, Ok(response.decoded()?));
            }
            ApprovalsRequest::Remediation(id) => {
                let response: DiffResponse = response.decoded()?;
                let next = match &response {
                    DiffResponse::Evaluating(_) => shell.after(DIFF_INTERVAL_MICROS),
                    DiffResponse::Complete(_) => None,
                };
                let state = self.remediations.get_or_default(id);
                state.checks = state.checks.saturating_add(1);
                (state.response, state.error, state.next) = (Some(response), None, next);
                // The outputs of this diff are laid out again.
                self.diff = None;
            }
            ApprovalsRequest::RefusedDeployment(decision) => {
                let it: PromptDeployment = response.decoded()?;
                if !decision.applies_to(&ApprovalRow::Deployment(&it)) {
                    let decided = (it.decided_by.as_deref(), it.decided_at);
                    report_decided(shell, &version_name(&it), it.status.as_str(), decided);
                }
            }
            ApprovalsRequest::RefusedAction(decision) => {
                let it: ControlAction = response.decoded()?;
                if !decision.applies_to(&ApprovalRow::Action(&it)) {
                    let decided = (it.decided_by.as_deref(), it.decided_at);
                    report_decided(shell, &action_name(&it), it.status.as_str(), decided);
                }
            }
        }
        select_awaited(self, shell);
        if self.anchor() {
            shell.notify("the record is no longer in this list");
        }
        let mut effects = load_first(self, shell);
        effects.extend(load_related(self, shell));
        Ok(effects)
    }

    fn fail(&mut self, shell: &mut Shell, purpose: ApprovalsRequest, error: NetError) -> Vec<Effect> {
        // Traces can be read with an API key as well.
        let needs_session = !matches!(purpose, ApprovalsRequest::Original(_));
        // The requests of the screen are sent together, so that several of them can report the same refusal.
        let is_late = shell.target.api_key && shell.refused_session.is_some() && error.is_unauthorized();
        let is_refused = trouble::is_session_refused(shell, &error);
        if needs_session && (is_refused || is_late) {
            for queue in [&mut self.pending_queue, &mut self.past] {
                (queue.deployments.next, queue.actions.next) = (None, None);
            }
            return if is_late { Vec::new() } else { trouble::session_refused(shell, &error) };
        }
        let effects = trouble::unauthorized(shell, &error);
        let now = shell.now;
        match purpose {
            ApprovalsRequest::PendingDeployments => {
                fail_pending(&mut self.pending_queue.deployments, shell, error);
            }
            ApprovalsRequest::PendingActions => fail_pending(&mut self.pending_queue.actions, shell, error),
            ApprovalsRequest::Deployments => {
                self.past.deployments.fail(shell, ROWS_INTERVAL_MICROS, error);
            }
            ApprovalsRequest::Actions => self.past.actions.fail(shell, ROWS_INTERVAL_MICROS, error),
            ApprovalsRequest::Baseline(id) => {
                self.baselines.store(id, now, Err(error));
            }
            ApprovalsRequest::Original(id) => {
                self.originals.store(id, now, Err(error));
            }
            ApprovalsRequest::Policy(id) => {
                self.policies.store(id, now, Err(error));
            }
            ApprovalsRequest::Remediation(id) => {
                let wait = trouble::retry_after(&error).max(DIFF_INTERVAL_MICROS);
                let next = shell.after(wait).filter(|_| error.is_transient());
                let state = self.remediations.get_or_default(id);
                (state.error, state.next) = (Some(error), next);
            }
            ApprovalsRequest::OlderDeployments | ApprovalsRequest::OlderActions => {
                shell.report(describe(&error));
            }
            // The refusal itself was reported.
            ApprovalsRequest::RefusedDeployment(_) | ApprovalsRequest::RefusedAction(_) => {}
        }
        effects
    }
}

/// Records that a list of pending rows could not be read. While another screen is shown, the user is not interrupted.
fn fail_pending<T: PagedRow>(rows: &mut PagedRows<T>, shell: &mut Shell, error: NetError) {
    if shell.screen == SCREEN_DIGIT {
        rows.fail(shell, ROWS_INTERVAL_MICROS, error);
    } else {
        rows.next = shell.after(trouble::PROBE_INTERVAL_MICROS);
        rows.error = Some(error);
    }
}

fn report_decided(shell: &mut Shell, name: &str, status: &str, decided: (Option<&str>, Option<Timestamp>)) {
    let by = decided.0.map(|by| format!(" by {by}")).unwrap_or_default();
    let at = decided.1.map(|at| format!(" at {}", clock_minute(shell.zone, at, shell.now)));
    let at = at.unwrap_or_default();
    shell.report(format!("nothing was changed: {name} is {status} already, decided{by}{at}"));
}

fn whole_list<T>(rows: Vec<T>) -> RowPage<T> {
    RowPage { rows, has_more: false, next_cursor: None }
}

fn deployment_page(list: PromptDeploymentList) -> RowPage<PromptDeployment> {
    RowPage { rows: list.deployments, has_more: list.has_more, next_cursor: list.next_cursor }
}

fn action_page(list: ControlActionList) -> RowPage<ControlAction> {
    RowPage { rows: list.actions, has_more: list.has_more, next_cursor: list.next_cursor }
}

/// Returns the layout of the screen.
pub fn layout(approvals: &Approvals, shell: &Shell) -> ApprovalsLayout {
    parts(shell.size, approvals.rows().len())
}

/// Returns the filter of the deployments in the project shown.
pub fn deployment_filter(shell: &Shell, status: Option<DeploymentStatus>) -> DeploymentFilter {
    DeploymentFilter { project_id: shell.project_id(), prompt_name: None, status }
}

/// Returns the filter of the actions in the project shown.
pub fn action_filter(shell: &Shell, status: Option<ActionStatus>) -> ActionFilter {
    ActionFilter { project_id: shell.project_id(), status, ..ActionFilter::default() }
}

fn page_after(cursor: Option<String>) -> Page {
    Page { limit: Some(ROWS_PER_PAGE), cursor }
}

/// Requests what waits for a decision, with the session token.
pub fn load_pending(approvals: &mut Approvals, shell: &mut Shell) -> Vec<Effect> {
    let queue = &mut approvals.pending_queue;
    (queue.deployments.next, queue.actions.next) = (None, None);
    if !shell.has_session() {
        return Vec::new();
    }
    let deployments = deployment_filter(shell, Some(DeploymentStatus::AbPassed));
    let actions = action_filter(shell, Some(ActionStatus::PendingApproval));
    let pending = &mut approvals.pending;
    vec![
        pending.send_all(shell.ticket(), ApprovalsRequest::PendingDeployments, move |page| {
            calls::deployments(&deployments, page)
        }),
        pending.send_all(shell.ticket(), ApprovalsRequest::PendingActions, move |page| {
            calls::control_actions(&actions, page)
        }),
    ]
}

/// Requests the first pages of the history.
pub fn load_history(approvals: &mut Approvals, shell: &mut Shell) -> Vec<Effect> {
    let queue = &mut approvals.past;
    (queue.deployments.next, queue.actions.next) = (None, None);
    if !shell.has_session() {
        return Vec::new();
    }
    let page = page_after(None);
    let deployments = calls::deployments(&deployment_filter(shell, None), &page);
    let actions = calls::control_actions(&action_filter(shell, None), &page);
    let pending = &mut approvals.pending;
    vec![
        pending.send(shell.ticket(), ApprovalsRequest::Deployments, deployments),
        pending.send(shell.ticket(), ApprovalsRequest::Actions, actions),
    ]
}

/// Requests older rows of the history when the cursor approaches the last loaded one.
fn load_older(approvals: &mut Approvals, shell: &mut Shell) -> Vec<Effect> {
    if approvals.tab != ApprovalsTab::History {
        return Vec::new();
    }
    let older = approvals.past.missing_older(&approvals.filter);
    request_older(approvals, shell, older)
}

/// Requests older rows of the history as long as all loaded ones wait for a decision.
fn load_first(approvals: &mut Approvals, shell: &mut Shell) -> Vec<Effect> {
    if approvals.tab != ApprovalsTab::History {
        return Vec::new();
    }
    let older = approvals.past.missing_first();
    request_older(approvals, shell, older)
}

fn request_older(
    approvals: &mut Approvals,
    shell: &mut Shell,
    (deployments, actions): (Option<Older>, Option<Older>),
) -> Vec<Effect> {
    let pending = &mut approvals.pending;
    let mut effects = Vec::new();
    let is_open = pending.has(|it| *it == ApprovalsRequest::OlderDeployments);
    if let Some(Older { cursor, .. }) = deployments.filter(|_| !is_open) {
        let call = calls::deployments(&deployment_filter(shell, None), &page_after(Some(cursor)));
        effects.push(pending.send(shell.ticket(), ApprovalsRequest::OlderDeployments, call));
    }
    let is_open = pending.has(|it| *it == ApprovalsRequest::OlderActions);
    if let Some(Older { cursor, .. }) = actions.filter(|_| !is_open) {
        let call = calls::control_actions(&action_filter(shell, None), &page_after(Some(cursor)));
        effects.push(pending.send(shell.ticket(), ApprovalsRequest::OlderActions, call));
    }
    effects
}

/// Requests what is shown beside the selected row, unless it is loaded: the baseline of a deployment, the original span
/// and the policy of an action.
fn load_related(approvals: &mut Approvals, shell: &mut Shell) -> Vec<Effect> {
    if shell.screen != SCREEN_DIGIT || !shell.has_session() {
        return Vec::new();
    }
    let now = shell.now;
    let mut requests = Vec::new();
    match approvals.current() {
        Some(ApprovalRow::Deployment(it)) => {
            let baseline = it.baseline_id.filter(|id| approvals.deployment(*id).is_none());
            if let Some(id) = baseline.filter(|id| approvals.baselines.is_missing(*id, now)) {
                requests.push((ApprovalsRequest::Baseline(id), it.id));
            }
        }
        Some(ApprovalRow::Action(it)) => {
            if it.span_id.is_some() && approvals.originals.is_missing(it.id, now) {
                requests.push((ApprovalsRequest::Original(it.id), it.trace_id));
            }
            if let Some(id) = it.policy_id.filter(|id| approvals.policies.is_missing(*id, now)) {
                requests.push((ApprovalsRequest::Policy(id), id));
            }
        }
        None => {}
    }
    // One request for each kind at a time: the response leads here again.
    let same_kind =
        |a: &ApprovalsRequest, b: &ApprovalsRequest| std::mem::discriminant(a) == std::mem::discriminant(b);
    let pending = &mut approvals.pending;
    let mut effects = Vec::new();
    for (purpose, target) in requests {
        if pending.has(|it| same_kind(it, &purpose)) {
            continue;
        }
        let ticket = shell.ticket();
        effects.push(match purpose {
            ApprovalsRequest::Baseline(id) => pending.send(ticket, purpose, calls::deployment(id)),
            ApprovalsRequest::Policy(id) => pending.send(ticket, purpose, calls::policy(id)),
            _ => pending.send(ticket, purpose, calls::trace(&target.to_string())),
        });
    }
    effects
}

/// Requests the remediation diff that is shown, when it is due.
fn load_remediation(approvals: &mut Approvals, shell: &mut Shell) -> Vec<Effect> {
    let Some((ZoomedApproval::Remediation { action, .. }, _)) = approvals.zoom else { return Vec::new() };
    let is_open = approvals.pending.has(|it| matches!(it, ApprovalsRequest::Remediation(_)));
    let state = approvals.remediations.get_or_default(action);
    let is_first = state.response.is_none() && state.error.is_none();
    if is_open || !shell.has_session() || !(is_first || state.next.is_some_and(|at| at <= shell.now)) {
        return Vec::new();
    }
    state.next = None;
    let purpose = ApprovalsRequest::Remediation(action);
    vec![approvals.pending.send(shell.ticket(), purpose, calls::action_diff(action))]
}

/// Shows a tab.
fn show_tab(approvals: &mut Approvals, shell: &mut Shell, tab: ApprovalsTab) -> Vec<Effect> {
    approvals.tab = tab;
    approvals.zoom = None;
    if tab == ApprovalsTab::History {
        let mut effects = load_history(approvals, shell);
        effects.extend(load_related(approvals, shell));
        return effects;
    }
    load_related(approvals, shell)
}

/// Shows the whole diff of the selected row: of the templates, or of the outputs if the action was executed.
fn show_diff(approvals: &mut Approvals, shell: &mut Shell) -> Vec<Effect> {
    match approvals.current() {
        Some(ApprovalRow::Action(it)) if it.status == ActionStatus::Succeeded => {
            let action = it.id;
            show_remediation(approvals, shell, action, None)
        }
        Some(ApprovalRow::Action(it)) => {
            let status = it.status;
            approvals.zoom = Some((ZoomedApproval::Row(it.id), 0));
            shell.notify(format!("the action is {status}: it has no output to compare"));
            Vec::new()
        }
        Some(ApprovalRow::Deployment(it)) => {
            approvals.zoom = Some((ZoomedApproval::Row(it.id), 0));
            Vec::new()
        }
        None => {
            shell.notify("no row is selected");
            Vec::new()
        }
    }
}

/// Shows the remediation diff of an action. `back` is the trace and the span that the user came from.
pub fn show_remediation(
    approvals: &mut Approvals,
    shell: &mut Shell,
    action: Uuid,
    back: Option<(Uuid, Uuid)>,
) -> Vec<Effect> {
    approvals.zoom = Some((ZoomedApproval::Remediation { action, back }, 0));
    // A diff that failed or that is not complete is requested at once.
    let is_complete = |it: &RemediationState| it.diff().is_some() && it.error.is_none();
    if approvals.remediations.get(action).is_some_and(|it| !is_complete(it)) {
        return reload_remediation(approvals, shell, action);
    }
    load_remediation(approvals, shell)
}

/// Requests the remediation diff that is shown at once. The last response stays on the screen until the next one.
fn reload_remediation(approvals: &mut Approvals, shell: &mut Shell, action: Uuid) -> Vec<Effect> {
    let state = approvals.remediations.get_or_default(action);
    (state.error, state.next) = (None, Some(shell.now));
    load_remediation(approvals, shell)
}

/// Puts the cursor on the pending action of a trace as soon as it is loaded.
pub fn show_trace(approvals: &mut Approvals, shell: &mut Shell, trace: Uuid) -> Vec<Effect> {
    (approvals.tab, approvals.zoom) = (ApprovalsTab::Pending, None);
    (approvals.text, approvals.filter) = (String::new(), ApprovalFilter::default());
    approvals.awaited_trace = Some(trace);
    let is_open = approvals.pending.has(|it| *it == ApprovalsRequest::PendingActions);
    let mut effects = if is_open { Vec::new() } else { load_pending(approvals, shell) };
    if approvals.pending_queue.select_trace(trace) {
        approvals.awaited_trace = None;
        effects.extend(load_related(approvals, shell));
    }
    effects
}

/// Puts the cursor on the awaited action, or reports that there is none once the actions have arrived.
fn select_awaited(approvals: &mut Approvals, shell: &mut Shell) {
    let Some(trace) = approvals.awaited_trace else { return };
    let is_open = approvals.pending.has(|it| *it == ApprovalsRequest::PendingActions);
    if approvals.pending_queue.select_trace(trace) {
        approvals.awaited_trace = None;
    } else if !is_open && approvals.pending_queue.actions.loaded {
        approvals.awaited_trace = None;
        shell.notify("no action on this trace waits for a decision");
    }
}

/// Puts another filter in force.
pub fn set_filter(
    approvals: &mut Approvals,
    shell: &mut Shell,
    text: String,
    filter: ApprovalFilter,
) -> Vec<Effect> {
    (approvals.text, approvals.filter) = (text, filter);
    approvals.zoom = None;
    approvals.anchor();
    load_related(approvals, shell)
}

/// Goes to the next row that find matches, or to the one before.
fn find(approvals: &mut Approvals, shell: &mut Shell, forward: bool) -> Vec<Effect> {
    let Some(at) = approvals.find_from(forward) else {
        let key = shell.key(APPROVALS_SCOPE, Action::Find);
        shell.notify(match approvals.find {
            None => format!("no search text; press {key} to enter it"),
            Some(_) => "not found in the loaded rows".to_owned(),
        });
        return Vec::new();
    };
    approvals.select(at);
    approvals.zoom = None;
    load_related(approvals, shell)
}

fn open_trace(approvals: &Approvals, shell: &mut Shell) -> Vec<Effect> {
    let target = match (approvals.zoom, approvals.current()) {
        (Some((ZoomedApproval::Remediation { back: Some((id, span)), .. }, _)), _) => Some((id, Some(span))),
        (_, Some(ApprovalRow::Action(it))) => Some((it.trace_id, it.remediated_span_id.or(it.span_id))),
        (_, Some(ApprovalRow::Deployment(_))) => {
            shell.notify("a deployment belongs to no trace");
            return Vec::new();
        }
        (_, None) => None,
    };
    let Some((id, span)) = target else {
        shell.notify("no row is selected");
        return Vec::new();
    };
    vec![Effect::Go(Destination::Trace { id, span, from: Some(SCREEN_DIGIT) })]
}

/// Opens the dialog of a decision about the selected row. It shows what changes, so the baseline has to be loaded.
fn decide(approvals: &mut Approvals, shell: &mut Shell, decision: Decision) -> Vec<Effect> {
    if let Some((ZoomedApproval::Remediation { .. }, _)) = approvals.zoom {
        let back = shell.key(APPROVALS_SCOPE, Action::Back);
        shell.notify(format!("this is the diff of an executed action; {back} goes back to the rows"));
        return Vec::new();
    }
    let Some(row) = approvals.current() else {
        shell.notify("no row is selected");
        return Vec::new();
    };
    if !decision.applies_to(&row) {
        let (name, status, verb) = (row.name(), row.status(), decision.verb());
        shell.notify(format!("{name} is {status}: it can't be {verb}"));
        return Vec::new();
    }
    if let ApprovalRow::Deployment(it) = row {
        let is_loading = it
            .baseline_id
            .is_some_and(|id| approvals.deployment(id).is_none() && approvals.baselines.get(id).is_none());
        if is_loading {
            shell.notify("the baseline is being loaded; press the key again when the diff is shown");
            return load_related(approvals, shell);
        }
    }
    let change = ApprovalChange::new(decision, &row, excerpt::lines(approvals, shell, &row, decision));
    shell.dialog = Some(Dialog::confirm(change, shell.target.protected, shell.now));
    Vec::new()
}

/// Handles the keys of a text that fills the body. Returns none if there is no such text, or the key has its usual
/// meaning.
fn scroll_zoomed(approvals: &mut Approvals, shell: &mut Shell, action: Action) -> Option<Vec<Effect>> {
    let (text, top) = approvals.zoom?;
    let rows = usize::from(crate::layout::frame(shell.size).body.height.saturating_sub(1)).max(1);
    let last = zoomed_len(approvals, shell).saturating_sub(rows);
    if let Some(to) = travel::to(action, top.min(last), last, rows.max(2) - 1) {
        approvals.zoom = Some((text, to));
        return Some(Vec::new());
    }
    match (action, text) {
        (
            Action::Back | Action::Open | SHOW_DIFF,
            ZoomedApproval::Remediation { back: Some((id, span)), .. },
        ) => {
            approvals.zoom = None;
            Some(vec![Effect::Go(Destination::Trace { id, span: Some(span), from: Some(1) })])
        }
        (Action::Back | Action::Open, _) | (SHOW_DIFF, ZoomedApproval::Remediation { .. }) => {
            approvals.zoom = None;
            Some(Vec::new())
        }
        (SHOW_DIFF, ZoomedApproval::Row(id)) => {
            // An executed action has a diff besides its details.
            let is_executed = approvals.action(id).is_some_and(|it| it.status == ActionStatus::Succeeded);
            if is_executed {
                return None;
            }
            approvals.zoom = None;
            Some(Vec::new())
        }
        (Action::Refresh, ZoomedApproval::Remediation { action, .. }) => {
            Some(reload_remediation(approvals, shell, action))
        }
        _ => None,
    }
}
