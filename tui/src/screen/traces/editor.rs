//! The filter line of Traces while it is edited: completions, check and history.

use api::filter::fields;

use super::{feed, state::Traces};
use crate::{
    input::LineKind,
    net::Effect,
    shell::{Completion, LineError, LoadedIds, ScreenLines, Shell, field_completions},
};

impl ScreenLines for Traces {
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
}
