//! Draws Approvals: the queue, the selected row with its diff, and the panels in place of a queue without rows.

mod diff;
mod remediation;
mod row;

use api::{
    control::ActionStatus,
    deployment::{DeploymentStatus, PromptDeployment},
};
use present::{
    Glyphs,
    format::{CLOCK_DATED, clock, clock_minute, elapsed, latency, short_id, thousands},
    text::{clean, fit, fit_right},
};
use ratatui::{buffer::Buffer, layout::Rect};
use uuid::Uuid;

use crate::{
    keymap::Action,
    screen::approvals::{
        change::Decision,
        keys::{
            APPROVALS_SCOPE, APPROVE_ROW, REJECT_ROW, ROLL_BACK_ROW, SHOW_DIFF, SHOW_HISTORY, UNIFY_DIFF,
        },
        layout::has_two_sides,
        queue::{ApprovalQueue, ApprovalRow},
        state::{Approvals, ApprovalsTab, ComposedDiff, DiffKey, ZoomedApproval},
        update::layout,
    },
    shell::{
        ScreenView, Shell,
        freshness::{Cause, Stale},
        notice,
    },
    theme::Tone,
    widgets::table::{Pieces, first_visible, put, put_pane, put_panel, rule},
};
use diff::DiffLayout;

/// Columns of the name of a row.
const NAME_COLS: usize = 31;
/// Columns of the state of a row.
const STATUS_COLS: usize = 16;
/// Columns of an age.
const AGE_COLS: usize = 7;

impl ScreenView for Approvals {
    fn has_records(&self, _shell: &Shell) -> bool {
        let queue = self.queue();
        queue.deployments.loaded || queue.actions.loaded
    }

    fn badge(&self, shell: &Shell) -> Option<String> {
        let count = self.pending_queue.len();
        (count > 0 && shell.has_session()).then(|| self.pending_queue.counted())
    }

    fn draw(&self, shell: &Shell, buffer: &mut Buffer, area: Rect) {
        if let Some((text, top)) = self.zoom {
            return zoomed(self, shell, buffer, area, text, top);
        }
        let rows = self.rows();
        if let Some(lines) = instead(self, shell, rows.is_empty()) {
            return put_panel(buffer, area, &shell.theme, &lines);
        }
        let parts = layout(self, shell);
        list(self, shell, buffer, parts.list, &rows);
        if parts.pane.height > 0 {
            pane(self, shell, buffer, parts.pane);
        }
    }

    fn line(&self, shell: &Shell, cols: usize) -> Pieces {
        let theme = &shell.theme;
        let back = || Pieces::new().add(Tone::Dim, format!(" {} Approvals / ", theme.glyphs.back));
        match (self.zoom, self.current()) {
            (Some((ZoomedApproval::Remediation { action, .. }, _)), _) => {
                return back().plain(format!("diff of action {}", short_id(action))).cut(cols, theme);
            }
            (Some((ZoomedApproval::Row(_), _)), Some(row)) => {
                return back().add(Tone::Strong, clean(&row.name()).into_owned()).cut(cols, theme);
            }
            _ => {}
        }
        let queue = &self.pending_queue;
        let is_loaded = queue.deployments.loaded || queue.actions.loaded;
        let count = if is_loaded { format!(" {}", queue.counted()) } else { String::new() };
        let tabs = [
            (ApprovalsTab::Pending, format!("Pending{count}")),
            (ApprovalsTab::History, "History".to_owned()),
        ];
        let mut line = Pieces::new().plain(" ");
        for (tab, title) in tabs {
            line = if tab == self.tab {
                line.add(Tone::Strong, format!("[{title}] "))
            } else {
                line.add(Tone::Dim, format!(" {title}  "))
            };
        }
        line = if self.text.is_empty() {
            let order = match self.tab {
                ApprovalsTab::Pending => " oldest first",
                ApprovalsTab::History => " newest first",
            };
            line.add(Tone::Dim, order)
        } else {
            line.add(Tone::Dim, " / ").plain(clean(&self.text).into_owned())
        };
        let session = shell.me.as_ref().and_then(|me| Some((me.role, me.expires_at?)));
        let left = session.map(|(role, ends)| {
            let left = elapsed((ends.micros() - shell.now.micros()) / 1_000_000);
            format!("{role} {} session {left} left", theme.glyphs.dot)
        });
        line.with_end(Pieces::new().add(Tone::Dim, left.unwrap_or_default()), cols, theme)
    }

