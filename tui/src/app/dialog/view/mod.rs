//! Draws dialogs and their keys.

mod form;

use ratatui::{buffer::Buffer, layout::Rect};

use crate::{
    change::{Change, ExcerptLine},
    dialog::{Body, Dialog, NOTE_FIELD, Phase, Stop},
    input::Input,
    layout,
    shell::Shell,
    theme::Tone,
    widgets::boxed::{inner_cols, put_box},
    widgets::table::Pieces,
};
use present::{
    format::short_id,
    text::{clean, cut, width, wrap},
};

/// Rows of the upper and the lower edge of a dialog.
const EDGE_ROWS: usize = 2;

/// Draws a dialog over an area.
pub fn draw(shell: &Shell, dialog: &Dialog, buffer: &mut Buffer, area: Rect) {
    let cols = inner_cols(area.width);
    let rows = usize::from(area.height).saturating_sub(EDGE_ROWS);
    let title = dialog.title();
    let foot = match (&dialog.body, &dialog.phase) {
        (_, Phase::Sending { .. }) | (_, Phase::Checking { stuck: None, .. }) => "please wait",
        (Body::Secret { stored: false, .. }, _) => "store the secret first",
        (Body::Secret { .. }, _) | (_, Phase::Checking { .. }) => "esc closes",
        _ => "esc cancels",
    };
    let mut lines = match &dialog.phase {
        Phase::Asking => asking(shell, dialog, cols, rows),
        Phase::Sending { change, .. } => {
            let mut lines = subject(shell, &**change, cols);
            lines.push(Pieces::new());
            lines.push(Pieces::new().add(Tone::Strong, format!("sending{}", shell.theme.glyphs.ellipsis)));
            lines
        }
        Phase::Checking { change, why, stuck, .. } => {
            let mut lines = subject(shell, &**change, cols);
            lines.push(Pieces::new());
            lines.extend(text(Tone::Warn, &format!("The response was lost: {why}"), cols));
            lines.extend(match stuck {
                None => {
                    text(Tone::Strong, "Reading whether the change happened. It is not sent again.", cols)
                }
                Some(why) => {
                    let text_of =
                        format!("The change may have happened, but that can't be read either: {why}");
                    let mut more = text(Tone::Bad, &text_of, cols);
                    more.extend(text(Tone::Plain, "R reads again, esc leaves it open.", cols));
                    more
                }
            });
            lines
        }
    };
    if let Some(complaint) = &dialog.complaint {
        lines.push(Pieces::new());
        lines.extend(text(Tone::Bad, complaint, cols));
    }
    put_box(buffer, area, &shell.theme, title, foot, lines);
}

/// Returns the keys that the footer offers.
pub fn keys(dialog: &Dialog) -> &'static [(&'static str, &'static str)] {
    match (&dialog.phase, &dialog.body) {
        (Phase::Sending { .. } | Phase::Checking { stuck: None, .. }, _) => &[],
        (Phase::Checking { .. }, _) => &[("R", "read again"), ("esc", "leave it open")],
        (_, Body::Confirm { change, .. }) if !change.excerpt().is_empty() => {
            &[("tab", "next"), ("enter", "press"), ("pgdn", "more of the diff"), ("esc", "cancel")]
        }
        (_, Body::Confirm { typed: None, .. }) => {
            &[("tab", "other button"), ("enter", "press"), ("y", "yes"), ("esc", "cancel")]
        }
        (_, Body::Confirm { .. }) => &[("tab", "other button"), ("enter", "press"), ("esc", "cancel")],
        (_, Body::Form(_)) => &[("tab", "next"), ("left", "change"), ("enter", "press"), ("esc", "cancel")],
        (_, Body::Secret { .. }) => {
            &[("v", "reveal"), ("y", "copy"), ("space", "tick"), ("tab", "next"), ("enter", "press")]
        }
    }
}

