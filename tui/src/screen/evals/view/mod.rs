//! Draws Evals: the evaluations, the selected one, the rules, and the panels without rows.

mod pane;

use api::{
    Timestamp,
    eval::{Evaluation, EvaluationContext},
};
use ratatui::{buffer::Buffer, layout::Rect};

use crate::screen::evals::keys::{EVALS_SCOPE, RULES_SCOPE};
use crate::{
    evaluations::{SCORE_COLS, score},
    keymap::Action,
    net::NetError,
    screen::evals::parts,
    screen::evals::rules::view as rules,
    screen::evals::state::{Evals, EvalsSection, MAX_EVALUATIONS},
    shell::{
        ScreenReplies as _, ScreenView, Shell,
        freshness::{Cause, Stale},
        notice,
    },
    theme::{Theme, Tone},
    widgets::table::{Pieces, first_visible, put, put_panel},
};
use present::{
    format::{CLOCK_DATED, CLOCK_TODAY, clock, same_day, short_id, thousands},
    text::{clean, fit},
};

pub use crate::widgets::table::rule;
pub use pane::len as pane_len;

/// Width in columns of the evaluator types `llm` and `rule`.
const KIND_COLS: usize = 4;
/// Width in columns of the labels `pass`, `warn` and `fail`.
const LABEL_COLS: usize = 5;
/// Width in columns of the evaluation context `remediation`.
const CONTEXT_COLS: usize = 11;
/// Width in columns of the end of a trace's id.
const ID_COLS: usize = 8;

/// Widths of the columns; 0 leaves a column out.
struct EvalsColumns {
    time: usize,
    mark: usize,
    metric: usize,
    label: usize,
    context: usize,
    id: usize,
    reasoning: usize,
}

impl EvalsColumns {
    fn of(cols: usize, dated: bool, theme: &Theme) -> Self {
        let (metric, label, context, id) = match cols {
            110.. => (24, LABEL_COLS + 3, CONTEXT_COLS, ID_COLS),
            76.. => (20, LABEL_COLS, 0, ID_COLS),
            60.. => (20, LABEL_COLS, 0, 0),
            _ => (14, 0, 0, 0),
        };
        let mut it = Self {
            time: if dated { CLOCK_DATED } else { CLOCK_TODAY },
            mark: theme.glyphs.mark_width(),
            metric,
            label,
            context,
            id,
            reasoning: 0,
        };
        let all = [it.time, it.mark, it.metric, KIND_COLS, SCORE_COLS, it.label, it.context, it.id];
        let used: usize = all.iter().filter(|width| **width > 0).map(|width| width + 1).sum();
        it.reasoning = cols.saturating_sub(2 + used).max(4);
        it
    }

    fn line(&self, cells: &EvalsCells<'_>, theme: &Theme) -> Pieces {
        let glyphs = &theme.glyphs;
        let mut line = Pieces::new()
            .add(Tone::Dim, format!("{} ", fit(&cells.time, self.time, glyphs)))
            .add(cells.tone, format!("{} ", fit(cells.mark, self.mark, glyphs)))
            .add(cells.title, format!("{} ", fit(cells.metric, self.metric, glyphs)))
            .add(Tone::Dim, format!("{} ", fit(cells.kind, KIND_COLS, glyphs)))
            .add(cells.tone, format!("{} ", present::text::fit_right(&cells.score, SCORE_COLS, glyphs)));
        let rest = [
            (self.label, cells.label, cells.tone),
            (self.context, cells.context, Tone::Dim),
            (self.id, &cells.id, Tone::Dim),
        ];
        for (width, text, tone) in rest {
            if width > 0 {
                line = line.add(tone, format!("{} ", fit(text, width, glyphs)));
            }
        }
        line.add(cells.side, fit(&cells.reasoning, self.reasoning, glyphs))
    }
}

/// The texts of a row, before they are fitted.
struct EvalsCells<'a> {
    time: String,
    mark: &'a str,
    metric: &'a str,
    kind: &'a str,
    score: String,
    label: &'a str,
    context: &'a str,
    id: String,
    reasoning: String,
    /// Tone of the mark, the score and the label.
    tone: Tone,
    /// Tone of the metric.
    title: Tone,
    /// Tone of the reasoning.
    side: Tone,
}

impl ScreenView for Evals {
    fn has_records(&self, _shell: &Shell) -> bool {
        self.loaded
    }

