//! Draws rejected input, and the reasons of the selected rejection.

use api::rejection::Rejection;
use ratatui::{buffer::Buffer, layout::Rect};

use crate::screen::manage::view::{instead, put_instead};
use crate::{
    screen::manage::state::Manage,
    shell::Shell,
    theme::{Glyphs, Tone},
    widgets::table::{Pieces, first_visible, packed, put, put_pane, rule},
};
use present::{
    format::{CLOCK_DATED, clock, count, moment, short_id},
    text::{clean, cut, fit, fit_right, wrap},
};

/// Width in columns of the SDK and its version.
const SDK_COLS: usize = 28;
/// Width in columns of the number of rejected items.
const COUNT_COLS: usize = 8;
/// Width in columns of the source.
const SOURCE_COLS: usize = 6;
/// Height of the list from which on the pane of the selected rejection is drawn below it.
const MIN_ROWS_WITH_PANE: u16 = 14;

/// Draws the rejections and the pane of the selected one, or a panel with the reason why there are none.
pub fn draw(manage: &Manage, shell: &Shell, buffer: &mut Buffer, area: Rect) {
    let rejections = &manage.rejections;
    let none = "Nothing was rejected in the last 7 days.";
    let loaded = rejections.loaded.then_some(rejections.items.len());
    if let Some(lines) = instead(shell, rejections.error.as_ref(), loaded, none) {
        return put_instead(shell, buffer, area, &lines);
    }
    let (theme, glyphs) = (&shell.theme, &shell.theme.glyphs);
    let cols = usize::from(area.width);
    let pane = if area.height >= MIN_ROWS_WITH_PANE { area.height / 2 } else { 0 };
    let list = Rect { height: area.height - pane, ..area };
    let head = cells(["TIME", "SOURCE", "SDK", "REJECTED", "FIRST REASON"], cols, glyphs);
    put(buffer, list, 0, &Pieces::new().add(Tone::Dim, "  ").join(head).line(theme, false));
    let rows = usize::from(list.height.saturating_sub(1));
    let top = first_visible(rejections.selected, rejections.items.len(), rows);
    for (row, (at, it)) in rejections.items.iter().enumerate().skip(top).take(rows).enumerate() {
        let selected = at == rejections.selected;
        let mark = if selected { glyphs.cursor } else { " " };
        let time = clock(shell.zone, it.last_at, shell.now);
        let reason = it.reasons.first().map_or(glyphs.none, |it| it.message.as_str());
        let texts = [time.as_str(), it.source.as_str(), &sdk(it, glyphs), &count(it.rejected), reason];
        let line = Pieces::new().plain(format!("{mark} ")).join(cells(texts, cols, glyphs));
        put(buffer, list, row + 1, &line.line(theme, selected));
    }
    if let Some(it) = manage.rejection().filter(|_| pane > 0) {
        let area = Rect { y: list.y + list.height, height: pane, ..area };
        let head = rule(&format!("rejection {}", short_id(it.id)), "", cols, theme);
        put_pane(buffer, area, theme, head, details(shell, it, cols));
    }
}

/// Returns the fields and the reasons of a rejection.
fn details(shell: &Shell, it: &Rejection, cols: usize) -> Vec<Pieces> {
    let glyphs = &shell.theme.glyphs;
    let project = shell.projects.get(it.project_id);
    let project = project.map_or_else(|| short_id(it.project_id), |it| it.name.clone());
    let mut fields = vec![
        ("received", moment(shell.zone, it.received_at, shell.now)),
        ("project", project),
        ("sdk", sdk(it, glyphs)),
        ("request", it.request_id.clone()),
    ];
    if it.requests > 1 {
        fields.push(("requests", count(it.requests)));
        fields.push(("last", moment(shell.zone, it.last_at, shell.now)));
    }
    let mut lines = packed(&fields, cols);
    for reason in &it.reasons {
        let place = reason.index.map_or_else(String::new, |index| format!("{index} "));
        let text = format!("{}: {}", reason.code, reason.message);
        for (at, part) in wrap(&clean(&text), cols.saturating_sub(10)).into_iter().enumerate() {
            let place = if at == 0 { place.as_str() } else { "" };
            lines.push(Pieces::new().add(Tone::Dim, fit_right(place, 8, glyphs)).add(Tone::Text, part));
        }
    }
    lines
}

/// Returns the SDK with its version.
fn sdk(it: &Rejection, glyphs: &Glyphs) -> String {
    match (&it.sdk, &it.sdk_version) {
        (Some(sdk), Some(version)) => format!("{sdk} {version}"),
        (Some(sdk), None) => sdk.clone(),
        (None, _) => glyphs.none.to_owned(),
    }
}

fn cells(cells: [&str; 5], cols: usize, glyphs: &Glyphs) -> Pieces {
    let [time, source, sdk, rejected, reason] = cells;
    let mut line = Pieces::new().add(Tone::Dim, format!("{} ", fit(time, CLOCK_DATED, glyphs)));
    if cols >= 100 {
        line = line.add(Tone::Dim, format!("{} ", fit(source, SOURCE_COLS, glyphs)));
    }
    if cols >= 76 {
        line = line.add(Tone::Field, format!("{} ", fit(sdk, SDK_COLS, glyphs)));
    }
    let line = line.plain(format!("{} ", fit_right(rejected, COUNT_COLS, glyphs)));
    let room = cols.saturating_sub(2 + line.width());
    line.plain(cut(reason, room, glyphs))
}