    fn status(&self, shell: &Shell) -> String {
        let dot = shell.theme.glyphs.dot;
        if let (Some(words), Some(hits)) = (&self.find, self.hits()) {
            return notice::found(shell, APPROVALS_SCOPE, words, hits);
        }
        if matches!(self.zoom, Some((ZoomedApproval::Remediation { .. }, _))) {
            return String::new();
        }
        let queue = self.queue();
        let mut parts = Vec::new();
        if queue.deployments.loaded || queue.actions.loaded {
            let rows = thousands(self.rows().len());
            let more = if queue.has_older() { " loaded, more below" } else { "" };
            parts.push(match self.tab {
                ApprovalsTab::Pending => format!("{rows} of {} pending", queue.counted()),
                ApprovalsTab::History => format!("{rows} rows{more}"),
            });
        }
        match (&queue.deployments.error, &queue.actions.error) {
            (Some(error), None) => {
                parts.push(format!("deployments are not up to date: {}", notice::describe(error)));
            }
            (None, Some(error)) => {
                parts.push(format!("actions are not up to date: {}", notice::describe(error)));
            }
            (Some(_), Some(_)) if queue.len() > 0 => parts.push("not up to date".to_owned()),
            _ => {}
        }
        let decides = |decision: Decision| self.current().is_some_and(|row| decision.applies_to(&row));
        if self.zoom.is_none() && decides(Decision::Approve) {
            parts.push("every decision is stored with your name".to_owned());
        } else if self.zoom.is_none() && decides(Decision::RollBack) {
            let key = shell.key(APPROVALS_SCOPE, ROLL_BACK_ROW);
            parts.push(format!("{key} restores the version before"));
        }
        parts.join(&format!(" {dot} "))
    }

    fn stale(&self) -> Option<Stale<'_>> {
        let ApprovalQueue { deployments, actions, .. } = self.queue();
        let (error, since, next) = match (&deployments.error, &actions.error) {
            (Some(error), Some(_)) => (error, deployments.heard.max(actions.heard), deployments.next),
            // The status line names the list that could not be read.
            _ => return None,
        };
        Some(Stale { since, cause: Cause::Failure(error), next })
    }

    fn footer_word(&self, action: Action) -> Option<&'static str> {
        let row = self.current();
        let decides = |decision: Decision| {
            let is_diff = matches!(self.zoom, Some((ZoomedApproval::Remediation { .. }, _)));
            !is_diff && row.is_some_and(|row| decision.applies_to(&row))
        };
        let hidden_unless = |is_offered: bool| (!is_offered).then_some("");
        match action {
            APPROVE_ROW => hidden_unless(decides(Decision::Approve)),
            REJECT_ROW => hidden_unless(decides(Decision::Reject)),
            ROLL_BACK_ROW => hidden_unless(decides(Decision::RollBack)),
            Action::OpenTrace => hidden_unless(matches!(row, Some(ApprovalRow::Action(_)))),
            SHOW_HISTORY if self.tab == ApprovalsTab::History => Some("pending"),
            Action::Open | SHOW_DIFF | UNIFY_DIFF if row.is_none() && self.zoom.is_none() => Some(""),
            UNIFY_DIFF if self.is_unified => Some("sides"),
            Action::Open | SHOW_DIFF if self.zoom.is_some() => Some("back"),
            _ => None,
        }
    }
}

/// Formats a score, a mean or a probability.
pub fn score(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.0005 { format!("{value:.1e}") } else { format!("{value:.3}") }
}

/// Formats a difference with its sign.
pub fn signed(value: f64) -> String {
    let number = score(value.abs());
    if value < 0.0 { format!("-{number}") } else { format!("+{number}") }
}

