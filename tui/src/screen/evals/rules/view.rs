//! Draws the rules, and the selected one: its settings, its decisions, or the result of a test.

use api::eval_rule::{EvalRule, RuleDecision, RuleTest};
use ratatui::{buffer::Buffer, layout::Rect};

use crate::screen::evals::keys::{EVALS_SCOPE, RULES_SCOPE};
use crate::{
    evaluations::score,
    keymap::Action,
    screen::evals::rules::state::{RulePane, RuleSample, SAMPLE_HOURS},
    screen::evals::state::{Evals, EvalsSection},
    screen::evals::view::{rule, stale},
    shell::notice::{describe, failure},
    shell::{ScreenReplies as _, Shell},
    theme::{Glyphs, Theme, Tone},
    widgets::table::{Pieces, first_visible, put, put_panel},
};
use present::{
    chart::spark_to,
    evaluation::{EvaluationMark, decision_tone},
    format::{clock, moment, money, short_id},
    share,
    text::{clean, fit, fit_right, width, wrap},
};

/// Width in columns of the evaluator types `rule` and `llm`.
const KIND_COLS: usize = 4;
/// Width in columns of the model tier `premium`.
const TIER_COLS: usize = 7;
/// Width in columns of the smallest score drop that raises an alert.
const DROP_COLS: usize = 8;
/// Width in columns of a sample rate or a pass rate.
const SHARE_COLS: usize = 6;

/// Draws the rules.
pub fn draw(evals: &Evals, shell: &Shell, buffer: &mut Buffer, area: Rect, below: bool) {
    let (theme, rules) = (&shell.theme, &evals.rules);
    let cols = usize::from(area.width);
    let here = evals.part == EvalsSection::Rules;
    let bind = |action| shell.key(RULES_SCOPE, action);
    let note = match (cols >= 110, here, shell.target.read_only) {
        (true, true, false) => format!(
            "{} add {dot} {} enable/disable {dot} {} delete",
            bind(Action::NewRule),
            bind(Action::Enable),
            bind(Action::DeleteRule),
            dot = theme.glyphs.dot
        ),
        (true, false, _) => format!("{} goes there", shell.key(EVALS_SCOPE, Action::Rules)),
        _ => String::new(),
    };
    let mut body = area;
    if below {
        let place =
            if shell.project_name().is_some() { "rules of this project" } else { "rules of all projects" };
        put(buffer, area, 0, &rule(place, &note, cols, theme).line(theme, false));
        body = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    }
    if let Some(lines) = instead(evals, shell) {
        return put_panel(buffer, body, theme, &lines);
    }
    let columns = RuleColumns::of(cols, theme);
    let heads = ["METRIC", "KIND", "TIER", "MIN DROP", "SAMPLE", "LAST 24H", "PASS", "STATE"];
    let head = columns.line("", heads.map(str::to_owned), Tone::Dim, theme).all(Tone::Dim);
    put(buffer, body, 0, &Pieces::new().plain("  ").join(head).line(theme, false));
    let rows = usize::from(body.height.saturating_sub(1));
    let top = first_visible(rules.list.selected, rules.list.items.len(), rows);
    let faded = rules.list.error.is_some() || shell.failure().is_some();
    for (at, it) in rules.list.items.iter().enumerate().skip(top).take(rows) {
        let selected = at == rules.list.selected && here;
        let cursor = if selected { theme.glyphs.cursor } else { " " };
        let (mark, tone) = mark(it, theme);
        let line = columns.line(mark, cells(evals, shell, it, columns.state_cols()), tone, theme);
        let line = if it.enabled && !faded { line } else { line.all(Tone::Dim) };
        put(
            buffer,
            body,
            1 + at - top,
            &Pieces::new().plain(format!("{cursor} ")).join(line).line(theme, selected),
        );
    }
}

/// Returns the panel that replaces an empty list of rules.
fn instead(evals: &Evals, shell: &Shell) -> Option<Vec<(Tone, String)>> {
    let list = &evals.rules.list;
    if let (Some(error), true) = (&list.error, list.items.is_empty()) {
        return Some(failure(shell, error, evals.rules.next));
    }
    if !list.loaded {
        return Some(vec![(Tone::Dim, format!("loading{}", shell.theme.glyphs.ellipsis))]);
    }
    let add = if shell.target.read_only {
        "A rule evaluates new traces automatically.".to_owned()
    } else {
        let first = match evals.part {
            EvalsSection::List => format!("{} then ", shell.key(EVALS_SCOPE, Action::Rules)),
            EvalsSection::Rules => String::new(),
        };
        let add = shell.key(RULES_SCOPE, Action::NewRule);
        format!("{first}{add} creates one; it evaluates new traces automatically.")
    };
    list.items.is_empty().then(|| vec![(Tone::Strong, "No rules yet.".to_owned()), (Tone::Plain, add)])
}

