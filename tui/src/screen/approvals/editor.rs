//! The filter line of Approvals while it is edited: completions, check and history.

use super::{
    filter::{ApprovalFilter, FIELDS},
    state::Approvals,
    update,
};
use crate::{
    input::LineKind,
    net::Effect,
    shell::{Completion, FilterField, LineError, LoadedIds, ScreenLines, Shell, field_completions},
};

impl ScreenLines for Approvals {
    fn history(&self, _line: LineKind) -> &[String] {
        &self.history
    }

    fn history_mut(&mut self, _line: LineKind) -> Option<&mut Vec<String>> {
        Some(&mut self.history)
    }

    fn completions(&self, _shell: &Shell, _line: LineKind) -> Vec<Completion> {
        let words = |field: &FilterField| field_completions(field.name, field.values.to_vec(), field.help);
        FIELDS.iter().flat_map(words).collect()
    }

    fn check(&self, _shell: &Shell, _line: LineKind, text: &str) -> Option<LineError> {
        ApprovalFilter::parse(text).err()
    }

    fn submit(
        &mut self,
        shell: &mut Shell,
        _line: LineKind,
        text: &str,
        _loaded: &LoadedIds,
    ) -> Result<Vec<Effect>, LineError> {
        let filter = ApprovalFilter::parse(text)?;
        Ok(update::set_filter(self, shell, text.to_owned(), filter))
    }
}
