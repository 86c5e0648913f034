//! Search: the spans that were found, the selected one, the searches of before, and what stands
//! in place of them.

use ratatui::{buffer::Buffer, layout::Rect};

use super::notice::{self, describe};
use crate::{
    format::{capital, count, latency, moment, money, short_id, thousands},
    keymap::{Action, Scope, key_label},
    layout,
    search::{CAPACITY, Row},
    state::State,
    text::{clean, cut, fit, width, wrap},
    theme::{Theme, Tone},
    widgets::table::{Pieces, first_visible, put, put_panel},
};

/// Columns of the similarity.
const NEAR: usize = 4;
/// Columns of the end of a trace's id.
const ID: usize = 8;

/// Draws the screen.
pub fn draw(state: &State, buffer: &mut Buffer, area: Rect) {
    let search = &state.search;
    if state.is_unauthorized() && state.search.rows.is_empty() {
        return notice::draw(state, buffer, area);
    }
    let parts = layout::search(state.size);
    if search.rows.is_empty() {
        let above = Rect { height: area.height - parts.recent.height, ..area };
        put_panel(buffer, above, &state.theme, &instead(state));
    } else {
        list(state, buffer, parts.list);
        if let Some(row) = search.current().filter(|_| parts.span.height > 0) {
            span(state, row, buffer, parts.span);
        }
    }
    if parts.recent.height > 0 && !search.recent.is_empty() {
        recent(state, buffer, parts.recent);
    }
}

/// Widths of the columns; 0 leaves a column out.
struct Columns {
    name: usize,
    kind: usize,
    model: usize,
    excerpt: usize,
}

impl Columns {
    fn of(cols: usize) -> Self {
        let (name, kind, model) = match cols {
            110.. => (22, 9, 15),
            76.. => (16, 9, 0),
            _ => (14, 0, 0),
        };
        let used: usize = [NEAR, name, kind, model, ID].iter().filter(|it| **it > 0).map(|it| it + 1).sum();
        Self { name, kind, model, excerpt: cols.saturating_sub(2 + used).max(4) }
    }

    fn line(&self, cells: [&str; 4], trace: &str, theme: &Theme) -> Pieces {
        let glyphs = &theme.glyphs;
        let [near, name, kind, model] = cells;
        let mut line = Pieces::new()
            .add(Tone::Number, format!("{near:>NEAR$} "))
            .plain(format!("{} ", fit(name, self.name, glyphs)));
        for (text, width) in [(kind, self.kind), (model, self.model), (trace, ID)] {
            if width > 0 {
                line = line.add(Tone::Dim, format!("{} ", fit(text, width, glyphs)));
            }
        }
        line
    }
}

