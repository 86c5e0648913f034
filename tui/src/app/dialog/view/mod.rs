//! Draws dialogs and their keys.

mod form;

use ratatui::{buffer::Buffer, layout::Rect};

use crate::{
    change::Change,
    dialog::{Body, Dialog, Phase, Stop},
    input::Input,
    shell::Shell,
    theme::Tone,
    widgets::boxed::{inner_cols, put_box},
    widgets::table::Pieces,
};
use present::{
    format::short_id,
    text::{clean, cut, width, wrap},
};

/// Draws a dialog over an area.
pub fn draw(shell: &Shell, dialog: &Dialog, buffer: &mut Buffer, area: Rect) {
    let cols = inner_cols(area.width);
    let title = dialog.title();
    let foot = match (&dialog.body, &dialog.phase) {
        (_, Phase::Sending { .. }) | (_, Phase::Checking { stuck: None, .. }) => "please wait",
        (Body::Secret { stored: false, .. }, _) => "esc asks again",
        (Body::Secret { .. }, _) | (_, Phase::Checking { .. }) => "esc closes",
        _ => "esc cancels",
    };
    let mut lines = match &dialog.phase {
        Phase::Asking => asking(shell, dialog, cols),
        Phase::Sending { change, .. } => {
            let mut lines = subject(shell, change, cols);
            lines.push(Pieces::new());
            lines.push(Pieces::new().add(Tone::Strong, format!("sending{}", shell.theme.glyphs.ellipsis)));
            lines
        }
        Phase::Checking { change, why, stuck, .. } => {
            let mut lines = subject(shell, change, cols);
            lines.push(Pieces::new());
            lines.extend(text(Tone::Warn, &format!("The answer was lost: {why}"), cols));
            lines.extend(match stuck {
                None => text(Tone::Strong, "Reading whether it happened. Nothing is sent again.", cols),
                Some(why) => {
                    let text_of = format!("It may have happened; that can't be read either: {why}");
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

/// The keys that the footer offers.
pub fn keys(dialog: &Dialog) -> &'static [(&'static str, &'static str)] {
    match (&dialog.phase, &dialog.body) {
        (Phase::Sending { .. } | Phase::Checking { stuck: None, .. }, _) => &[],
        (Phase::Checking { .. }, _) => &[("R", "read again"), ("esc", "leave it open")],
        (_, Body::Confirm { typed: None, .. }) => {
            &[("tab", "other button"), ("enter", "press"), ("y", "yes"), ("esc", "cancel")]
        }
        (_, Body::Confirm { .. }) => &[("tab", "other button"), ("enter", "press"), ("esc", "cancel")],
        (_, Body::NewKey { .. }) => {
            &[("tab", "next"), ("left", "change"), ("enter", "press"), ("esc", "cancel")]
        }
        (_, Body::NewProject { .. }) => &[("tab", "next"), ("enter", "press"), ("esc", "cancel")],
        (_, Body::Form(_)) => &[("tab", "next"), ("left", "change"), ("enter", "press"), ("esc", "cancel")],
        (_, Body::Secret { .. }) => {
            &[("v", "reveal"), ("y", "copy"), ("space", "tick"), ("tab", "next"), ("enter", "press")]
        }
    }
}

fn asking(shell: &Shell, dialog: &Dialog, cols: usize) -> Vec<Pieces> {
    match &dialog.body {
        Body::Confirm { change, typed } => {
            let mut lines = subject(shell, change, cols);
            lines.push(Pieces::new());
            lines.extend(text(Tone::Plain, change.meaning(), cols));
            lines.push(Pieces::new());
            if let Some((wanted, given)) = typed {
                let ask = format!("Protected context: type {wanted} to go on: ");
                lines.extend(answer(shell, &ask, given, cols));
                lines.push(Pieces::new());
            }
            lines.push(buttons(dialog, &["Cancel", change.verb()]));
            lines
        }
        Body::NewKey { name, query, project } => {
            let access = if *query { "query (read)" } else { "full access" };
            let project = project.map_or_else(
                || "the oldest active project".to_owned(),
                |id| shell.projects.get(id).map_or_else(|| short_id(id), |it| it.name.clone()),
            );
            let mut lines = vec![
                field(shell, dialog, Stop::Text, "Name", entry(shell, dialog, Stop::Text, name, cols)),
                field(shell, dialog, Stop::Access, "Access", choice(dialog, Stop::Access, access)),
            ];
            let project = cut(&project, cols.saturating_sub(16), &shell.theme.glyphs);
            lines.push(field(
                shell,
                dialog,
                Stop::Project,
                "Project",
                choice(dialog, Stop::Project, &project),
            ));
            lines.push(Pieces::new());
            lines.push(buttons(dialog, &["Cancel", "Create"]));
            lines
        }
        Body::NewProject { name } => vec![
            field(shell, dialog, Stop::Text, "Name", entry(shell, dialog, Stop::Text, name, cols)),
            Pieces::new(),
            buttons(dialog, &["Cancel", "Create"]),
        ],
        Body::Form(form) => form::lines(shell, dialog, form, cols),
        Body::Secret { name, access, secret, shown, stored } => {
            let mut lines = text(Tone::Plain, &format!("Key {name} created ({access})."), cols);
            lines.push(Pieces::new());
            if *shown {
                // Broken by width alone, so that no character is lost at the end of a line.
                lines.extend(text(Tone::Text, &secret.0, cols));
                lines.push(Pieces::new().add(Tone::Dim, "v hide   y copy"));
            } else {
                let known: String = secret.0.chars().take(11).collect();
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

/// Returns the name and the id of the record that changes.
fn subject(shell: &Shell, change: &Change, cols: usize) -> Vec<Pieces> {
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

/// A named line of a form, marked where the focus is.
fn field(shell: &Shell, dialog: &Dialog, stop: Stop, name: &str, value: Pieces) -> Pieces {
    let mark = if dialog.focus == stop { shell.theme.glyphs.cursor } else { " " };
    Pieces::new().plain(format!("{mark} ")).add(Tone::Field, format!("{name:<8} ")).join(value)
}

/// The end of a line of text that is being typed, with a mark for the cursor.
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

/// A value that left and right change.
fn choice(dialog: &Dialog, stop: Stop, value: &str) -> Pieces {
    if dialog.focus == stop {
        Pieces::new().add(Tone::Selected, format!("< {value} >"))
    } else {
        Pieces::new().plain(value)
    }
}

/// Returns the required characters and the ones typed.
fn answer(shell: &Shell, ask: &str, given: &Input, cols: usize) -> Vec<Pieces> {
    let mut lines = text(Tone::Warn, ask, cols.saturating_sub(6));
    let typed = cut(given.text(), 5, &shell.theme.glyphs);
    let last = lines.pop().unwrap_or_default();
    lines.push(last.plain(typed).add(Tone::Selected, " "));
    lines
}

/// The buttons; the one that goes on is dimmed while it may not be pressed.
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