/// Returns the panel in place of the rows; none if there are rows to draw.
fn instead(approvals: &Approvals, shell: &Shell, is_empty: bool) -> Option<Vec<(Tone, String)>> {
    let queue = approvals.queue();
    if !shell.has_session() {
        let sentence = "Approvals need a session token; there is only an API key.";
        return Some(notice::session_needed(shell, sentence));
    }
    if !is_empty {
        return None;
    }
    // A plan or a role that is too low concerns both lists; otherwise rows of one list may follow.
    let errors = (&queue.deployments.error, &queue.actions.error);
    if let (Some(error), Some(_)) = errors {
        return Some(notice::failure(shell, error, queue.deployments.next));
    }
    // Every record on the loaded pages of the history waits for a decision.
    let has_first = approvals.tab == ApprovalsTab::Pending || !queue.has_older() || queue.has_rows();
    if !queue.is_settled() || !has_first {
        return Some(vec![(Tone::Dim, format!("loading{}", shell.theme.glyphs.ellipsis))]);
    }
    if queue.has_rows() {
        let (filter, back) =
            (shell.key(APPROVALS_SCOPE, Action::EditFilter), shell.key(APPROVALS_SCOPE, Action::Back));
        return Some(vec![
            (Tone::Strong, format!("Nothing matches {}", approvals.text)),
            (Tone::Plain, String::new()),
            (Tone::Plain, format!("{filter} changes the filter, {back} removes it.")),
        ]);
    }
    let mut lines = match approvals.tab {
        ApprovalsTab::Pending => vec![
            (Tone::Strong, "Nothing waits for a decision.".to_owned()),
            (Tone::Plain, String::new()),
            (
                Tone::Plain,
                "Deployments appear here once their test has passed, and actions that exceed the limits of \
                 their policy or whose policy requires approval."
                    .to_owned(),
            ),
            (Tone::Plain, String::new()),
            (Tone::Plain, format!("{} shows the history.", shell.key(APPROVALS_SCOPE, SHOW_HISTORY))),
        ],
        ApprovalsTab::History if queue.len() > 0 => {
            vec![(Tone::Strong, "All loaded deployments and actions wait for a decision.".to_owned())]
        }
        ApprovalsTab::History => vec![(Tone::Strong, "There is no deployment and no action yet.".to_owned())],
    };
    if let (Some(error), _) | (_, Some(error)) = errors {
        lines.push((Tone::Plain, String::new()));
        lines.push((Tone::Bad, notice::describe(error)));
    }
    Some(lines)
}