fn asking(shell: &Shell, dialog: &Dialog, cols: usize, rows: usize) -> Vec<Pieces> {
    match &dialog.body {
        Body::Confirm { change, top, .. } => {
            let mut lines = subject(shell, &**change, cols);
            let end = question(shell, dialog, cols);
            lines.extend(excerpt(
                shell,
                &**change,
                *top,
                cols,
                excerpt_rows(&lines, &end, dialog, cols, rows),
            ));
            lines.extend(end);
            lines
        }
        Body::Form(form) => form::lines(shell, dialog, form, cols),
        Body::Secret { sentence, secret, shown, stored, .. } => {
            let mut lines = text(Tone::Plain, sentence, cols);
            lines.push(Pieces::new());
            if *shown {
                // Broken by width alone, so that no character is lost at the end of a line.
                lines.extend(text(Tone::Text, &secret.0, cols));
                lines.push(Pieces::new().add(Tone::Dim, "v hide   y copy"));
            } else {
                // The first characters of an API key are public; of a webhook's secret, only `whsec_` is.
                let public = if secret.0.starts_with("lp_") { 11 } else { 6 };
                let known: String = secret.0.chars().take(public).collect();
                let masked = shell.theme.glyphs.masked.repeat(cols.saturating_sub(11 + 24).min(20));
                let line = Pieces::new().plain(format!("{known}{} ", shell.theme.glyphs.ellipsis));
                lines.push(line.add(Tone::Dim, masked).plain("   v reveal   y copy"));
            }
            lines.push(Pieces::new());
            lines.extend(text(Tone::Strong, "This is the only time the secret is shown.", cols));
            let tick = if *stored { "[x]" } else { "[ ]" };
            let box_tone = if dialog.focus == Stop::Tick { Tone::Selected } else { Tone::Plain };
            lines.push(Pieces::new().add(box_tone, format!("{tick} I have stored it")));
            lines.push(Pieces::new());
            lines.push(buttons(dialog, &["Close"]));
            lines
        }
    }
}

/// Returns the end of a confirmation: the consequences, the note, the characters to type, and the buttons.
fn question(shell: &Shell, dialog: &Dialog, cols: usize) -> Vec<Pieces> {
    let Body::Confirm { change, typed, note, .. } = &dialog.body else { return Vec::new() };
    let mut lines = vec![Pieces::new()];
    lines.extend(text(Tone::Plain, change.consequences(), cols));
    lines.push(Pieces::new());
    if let Some(note) = note {
        let focused = dialog.focus == Stop::Field(NOTE_FIELD);
        let mark = if focused { shell.theme.glyphs.cursor } else { " " };
        let label = Pieces::new().plain(format!("{mark} ")).add(Tone::Field, "Note (optional) ");
        lines.push(label.join(entry(shell, dialog, Stop::Field(NOTE_FIELD), note, cols.saturating_sub(6))));
        if typed.is_none() {
            lines.push(Pieces::new());
        }
    }
    if let Some((wanted, given)) = typed {
        let ask = format!("Protected context: type {wanted} to confirm: ");
        lines.extend(answer(shell, &ask, given, cols));
        lines.push(Pieces::new());
    }
    lines.push(buttons(dialog, &["Cancel", change.verb()]));
    lines
}

/// Returns the rows that a confirmation has for its excerpt, below a blank line.
fn excerpt_rows(start: &[Pieces], end: &[Pieces], dialog: &Dialog, cols: usize, rows: usize) -> usize {
    let complaint = dialog.complaint.as_ref().map_or(0, |it| text(Tone::Bad, it, cols).len() + 1);
    rows.saturating_sub(start.len() + end.len() + complaint + 1)
}

/// Returns what a change changes, wrapped.
fn excerpt_lines(change: &dyn Change, cols: usize) -> Vec<Pieces> {
    let rows = |line: &ExcerptLine| {
        let (tone, mark) = (line.tone, line.mark);
        let rows = wrap(&clean(&line.text), cols.saturating_sub(width(mark)));
        rows.into_iter().map(move |row| Pieces::new().add(tone, mark).add(tone, row))
    };
    change.excerpt().iter().flat_map(rows).collect()
}

/// Returns the visible lines of what a change changes. The last one counts those that do not fit.
fn excerpt(shell: &Shell, change: &dyn Change, top: usize, cols: usize, rows: usize) -> Vec<Pieces> {
    let all = excerpt_lines(change, cols);
    if all.is_empty() || rows == 0 {
        return Vec::new();
    }
    let mut lines = vec![Pieces::new()];
    let count = all.len();
    if count <= rows {
        lines.extend(all);
        return lines;
    }
    let room = rows - 1;
    let top = top.min(count - room);
    lines.extend(all.into_iter().skip(top).take(room));
    let dot = shell.theme.glyphs.dot;
    let more = format!("lines {} to {} of {count} {dot} pgdn, pgup", top + 1, top + room);
    lines.push(Pieces::new().add(Tone::Dim, more).cut(cols, &shell.theme));
    lines
}

