//! Draws Search: the spans found, the selected one, the recent searches, and the panels without spans.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::screen::search::keys::SEARCH_SCOPE;
use crate::{
    keymap::{Action, key_label},
    screen::search::layout::parts,
    screen::search::state::{FoundSpan, MAX_SPANS, Search},
    shell::notice::describe,
    shell::{ScreenReplies as _, ScreenView, Shell, notice},
    theme::{Theme, Tone},
    widgets::table::{Pieces, first_visible, put, put_panel},
};
use present::{
    format::{capital, count, latency, moment, money, short_id, thousands},
    text::{clean, cut, fit, width, wrap},
};

/// Width in columns of the similarity.
const SIMILARITY_COLS: usize = 4;
/// Width in columns of the end of a trace's id.
const ID_COLS: usize = 8;

/// Widths of the columns; 0 leaves a column out.
struct SearchColumns {
    name: usize,
    kind: usize,
    model: usize,
    excerpt: usize,
}

impl SearchColumns {
    fn of(cols: usize) -> Self {
        let (name, kind, model) = match cols {
            110.. => (22, 9, 15),
            76.. => (16, 9, 0),
            _ => (14, 0, 0),
        };
        let used: usize =
            [SIMILARITY_COLS, name, kind, model, ID_COLS].iter().filter(|it| **it > 0).map(|it| it + 1).sum();
        Self { name, kind, model, excerpt: cols.saturating_sub(2 + used).max(4) }
    }

    fn line(&self, cells: [&str; 4], trace: &str, theme: &Theme) -> Pieces {
        let glyphs = &theme.glyphs;
        let [near, name, kind, model] = cells;
        let mut line = Pieces::new()
            .add(Tone::Number, format!("{near:>SIMILARITY_COLS$} "))
            .plain(format!("{} ", fit(name, self.name, glyphs)));
        for (text, width) in [(kind, self.kind), (model, self.model), (trace, ID_COLS)] {
            if width > 0 {
                line = line.add(Tone::Dim, format!("{} ", fit(text, width, glyphs)));
            }
        }
        line
    }
}

impl ScreenView for Search {
    fn has_records(&self, _shell: &Shell) -> bool {
        !self.rows.is_empty()
    }

    fn draw(&self, shell: &Shell, buffer: &mut Buffer, area: Rect) {
        let parts = parts(shell.size);
        if self.rows.is_empty() {
            let above = Rect { height: area.height - parts.recent.height, ..area };
            put_panel(buffer, above, &shell.theme, &instead(self, shell));
        } else {
            list(self, shell, buffer, parts.list);
            if let Some(row) = self.current().filter(|_| parts.span.height > 0) {
                span(shell, row, buffer, parts.span);
            }
        }
        if parts.recent.height > 0 && !self.recent.is_empty() {
            recent(self, shell, buffer, parts.recent);
        }
    }

    fn line(&self, shell: &Shell, cols: usize) -> Pieces {
        let line = Pieces::new().add(Tone::Dim, " ? ");
        let near = self.query.as_ref().and_then(|query| query.near.as_ref());
        let line = if let Some(near) = near {
            let name = clean(&near.name).into_owned();
            line.add(Tone::Dim, "spans like ")
                .plain(name)
                .add(Tone::Dim, format!(" in {}", short_id(near.span.trace_id)))
        } else if self.text.is_empty() {
            line.add(Tone::Dim, "no search yet")
        } else {
            line.plain(clean(&self.text).into_owned())
        };
        let place = clean(shell.project_name().unwrap_or("all projects"));
        let end = if cols >= 110 {
            format!("by meaning, in {place}")
        } else {
            cut(&place, 20, &shell.theme.glyphs)
        };
        line.with_end(Pieces::new().add(Tone::Dim, end), cols, &shell.theme)
    }

    fn status(&self, shell: &Shell) -> String {
        let glyphs = &shell.theme.glyphs;
        if !self.loaded {
            return if self.is_busy(shell) { format!("searching{}", glyphs.ellipsis) } else { String::new() };
        }
        let more = match (&self.next_cursor, self.rows.len()) {
            (Some(_), _) => ", more below",
            (None, MAX_SPANS..) => ", the most that is kept",
            (None, _) => "",
        };
        let dot = glyphs.dot;
        let loaded = thousands(self.rows.len());
        let mut text =
            format!("{loaded} loaded{more} {dot} compared with {} spans", thousands(self.searched));
        if self.not_searched > 0 {
            text.push_str(&format!(" {dot} {} of another model", thousands(self.not_searched)));
        }
        text
    }
}