fn list(approvals: &Approvals, shell: &Shell, buffer: &mut Buffer, area: Rect, rows: &[ApprovalRow<'_>]) {
    let theme = &shell.theme;
    let cols = usize::from(area.width);
    let age = if approvals.tab == ApprovalsTab::Pending { "AGE" } else { "DECIDED" };
    let why = if approvals.tab == ApprovalsTab::Pending { "WHY IT WAITS" } else { "BY" };
    let head = cells(["", "KIND", "WHAT", "STATE", age, why], approvals.tab, cols, &theme.glyphs);
    let head = Pieces::new().plain("  ").join(head.all(Tone::Dim)).cut(cols, theme);
    put(buffer, area, 0, &head.line(theme, false));
    let visible = usize::from(area.height.saturating_sub(1));
    let selected = approvals.queue().selected(rows);
    let top = first_visible(selected, rows.len(), visible);
    for (at, row) in rows.iter().enumerate().skip(top).take(visible) {
        let cursor = if at == selected { theme.glyphs.cursor } else { " " };
        let is_faded = shell.failure().is_some() || is_outdated(approvals, row);
        let line = row_line(approvals, shell, row, cols);
        let line = if is_faded { line.all(Tone::Dim) } else { line };
        let line = Pieces::new().plain(format!("{cursor} ")).join(line).cut(cols, theme);
        put(buffer, area, 1 + at - top, &line.line(theme, at == selected));
    }
}

/// Returns whether the list of a row could not be read the last time.
fn is_outdated(approvals: &Approvals, row: &ApprovalRow<'_>) -> bool {
    let queue = approvals.queue();
    match row {
        ApprovalRow::Deployment(_) => queue.deployments.error.is_some(),
        ApprovalRow::Action(_) => queue.actions.error.is_some(),
    }
}

fn row_line(approvals: &Approvals, shell: &Shell, row: &ApprovalRow<'_>, cols: usize) -> Pieces {
    let glyphs = &shell.theme.glyphs;
    let (mark, kind) = match row {
        ApprovalRow::Deployment(it) => (deployment_mark(it.status, glyphs), "deploy"),
        ApprovalRow::Action(it) => (action_mark(it.status, glyphs), "action"),
    };
    let (age, why) = match (approvals.tab, row) {
        (ApprovalsTab::Pending, _) => {
            let age = latency((shell.now.micros() - row.waiting_since().micros()) / 1_000);
            (age, waiting_reason(row))
        }
        (ApprovalsTab::History, ApprovalRow::Deployment(it)) => (
            decided_at(shell, it.decided_at),
            it.decided_by.clone().unwrap_or_else(|| glyphs.none.to_owned()),
        ),
        (ApprovalsTab::History, ApprovalRow::Action(it)) => {
            let by = it.decided_by.as_ref().or(it.requested_by.as_ref());
            let by = by.cloned().unwrap_or_else(|| "policy".to_owned());
            (decided_at(shell, it.decided_at.or(it.completed_at)), by)
        }
    };
    let project = match shell.project {
        None if cols >= 110 => format!("{}  ", project_name(shell, row)),
        _ => String::new(),
    };
    let why = format!("{project}{why}");
    let line = cells([mark.0, kind, &row.name(), row.status(), &age, &why], approvals.tab, cols, glyphs);
    if matches!(mark.1, Tone::Dim) { line.all(Tone::Dim) } else { line }
}

fn project_name(shell: &Shell, row: &ApprovalRow<'_>) -> String {
    let id = match row {
        ApprovalRow::Deployment(it) => it.project_id,
        ApprovalRow::Action(it) => it.project_id,
    };
    shell.projects.get(id).map_or_else(|| short_id(id), |it| it.name.clone())
}

fn decided_at(shell: &Shell, at: Option<api::Timestamp>) -> String {
    at.map_or_else(|| shell.theme.glyphs.none.to_owned(), |at| clock(shell.zone, at, shell.now))
}

/// Returns why a row waits for a decision, in a few words.
fn waiting_reason(row: &ApprovalRow<'_>) -> String {
    match row {
        ApprovalRow::Deployment(it) => match &it.ab {
            Some(test) => {
                let effect = test.effect.map(|effect| format!(" {}", signed(effect))).unwrap_or_default();
                format!("passed on {}{effect}", test.metric_name)
            }
            None => "no version was shipped before".to_owned(),
        },
        ApprovalRow::Action(it) => match (it.metadata.escalation_reason, it.metadata.retry_count) {
            (Some(reason), Some(count)) => format!("{reason}, {count}"),
            (Some(reason), None) => reason.to_string(),
            (None, _) => "its policy requires approval".to_owned(),
        },
    }
}

const fn deployment_mark(status: DeploymentStatus, glyphs: &Glyphs) -> (&'static str, Tone) {
    match status {
        DeploymentStatus::AbPassed => (glyphs.rise, Tone::Warn),
        DeploymentStatus::AbRunning => (glyphs.unfinished, Tone::Plain),
        DeploymentStatus::Shipped => (glyphs.live, Tone::Good),
        DeploymentStatus::Regressed => (glyphs.fall, Tone::Bad),
        DeploymentStatus::AbFailed => (glyphs.bad, Tone::Dim),
        DeploymentStatus::Rejected | DeploymentStatus::RolledBack | DeploymentStatus::Superseded => {
            (glyphs.offline, Tone::Dim)
        }
    }
}

const fn action_mark(status: ActionStatus, glyphs: &Glyphs) -> (&'static str, Tone) {
    match status {
        ActionStatus::PendingApproval => (glyphs.rise, Tone::Warn),
        ActionStatus::Queued | ActionStatus::Running => (glyphs.unfinished, Tone::Plain),
        ActionStatus::Succeeded => (glyphs.ok, Tone::Good),
        ActionStatus::Failed => (glyphs.bad, Tone::Bad),
        ActionStatus::Rejected => (glyphs.offline, Tone::Dim),
    }
}

fn cells(cells: [&str; 6], tab: ApprovalsTab, cols: usize, glyphs: &Glyphs) -> Pieces {
    let [mark, kind, name, status, age, why] = cells;
    let mark_cols = if glyphs.ascii { 4 } else { 2 };
    let mut line = Pieces::new().add(Tone::Warn, fit(mark, mark_cols, glyphs));
    if cols >= 76 {
        line = line.add(Tone::Dim, format!("{} ", fit(kind, 6, glyphs)));
    }
    let name_cols = if cols >= 76 { NAME_COLS } else { 24 };
    line = line.plain(format!("{} ", fit(name, name_cols, glyphs)));
    // The state of a pending row follows from its kind.
    let status_cols = match (tab, cols) {
        (_, 110..) => STATUS_COLS,
        (ApprovalsTab::History, _) => 11,
        (ApprovalsTab::Pending, _) => 0,
    };
    if status_cols > 0 {
        line = line.add(Tone::Field, format!("{} ", fit(status, status_cols, glyphs)));
    }
    line = match tab {
        ApprovalsTab::Pending => line.add(Tone::Dim, format!("{} ", fit_right(age, AGE_COLS, glyphs))),
        ApprovalsTab::History => line.add(Tone::Dim, format!("{} ", fit(age, CLOCK_DATED, glyphs))),
    };
    let room = cols.saturating_sub(2 + line.width());
    line.plain(fit(why, room, glyphs).trim_end().to_owned())
}

fn pane(approvals: &Approvals, shell: &Shell, buffer: &mut Buffer, area: Rect) {
    let Some(row) = approvals.current() else { return };
    let cols = usize::from(area.width);
    let (whole, open) = (shell.key(APPROVALS_SCOPE, SHOW_DIFF), shell.key(APPROVALS_SCOPE, Action::Open));
    let note = match row {
        ApprovalRow::Deployment(_) if has_two_sides(shell.size) => {
            let other = if approvals.is_unified { "side by side" } else { "unified" };
            format!(
                "{whole} whole {} {} {other}",
                shell.theme.glyphs.dot,
                shell.key(APPROVALS_SCOPE, UNIFY_DIFF)
            )
        }
        ApprovalRow::Deployment(_) => format!("{whole} whole"),
        ApprovalRow::Action(_) => format!("{open} whole"),
    };
    let title = rule(&row_title(approvals, &row), &note, cols, &shell.theme);
    // One line more than fits tells the pane that lines are left out.
    let lines = row_text(approvals, shell, &row, cols).visible(0, usize::from(area.height));
    put_pane(buffer, area, &shell.theme, title, lines);
}

/// Returns the title of a row: its id and its name, with the version it is compared with.
fn row_title(approvals: &Approvals, row: &ApprovalRow<'_>) -> String {
    let compared = match row {
        ApprovalRow::Deployment(it) => it.baseline_id.and_then(|id| approvals.deployment(id)),
        ApprovalRow::Action(_) => None,
    };
    let compared = compared.map(|it| format!(", compared with v{}", it.version)).unwrap_or_default();
    format!("{} {}{compared}", short_id(row.id()), row.name())
}

/// The lines of a row or of an action: the records, then the diff, which is laid out once.
#[derive(Debug, Default)]
struct ApprovalText<'a> {
    head: Vec<Pieces>,
    diff: &'a [Pieces],
}

