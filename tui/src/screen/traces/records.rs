//! The records of Traces for finding, marking, copying and exporting.

use present::format::short_id;
use uuid::Uuid;

use super::{
    detail::{Focus, content},
    state::Traces,
};
use crate::{
    keymap::Action,
    record::Record,
    shell::{Export, LoadedIds, ScreenRecords, Shell, notice::first_steps},
};

impl Traces {
    fn record(&self) -> Option<Record<'_>> {
        match &self.detail {
            Some(detail) => detail.subject(),
            None => self.list.current().map(|row| Record::Trace(row)),
        }
    }
}

impl ScreenRecords for Traces {
    fn find(&self) -> Option<&str> {
        match &self.detail {
            Some(detail) => detail.find.as_deref(),
            None => self.list.find(),
        }
    }

    fn set_find(&mut self, words: Option<String>) {
        match &mut self.detail {
            Some(detail) => detail.find = words,
            None => self.list.set_find(words),
        }
    }

    fn is_on_hit(&self) -> bool {
        match &self.detail {
            Some(detail) => {
                let at = detail.pane().map_or(detail.selected, |pane| pane.cursor);
                detail.find.as_deref().is_none_or(|needle| detail.hit(at, needle))
            }
            None => self.list.find().is_none() || self.list.hit(self.list.selected()),
        }
    }

    fn current_trace(&self) -> Option<Uuid> {
        match &self.detail {
            Some(detail) => Some(detail.id),
            None => self.list.current().map(|row| row.id),
        }
    }

    fn markable(&self) -> Option<(Uuid, Option<String>)> {
        match &self.detail {
            Some(open) => Some((open.id, open.trace.as_ref().and_then(|trace| trace.name.clone()))),
            None => self.list.current().map(|row| (row.id, row.name.clone())),
        }
    }

    fn loaded_ids(&self, ids: &mut LoadedIds) {
        let listed = (0..self.list.len()).filter_map(|at| self.list.get(at)).map(|row| row.id);
        ids.traces.extend(listed);
        let Some(open) = &self.detail else { return };
        ids.traces.push(open.id);
        ids.spans.extend(open.spans.iter().map(|span| span.id));
        ids.records.extend(open.scores.rows().iter().map(|row| row.id));
        ids.spans.extend(open.scores.rows().iter().filter_map(|row| row.span_id));
    }

    fn export_name(&self) -> Option<String> {
        Some(match &self.detail {
            Some(open) => format!("trace-{}.json", short_id(open.id)),
            None => "traces.ndjson".to_owned(),
        })
    }

    fn export(&self, _shell: &Shell) -> Option<Export> {
        Some(match &self.detail {
            Some(open) => Export::Record(open.subject()?.json()),
            None => {
                let rows = (0..self.list.len()).filter_map(|at| self.list.get(at));
                Export::rows(rows.map(|row| row.as_ref()))
            }
        })
    }

    fn copy(&self, shell: &Shell, action: Action) -> Option<(&'static str, String)> {
        let Some(trace) = self.current_trace() else {
            return (action == Action::CopyCurl).then(|| ("the curl command", first_steps(shell).join("\n")));
        };
        let path = format!("/v1/traces/{trace}");
        match action {
            Action::CopyUrl => Some(("the address", format!("{}{path}", shell.target.url))),
            Action::CopyCurl => Some(("the curl command", shell.curl(&path))),
            Action::CopyId => Some(match self.detail.as_ref().and_then(|detail| detail.current()) {
                Some(span) => ("the span's id", span.id.to_string()),
                None => ("the trace's id", trace.to_string()),
            }),
            Action::CopyJson => Some(("the record", self.record()?.json())),
            Action::CopyText => {
                let record = self.record()?;
                Some(match self.detail.as_ref().map(|detail| (detail.focus, detail.tab)) {
                    Some((Focus::Left, content::DetailTab::Input)) => {
                        ("the input", record.input()?.to_owned())
                    }
                    Some((Focus::Right, _) | (Focus::Left, content::DetailTab::Output)) => {
                        ("the output", record.output().or_else(|| record.error())?.to_owned())
                    }
                    _ => ("input and output", record.texts()),
                })
            }
            _ => None,
        }
    }
}