/// Returns the mark of a rule: enabled, paused or disabled.
fn mark(it: &EvalRule, theme: &Theme) -> (&'static str, Tone) {
    let glyphs = &theme.glyphs;
    match (it.enabled, &it.paused_reason) {
        (false, _) => (glyphs.offline, Tone::Dim),
        (true, Some(_)) => (glyphs.paused, Tone::Warn),
        (true, None) => (glyphs.live, Tone::Good),
    }
}

/// Widths of the columns, in the order of the cells; 0 leaves a column out.
struct RuleColumns([usize; 8]);

impl RuleColumns {
    fn of(cols: usize, theme: &Theme) -> Self {
        let at_least = |least: usize, width: usize| if cols >= least { width } else { 0 };
        let rest = [
            KIND_COLS,
            at_least(90, TIER_COLS),
            at_least(76, DROP_COLS),
            at_least(60, SHARE_COLS),
            at_least(110, SAMPLE_HOURS),
            at_least(56, SHARE_COLS + 1),
        ];
        let metric = if cols >= 76 { 24 } else { 20 };
        let used: usize = rest.iter().filter(|width| **width > 0).map(|width| width + 1).sum();
        let state = cols.saturating_sub(2 + theme.glyphs.mark_width() + 1 + metric + 1 + used).max(4);
        let [kind, tier, drop, sample, day, pass] = rest;
        Self([metric, kind, tier, drop, sample, day, pass, state])
    }

    /// Returns the columns of the state.
    const fn state_cols(&self) -> usize {
        self.0[7]
    }

    fn line(&self, mark: &str, cells: [String; 8], tone: Tone, theme: &Theme) -> Pieces {
        let glyphs = &theme.glyphs;
        let mut line = Pieces::new().add(tone, fit(mark, glyphs.mark_width(), glyphs));
        for (at, (width, text)) in self.0.iter().zip(&cells).enumerate() {
            if *width == 0 {
                continue;
            }
            let text = match at {
                // The sparkline is not cut, because each of its cells is an hour.
                5 if text.trim().is_empty() => " ".repeat(*width),
                3 | 4 | 6 => fit_right(text, *width, glyphs),
                _ => fit(text, *width, glyphs),
            };
            let tone = if at == 7 { tone } else { Tone::Plain };
            line = line.plain(" ").add(tone, text);
        }
        line
    }
}

fn cells(evals: &Evals, shell: &Shell, it: &EvalRule, state_cols: usize) -> [String; 8] {
    let glyphs = &shell.theme.glyphs;
    let none = || glyphs.none.to_owned();
    let sample = evals.rules.samples.get(&it.id);
    let judged = it.evaluator_type == api::eval::EvaluatorType::Llm;
    let standing = match (it.enabled, it.paused()) {
        (false, _) => "disabled".to_owned(),
        (true, Some(why)) => format!("paused: {why}"),
        (true, None) => format!("changed {}", clock(shell.zone, it.updated_at, shell.now)),
    };
    // Rules of several projects can have the same metric.
    let project = shell.projects.get(it.project_id).filter(|_| shell.project.is_none());
    let project = project.filter(|_| it.paused_reason.is_none());
    let standing = match project {
        Some(project) => {
            let both = format!("{} {} {standing}", project.name, glyphs.dot);
            // The pane below shows the time of the change, too.
            if width(&both) > state_cols { project.name.clone() } else { both }
        }
        None => standing,
    };
    [
        it.metric_name.clone(),
        it.evaluator_type.to_string(),
        if judged { it.model_tier.to_string() } else { none() },
        format!("{:.2}", it.min_score_drop.unwrap_or(0.0)),
        share::text(it.sample_rate),
        sample.map(|sample| hours(sample, glyphs)).unwrap_or_default(),
        sample.and_then(pass).unwrap_or_else(none),
        standing,
    ]
}

/// Returns the pass rate by hour; `?` marks hours that were not read.
fn hours(sample: &RuleSample, glyphs: &Glyphs) -> String {
    let rates = sample.rates();
    "?".repeat(sample.unknown) + &spark_to(&rates[sample.unknown..], 1.0, glyphs)
}

/// Returns the share that passed; `~` marks a share of the newest evaluations only.
fn pass(sample: &RuleSample) -> Option<String> {
    let about = if sample.more { "~" } else { "" };
    sample.rate().map(|rate| format!("{about}{:.1}%", rate * 100.0))
}