    fn draw(&self, shell: &Shell, buffer: &mut Buffer, area: Rect) {
        if self.zoom.is_some() && self.part == EvalsSection::List {
            return pane::zoomed(self, shell, buffer, area);
        }
        let parts = parts(self, shell);
        if parts.list.height > 0 {
            if self.rows.is_empty() {
                put_panel(buffer, parts.list, &shell.theme, &instead(self, shell));
            } else {
                list(self, shell, buffer, parts.list);
            }
        }
        if parts.pane.height > 0 {
            match self.part {
                EvalsSection::List => pane::draw(self, shell, buffer, parts.pane),
                EvalsSection::Rules => rules::pane(self, shell, buffer, parts.pane),
            }
        }
        if parts.rules.height > 0 {
            rules::draw(self, shell, buffer, parts.rules, parts.list.height > 0);
        }
    }

    fn line(&self, shell: &Shell, cols: usize) -> Pieces {
        if self.part == EvalsSection::Rules && parts(self, shell).list.height == 0 {
            let place = clean(shell.project_name().unwrap_or("all projects")).into_owned();
            let line = Pieces::new().add(Tone::Dim, " Rules of ").plain(place);
            let back = format!("{} back to the evaluations", shell.key(RULES_SCOPE, Action::Rules));
            return line.with_end(Pieces::new().add(Tone::Dim, back), cols, &shell.theme);
        }
        let line = Pieces::new().add(Tone::Dim, " / ");
        let line = if self.text.is_empty() {
            line.add(Tone::Dim, "no filter")
        } else {
            line.plain(clean(&self.text).into_owned())
        };
        let more = if self.older.is_some() { "server filter, more below" } else { "server filter" };
        let end = if self.text.is_empty() { "" } else { more };
        line.with_end(Pieces::new().add(Tone::Dim, end), cols, &shell.theme)
    }

    fn status(&self, shell: &Shell) -> String {
        let glyphs = &shell.theme.glyphs;
        if self.part == EvalsSection::Rules {
            return rules::status(self, shell);
        }
        if !self.loaded {
            return if self.is_busy(shell) || shell.is_busy() {
                format!("loading{}", glyphs.ellipsis)
            } else {
                String::new()
            };
        }
        if let (Some(words), Some(hits)) = (self.find(), self.hits()) {
            return notice::found(shell, EVALS_SCOPE, words, hits);
        }
        let more = match (&self.older, self.rows.len()) {
            (Some(_), _) => ", more below",
            (None, MAX_EVALUATIONS..) => ", the most that is kept",
            (None, _) => "",
        };
        let sum = self.summary();
        let mut parts = vec![format!("{} loaded{more}", thousands(self.rows.len()))];
        parts.extend(stale(shell, self.error.as_ref(), self.next));
        if self.stray().is_some() {
            parts.insert(0, "this one no longer matches the filter".to_owned());
        } else if self.newer {
            parts.insert(
                0,
                format!("new ones arrived {} {} shows them", glyphs.dot, shell.key(EVALS_SCOPE, Action::Top)),
            );
        }
        if sum.unfinished > 0 {
            parts.push(format!("{} not finished", thousands(sum.unfinished)));
        }
        if sum.labelled > 0 {
            parts.push(format!("pass {} of {}", thousands(sum.passed), thousands(sum.labelled)));
        }
        if sum.below > 0 {
            let more = if sum.unsure { "+" } else { "" };
            parts.push(format!("regressions {}{more}", thousands(sum.below)));
        }
        if sum.failed > 0 {
            parts.push(format!("failed {}", thousands(sum.failed)));
        }
        parts.join(&format!(" {} ", glyphs.dot))
    }

    fn stale(&self) -> Option<Stale<'_>> {
        let cause = Cause::Failure(self.error.as_ref()?);
        Some(Stale { since: self.heard, cause, next: self.next })
    }

    fn footer_word(&self, action: Action) -> Option<&'static str> {
        match action {
            // The footer has no room for it.
            Action::Find if self.part == EvalsSection::List => Some(""),
            Action::Open if self.part == EvalsSection::List && self.zoom.is_some() => Some("list"),
            _ => None,
        }
    }
}

