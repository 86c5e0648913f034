//! The line of a search while it is edited: completions, check and history.

use super::{line, state::Search, update};
use crate::{
    input::LineKind,
    net::Effect,
    shell::{Completion, LineError, LoadedIds, ScreenLines, Shell, field_completions},
};

impl ScreenLines for Search {
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
}