fn list(state: &State, buffer: &mut Buffer, area: Rect) {
    let (theme, search) = (&state.theme, &state.search);
    let columns = Columns::of(usize::from(area.width));
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

/// The line that fits best, with the words of the search marked.
fn excerpt(row: &Row, theme: &Theme) -> Pieces {
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

/// The selected span: what came out, what went in, and its figures.
fn span(state: &State, row: &Row, buffer: &mut Buffer, area: Rect) {
    let theme = &state.theme;
    let glyphs = &theme.glyphs;
    let span = &row.result.span;
    let cols = usize::from(area.width);
    let title = format!("{} in {}", span.name, short_id(span.trace_id));
    let note = if cols >= 76 {
        format!("{} opens the trace at this span", key(state, Action::Open))
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
        // Each of the texts after this one is to have a line at least.
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
        moment(state.zone, span.start_time, state.now),
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

/// The first lines of a text, wrapped; the last one says when there is more.
fn lines(text: &str, cols: usize, most: usize, theme: &Theme) -> Vec<String> {
    if most == 0 {
        return Vec::new();
    }
    // A text of megabytes is not walked for the few lines that are shown of it.
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
            *last = format!("{}{}", crate::text::take(last.trim_end(), room), theme.glyphs.ellipsis);
        }
    }
    parts
}

fn recent(state: &State, buffer: &mut Buffer, area: Rect) {
    let theme = &state.theme;
    let cols = usize::from(area.width);
    let note = format!("{} while typing", key_label("up", &theme.glyphs));
    put(buffer, area, 0, &rule("recent searches", &note, cols, theme).line(theme, false));
    let rows = usize::from(area.height.saturating_sub(1));
    for (at, it) in state.search.recent.iter().take(rows).enumerate() {
        let more = if it.more { " or more" } else { "" };
        let found = format!(" {} {}{more} found", theme.glyphs.dot, it.found);
        let text = cut(&it.text, cols.saturating_sub(4 + width(&found)), &theme.glyphs);
        let line = Pieces::new().plain("  ").plain(text).add(Tone::Dim, found);
        put(buffer, area, 1 + at, &line.line(theme, false));
    }
}

/// Line 3: what was looked for.
pub fn line(state: &State, cols: usize) -> Pieces {
    let line = Pieces::new().add(Tone::Dim, " ? ");
    let near = state.search.wanted.as_ref().and_then(|wanted| wanted.near.as_ref());
    let line = if let Some(near) = near {
        let name = clean(&near.name).into_owned();
        line.add(Tone::Dim, "spans like ")
            .plain(name)
            .add(Tone::Dim, format!(" in {}", short_id(near.span.trace_id)))
    } else if state.search.text.is_empty() {
        line.add(Tone::Dim, "nothing looked for yet")
    } else {
        line.plain(clean(&state.search.text).into_owned())
    };
    let place = clean(state.project_name().unwrap_or("all projects"));
    let end =
        if cols >= 110 { format!("by meaning, in {place}") } else { cut(&place, 20, &state.theme.glyphs) };
    line.with_end(Pieces::new().add(Tone::Dim, end), cols, &state.theme)
}

/// The status line.
pub fn status(state: &State) -> String {
    let search = &state.search;
    let glyphs = &state.theme.glyphs;
    if !search.loaded {
        return if state.busy() { format!("searching{}", glyphs.ellipsis) } else { String::new() };
    }
    let more = match (&search.next_cursor, search.rows.len()) {
        (Some(_), _) => ", more below",
        (None, CAPACITY..) => ", the most that is kept",
        (None, _) => "",
    };
    let dot = glyphs.dot;
    let loaded = thousands(search.rows.len());
    let mut text = format!("{loaded} loaded{more} {dot} compared with {} spans", thousands(search.searched));
    if search.not_searched > 0 {
        text.push_str(&format!(" {dot} {} of another model", thousands(search.not_searched)));
    }
    text
}

fn key(state: &State, action: Action) -> String {
    state.key(Scope::Search, action)
}

/// What stands in place of the spans.
fn instead(state: &State) -> Vec<(Tone, String)> {
    let search = &state.search;
    if let Some(error) = &search.error {
        return match error.status {
            Some(402) => plan(state, error.required_plan.as_deref()),
            Some(502) => provider(&describe(error)),
            _ => notice::failure(state, error, None),
        };
    }
    if search.wanted.is_none() {
        return welcome(state);
    }
    if !search.loaded {
        return vec![(Tone::Dim, format!("searching{}", state.theme.glyphs.ellipsis))];
    }
    let near = search.wanted.as_ref().is_some_and(|wanted| wanted.near.is_some());
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

fn welcome(state: &State) -> Vec<(Tone, String)> {
    let edit = key(state, Action::EditSearch);
    vec![
        (Tone::Strong, format!("{edit}  type what to look for, in your own words")),
        (
            Tone::Plain,
            "Spans are found by what they mean, not by the letters they are written in.".to_owned(),
        ),
        (Tone::Plain, String::new()),
        (Tone::Field, "refunds promised without checking the order".to_owned()),
        (Tone::Field, "wrong language in the answer  type:llm from:-7d".to_owned()),
        (Tone::Plain, String::new()),
        (Tone::Dim, "type: model: project: from: to:  narrow it down; tab completes them.".to_owned()),
    ]
}

fn plan(state: &State, required: Option<&str>) -> Vec<(Tone, String)> {
    let needed = capital(required.unwrap_or("pro"));
    let yours = state.me.as_ref().map(|me| format!("; yours is {}", capital(me.tenant.plan.as_str())));
    vec![
        (Tone::Strong, format!("Search by meaning takes the plan {needed}{}.", yours.unwrap_or_default())),
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
            "The words could not be made a vector, so nothing was compared. An owner sets the provider:"
                .to_owned(),
        ),
        (Tone::Field, "loupe credentials list".to_owned()),
        (Tone::Field, "loupe credentials set openai --embedding-model text-embedding-3-small".to_owned()),
        (Tone::Plain, String::new()),
        (Tone::Plain, "R tries again, ! shows the log.".to_owned()),
    ]
}
