//! Draws the API keys.

use api::key::ApiKey;
use ratatui::{buffer::Buffer, layout::Rect};

use crate::screen::manage::view::{day, instead, put_instead};
use crate::{
    screen::manage::state::{Manage, Section},
    shell::Shell,
    shell::notice::session_needed,
    theme::Tone,
    widgets::table::{Pieces, first_visible, put},
};
use present::{format::short_id, text::fit};

/// Width in columns of the shown prefix of a key; all prefixes have the same length.
const PREFIX_COLS: usize = 11;
/// Width in columns of the longest description of a key's access.
const ACCESS_COLS: usize = 12;
/// Width in columns of a date.
const DAY_COLS: usize = 10;
/// Width in columns of the end of an id.
const ID_COLS: usize = 8;
/// Width in columns of a project's name.
const PROJECT_COLS: usize = 16;

/// Returns the access of a key as text.
pub fn access(key: &ApiKey) -> &'static str {
    if key.scopes.is_empty() { "full access" } else { "query (read)" }
}

/// Draws the keys, or a panel with the reason why there are none.
pub fn draw(manage: &Manage, shell: &Shell, buffer: &mut Buffer, area: Rect) {
    let lines = if shell.has_session() {
        instead(
            shell,
            manage.keys.error.as_ref(),
            manage.keys.loaded.then_some(manage.keys.items.len()),
            "No keys. c creates one; its secret is shown once.",
        )
    } else {
        Some(session_needed(shell, "Managing keys needs a session token; there is only an API key."))
    };
    if let Some(lines) = lines {
        return put_instead(shell, buffer, area, &lines);
    }
    let theme = &shell.theme;
    let columns = KeyColumns::of(usize::from(area.width));
    let head = columns.line(["NAME", "PREFIX", "SCOPES", "PROJECT", "CREATED", "EXPIRES", "ID"], shell);
    put(buffer, area, 0, &Pieces::new().add(Tone::Dim, format!("  {head}")).line(theme, false));
    let rows = usize::from(area.height.saturating_sub(1));
    let top = first_visible(manage.keys.selected, manage.keys.items.len(), rows);
    for (row, (at, key)) in manage.keys.items.iter().enumerate().skip(top).take(rows).enumerate() {
        let selected = at == manage.keys.selected && manage.section == Section::Keys;
        let mark = if selected { theme.glyphs.cursor } else { " " };
        let ends = key.expires_at.filter(|at| *at <= shell.now);
        let text =
            format!("{mark} {}", columns.line(cells(shell, key).each_ref().map(String::as_str), shell));
        // An expired key is refused, but stays in the list until it is revoked.
        let tone = if ends.is_some() { Tone::Dim } else { Tone::Plain };
        put(buffer, area, row + 1, &Pieces::new().add(tone, text).line(theme, selected));
    }
}

fn cells(shell: &Shell, key: &ApiKey) -> [String; 7] {
    let project =
        shell.projects.get(key.project_id).map_or_else(|| short_id(key.project_id), |it| it.name.clone());
    let expires = match key.expires_at {
        None => "never".to_owned(),
        Some(at) if at <= shell.now => "expired".to_owned(),
        Some(at) => day(shell, at),
    };
    [
        key.name.clone(),
        key.prefix.clone(),
        access(key).to_owned(),
        project,
        day(shell, key.created_at),
        expires,
        short_id(key.id),
    ]
}

/// Widths of the columns, in the order of the cells; 0 leaves a column out.
struct KeyColumns([usize; 7]);

impl KeyColumns {
    fn of(cols: usize) -> Self {
        let at_least = |least: usize, width: usize| if cols >= least { width } else { 0 };
        let rest = [
            PREFIX_COLS,
            at_least(56, ACCESS_COLS),
            at_least(100, PROJECT_COLS),
            at_least(66, DAY_COLS),
            at_least(110, DAY_COLS),
            at_least(76, ID_COLS),
        ];
        let used: usize = rest.iter().filter(|width| **width > 0).map(|width| width + 1).sum();
        let name = cols.saturating_sub(2 + used).max(4);
        let [prefix, access, project, created, expires, id] = rest;
        Self([name, prefix, access, project, created, expires, id])
    }

    fn line(&self, cells: [&str; 7], shell: &Shell) -> String {
        let shown = self.0.iter().zip(cells).filter(|(width, _)| **width > 0);
        let fitted: Vec<String> = shown.map(|(width, cell)| fit(cell, *width, &shell.theme.glyphs)).collect();
        fitted.join(" ").trim_end().to_owned()
    }
}
