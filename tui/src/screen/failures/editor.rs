//! The filter line of Failures while it is edited: completions, check and history.

use api::filter::when::Clock;

use super::{line, state::Failures, update};
use crate::{
    input::LineKind,
    net::Effect,
    shell::{Completion, FilterField, LineError, LoadedIds, ScreenLines, Shell, field_completions},
};

impl ScreenLines for Failures {
    fn history(&self, _line: LineKind) -> &[String] {
        &self.history
    }

    fn history_mut(&mut self, _line: LineKind) -> Option<&mut Vec<String>> {
        Some(&mut self.history)
    }

    fn completions(&self, _shell: &Shell, _line: LineKind) -> Vec<Completion> {
        let words = |field: &FilterField| field_completions(field.name, field.values.to_vec(), field.help);
        line::FIELDS.iter().flat_map(words).collect()
    }

    fn check(&self, shell: &Shell, _line: LineKind, text: &str) -> Option<LineError> {
        line::parse(text, &Clock::of(&shell.zone.of(shell.now))).err()
    }

    fn submit(
        &mut self,
        shell: &mut Shell,
        _line: LineKind,
        text: &str,
        _loaded: &LoadedIds,
    ) -> Result<Vec<Effect>, LineError> {
        line::parse(text, &Clock::of(&shell.zone.of(shell.now)))?;
        Ok(update::set_filter(self, shell, text.to_owned()))
    }
}
