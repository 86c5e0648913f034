//! Screen 1: the list of traces and the opened trace.

pub mod detail;
pub mod feed;
pub mod keys;
mod layout;
pub mod state;
mod update;
mod view;

use api::filter::fields;
use ratatui::{buffer::Buffer, layout::Rect};
use uuid::Uuid;

use crate::screen::traces::keys::{LIST_SCOPE, PANE_SCOPE, TREE_SCOPE};
use crate::{
    input::LineKind,
    keymap::{Action, Scope},
    net::{Effect, NetError, Reply, RequestId},
    record::Record,
    shell::notice::{describe, first_steps},
    shell::{Completion, Export, LineError, LoadedIds, Screen, Shell, Tab, field_completions, trouble},
    widgets::table::Pieces,
};
use present::format::short_id;

use detail::{Focus, content, content::scores::Keys};
use state::{Traces, TracesRequest};

/// The digit of the screen.
pub const SCREEN_DIGIT: u8 = 1;
/// The filter line.
pub const FILTER_LINE: LineKind = LineKind { prompt: " / ", hint: "tab completes" };

impl Traces {
    /// Opens a trace, with the cursor on a span.
    pub fn open(&mut self, shell: &mut Shell, id: Uuid, span: Option<Uuid>, from: Option<u8>) -> Vec<Effect> {
        let effects = detail::update::open(self, shell, id);
        if let (Some(open), Some(from)) = (&mut self.detail, from) {
            open.wanted = span;
            open.from = from;
        }
        effects
    }

    fn record(&self) -> Option<Record<'_>> {
        match &self.detail {
            Some(detail) => detail.subject(),
            None => self.list.current().map(|row| Record::Trace(row)),
        }
    }
}

impl Screen for Traces {
    fn tab(&self) -> Tab {
        Tab { digit: SCREEN_DIGIT, title: "Traces", short: "Traces" }
    }

    fn scope(&self) -> Scope {
        match &self.detail {
            Some(detail) if detail.pane().is_some() => PANE_SCOPE,
            Some(_) => TREE_SCOPE,
            None => LIST_SCOPE,
        }
    }

    fn act(&mut self, shell: &mut Shell, action: Action) -> Vec<Effect> {
        if self.detail.is_some() {
            detail::update::act(self, shell, action)
        } else {
            update::act(self, shell, action)
        }
    }

    fn tick(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let mut effects = feed::tick(self, shell);
        effects.extend(detail::update::tick(self, shell));
        effects
    }

    fn owns(&self, request: RequestId) -> bool {
        self.pending.owns(request)
    }

    fn is_busy(&self, shell: &Shell) -> bool {
        self.pending.is_slow(shell.busy_before(), |it| it.is_shown())
    }

    fn reply(
        &mut self,
        shell: &mut Shell,
        request: RequestId,
        result: Result<Reply, NetError>,
    ) -> Vec<Effect> {
        let Some((purpose, sent)) = self.pending.finish(request) else { return Vec::new() };
        match (purpose, result) {
            (purpose, Err(error)) if purpose.is_of_feed() => trouble::outage(shell, error),
            (TracesRequest::Older(_), Err(error)) => {
                let effects = trouble::unauthorized(shell, &error);
                shell.report(describe(&error));
                effects
            }
            (purpose, Err(error)) => {
                let mut effects = trouble::unauthorized(shell, &error);
                effects.extend(detail::update::failed(self, shell, purpose, error));
                effects
            }
            (purpose, Ok(Reply::Traces(page))) => feed::fill(self, shell, purpose, sent, page),
            (purpose, Ok(reply)) => detail::update::fill(self, shell, purpose, reply),
        }
    }

    fn project_changed(&mut self, shell: &mut Shell) -> Vec<Effect> {
        feed::reload(self, shell)
    }

    fn reconnected(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let mut effects = detail::update::back(self, shell);
        if self.detail.as_ref().is_some_and(|open| !open.loaded) {
            effects.extend(detail::update::reload(self, shell));
        }
        effects
    }

    fn reset(&mut self) {
        let history = std::mem::take(&mut self.filter.history);
        *self = Self::default();
        self.filter.history = history;
    }

    fn settle(&mut self, shell: &Shell) {
        if let Some(detail) = &mut self.detail {
            detail.compose(shell.size, shell.reader(), &Keys::of(shell));
        }
    }

    fn history(&self, _line: LineKind) -> &[String] {
        &self.filter.history
    }

    fn history_mut(&mut self, _line: LineKind) -> Option<&mut Vec<String>> {
        Some(&mut self.filter.history)
    }

    fn completions(&self, shell: &Shell, _line: LineKind) -> Vec<Completion> {
        let words = fields().flat_map(|field| {
            let term = field.term;
            let help = format!("{}: for example {}", term.help, term.example);
            field_completions(term.name, term.completions.iter().copied(), &help)
        });
        let saved = shell.saved.keys();
        let saved = saved.map(|name| Completion { text: format!("@{name}"), help: String::new() });
        words.chain(saved).collect()
    }

    fn check(&self, shell: &Shell, _line: LineKind, text: &str) -> Option<LineError> {
        shell.parse(text).err()
    }

    fn submit(
        &mut self,
        shell: &mut Shell,
        _line: LineKind,
        text: &str,
        _loaded: &LoadedIds,
    ) -> Result<Vec<Effect>, LineError> {
        let filter = shell.parse(text)?;
        if let Some(note) = filter.note() {
            shell.notify(note);
        }
        if text == self.filter.text {
            return Ok(Vec::new());
        }
        Ok(feed::set_filter(self, shell, text.to_owned()))
    }

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

    fn draw(&self, shell: &Shell, buffer: &mut Buffer, area: Rect) {
        match &self.detail {
            Some(open) => detail::view::draw(shell, open, buffer, area),
            None => view::draw(self, shell, buffer, area),
        }
    }

    fn line(&self, shell: &Shell, cols: usize) -> Pieces {
        match &self.detail {
            Some(open) => detail::view::breadcrumb(shell, open).with_end(
                detail::view::mark(shell, open),
                cols,
                &shell.theme,
            ),
            None => view::line(self, shell, cols),
        }
    }

    fn status(&self, shell: &Shell) -> String {
        match &self.detail {
            Some(open) => detail::view::status(self, shell, open),
            None => view::status(self, shell),
        }
    }

    fn footer_word(&self, action: Action) -> Option<&'static str> {
        match action {
            Action::Pause if self.list.paused => Some("resume"),
            // The line of keys is full without it.
            Action::Bookmark if self.detail.is_none() => Some(""),
            Action::Open if self.detail.is_some() => Some("pane"),
            _ => None,
        }
    }
}
