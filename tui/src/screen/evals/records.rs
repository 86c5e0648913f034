//! The records of Evals for finding, copying and exporting.

use api::client::calls::{self, Page};
use uuid::Uuid;

use super::{
    state::{Evals, EvalsSection},
    update,
};
use crate::{
    keymap::Action,
    shell::{Export, LoadedIds, ScreenRecords, Shell},
};

impl ScreenRecords for Evals {
    fn find(&self) -> Option<&str> {
        Self::find(self)
    }

    fn set_find(&mut self, words: Option<String>) {
        Self::set_find(self, words);
    }

    fn is_on_hit(&self) -> bool {
        self.find().is_none() || self.hit(self.selected)
    }

    fn current_trace(&self) -> Option<Uuid> {
        self.current().map(|row| row.trace_id)
    }

    fn loaded_ids(&self, ids: &mut LoadedIds) {
        ids.traces.extend(self.rows.iter().map(|row| row.trace_id));
        ids.spans.extend(self.rows.iter().filter_map(|row| row.span_id));
        ids.rules.extend(self.rules.list.items.iter().map(|rule| rule.id));
        ids.records.extend(self.rules.list.items.iter().map(|rule| rule.id));
        ids.records.extend(self.rows.iter().map(|row| row.id));
        ids.rules.extend(self.rows.iter().filter_map(|row| row.rule_id));
    }

    fn export_name(&self) -> Option<String> {
        match self.part {
            EvalsSection::Rules => Some("rules.ndjson".to_owned()),
            EvalsSection::List => (!self.rows.is_empty()).then(|| "evaluations.ndjson".to_owned()),
        }
    }

    fn export(&self, _shell: &Shell) -> Option<Export> {
        Some(match self.part {
            EvalsSection::Rules => Export::rows(&self.rules.list.items),
            EvalsSection::List => Export::rows(&self.rows),
        })
    }

    fn copy(&self, shell: &Shell, action: Action) -> Option<(&'static str, String)> {
        if self.part == EvalsSection::Rules {
            if action == Action::CopyCurl {
                let call = calls::eval_rules(shell.project_id(), &Page::default());
                return Some(("the curl command", shell.curl(&call.target())));
            }
            let rule = self.rules.current()?;
            return match action {
                Action::CopyId => Some(("the rule's id", rule.id.to_string())),
                Action::CopyJson => Some(("the rule", serde_json::to_string_pretty(rule).ok()?)),
                _ => None,
            };
        }
        if action == Action::CopyCurl {
            let call = calls::evaluations(&update::filter(self, shell), &Page::default());
            return Some(("the curl command", shell.curl(&call.target())));
        }
        let it = self.current()?;
        match action {
            Action::CopyId => Some(("the evaluation's id", it.id.to_string())),
            Action::CopyUrl => {
                Some(("the address", format!("{}/v1/traces/{}", shell.target.url, it.trace_id)))
            }
            Action::CopyJson => Some(("the evaluation", serde_json::to_string_pretty(it).ok()?)),
            Action::CopyText => {
                let texts = [it.reasoning.as_deref(), it.error.as_deref()];
                let text = texts.into_iter().flatten().collect::<Vec<_>>().join("\n\n");
                Some(("the reasoning", text)).filter(|(_, text)| !text.is_empty())
            }
            _ => None,
        }
    }
}
