//! Draws the projects.

use api::project::{Project, ProjectStatus};
use ratatui::{buffer::Buffer, layout::Rect};

use crate::screen::manage::view::{instead, put_instead};
use crate::{
    screen::manage::state::{Manage, Section},
    shell::Shell,
    theme::Tone,
    widgets::table::{Pieces, first_visible, put},
};
use present::{
    format::short_id,
    text::{fit, fit_right},
};

/// Width in columns of a status such as `archived 30 Nov 2025`.
const STATE_COLS: usize = 20;
const AUTOSHIP_COLS: usize = 8;
/// Width in columns of the retention.
const RETENTION_COLS: usize = 9;
const ID_COLS: usize = 8;

/// Draws the projects, or a panel with the reason why there are none.
pub fn draw(manage: &Manage, shell: &Shell, buffer: &mut Buffer, area: Rect) {
    let projects = &shell.projects;
    let none = "No projects. c creates one; so does the first trace that names one.";
    if let Some(lines) =
        instead(shell, projects.error.as_ref(), projects.loaded.then_some(projects.items.len()), none)
    {
        return put_instead(shell, buffer, area, &lines);
    }
    let (theme, glyphs) = (&shell.theme, &shell.theme.glyphs);
    let cols = usize::from(area.width);
    let (kept, id) = (if cols >= 76 { RETENTION_COLS } else { 0 }, if cols >= 100 { ID_COLS } else { 0 });
    let fixed = 4
        + STATE_COLS
        + AUTOSHIP_COLS
        + 2
        + if kept > 0 { kept + 1 } else { 0 }
        + if id > 0 { id + 1 } else { 0 };
    // The remark after the columns needs room as well.
    let name = cols.saturating_sub(fixed + if cols >= 76 { 22 } else { 2 }).clamp(8, 40);
    let mut head =
        format!("    {} {} {}", fit("PROJECT", name, glyphs), fit("STATE", STATE_COLS, glyphs), "AUTOSHIP");
    if kept > 0 {
        head.push_str(&format!(" {}", fit_right("RETENTION", kept, glyphs)));
    }
    if id > 0 {
        head.push_str(&format!(" {}", fit("ID", id, glyphs)));
    }
    put(buffer, area, 0, &Pieces::new().add(Tone::Dim, head).cut(cols, theme).line(theme, false));
    let rows = usize::from(area.height.saturating_sub(1));
    let top = first_visible(shell.projects.selected, shell.projects.shown_len(), rows);
    for (row, (at, project)) in shell.projects.shown().enumerate().skip(top).take(rows).enumerate() {
        let selected = at == shell.projects.selected && manage.section == Section::Projects;
        let mark = if selected { glyphs.cursor } else { " " };
        let archived = project.status == ProjectStatus::Archived;
        let (sign, tone) = if archived { (glyphs.archived, Tone::Dim) } else { (glyphs.live, Tone::Good) };
        let mut line = Pieces::new()
            .plain(format!("{mark} "))
            .add(tone, format!("{sign} "))
            .plain(format!("{} ", fit(&project.name, name, glyphs)))
            .add(
                if archived { Tone::Warn } else { Tone::Plain },
                fit(&status(shell, project), STATE_COLS, glyphs),
            )
            .plain(format!(" {}", fit(autoship(project, glyphs.none), AUTOSHIP_COLS, glyphs)));
        if kept > 0 {
            line = line.plain(format!(" {}", fit_right(&retention(project), kept, glyphs)));
        }
        if id > 0 {
            line = line.add(Tone::Dim, format!(" {}", short_id(project.id)));
        }
        line = line.join(remark(shell, project, cols));
        put(buffer, area, row + 1, &line.cut(cols, theme).line(theme, selected));
    }
}

fn status(shell: &Shell, project: &Project) -> String {
    match (project.status, project.archived_at) {
        (ProjectStatus::Active, _) => "active".to_owned(),
        (ProjectStatus::Archived, Some(at)) => format!("archived {}", shell.zone.of(at).format("%-d %b %Y")),
        (ProjectStatus::Archived, None) => "archived".to_owned(),
    }
}

fn autoship(project: &Project, none: &'static str) -> &'static str {
    match (project.status, project.prompt_autoship_enabled) {
        (ProjectStatus::Archived, _) => none,
        (ProjectStatus::Active, true) => "on",
        (ProjectStatus::Active, false) => "off",
    }
}

fn retention(project: &Project) -> String {
    project.retention_days.map_or_else(|| "all".to_owned(), |days| format!("{days} d"))
}

fn remark(shell: &Shell, project: &Project, cols: usize) -> Pieces {
    let mut line = Pieces::new();
    let roomy = cols >= 76;
    if shell.project.as_ref().is_some_and(|it| it.id == project.id) {
        let word = if roomy { " current" } else { "" };
        line = line.add(Tone::Strong, format!(" {}{word}", shell.theme.glyphs.here));
    }
    if roomy && project.status == ProjectStatus::Archived {
        line = line.add(Tone::Dim, " ingest returns 403");
    }
    line
}