impl ApprovalText<'_> {
    const fn len(&self) -> usize {
        self.head.len() + self.diff.len()
    }

    /// Returns the visible lines.
    fn visible(&self, top: usize, rows: usize) -> Vec<Pieces> {
        self.head.iter().chain(self.diff).skip(top).take(rows).cloned().collect()
    }
}

/// Returns the lines of a row with its diff.
fn row_text<'a>(
    approvals: &'a Approvals,
    shell: &Shell,
    row: &ApprovalRow<'_>,
    cols: usize,
) -> ApprovalText<'a> {
    let mut head = row::lines(approvals, shell, row, cols);
    if let ApprovalRow::Deployment(it) = row {
        let failed = it.baseline_id.and_then(|id| approvals.baselines.error(id));
        let is_loading = it.baseline_id.is_some_and(|id| approvals.deployment(id).is_none());
        if let Some(error) = failed {
            let text = format!("the baseline can't be read: {}", notice::describe(error));
            head.extend(row::paragraph(Tone::Bad, &text, cols));
        } else if is_loading {
            let text = format!("loading the baseline{}", shell.theme.glyphs.ellipsis);
            head.extend(row::paragraph(Tone::Dim, &text, cols));
        }
    }
    ApprovalText { head, diff: diff_lines(approvals, row.id()) }
}

/// Returns the composed diff of a record.
fn diff_lines(approvals: &Approvals, id: Uuid) -> &[Pieces] {
    match &approvals.diff {
        Some(composed) if composed.key.id == id => &composed.lines,
        _ => &[],
    }
}

/// Draws a text over the whole body.
fn zoomed(
    approvals: &Approvals,
    shell: &Shell,
    buffer: &mut Buffer,
    area: Rect,
    text: ZoomedApproval,
    top: usize,
) {
    let (theme, cols) = (&shell.theme, usize::from(area.width));
    let title = zoomed_title(approvals, text);
    let back = format!("{} back", shell.key(APPROVALS_SCOPE, Action::Back));
    put(buffer, area, 0, &rule(&title, &back, cols, theme).line(theme, false));
    let text = zoomed_text(approvals, shell, text, cols);
    let room = usize::from(area.height.saturating_sub(1));
    let top = top.min(text.len().saturating_sub(room));
    for (at, line) in text.visible(top, room).into_iter().enumerate() {
        put(buffer, area, 1 + at, &line.cut(cols, theme).line(theme, false));
    }
}

