//! The records of Approvals for finding, copying and exporting.

use api::{
    client::calls::{self, Page},
    control::ActionStatus,
};
use serde::Serialize;
use uuid::Uuid;

use super::{
    queue::ApprovalRow,
    state::{Approvals, ApprovalsTab, ZoomedApproval},
    update::action_filter,
};
use crate::{
    keymap::Action,
    shell::{Export, LoadedIds, ScreenRecords, Shell},
};

impl ScreenRecords for Approvals {
    fn find(&self) -> Option<&str> {
        self.find.as_deref()
    }

    fn set_find(&mut self, words: Option<String>) {
        self.find = words;
    }

    fn is_on_hit(&self) -> bool {
        self.find.is_none() || self.current().is_some_and(|row| self.is_hit(&row))
    }

    fn current_trace(&self) -> Option<Uuid> {
        match (self.zoom, self.current()?) {
            (Some((ZoomedApproval::Remediation { back: Some((trace, _)), .. }, _)), _) => Some(trace),
            (_, ApprovalRow::Action(it)) => Some(it.trace_id),
            (_, ApprovalRow::Deployment(_)) => None,
        }
    }

    fn loaded_ids(&self, ids: &mut LoadedIds) {
        for queue in [&self.pending_queue, &self.past] {
            ids.traces.extend(queue.actions.items.iter().map(|it| it.trace_id));
            ids.records.extend(queue.actions.items.iter().map(|it| it.id));
            ids.records.extend(queue.deployments.items.iter().map(|it| it.id));
        }
    }

    fn export_name(&self) -> Option<String> {
        let name = match self.tab {
            ApprovalsTab::Pending => "approvals",
            ApprovalsTab::History => "decisions",
        };
        (!self.rows().is_empty()).then(|| format!("{name}.ndjson"))
    }

    fn export(&self, _shell: &Shell) -> Option<Export> {
        let json = |row: &ApprovalRow<'_>| match row {
            ApprovalRow::Deployment(it) => serde_json::to_value(it),
            ApprovalRow::Action(it) => serde_json::to_value(it),
        };
        Some(Export::Rows(self.rows().iter().filter_map(|row| json(row).ok()).collect()))
    }

    fn copy(&self, shell: &Shell, action: Action) -> Option<(&'static str, String)> {
        if let Some((ZoomedApproval::Remediation { action: id, .. }, _)) = self.zoom {
            return self.copy_remediation(shell, action, id);
        }
        match (action, self.current()) {
            (Action::CopyUrl, _) => {
                let trace = self.current_trace()?;
                Some(("the address", format!("{}/v1/traces/{trace}", shell.target.url)))
            }
            (Action::CopyCurl, Some(ApprovalRow::Deployment(it))) => {
                Some(("the curl command", shell.curl(&calls::deployment(it.id).target())))
            }
            (Action::CopyCurl, Some(ApprovalRow::Action(it))) => {
                Some(("the curl command", shell.curl(&calls::control_action(it.id).target())))
            }
            (Action::CopyCurl, None) => {
                let filter = action_filter(shell, Some(ActionStatus::PendingApproval));
                let target = calls::control_actions(&filter, &Page::default()).target();
                Some(("the curl command", shell.curl(&target)))
            }
            (Action::CopyText, Some(ApprovalRow::Deployment(it))) => {
                Some(("the template", it.template.clone()))
            }
            (Action::CopyText, Some(ApprovalRow::Action(it))) => {
                let original = self.originals.read(it.id)?.span.as_ref()?;
                Some(("the original output", original.output.clone()?))
            }
            (_, Some(ApprovalRow::Deployment(it))) => {
                copied(action, ["the deployment's id", "the deployment"], it.id, it)
            }
            (_, Some(ApprovalRow::Action(it))) => {
                copied(action, ["the action's id", "the action"], it.id, it)
            }
            (_, None) => None,
        }
    }
}

impl Approvals {
    fn copy_remediation(&self, shell: &Shell, action: Action, id: Uuid) -> Option<(&'static str, String)> {
        let diff = || self.remediations.get(id)?.diff();
        match action {
            Action::CopyId => Some(("the action's id", id.to_string())),
            Action::CopyJson => Some(("the diff", serde_json::to_string_pretty(diff()?).ok()?)),
            Action::CopyText => Some(("the output of the action", diff()?.remediated_output.clone()?)),
            Action::CopyCurl => Some(("the curl command", shell.curl(&calls::action_diff(id).target()))),
            Action::CopyUrl => {
                let trace = self.current_trace()?;
                Some(("the address", format!("{}/v1/traces/{trace}", shell.target.url)))
            }
            _ => None,
        }
    }
}

/// Returns the id or the JSON of a record, with its name.
fn copied(
    action: Action,
    [id_name, record_name]: [&'static str; 2],
    id: Uuid,
    record: &impl Serialize,
) -> Option<(&'static str, String)> {
    match action {
        Action::CopyId => Some((id_name, id.to_string())),
        Action::CopyJson => Some((record_name, serde_json::to_string_pretty(record).ok()?)),
        _ => None,
    }
}
