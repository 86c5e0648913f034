//! Help and the log of problems, drawn over the screen.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::{
    keymap::key_label,
    screen::traces::keys::LIST_SCOPE,
    shell::{Overlay, Shell},
    theme::Tone,
    widgets::table::{Pieces, put},
};
use present::{
    format::moment,
    text::{clean, fit, wrap},
};

/// Width in columns of the keys of an action.
const KEY_COLS: usize = 16;
/// Width in columns of the help of an action.
const HELP_COLS: usize = 56;

/// Returns the number of lines of the overlay, for scrolling.
pub fn overlay_len(shell: &Shell) -> usize {
    lines(shell).len()
}

/// Draws the overlay, if one is open.
pub fn draw(shell: &Shell, buffer: &mut Buffer, area: Rect) {
    let top = match &shell.overlay {
        Some(Overlay::Help { top, .. } | Overlay::Problems { top }) => *top,
        _ => return,
    };
    for (at, pieces) in lines(shell).into_iter().skip(top).enumerate() {
        put(buffer, area, at, &pieces.cut(usize::from(area.width), &shell.theme).line(&shell.theme, false));
    }
}

fn lines(shell: &Shell) -> Vec<Pieces> {
    match &shell.overlay {
        Some(Overlay::Help { words, .. }) => help(shell, &words.to_lowercase()),
        Some(Overlay::Problems { .. }) => problems(shell),
        _ => Vec::new(),
    }
}

fn help(shell: &Shell, words: &str) -> Vec<Pieces> {
    let glyphs = &shell.theme.glyphs;
    let scope = shell.scope;
    let mut lines = vec![
        Pieces::new()
            .plain(" ")
            .add(Tone::Strong, scope.title)
            .add(Tone::Dim, "   f narrows down, esc closes"),
        Pieces::new(),
    ];
    for row in shell.keymap.of_scope(scope) {
        let binding = row.binding;
        if shell.target.read_only && binding.role.is_some() {
            continue;
        }
        let keys: Vec<String> = row.keys.iter().map(|key| key_label(key, glyphs)).collect();
        let keys = keys.join(", ");
        let found =
            [binding.help, binding.name, &keys].iter().any(|text| text.to_lowercase().contains(words));
        if !words.is_empty() && !found {
            continue;
        }
        let key = Pieces::new().plain("  ").add(Tone::Field, fit(&keys, KEY_COLS, glyphs));
        // A configuration binds a key by the name of its action, so a shortened name is useless.
        if shell.size.0 >= 100 {
            let name = format!("  {}", binding.name);
            lines.push(key.plain(fit(binding.help, HELP_COLS, glyphs)).add(Tone::Dim, name));
            continue;
        }
        let mut first = Some(key);
        let room = usize::from(shell.size.0).saturating_sub(KEY_COLS + 3).min(HELP_COLS);
        for part in wrap(binding.help, room) {
            let start = first.take().unwrap_or_else(|| Pieces::new().plain(" ".repeat(KEY_COLS + 2)));
            lines.push(start.plain(part));
        }
    }
    if words.is_empty() {
        lines.push(Pieces::new());
        if scope == LIST_SCOPE {
            lines.extend(marks(shell));
        }
        lines.push(
            Pieces::new().plain("  ").add(Tone::Dim, "While typing: enter uses the text, esc drops it,"),
        );
        lines.push(
            Pieces::new()
                .plain("  ")
                .add(Tone::Dim, "tab completes, ctrl-u and ctrl-w delete, ctrl-c clears."),
        );
    }
    lines
}

/// Explains the marks of the rows and the bar at the top.
fn marks(shell: &Shell) -> Vec<Pieces> {
    let glyphs = &shell.theme.glyphs;
    let mark = |mark: &str, tone, meaning: &str| {
        Pieces::new().plain("  ").add(tone, fit(mark, 16, glyphs)).plain(meaning.to_owned())
    };
    vec![
        mark(glyphs.failed, Tone::Bad, "failed"),
        mark(glyphs.slow, Tone::Warn, "slower than 19 of 20 loaded traces"),
        mark(glyphs.healthy, Tone::Dim, "neither"),
        mark("STALE since", Tone::Bad, "what is shown is out of date; the request is repeated"),
        Pieces::new(),
    ]
}

fn problems(shell: &Shell) -> Vec<Pieces> {
    let mut lines = vec![
        Pieces::new().plain(" ").add(Tone::Strong, "Problems").add(Tone::Dim, "   newest first, esc closes"),
        Pieces::new(),
    ];
    if shell.problems.is_empty() {
        lines.push(Pieces::new().plain("  none since the console was started"));
    }
    let cols = usize::from(shell.size.0).saturating_sub(4);
    for problem in shell.problems.iter().rev() {
        let text = format!("{}  {}", moment(shell.zone, problem.at, shell.now), problem.text);
        for (at, part) in wrap(&clean(&text), cols).into_iter().enumerate() {
            lines.push(Pieces::new().plain(if at == 0 { "  " } else { "    " }).plain(part));
        }
    }
    lines
}
