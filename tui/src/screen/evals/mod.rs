//! Screen 2: evaluations and the rules that run them.

pub mod keys;
mod layout;
mod line;
pub mod rules;
pub mod state;
#[cfg(test)]
pub mod tests;
pub mod update;
mod view;

use api::{
    client::calls::{self, Page},
    filter::when::Clock,
};
use ratatui::{buffer::Buffer, layout::Rect};
use uuid::Uuid;

use crate::screen::evals::keys::{EVALS_SCOPE, RULES_SCOPE};
use crate::{
    input::LineKind,
    keymap::{Action, Scope},
    net::{Effect, NetError, Reply, RequestId},
    shell::{
        Completion, Export, LineError, LoadedIds, Screen, Shell, Tab, field_completions,
        freshness::{Cause, Stale},
        trouble,
    },
    widgets::table::Pieces,
};

use layout::EvalsLayout;
use state::{Evals, EvalsRequest, EvalsSection};

/// The digit of the screen.
pub const SCREEN_DIGIT: u8 = 2;
/// The filter line.
pub const FILTER_LINE: LineKind = LineKind { prompt: " / ", hint: "tab completes" };
/// The line that names the trace whose decisions are shown.
pub const WHY_LINE: LineKind = LineKind { prompt: " why ", hint: "id of a trace, or none" };

/// Returns the layout of the screen.
fn parts(evals: &Evals, shell: &Shell) -> EvalsLayout {
    layout::parts(shell.size, evals.part, evals.rules.has_result())
}

impl Screen for Evals {
    fn tab(&self) -> Tab {
        Tab { digit: SCREEN_DIGIT, title: "Evals", short: "Evals" }
    }

    fn scope(&self) -> Scope {
        match self.part {
            EvalsSection::List => EVALS_SCOPE,
            EvalsSection::Rules => RULES_SCOPE,
        }
    }

    fn enter(&mut self, shell: &mut Shell) -> Vec<Effect> {
        update::enter(self, shell)
    }

    fn act(&mut self, shell: &mut Shell, action: Action) -> Vec<Effect> {
        match self.part {
            EvalsSection::List => update::act(self, shell, action),
            EvalsSection::Rules => rules::update::act(self, shell, action),
        }
    }

    fn tick(&mut self, shell: &mut Shell) -> Vec<Effect> {
        update::tick(self, shell)
    }

    fn owns(&self, request: RequestId) -> bool {
        self.pending.owns(request)
    }

    fn is_busy(&self, shell: &Shell) -> bool {
        let shown = |it: &EvalsRequest| {
            matches!(
                it,
                EvalsRequest::First
                    | EvalsRequest::Older(_)
                    | EvalsRequest::Rules
                    | EvalsRequest::Decisions(_)
            )
        };
        self.pending.is_slow(shell.busy_before(), shown)
    }

    fn reply(
        &mut self,
        shell: &mut Shell,
        request: RequestId,
        result: Result<Reply, NetError>,
    ) -> Vec<Effect> {
        let Some((purpose, sent)) = self.pending.finish(request) else { return Vec::new() };
        match result {
            Ok(reply) => update::fill(self, shell, purpose, sent, reply),
            Err(error) => {
                let mut effects = trouble::unauthorized(shell, &error);
                effects.extend(update::failed(self, shell, purpose, error));
                effects
            }
        }
    }

    fn project_changed(&mut self, shell: &mut Shell) -> Vec<Effect> {
        update::reload(self, shell)
    }

    fn reconnected(&mut self, shell: &mut Shell) -> Vec<Effect> {
        update::back(self, shell)
    }

    fn reset(&mut self) {
        let history = std::mem::take(&mut self.history);
        *self = Self::default();
        self.history = history;
    }

    fn history(&self, line: LineKind) -> &[String] {
        if line == FILTER_LINE { &self.history } else { &[] }
    }

    fn history_mut(&mut self, line: LineKind) -> Option<&mut Vec<String>> {
        (line == FILTER_LINE).then_some(&mut self.history)
    }

    fn completions(&self, shell: &Shell, line: LineKind) -> Vec<Completion> {
        if line != FILTER_LINE {
            return Vec::new();
        }
        let loaded = self.rows.iter().map(|row| row.metric_name.as_str());
        let known = shell.evaluators.items.iter().map(|it| it.name.as_str());
        let mut metrics: Vec<&str> = known.chain(loaded).collect();
        metrics.sort_unstable();
        metrics.dedup();
        let fields = line::FIELDS.iter().flat_map(|field| {
            let values: Vec<&str> =
                if field.name == "metric" { metrics.clone() } else { field.values.to_vec() };
            field_completions(field.name, values, field.help)
        });
        fields.collect()
    }

    fn check(&self, shell: &Shell, line: LineKind, text: &str) -> Option<LineError> {
        let clock = Clock::of(&shell.zone.of(shell.now));
        if line == FILTER_LINE { line::EvalsLine::parse(text, &clock).err() } else { None }
    }

    fn submit(
        &mut self,
        shell: &mut Shell,
        line: LineKind,
        text: &str,
        loaded: &LoadedIds,
    ) -> Result<Vec<Effect>, LineError> {
        if line == WHY_LINE {
            return rules::update::why(self, shell, text, loaded);
        }
        update::submit(self, shell, text, loaded)
    }

    fn find(&self) -> Option<&str> {
        self.find()
    }

    fn set_find(&mut self, words: Option<String>) {
        self.set_find(words);
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

    fn draw(&self, shell: &Shell, buffer: &mut Buffer, area: Rect) {
        view::draw(self, shell, buffer, area);
    }

    fn line(&self, shell: &Shell, cols: usize) -> Pieces {
        view::line(self, shell, cols)
    }

    fn status(&self, shell: &Shell) -> String {
        view::status(self, shell)
    }

    fn stale(&self) -> Option<Stale<'_>> {
        let cause = Cause::Failure(self.error.as_ref()?);
        Some(Stale { since: self.heard, cause, next: self.next })
    }

    fn footer_word(&self, action: Action) -> Option<&'static str> {
        match action {
            // The line of keys is full without it.
            Action::Find if self.part == EvalsSection::List => Some(""),
            Action::Open if self.part == EvalsSection::List && self.zoom.is_some() => Some("list"),
            _ => None,
        }
    }
}