fn list(evals: &Evals, shell: &Shell, buffer: &mut Buffer, area: Rect) {
    let (theme, evals) = (&shell.theme, evals);
    let rows = usize::from(area.height.saturating_sub(1));
    let top = first_visible(evals.selected, evals.rows.len(), rows);
    let visible = || evals.rows.iter().enumerate().skip(top).take(rows);
    let dated = visible().any(|(_, row)| !same_day(shell.zone, row.created_at, shell.now));
    let columns = EvalsColumns::of(usize::from(area.width), dated, theme);
    let head = EvalsCells {
        time: "TIME".to_owned(),
        mark: "",
        metric: "METRIC",
        kind: "KIND",
        score: "SCORE".to_owned(),
        label: "LABEL",
        context: "CONTEXT",
        id: "TRACE".to_owned(),
        reasoning: "REASONING".to_owned(),
        tone: Tone::Dim,
        title: Tone::Dim,
        side: Tone::Dim,
    };
    put(buffer, area, 0, &Pieces::new().plain("  ").join(columns.line(&head, theme)).line(theme, false));
    let faded = evals.error.is_some() || shell.failure().is_some();
    for (at, row) in visible() {
        let selected = at == evals.selected;
        let here = selected && evals.part == EvalsSection::List;
        let cursor = if selected { theme.glyphs.cursor } else { " " };
        let mut cells = cells(evals, shell, row);
        if evals.hit(at) {
            cells.title = Tone::Hit;
        }
        let line = columns.line(&cells, theme);
        let line = if faded { line.all(Tone::Dim) } else { line };
        let line = Pieces::new().plain(format!("{cursor} ")).join(line);
        put(buffer, area, 1 + at - top, &line.line(theme, here));
    }
}

fn cells<'a>(evals: &'a Evals, shell: &'a Shell, row: &'a Evaluation) -> EvalsCells<'a> {
    let glyphs = &shell.theme.glyphs;
    let (mark, tone) = evals.standing(row).glyph_and_tone(glyphs);
    let below = evals.below(row).map(|(baseline, drop)| {
        let score = row.score.unwrap_or_default();
        format!("baseline {baseline:.2} {} {score:.2}, drop {drop:.2}", glyphs.arrow)
    });
    let failed = row.error.as_deref().map(|error| format!("failed: {error}"));
    let words = row.reasoning.clone().or(failed);
    EvalsCells {
        time: clock(shell.zone, row.created_at, shell.now),
        mark,
        metric: &row.metric_name,
        kind: row.evaluator_type.as_str(),
        score: row.score.map_or_else(|| glyphs.none.to_owned(), score),
        label: row.label.as_deref().unwrap_or(glyphs.none),
        context: row.context.as_str(),
        id: short_id(row.trace_id),
        reasoning: below.or(words).unwrap_or_else(|| row.status.to_string()),
        tone,
        title: Tone::Plain,
        side: if row.error.is_some() { Tone::Bad } else { Tone::Plain },
    }
}

/// Returns the note of the status line on rows that could not be refreshed.
pub fn stale(shell: &Shell, error: Option<&NetError>, next: Option<Timestamp>) -> Option<String> {
    let wait = next.map(|at| format!(", next in {}s", shell.seconds_until(at)));
    error.map(|_| format!("not up to date{}", wait.unwrap_or_default()))
}

/// Returns the panel that replaces an empty list of evaluations.
fn instead(evals: &Evals, shell: &Shell) -> Vec<(Tone, String)> {
    if let Some(error) = &evals.error {
        return notice::failure(shell, error, evals.next);
    }
    if !evals.loaded {
        return vec![(Tone::Dim, format!("loading{}", shell.theme.glyphs.ellipsis))];
    }
    if !evals.text.is_empty() {
        return vec![
            (Tone::Strong, format!("Nothing matches  {}", evals.text)),
            (Tone::Plain, String::new()),
            (Tone::Plain, format!("{}  drop the time bounds", shell.key(EVALS_SCOPE, Action::WidenTime))),
            (Tone::Plain, format!("{}  clear the filter", shell.key(EVALS_SCOPE, Action::Back))),
            (Tone::Plain, format!("{}  change it", shell.key(EVALS_SCOPE, Action::EditFilter))),
        ];
    }
    let place = shell.project_name().map(|name| format!(" in {name}")).unwrap_or_default();
    let mut lines = vec![
        (Tone::Strong, format!("No evaluations{place} yet.")),
        (Tone::Plain, "The list is live: the first evaluation appears here.".to_owned()),
        (Tone::Plain, String::new()),
    ];
    if !shell.target.read_only {
        let (run, rules) = (shell.key(EVALS_SCOPE, Action::Evaluate), shell.key(EVALS_SCOPE, Action::Rules));
        let add = shell.key(RULES_SCOPE, Action::NewRule);
        lines.extend([
            (Tone::Plain, format!("{run}  runs one on a trace")),
            (Tone::Plain, format!("{rules} then {add}  adds a rule that judges each new trace")),
            (Tone::Plain, String::new()),
        ]);
    }
    lines.push((Tone::Field, "loupe evals run TRACE --metric answer_relevance --wait".to_owned()));
    lines
}

/// Returns whether an evaluation is of the output of a control action.
fn remediated(it: &Evaluation) -> bool {
    it.context == EvaluationContext::Remediation
}
