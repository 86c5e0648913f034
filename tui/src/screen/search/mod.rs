//! Screen 8: spans by meaning.

mod excerpt;
pub mod keys;
mod layout;
mod line;
pub mod state;
#[cfg(test)]
pub mod tests;
mod update;
mod view;

use api::search::SearchResults;
use ratatui::{buffer::Buffer, layout::Rect};
use uuid::Uuid;

use crate::screen::search::keys::SEARCH_SCOPE;
use crate::{
    input::LineKind,
    keymap::{Action, Scope},
    net::{Effect, NetError, Reply, RequestId},
    record::Record,
    shell::{
        Completion, Export, LineError, LoadedIds, Screen, Shell, Tab, field_completions, notice::describe,
        trouble,
    },
    widgets::table::Pieces,
};

use state::Search;

/// The digit of the screen.
pub const SCREEN_DIGIT: u8 = 8;
/// The line that holds the words of a search.
pub const SEARCH_LINE: LineKind = LineKind { prompt: " ? ", hint: "tab completes" };

impl Screen for Search {
    fn tab(&self) -> Tab {
        Tab { digit: SCREEN_DIGIT, title: "Search", short: "Search" }
    }

    fn scope(&self) -> Scope {
        SEARCH_SCOPE
    }

    fn enter(&mut self, shell: &mut Shell) -> Vec<Effect> {
        // A search can name a project.
        if shell.projects.loaded { Vec::new() } else { vec![shell.load_projects()] }
    }

    fn act(&mut self, shell: &mut Shell, action: Action) -> Vec<Effect> {
        update::act(self, shell, action)
    }

    fn owns(&self, request: RequestId) -> bool {
        self.pending.owns(request)
    }

    fn is_busy(&self, shell: &Shell) -> bool {
        self.pending.is_slow(shell.busy_before(), |_| true)
    }

    fn reply(
        &mut self,
        shell: &mut Shell,
        request: RequestId,
        result: Result<Reply, NetError>,
    ) -> Vec<Effect> {
        if self.pending.finish(request).is_none() {
            return Vec::new();
        }
        let error = match result.and_then(Reply::decoded::<SearchResults>) {
            Ok(page) => {
                self.extend(page);
                return Vec::new();
            }
            Err(error) => error,
        };
        let mut effects = trouble::unauthorized(shell, &error);
        shell.report(describe(&error));
        // The plan differs from the known one, and the panel names it.
        if error.status == Some(402) {
            effects.push(shell.load_me());
        }
        self.error = Some(error);
        effects
    }

    fn project_changed(&mut self, shell: &mut Shell) -> Vec<Effect> {
        update::reload(self, shell)
    }

    fn reset(&mut self) {
        *self = Self { history: std::mem::take(&mut self.history), ..Self::default() };
    }

    fn history(&self, _line: LineKind) -> &[String] {
        &self.history
    }

    fn history_mut(&mut self, _line: LineKind) -> Option<&mut Vec<String>> {
        Some(&mut self.history)
    }

    fn completions(&self, shell: &Shell, _line: LineKind) -> Vec<Completion> {
        let projects = &shell.projects.items;
        let names = || projects.iter().map(|project| project.name.as_str()).filter(|it| !it.contains(' '));
        let fields = line::FIELDS.iter().flat_map(|field| {
            let values = field.values.iter().copied();
            let values: Vec<&str> =
                if field.name == "project" { values.chain(names()).collect() } else { values.collect() };
            field_completions(field.name, values, field.help)
        });
        fields.collect()
    }

    fn check(&self, shell: &Shell, _line: LineKind, text: &str) -> Option<LineError> {
        // A search without words is unfinished, not wrong.
        let clock = api::filter::when::Clock::of(&shell.zone.of(shell.now));
        if shell.line_refused { line::SearchLine::parse(text, &clock).err() } else { None }
    }

    fn submit(
        &mut self,
        shell: &mut Shell,
        _line: LineKind,
        text: &str,
        _loaded: &LoadedIds,
    ) -> Result<Vec<Effect>, LineError> {
        update::submit(self, shell, text)
    }

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

    fn draw(&self, shell: &Shell, buffer: &mut Buffer, area: Rect) {
        view::draw(self, shell, buffer, area);
    }

    fn line(&self, shell: &Shell, cols: usize) -> Pieces {
        view::line(self, shell, cols)
    }

    fn status(&self, shell: &Shell) -> String {
        view::status(self, shell)
    }
}
