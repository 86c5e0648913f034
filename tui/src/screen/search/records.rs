//! The records of Search for marking, copying and exporting.

use uuid::Uuid;

use super::state::Search;
use crate::{
    keymap::Action,
    record::Record,
    shell::{Export, ScreenRecords, Shell},
};

impl ScreenRecords for Search {
    fn markable(&self) -> Option<(Uuid, Option<String>)> {
        self.span().map(|span| (span.trace_id, Some(span.name.clone())))
    }

    fn export_name(&self) -> Option<String> {
        (!self.rows.is_empty()).then(|| "spans.ndjson".to_owned())
    }

    fn export(&self, _shell: &Shell) -> Option<Export> {
        Some(Export::rows(self.rows.iter().map(|row| &row.result)))
    }

    fn copy(&self, shell: &Shell, action: Action) -> Option<(&'static str, String)> {
        if action == Action::CopyCurl {
            return Some(("the curl command", self.query.as_ref()?.curl(shell)));
        }
        let span = self.span()?;
        let record = Record::Span(span, None);
        match action {
            Action::CopyId => Some(("the span's id", span.id.to_string())),
            Action::CopyUrl => {
                Some(("the address", format!("{}/v1/traces/{}", shell.target.url, span.trace_id)))
            }
            Action::CopyJson => Some(("the record", record.json())),
            Action::CopyText => Some(("input and output", record.texts())),
            _ => None,
        }
    }
}