/// Returns the status line.
pub fn status(evals: &Evals, shell: &Shell) -> String {
    let list = &evals.rules.list;
    if !list.loaded {
        return if evals.is_busy(shell) || shell.is_busy() {
            format!("loading{}", shell.theme.glyphs.ellipsis)
        } else {
            String::new()
        };
    }
    let enabled = list.items.iter().filter(|rule| rule.enabled).count();
    let paused = list.items.iter().filter(|rule| rule.enabled && rule.paused_reason.is_some()).count();
    let many = if list.items.len() == 1 { "" } else { "s" };
    let mut parts = vec![format!("{} rule{many}, {enabled} enabled", list.items.len())];
    parts.extend(stale(shell, list.error.as_ref(), evals.rules.next));
    if paused > 0 {
        parts.push(format!("{paused} paused"));
    }
    if let Some(rule) = evals.rules.current() {
        parts.push(format!("rule {}", short_id(rule.id)));
    }
    parts.join(&format!(" {} ", shell.theme.glyphs.dot))
}

/// Draws the pane of the selected rule.
pub fn pane(evals: &Evals, shell: &Shell, buffer: &mut Buffer, area: Rect) {
    let (theme, cols, rules) = (&shell.theme, usize::from(area.width), &evals.rules);
    let Some(it) = rules.current() else { return };
    let PaneContent { title, note, lines } = content(evals, shell, it, cols);
    let pages = lines.len() > usize::from(area.height.saturating_sub(1));
    let more = format!("{} more", shell.key(RULES_SCOPE, Action::PageDown));
    let note = match (cols >= 76, pages) {
        (true, true) => format!("{more} {} {note}", theme.glyphs.dot),
        (true, false) => note,
        (false, true) => more,
        (false, false) => String::new(),
    };
    put(buffer, area, 0, &rule(&title, &note, cols, theme).line(theme, false));
    let room = usize::from(area.height.saturating_sub(1));
    let top = rules.top.min(lines.len().saturating_sub(room));
    for (at, line) in lines.into_iter().skip(top).take(room).enumerate() {
        put(buffer, area, 1 + at, &line.cut(cols, theme).line(theme, false));
    }
}

/// Returns the content of the pane of a rule.
fn content(evals: &Evals, shell: &Shell, it: &EvalRule, cols: usize) -> PaneContent {
    let theme = &shell.theme;
    let back = format!("{} back", shell.key(RULES_SCOPE, Action::Back));
    let (title, note, lines) = match evals.rules.side() {
        RulePane::Facts => (it.metric_name.clone(), why_note(shell), facts(evals, shell, it, cols)),
        RulePane::Decisions { trace, answer, .. } => {
            let title = match trace {
                Some(trace) => format!("what {} decided about {}", it.metric_name, short_id(*trace)),
                None => format!("what {} decided, newest first", it.metric_name),
            };
            let lines = match answer {
                None => vec![Pieces::new().add(Tone::Dim, format!("  loading{}", theme.glyphs.ellipsis))],
                Some(Err(error)) => text(Tone::Bad, &describe(error), cols),
                Some(Ok(list)) if list.decisions.is_empty() => {
                    text(Tone::Dim, "There are no decisions.", cols)
                }
                Some(Ok(list)) => {
                    let named = trace.is_none();
                    let mut lines: Vec<Pieces> =
                        list.decisions.iter().flat_map(|it| decision(shell, it, named, cols)).collect();
                    if list.has_more {
                        let (count, id) = (list.decisions.len(), short_id(it.id));
                        let all = format!("loupe rules decisions {id} --all");
                        lines.extend(text(
                            Tone::Dim,
                            &format!("The newest {count}; all of them: {all}"),
                            cols,
                        ));
                    }
                    lines
                }
            };
            (title, back, lines)
        }
        RulePane::Tested { result, .. } => {
            let title = format!("{} tested on {}", it.metric_name, short_id(result.trace_id));
            (title, format!("nothing stored, {back}"), tested(shell, result, cols))
        }
    };
    PaneContent { title, note, lines }
}

/// The content of the pane of a rule.
struct PaneContent {
    title: String,
    note: String,
    lines: Vec<Pieces>,
}

/// Returns the number of lines in the pane of the selected rule, for scrolling.
pub fn len(evals: &Evals, shell: &Shell) -> usize {
    let cols = usize::from(crate::layout::frame(shell.size).body.width);
    evals.rules.current().map_or(0, |it| content(evals, shell, it, cols).lines.len())
}

fn why_note(shell: &Shell) -> String {
    let bind = |action| shell.key(RULES_SCOPE, action);
    let (test, why) = (bind(Action::TestRule), bind(Action::Why));
    if shell.target.read_only {
        return format!("{why} why it ran or not");
    }
    format!("{test} test {} {why} why it ran or not", shell.theme.glyphs.dot)
}