fn zoomed_title(approvals: &Approvals, text: ZoomedApproval) -> String {
    match text {
        ZoomedApproval::Row(_) => {
            approvals.current().map(|row| row_title(approvals, &row)).unwrap_or_default()
        }
        ZoomedApproval::Remediation { action, .. } => {
            let name = approvals.action(action).map(|it| format!(" {}", ApprovalRow::Action(it).name()));
            format!("remediation diff of {}{}", short_id(action), name.unwrap_or_default())
        }
    }
}

fn zoomed_text<'a>(
    approvals: &'a Approvals,
    shell: &Shell,
    text: ZoomedApproval,
    cols: usize,
) -> ApprovalText<'a> {
    match text {
        ZoomedApproval::Row(_) => match approvals.current() {
            Some(row) => row_text(approvals, shell, &row, cols),
            None => ApprovalText::default(),
        },
        ZoomedApproval::Remediation { action, .. } => ApprovalText {
            head: remediation::lines(approvals, shell, action, cols),
            diff: diff_lines(approvals, action),
        },
    }
}

/// Returns the number of lines of the text that fills the body, for scrolling.
pub fn zoomed_len(approvals: &Approvals, shell: &Shell) -> usize {
    let cols = usize::from(crate::layout::frame(shell.size).body.width);
    approvals.zoom.map_or(0, |(text, _)| zoomed_text(approvals, shell, text, cols).len())
}

/// Lays the diff of the selected row or of the shown action out, unless that was done already.
pub fn compose_diff(approvals: &mut Approvals, shell: &Shell) {
    let Some((key, titles, old, new)) = compared_texts(approvals, shell) else {
        approvals.diff = None;
        return;
    };
    if approvals.diff.as_ref().is_some_and(|it| it.key == key && it.titles == titles) {
        return;
    }
    let layout = DiffLayout {
        cols: key.cols,
        is_unified: key.is_unified,
        is_whole: key.is_whole,
        glyphs: shell.theme.glyphs,
    };
    let lines = diff::lines([&titles[0], &titles[1]], old, new, &layout);
    approvals.diff = Some(ComposedDiff { key, titles, lines });
}

/// Returns the texts that are compared on the screen, with their titles.
fn compared_texts<'a>(
    approvals: &'a Approvals,
    shell: &Shell,
) -> Option<(DiffKey, [String; 2], &'a str, &'a str)> {
    let cols = usize::from(crate::layout::frame(shell.size).body.width);
    let is_unified = approvals.is_unified || !has_two_sides(shell.size);
    let key = |id, baseline, is_whole| DiffKey { id, baseline, cols, is_unified, is_whole };
    if let Some((ZoomedApproval::Remediation { action, .. }, _)) = approvals.zoom {
        let diff = approvals.remediations.get(action)?.diff()?;
        let titles = ["original output".to_owned(), "remediated output".to_owned()];
        let (old, new) = (diff.original_output.as_deref(), diff.remediated_output.as_deref());
        return Some((key(action, None, true), titles, old.unwrap_or_default(), new.unwrap_or_default()));
    }
    let ApprovalRow::Deployment(it) = approvals.current()? else { return None };
    let is_whole = approvals.zoom.is_some();
    match it.baseline_id {
        None => {
            let titles = ["no version before".to_owned(), version_title(shell, it)];
            Some((key(it.id, None, is_whole), titles, "", it.template.as_str()))
        }
        Some(id) => {
            let baseline = approvals.deployment(id);
            let failed = || approvals.baselines.error(id).is_some();
            // The baseline is still being loaded.
            if baseline.is_none() && !failed() {
                return None;
            }
            let old_title =
                baseline.map_or_else(|| "unknown baseline".to_owned(), |it| version_title(shell, it));
            let old = baseline.map_or("", |it| it.template.as_str());
            let titles = [old_title, version_title(shell, it)];
            Some((key(it.id, baseline.map(|it| it.id), is_whole), titles, old, it.template.as_str()))
        }
    }
}

/// Returns the title of a version: its number, and since when it has been shipped, or its state.
fn version_title(shell: &Shell, it: &PromptDeployment) -> String {
    let at = it.shipped_at.filter(|_| it.status.is_served());
    let at = at.map(|at| format!(" since {}", clock_minute(shell.zone, at, shell.now))).unwrap_or_default();
    format!("v{} {}{at}", it.version, it.status)
}