fn list(search: &Search, shell: &Shell, buffer: &mut Buffer, area: Rect) {
    let (theme, search) = (&shell.theme, search);
    let columns = SearchColumns::of(usize::from(area.width));
    let head = columns.line(["SIM", "SPAN", "KIND", "MODEL"], "TRACE", theme).plain("MATCH");
    put(buffer, area, 0, &Pieces::new().plain("  ").join(head.all(Tone::Dim)).line(theme, false));
    let rows = usize::from(area.height.saturating_sub(1));
    let top = first_visible(search.selected, search.rows.len(), rows);
    for (at, row) in search.rows.iter().enumerate().skip(top).take(rows) {
        let selected = at == search.selected;
        let cursor = if selected { theme.glyphs.cursor } else { " " };
        let span = &row.result.span;
        let near = format!("{:.2}", row.result.score);
        let model = span.model.as_deref().unwrap_or(theme.glyphs.none);
        let cells = [near.as_str(), span.name.as_str(), span.kind.as_str(), model];
        let line = columns.line(cells, &short_id(span.trace_id), theme);
        let excerpt = excerpt(row, theme).cut(columns.excerpt, theme);
        let line = Pieces::new().plain(format!("{cursor} ")).join(line).join(excerpt);
        put(buffer, area, 1 + at - top, &line.line(theme, selected));
    }
}

/// Returns the line that matches best, with the words of the search marked.
fn excerpt(row: &FoundSpan, theme: &Theme) -> Pieces {
    let (text, mut at) = (&row.excerpt.text, 0);
    let mut line = Pieces::new();
    if text.is_empty() {
        return line.add(Tone::Dim, "(no text)");
    }
    if row.excerpt.begun {
        line = line.add(Tone::Dim, theme.glyphs.ellipsis);
    }
    for hit in &row.excerpt.hits {
        line = line.plain(&text[at..hit.start]).add(Tone::Hit, &text[hit.clone()]);
        at = hit.end;
    }
    line.plain(&text[at..])
}

fn rule(title: &str, note: &str, cols: usize, theme: &Theme) -> Pieces {
    let glyphs = &theme.glyphs;
    let note = if note.is_empty() { String::new() } else { format!(" {note} {}", glyphs.rule.repeat(2)) };
    let room = cols.saturating_sub(4 + width(&note));
    let title = format!("{} {} ", glyphs.rule.repeat(2), cut(title, room, glyphs));
    let gap = cols.saturating_sub(width(&title) + width(&note));
    Pieces::new().add(Tone::Dim, title + &glyphs.rule.repeat(gap) + &note).cut(cols, theme)
}

/// Draws the selected span: error, output, input and figures.
fn span(shell: &Shell, row: &FoundSpan, buffer: &mut Buffer, area: Rect) {
    let theme = &shell.theme;
    let glyphs = &theme.glyphs;
    let span = &row.result.span;
    let cols = usize::from(area.width);
    let title = format!("{} in {}", span.name, short_id(span.trace_id));
    let note = if cols >= 76 {
        format!("{} opens the trace at this span", key(shell, Action::Open))
    } else {
        String::new()
    };
    put(buffer, area, 0, &rule(&title, &note, cols, theme).line(theme, false));
    let room = usize::from(area.height.saturating_sub(2));
    let wanted = [
        ("error", Tone::Bad, &span.error),
        ("output", Tone::Plain, &span.output),
        ("input", Tone::Plain, &span.input),
    ];
    let texts: Vec<_> =
        wanted.into_iter().filter_map(|(name, tone, text)| Some((name, tone, text.as_deref()?))).collect();
    let mut at = 1;
    for (number, (name, tone, text)) in texts.iter().enumerate() {
        // Each of the following texts gets one line at least.
        let after = texts.len() - number - 1;
        let most = (room + 1).saturating_sub(at + after.min(room));
        for (line, part) in lines(text, cols.saturating_sub(11), most, theme).into_iter().enumerate() {
            let name = if line == 0 { *name } else { "" };
            let line = Pieces::new().plain("  ").add(Tone::Field, format!("{name:<8}")).add(*tone, part);
            put(buffer, area, at, &line.line(theme, false));
            at += 1;
        }
    }
    let none = || glyphs.none.to_owned();
    let tokens = span.prompt_tokens.unwrap_or(0).saturating_add(span.completion_tokens.unwrap_or(0));
    let facts = [
        moment(shell.zone, span.start_time, shell.now),
        span.kind.to_string(),
        span.model.clone().unwrap_or_else(none),
        span.latency_ms.map_or_else(none, latency),
        format!("{} tokens", count(tokens)),
        span.cost.map_or_else(none, money),
    ];
    let facts = facts.iter().map(|fact| clean(fact).into_owned()).collect::<Vec<_>>().join("   ");
    put(
        buffer,
        area,
        at,
        &Pieces::new().plain("  ").add(Tone::Dim, facts).cut(cols, theme).line(theme, false),
    );
}