fn text(tone: Tone, text: &str, cols: usize) -> Vec<Pieces> {
    let lines = text.lines().flat_map(|line| wrap(&clean(line), cols.saturating_sub(4)));
    lines.map(|line| Pieces::new().plain("  ").add(tone, line)).collect()
}

fn facts(evals: &Evals, shell: &Shell, it: &EvalRule, cols: usize) -> Vec<Pieces> {
    let mut lines = Vec::new();
    if let Some(why) = it.paused().filter(|_| it.enabled) {
        lines.extend(text(Tone::Warn, &format!("Paused: {why}"), cols));
        let again = shell.key(RULES_SCOPE, Action::Enable);
        lines.extend(text(Tone::Dim, &format!("{again} resumes it once the cause is fixed."), cols));
    }
    let field = |name: &str, value: &str| {
        let value = fit(value, cols.saturating_sub(14), &shell.theme.glyphs).trim_end().to_owned();
        Pieces::new().plain("  ").add(Tone::Field, format!("{name:<10} ")).plain(value)
    };
    let config = it.config.get();
    lines.push(field("config", if config == "{}" { "the evaluator's defaults" } else { config }));
    lines.push(field("traces", &selected(shell, it)));
    lines.push(field("rule", &it.id.to_string()));
    let sample = evals.rules.samples.get(&it.id).map(|sample| {
        let rate = pass(sample).unwrap_or_else(|| shell.theme.glyphs.none.to_owned());
        let more = if sample.more { "the newest " } else { "" };
        let hours = hours(sample, &shell.theme.glyphs);
        format!("{hours}  {rate} of {more}{} passed", sample.all())
    });
    if let Some(sample) = sample {
        lines.push(field("last 24h", &sample));
    }
    let at = |time| moment(shell.zone, time, shell.now);
    lines.push(field("created", &format!("{}, changed {}", at(it.created_at), at(it.updated_at))));
    lines
}

/// Returns the traces that a rule evaluates, as text.
fn selected(shell: &Shell, it: &EvalRule) -> String {
    let terms = if it.filter.is_empty() { "all".to_owned() } else { it.filter.to_string() };
    let project = shell.projects.get(it.project_id).map(|project| project.name.clone());
    let project = project.unwrap_or_else(|| short_id(it.project_id));
    format!("{terms}, of project {project}, {} of them", share::text(it.sample_rate))
}

fn decision(shell: &Shell, it: &RuleDecision, named: bool, cols: usize) -> Vec<Pieces> {
    let tone = decision_tone(it.decision);
    let at = it.decided_at.map(|at| format!("  {}", clock(shell.zone, at, shell.now)));
    let trace = if named { format!("  {}", short_id(it.trace_id)) } else { String::new() };
    let evaluation = it.evaluation_id.map(|id| format!("  evaluation {}", short_id(id)));
    let head = Pieces::new()
        .plain("  ")
        .add(tone, fit(it.decision.as_str(), 11, &shell.theme.glyphs))
        .add(Tone::Dim, format!("{}{trace}{}", at.unwrap_or_default(), evaluation.unwrap_or_default()));
    let mut lines = vec![head];
    lines.extend(text(Tone::Plain, &it.detail, cols));
    lines
}

fn tested(shell: &Shell, it: &RuleTest, cols: usize) -> Vec<Pieces> {
    let glyphs = &shell.theme.glyphs;
    let (mark, tone) = EvaluationMark::of(it.status, it.label.as_deref()).glyph_and_tone(glyphs);
    let shown = it.score.map_or_else(|| glyphs.none.to_owned(), score);
    let label = it.label.clone().unwrap_or_else(|| it.status.to_string());
    let mut line = Pieces::new()
        .plain("  ")
        .add(Tone::Field, "score ")
        .add(tone, format!("{shown} {mark} {}   ", clean(&label)))
        .add(Tone::Field, "by ")
        .plain(format!("{}   ", clean(&it.evaluator_version)));
    for (name, value) in [("judge", it.judge_model.clone()), ("cost", it.cost.map(money))] {
        if let Some(value) = value {
            line = line.add(Tone::Field, format!("{name} ")).plain(format!("{}   ", clean(&value)));
        }
    }
    let mut lines = vec![line.trimmed()];
    let would = format!("On ingest: {}. {}", it.decision.as_str().replace('_', " "), it.detail);
    lines.extend(text(Tone::Dim, &would, cols));
    lines.extend(it.error.iter().flat_map(|error| text(Tone::Bad, error, cols)));
    lines.extend(it.reasoning.iter().flat_map(|reasoning| text(Tone::Plain, reasoning, cols)));
    lines
}
