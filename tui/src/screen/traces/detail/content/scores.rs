//! The evaluations of an opened trace as lines: those of the span under the cursor first.

use api::{
    eval::{Evaluation, EvaluationContext, EvaluationStatus},
    trace::Span,
};
use uuid::Uuid;

use super::{Setting, plain};
use crate::screen::traces::keys::TREE_SCOPE;
use crate::{
    evaluations::{SCORE_COLS, score},
    keymap::Action,
    screen::traces::detail::{Scores, TraceRules},
    shell::Shell,
    shell::notice::describe,
    theme::Tone,
    widgets::json::{PaneLine, Piece},
};
use present::{
    evaluation::decision_tone,
    format::{clock, money},
    text::{clean, cut, fit, fit_right, width},
};

/// Columns before the texts of an evaluation.
const INDENT_COLS: usize = 2;
/// Width in columns of the longest decision.
const DECISION_COLS: usize = 11;

/// The context of an evaluation.
struct ScoreContext<'a> {
    scores: &'a Scores,
    current: Option<Uuid>,
    spans: &'a [Span],
}

/// The current keys of the actions that the lines name.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    refresh: String,
    problems: String,
    /// The key that runs an evaluation; none in a read-only console.
    run: Option<String>,
    why: String,
    all: String,
    /// The key that goes to the rules on screen 2.
    rules: String,
    /// The key that adds a rule there; none in a read-only console.
    add: Option<String>,
    /// The key that requests the decisions of a rule on screen 2.
    rule_why: String,
}

impl Keys {
    /// Returns the current keys.
    pub fn of(shell: &Shell) -> Self {
        let writes = |key: String| (!shell.target.read_only).then_some(key);
        Self {
            refresh: shell.key(TREE_SCOPE, Action::Refresh),
            problems: shell.key(TREE_SCOPE, Action::Problems),
            run: writes(shell.key(TREE_SCOPE, Action::Evaluate)),
            why: shell.key(TREE_SCOPE, Action::Why),
            all: shell.key(TREE_SCOPE, Action::TraceEvals),
            rules: shell.key_named("evals.rules"),
            add: writes(shell.key_named("rules.create")),
            rule_why: shell.key_named("rules.why"),
        }
    }
}

/// Returns the lines of the tab: evaluations of this span, of the whole trace, and of other spans.
pub fn lines(
    scores: &Scores,
    span: Option<&Span>,
    spans: &[Span],
    keys: &Keys,
    setting: &Setting<'_>,
) -> Vec<PaneLine> {
    let mut lines = Vec::new();
    if let Some(error) = &scores.error {
        lines.extend(plain(&describe(error), Tone::Bad, setting.cols));
        let again = format!("{} tries again, {} shows the log.", keys.refresh, keys.problems);
        lines.push(PaneLine::of(Tone::Plain, again));
    }
    let Some(list) = &scores.list else {
        if scores.error.is_none() {
            lines.push(PaneLine::of(Tone::Dim, format!("loading{}", setting.reader.glyphs.ellipsis)));
        }
        return lines;
    };
    if list.evaluations.is_empty() {
        lines.push(PaneLine::of(Tone::Plain, "No evaluation of this trace yet."));
        let run = keys.run.as_ref().map(|key| format!("{key} runs one, ")).unwrap_or_default();
        let why = format!("{run}{} tells why the project's rules did not.", keys.why);
        lines.push(PaneLine::of(Tone::Dim, why));
    }
    let current = span.map(|span| span.id);
    let own = list.evaluations.iter().filter(|it| it.span_id.is_some() && it.span_id == current);
    let whole = list.evaluations.iter().filter(|it| it.span_id.is_none());
    let others = list.evaluations.iter().filter(|it| it.span_id.is_some() && it.span_id != current);
    let context = ScoreContext { scores, current, spans };
    let mut section = |title, rows: &mut dyn Iterator<Item = &Evaluation>| {
        section(&mut lines, title, rows, &context, setting);
    };
    section("this span", &mut { own });
    section("the whole trace", &mut { whole });
    section("other spans", &mut { others });
    if list.has_more {
        let (count, all) = (list.evaluations.len(), &keys.all);
        let text = format!("The newest {count} are shown; {all} lists all of them.");
        lines.push(PaneLine::of(Tone::Dim, text));
    }
    if let Some(rules) = &scores.rules {
        lines.push(PaneLine::default());
        lines.extend(decisions(rules, keys, setting));
    }
    lines
}