/// Returns the first lines of a text, wrapped; the last one ends with an ellipsis if there is more.
fn lines(text: &str, cols: usize, most: usize, theme: &Theme) -> Vec<String> {
    if most == 0 {
        return Vec::new();
    }
    // Only the beginning of a long text is read, because only a few lines are shown.
    let shown = &text[..text.floor_char_boundary(most.saturating_mul(cols).saturating_mul(8))];
    let mut parts = Vec::new();
    for line in shown.lines().filter(|line| !line.trim().is_empty()) {
        parts.extend(wrap(&clean(line), cols));
        if parts.len() > most {
            break;
        }
    }
    if parts.len() > most || shown.len() < text.len() {
        parts.truncate(most);
        if let Some(last) = parts.last_mut() {
            let room = cols.saturating_sub(width(theme.glyphs.ellipsis));
            *last = format!("{}{}", present::text::take(last.trim_end(), room), theme.glyphs.ellipsis);
        }
    }
    parts
}

fn recent(search: &Search, shell: &Shell, buffer: &mut Buffer, area: Rect) {
    let theme = &shell.theme;
    let cols = usize::from(area.width);
    let note = format!("{} while typing", key_label("up", &theme.glyphs));
    put(buffer, area, 0, &rule("recent searches", &note, cols, theme).line(theme, false));
    let rows = usize::from(area.height.saturating_sub(1));
    for (at, it) in search.recent.iter().take(rows).enumerate() {
        let more = if it.has_more { " or more" } else { "" };
        let found = format!(" {} {}{more} found", theme.glyphs.dot, it.found);
        let text = cut(&it.text, cols.saturating_sub(4 + width(&found)), &theme.glyphs);
        let line = Pieces::new().plain("  ").plain(text).add(Tone::Dim, found);
        put(buffer, area, 1 + at, &line.line(theme, false));
    }
}

fn key(shell: &Shell, action: Action) -> String {
    shell.key(SEARCH_SCOPE, action)
}

/// Returns the panel of a search without spans.
fn instead(search: &Search, shell: &Shell) -> Vec<(Tone, String)> {
    if let Some(error) = &search.error {
        return match error.status {
            Some(402) => plan(shell, error.required_plan.as_deref()),
            Some(502) => provider(&describe(error)),
            _ => notice::failure(shell, error, None),
        };
    }
    if search.query.is_none() {
        return welcome(shell);
    }
    if !search.loaded {
        return vec![(Tone::Dim, format!("searching{}", shell.theme.glyphs.ellipsis))];
    }
    let near = search.query.as_ref().is_some_and(|query| query.near.is_some());
    let title = if near {
        "No other span was found".to_owned()
    } else {
        format!("No span was found for  {}", search.text)
    };
    let mut lines = vec![(Tone::Strong, title)];
    if search.searched == 0 && search.not_searched > 0 {
        lines.push((
            Tone::Plain,
            "The spans there have vectors of another embedding model, which can't be compared.".to_owned(),
        ));
    } else if search.searched == 0 {
        lines.push((
            Tone::Plain,
            "No span within these bounds has a vector yet; they are made in the background.".to_owned(),
        ));
    }
    lines.push((Tone::Plain, "/  changes the words or the bounds".to_owned()));
    lines
}

fn welcome(shell: &Shell) -> Vec<(Tone, String)> {
    let edit = key(shell, Action::EditSearch);
    vec![
        (Tone::Strong, format!("{edit}  type a search in your own words")),
        (Tone::Plain, "The search compares the meaning of spans, not their words.".to_owned()),
        (Tone::Plain, String::new()),
        (Tone::Field, "refunds promised without checking the order".to_owned()),
        (Tone::Field, "wrong language in the answer  type:llm from:-7d".to_owned()),
        (Tone::Plain, String::new()),
        (Tone::Dim, "type: model: project: from: to:  narrow it down; tab completes them.".to_owned()),
    ]
}

fn plan(shell: &Shell, required: Option<&str>) -> Vec<(Tone, String)> {
    let needed = capital(required.unwrap_or("pro"));
    let yours = shell.me.as_ref().map(|me| format!("; yours is {}", capital(me.tenant.plan.as_str())));
    vec![
        (Tone::Strong, format!("Search by meaning requires the plan {needed}{}.", yours.unwrap_or_default())),
        (Tone::Plain, String::new()),
        (Tone::Plain, "What works on every plan:".to_owned()),
        (Tone::Field, "1 then /   filter the traces: error:true model:gpt-4o from:-1h".to_owned()),
        (Tone::Field, "1 then f   find words in the traces that are loaded".to_owned()),
    ]
}

fn provider(why: &str) -> Vec<(Tone, String)> {
    vec![
        (Tone::Bad, why.to_owned()),
        (Tone::Plain, String::new()),
        (
            Tone::Plain,
            "The query could not be embedded, so nothing was searched. An owner configures the provider:"
                .to_owned(),
        ),
        (Tone::Field, "loupe credentials list".to_owned()),
        (Tone::Field, "loupe credentials set openai --embedding-model text-embedding-3-small".to_owned()),
        (Tone::Plain, String::new()),
        (Tone::Plain, "R tries again, ! shows the log.".to_owned()),
    ]
}
