//! The lines of Evals while they are edited: completions, checks and history.

use api::filter::when::Clock;

use super::{FILTER_LINE, WHY_LINE, line, rules, state::Evals, update};
use crate::{
    input::LineKind,
    net::Effect,
    shell::{Completion, LineError, LoadedIds, ScreenLines, Shell, field_completions},
};

impl ScreenLines for Evals {
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
}