/// Returns the lines of the decisions of the project's rules on the trace.
fn decisions(rules: &TraceRules, keys: &Keys, setting: &Setting<'_>) -> Vec<PaneLine> {
    let glyphs = &setting.reader.glyphs;
    let mut lines = vec![PaneLine::of(Tone::Dim, "rules of the project, on this trace")];
    if let Some(error) = &rules.error {
        lines.extend(plain(&describe(error), Tone::Bad, setting.cols));
    } else if !rules.loaded {
        lines.push(PaneLine::of(Tone::Dim, format!("loading{}", glyphs.ellipsis)));
    } else if rules.asked.is_empty() {
        let add = keys.add.as_ref().map(|add| format!(": on screen 2, {} then {add} adds one", keys.rules));
        lines.push(PaneLine::of(Tone::Plain, format!("There is none{}.", add.unwrap_or_default())));
    }
    for asked in &rules.asked {
        let (tone, word, detail) = match &asked.answer {
            None => (Tone::Dim, glyphs.ellipsis, String::new()),
            Some(Err(error)) => (Tone::Bad, "unknown", describe(error)),
            Some(Ok(None)) => (Tone::Plain, "nothing", "The server has no decision.".to_owned()),
            Some(Ok(Some(it))) => (decision_tone(it.decision), it.decision.as_str(), it.detail.clone()),
        };
        let name = fit(&asked.metric, metric_cols(setting.cols), glyphs);
        let pieces = vec![
            Piece { tone: Tone::Strong, text: name + " " },
            Piece { tone, text: fit(word, DECISION_COLS, glyphs) },
        ];
        lines.push(PaneLine { pieces, ..PaneLine::default() });
        indented(&mut lines, &detail, Tone::Plain, setting);
    }
    if rules.more > 0 {
        let (more, there, why) = (rules.more, &keys.rules, &keys.rule_why);
        let text = format!("and {more} more; on screen 2, {there} then {why} asks one of them.");
        lines.push(PaneLine::of(Tone::Dim, text));
    }
    lines
}

fn indented(lines: &mut Vec<PaneLine>, text: &str, tone: Tone, setting: &Setting<'_>) {
    let text = &text[..text.floor_char_boundary(setting.limit)];
    for mut line in plain(text, tone, setting.cols.saturating_sub(INDENT_COLS)) {
        line.pieces.insert(0, Piece { tone: Tone::Plain, text: " ".repeat(INDENT_COLS) });
        lines.push(line);
    }
}

fn section(
    lines: &mut Vec<PaneLine>,
    title: &str,
    rows: &mut dyn Iterator<Item = &Evaluation>,
    context: &ScoreContext<'_>,
    setting: &Setting<'_>,
) {
    let before = lines.len();
    for it in rows {
        if lines.len() == before {
            if before > 0 {
                lines.push(PaneLine::default());
            }
            lines.push(PaneLine::of(Tone::Dim, format!("evaluations of {title}")));
        }
        one(lines, it, context, setting);
    }
}

fn one(lines: &mut Vec<PaneLine>, it: &Evaluation, context: &ScoreContext<'_>, setting: &Setting<'_>) {
    let ScoreContext { scores, current, spans } = *context;
    let (glyphs, reader) = (&setting.reader.glyphs, setting.reader);
    let look = scores.standing(it).glyph_and_tone(glyphs);
    let score = it.score.map_or_else(|| glyphs.none.to_owned(), score);
    let label = it.label.clone().unwrap_or_else(|| match it.status {
        EvaluationStatus::Complete => glyphs.none.to_owned(),
        status => status.to_string(),
    });
    let span = it.span_id.filter(|id| Some(*id) != current).map(|id| {
        let name = spans.iter().find(|span| span.id == id).map(|span| span.name.as_str());
        name.map_or_else(|| present::format::short_id(id), str::to_owned)
    });
    let remediation = (it.context == EvaluationContext::Remediation).then(|| "remediation".to_owned());
    let by = it.judge_model.clone();
    let cost = it.cost.map(money);
    let at = Some(clock(reader.zone, it.created_at, reader.now));
    let facts: Vec<String> = [span, remediation, by, cost, at].into_iter().flatten().collect();
    let mut pieces = vec![
        Piece { tone: look.1, text: fit(look.0, glyphs.mark_width(), glyphs) + " " },
        Piece { tone: Tone::Strong, text: fit(&it.metric_name, metric_cols(setting.cols), glyphs) },
        Piece { tone: Tone::Dim, text: format!(" {:<4} ", it.evaluator_type.as_str()) },
        Piece { tone: Tone::Number, text: fit_right(&score, SCORE_COLS, glyphs) },
        Piece { tone: look.1, text: format!(" {}", fit(&label, 8, glyphs)) },
    ];
    let used: usize = pieces.iter().map(|piece| width(&piece.text)).sum();
    let rest = cut(&clean(&facts.join("  ")), setting.cols.saturating_sub(used + 1), glyphs);
    pieces.push(Piece { tone: Tone::Dim, text: format!(" {rest}") });
    lines.push(PaneLine { pieces, ..PaneLine::default() });
    let texts = [(Tone::Plain, &it.reasoning), (Tone::Bad, &it.error)];
    for (tone, text) in texts.into_iter().filter_map(|(tone, text)| Some((tone, text.as_deref()?))) {
        indented(lines, text, tone, setting);
    }
}

/// Returns the columns of an evaluator's name: enough for the longest built-in one if there is room.
const fn metric_cols(cols: usize) -> usize {
    if cols >= 80 { 26 } else { 18 }
}
