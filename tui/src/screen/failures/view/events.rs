//! Draws the failures of a cluster, and the message of the selected one.

use api::failure::Failure;
use ratatui::buffer::Buffer;

use super::table;
use crate::{
    keymap::Action,
    screen::failures::keys::EVENTS_SCOPE,
    screen::failures::layout::FailuresLayout,
    screen::failures::state::ClusterEvents,
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
/// Width in columns of the span and the model.
const NAME_COLS: usize = 20;

/// Draws the failures and the pane of the selected one.
pub fn draw(events: &ClusterEvents, shell: &Shell, buffer: &mut Buffer, parts: &FailuresLayout) {
    let glyphs = &shell.theme.glyphs;
    let cols = usize::from(parts.list.width);
    let head = cells(["TIME", "TRACE", "SPAN", "MODEL", "MESSAGE"], cols, glyphs);
    let empty = vec![(Tone::Plain, "No failure of this cluster is kept.".to_owned())];
    let is_drawn = table(shell, buffer, parts.list, &events.rows, empty, head, |it| {
        let time = clock(shell.zone, it.created_at, shell.now);
        let (trace, model) = (short_id(it.trace_id), it.model.as_deref().unwrap_or(glyphs.none));
        cells([&time, &trace, &it.span_name, model, &it.message], cols, glyphs)
    });
    let Some(it) = events.rows.current().filter(|_| is_drawn && parts.pane.height > 0) else { return };
    let cols = usize::from(parts.pane.width);
    let trace = shell.key(EVENTS_SCOPE, Action::OpenTrace);
    let note = if cols >= 76 { format!("{trace} trace") } else { String::new() };
    let title = format!("{} in {}", it.span_name, short_id(it.trace_id));
    put_pane(
        buffer,
        parts.pane,
        &shell.theme,
        rule(&title, &note, cols, &shell.theme),
        lines(shell, it, cols),
    );
}

fn cells(cells: [&str; 5], cols: usize, glyphs: &Glyphs) -> Pieces {
    let [time, trace, span, model, message] = cells;
    let mut line = Pieces::new()
        .add(Tone::Dim, format!("{} ", fit(time, CLOCK_DATED, glyphs)))
        .add(Tone::Field, format!("{} ", fit(trace, ID_COLS, glyphs)));
    if cols >= 76 {
        line = line.plain(format!("{} ", fit(span, NAME_COLS, glyphs)));
    }
    if cols >= 110 {
        line = line.add(Tone::Dim, format!("{} ", fit(model, NAME_COLS, glyphs)));
    }
    let room = cols.saturating_sub(2 + line.width());
    line.plain(cut(message, room, glyphs))
}

fn lines(shell: &Shell, it: &Failure, cols: usize) -> Vec<Pieces> {
    let none = shell.theme.glyphs.none;
    let fields = [
        ("stored", moment(shell.zone, it.created_at, shell.now)),
        ("model", it.model.clone().unwrap_or_else(|| none.to_owned())),
        ("span", it.span_id.map_or_else(|| "the trace itself".to_owned(), short_id)),
        ("id", it.id.to_string()),
    ];
    let mut lines = packed(&fields, cols);
    for line in it.message.lines() {
        let wrapped = wrap(&clean(line), cols.saturating_sub(4));
        lines.extend(wrapped.into_iter().map(|part| Pieces::new().plain("  ").add(Tone::Bad, part)));
    }
    lines
}
