//! Draws bad feedback, and the comment of the selected one.

use ratatui::buffer::Buffer;

use super::table;
use crate::{
    keymap::Action,
    screen::failures::keys::FEEDBACK_SCOPE,
    screen::failures::layout::FailuresLayout,
    screen::failures::state::Failures,
    shell::Shell,
    theme::{Glyphs, Tone},
    widgets::table::{Pieces, packed, put_pane, rule},
};
use present::{
    format::{CLOCK_DATED, clock, moment, short_id},
    text::{clean, cut, fit, wrap},
};

/// Width in columns of the end of an id.
const ID_COLS: usize = 8;
/// Width in columns of the source.
const SOURCE_COLS: usize = 16;

/// Draws the feedback and the pane of the selected one.
pub fn draw(failures: &Failures, shell: &Shell, buffer: &mut Buffer, parts: &FailuresLayout) {
    let (rows, glyphs) = (&failures.feedback, &shell.theme.glyphs);
    let cols = usize::from(parts.list.width);
    let place = shell.project_name().map(|name| format!(" in {name}")).unwrap_or_default();
    let empty = vec![
        (Tone::Strong, format!("No bad feedback{place}.")),
        (Tone::Field, "loupe feedback add TRACE --label bad --comment TEXT".to_owned()),
    ];
    let head = cells(["TIME", "TRACE", "SOURCE", "COMMENT"], cols, glyphs);
    let is_drawn = table(shell, buffer, parts.list, rows, empty, head, |it| {
        let time = clock(shell.zone, it.created_at, shell.now);
        let trace = short_id(it.trace_id);
        let source = it.source.as_deref().unwrap_or(glyphs.none);
        cells([&time, &trace, source, it.comment.as_deref().unwrap_or(glyphs.none)], cols, glyphs)
    });
    let Some(it) = rows.current().filter(|_| is_drawn && parts.pane.height > 0) else { return };
    let cols = usize::from(parts.pane.width);
    let none = || glyphs.none.to_owned();
    let fields = [
        ("given", moment(shell.zone, it.created_at, shell.now)),
        ("user", it.user_id.clone().unwrap_or_else(none)),
        ("source", it.source.clone().unwrap_or_else(none)),
        ("span", it.span_id.map_or_else(|| "the whole trace".to_owned(), short_id)),
    ];
    let mut lines = packed(&fields, cols);
    for line in it.comment.as_deref().unwrap_or_default().lines() {
        let wrapped = wrap(&clean(line), cols.saturating_sub(4));
        lines.extend(wrapped.into_iter().map(|part| Pieces::new().plain("  ").add(Tone::Text, part)));
    }
    let trace = shell.key(FEEDBACK_SCOPE, Action::OpenTrace);
    let title = format!("feedback on {}", short_id(it.trace_id));
    let head = rule(&title, &format!("{trace} trace"), cols, &shell.theme);
    put_pane(buffer, parts.pane, &shell.theme, head, lines);
}

fn cells(cells: [&str; 4], cols: usize, glyphs: &Glyphs) -> Pieces {
    let [time, trace, source, comment] = cells;
    let mut line = Pieces::new()
        .add(Tone::Dim, format!("{} ", fit(time, CLOCK_DATED, glyphs)))
        .add(Tone::Field, format!("{} ", fit(trace, ID_COLS, glyphs)));
    if cols >= 76 {
        line = line.add(Tone::Dim, format!("{} ", fit(source, SOURCE_COLS, glyphs)));
    }
    let room = cols.saturating_sub(2 + line.width());
    line.plain(cut(comment, room, glyphs))
}
