//! The records of Metrics for copying and exporting.

use api::client::calls;

use super::state::Metrics;
use crate::{
    keymap::Action,
    shell::{Export, ScreenRecords, Shell},
};

impl ScreenRecords for Metrics {
    fn export_name(&self) -> Option<String> {
        (!self.points().is_empty()).then(|| format!("metrics-{}.csv", self.stretch.label()))
    }

    fn export(&self, _shell: &Shell) -> Option<Export> {
        Some(Export::rows(self.points()))
    }

    fn copy(&self, shell: &Shell, action: Action) -> Option<(&'static str, String)> {
        let query = self.stretch.query(shell.project.as_ref(), shell.now);
        let curl = || shell.curl(&calls::metrics(&query).target());
        (action == Action::CopyCurl).then(|| ("the curl command", curl()))
    }
}