/// Returns by how many lines the excerpt of the open confirmation can be scrolled.
pub fn excerpt_overflow(shell: &Shell) -> usize {
    let Some(dialog) = &shell.dialog else { return 0 };
    let Body::Confirm { change, .. } = &dialog.body else { return 0 };
    let area = area(shell.size);
    let cols = inner_cols(area.width);
    let rows = usize::from(area.height).saturating_sub(EDGE_ROWS);
    let (start, end) = (subject(shell, &**change, cols), question(shell, dialog, cols));
    let visible = excerpt_rows(&start, &end, dialog, cols, rows);
    let count = excerpt_lines(&**change, cols).len();
    if count <= visible { 0 } else { count - visible.saturating_sub(1) }
}

/// Returns the area that a dialog can cover: the body, in a small terminal with the lines above it, but never the keys.
pub fn area(size: (u16, u16)) -> Rect {
    let body = layout::frame(size).body;
    if layout::single(size) { Rect { y: 0, height: body.bottom(), ..body } } else { body }
}

/// Returns the name and the id of the record that changes.
fn subject(shell: &Shell, change: &dyn Change, cols: usize) -> Vec<Pieces> {
    let id = change
        .id()
        .map(|id| format!("  {}{}", shell.theme.glyphs.ellipsis, short_id(id)))
        .unwrap_or_default();
    let name = cut(change.name(), cols.saturating_sub(width(&id)), &shell.theme.glyphs);
    vec![Pieces::new().add(Tone::Strong, name).add(Tone::Dim, id)]
}

fn text(tone: Tone, text: &str, cols: usize) -> Vec<Pieces> {
    wrap(&clean(text), cols).into_iter().map(|line| Pieces::new().add(tone, line)).collect()
}

/// Returns the visible end of a line of text, with a mark for the cursor.
fn entry(shell: &Shell, dialog: &Dialog, stop: Stop, input: &Input, cols: usize) -> Pieces {
    let room = cols.saturating_sub(14);
    let (before, after) = input.around();
    let (before, after) = (clean(before), clean(after));
    let mut start = 0;
    while width(&before[start..]) > room {
        start += before[start..].chars().next().map_or(1, char::len_utf8);
    }
    let shown = &before[start..];
    let rest = present::text::take(&after, room.saturating_sub(width(shown)));
    let cut_off = if start > 0 { shell.theme.glyphs.ellipsis } else { "" };
    let line = Pieces::new().plain(format!("{cut_off}{shown}"));
    if dialog.focus == stop { line.add(Tone::Selected, " ").plain(rest) } else { line.plain(rest) }
}

/// Returns the required characters and the ones typed.
fn answer(shell: &Shell, ask: &str, given: &Input, cols: usize) -> Vec<Pieces> {
    let mut lines = text(Tone::Warn, ask, cols.saturating_sub(6));
    let typed = cut(given.text(), 5, &shell.theme.glyphs);
    let last = lines.pop().unwrap_or_default();
    lines.push(last.plain(typed).add(Tone::Selected, " "));
    lines
}

/// Returns the buttons. The button that sends the change is dimmed while it cannot be pressed.
fn buttons(dialog: &Dialog, labels: &[&str]) -> Pieces {
    let stops: &[Stop] = if labels.len() == 1 { &[Stop::Act] } else { &[Stop::Cancel, Stop::Act] };
    let mut line = Pieces::new();
    for (label, stop) in labels.iter().zip(stops) {
        let usable = *stop == Stop::Cancel || dialog.armed();
        let tone = match (dialog.focus == *stop, usable) {
            (true, true) => Tone::Selected,
            (false, true) => Tone::Plain,
            (_, false) => Tone::Dim,
        };
        // The mark shows the focus on terminals without reversed colours.
        let mark = if dialog.focus == *stop { ">" } else { " " };
        line = line.plain(mark).add(tone, format!("[ {label} ]")).plain("  ");
    }
    line
}
