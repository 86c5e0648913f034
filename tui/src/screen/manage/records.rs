//! The records of Keys & Projects for copying and exporting.

use super::state::{Manage, Section};
use crate::{
    keymap::Action,
    shell::{Export, LoadedIds, ScreenRecords, Shell},
};

impl ScreenRecords for Manage {
    fn loaded_ids(&self, ids: &mut LoadedIds) {
        ids.records.extend(self.keys.items.iter().map(|key| key.id));
    }

    fn export_name(&self) -> Option<String> {
        match self.section {
            Section::Keys => Some("keys.ndjson".to_owned()),
            Section::Projects => Some("projects.ndjson".to_owned()),
            Section::Rejections => Some("rejections.ndjson".to_owned()),
            Section::Plan => None,
        }
    }

    fn export(&self, shell: &Shell) -> Option<Export> {
        match self.section {
            Section::Keys => Some(Export::rows(&self.keys.items)),
            Section::Projects => Some(Export::rows(shell.projects.shown())),
            Section::Rejections => Some(Export::rows(&self.rejections.items)),
            Section::Plan => None,
        }
    }

    fn copy(&self, shell: &Shell, action: Action) -> Option<(&'static str, String)> {
        // The record of a key holds no secret.
        let (id, record, id_name, record_name) = match self.section {
            Section::Keys => {
                let key = self.key()?;
                let record = serde_json::to_string_pretty(key).ok()?;
                (key.id, record, "the key's id", "the key's record")
            }
            Section::Projects => {
                let project = shell.projects.current()?;
                let record = serde_json::to_string_pretty(project).ok()?;
                (project.id, record, "the project's id", "the project's record")
            }
            Section::Rejections => {
                let rejection = self.rejection()?;
                let record = serde_json::to_string_pretty(rejection).ok()?;
                (rejection.id, record, "the rejection's id", "the rejection")
            }
            Section::Plan => return None,
        };
        match action {
            Action::CopyId => Some((id_name, id.to_string())),
            Action::CopyJson => Some((record_name, record)),
            _ => None,
        }
    }
}
