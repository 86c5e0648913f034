//! Draws Webhooks: the webhooks, the test of the selected one, and its deliveries.

mod log;
mod test;

use api::webhook::Webhook;
use ratatui::{buffer::Buffer, layout::Rect};

use crate::{
    keymap::Action,
    screen::webhooks::keys::{NEW_WEBHOOK, WEBHOOKS_SCOPE},
    screen::webhooks::state::{Webhooks, WebhooksSection, ZoomedText},
    screen::webhooks::update::layout,
    shell::{
        ScreenView, Shell,
        freshness::{Cause, Stale},
        notice,
    },
    theme::{Glyphs, Tone},
    widgets::table::{Pieces, first_visible, put, put_panel, rule},
};
use present::{
    format::{CLOCK_DATED, capital, clock, short_id, thousands},
    text::{clean, fit, wrap},
};

/// Width in columns of the end of an id.
const ID_COLS: usize = 8;
/// Maximum number of bytes of a response body that are laid out.
const MAX_SHOWN_BYTES: usize = 8 * 1_024;

impl ScreenView for Webhooks {
    fn has_records(&self, _shell: &Shell) -> bool {
        self.list.loaded
    }

    fn draw(&self, shell: &Shell, buffer: &mut Buffer, area: Rect) {
        if let Some((text, top)) = self.zoom {
            return zoomed(self, shell, buffer, area, text, top);
        }
        let parts = layout(self, shell);
        if let Some(lines) = instead(self, shell) {
            return put_panel(buffer, area, &shell.theme, &lines);
        }
        if parts.list.height > 0 {
            list(self, shell, buffer, parts.list);
        }
        if parts.test.height > 0 {
            test::draw(self, shell, buffer, parts.test);
        }
        if parts.log.height > 0 {
            log::draw(self, shell, buffer, parts.log);
        }
        if parts.delivery.height > 0 {
            log::pane(self, shell, buffer, parts.delivery);
        }
    }

    fn line(&self, shell: &Shell, cols: usize) -> Pieces {
        let theme = &shell.theme;
        let line = match (self.section, self.current()) {
            (WebhooksSection::Deliveries, Some(it)) => {
                let line = Pieces::new().add(Tone::Dim, format!(" {} Webhooks / ", theme.glyphs.back));
                line.plain(clean(&it.url).into_owned())
            }
            _ => Pieces::new().add(Tone::Dim, " Webhooks of the tenant, in all projects"),
        };
        let end = shell
            .me
            .as_ref()
            .map(|me| format!("{} {} {}", me.role, theme.glyphs.dot, capital(me.tenant.plan.as_str())));
        line.with_end(Pieces::new().add(Tone::Dim, end.unwrap_or_default()), cols, theme)
    }

    fn status(&self, shell: &Shell) -> String {
        if !self.list.loaded {
            return String::new();
        }
        let count =
            |n: usize, word: &str| format!("{} {word}{}", thousands(n), if n == 1 { "" } else { "s" });
        let mut parts = vec![count(self.list.items.len(), "webhook")];
        if self.list.error.is_some() {
            parts.push("not up to date".to_owned());
        }
        let stopped = self.list.items.iter().filter(|it| it.disabled_reason.is_some()).count();
        if stopped > 0 {
            parts.push(format!("{} disabled by the server", thousands(stopped)));
        }
        if self.log.loaded {
            let more = if self.log.older.is_some() { " loaded, more below" } else { "" };
            let word = if self.log.items.len() == 1 { "delivery" } else { "deliveries" };
            parts.push(format!("{} {word}{more}", thousands(self.log.items.len())));
        }
        parts.join(&format!(" {} ", shell.theme.glyphs.dot))
    }

    fn stale(&self) -> Option<Stale<'_>> {
        let cause = Cause::Failure(self.list.error.as_ref()?);
        Some(Stale { since: self.heard, cause, next: self.next })
    }

    fn footer_word(&self, action: Action) -> Option<&'static str> {
        match (action, self.section, self.zoom) {
            (Action::Open, _, Some(_)) => Some("back"),
            (Action::Open, WebhooksSection::List, None) => Some("log"),
            (Action::Open, WebhooksSection::Deliveries, None) => Some("attempts"),
            _ => None,
        }
    }
}

/// Returns the panel without webhooks; none if there are webhooks to draw.
fn instead(webhooks: &Webhooks, shell: &Shell) -> Option<Vec<(Tone, String)>> {
    let list = &webhooks.list;
    match (&list.error, list.loaded) {
        _ if !list.items.is_empty() => None,
        (Some(error), _) => Some(notice::failure(shell, error, webhooks.next)),
        (None, false) => Some(vec![(Tone::Dim, format!("loading{}", shell.theme.glyphs.ellipsis))]),
        (None, true) => {
            let mut lines = vec![
                (Tone::Strong, "No webhooks.".to_owned()),
                (Tone::Plain, "A webhook receives a signed request when an event occurs.".to_owned()),
                (Tone::Plain, String::new()),
            ];
            if !shell.target.read_only {
                let new = shell.key(WEBHOOKS_SCOPE, NEW_WEBHOOK);
                lines.push((Tone::Plain, format!("{new}  creates one")));
            }
            lines.push((Tone::Field, "loupe webhooks listen    receives events on this machine".to_owned()));
            Some(lines)
        }
    }
}

fn list(webhooks: &Webhooks, shell: &Shell, buffer: &mut Buffer, area: Rect) {
    let theme = &shell.theme;
    let cols = usize::from(area.width);
    let head = cells(["", "ID", "URL", "EVENTS", "LAST"], Tone::Dim, cols, &theme.glyphs);
    put(
        buffer,
        area,
        0,
        &Pieces::new().plain("  ").join(head.all(Tone::Dim)).cut(cols, theme).line(theme, false),
    );
    let rows = usize::from(area.height.saturating_sub(1));
    let list = &webhooks.list;
    let top = first_visible(list.selected, list.items.len(), rows);
    let is_faded = list.error.is_some() || shell.failure().is_some();
    for (at, it) in list.items.iter().enumerate().skip(top).take(rows) {
        let is_selected = at == list.selected;
        let has_keys = is_selected && webhooks.section == WebhooksSection::List;
        let cursor = if is_selected { theme.glyphs.cursor } else { " " };
        let line = row(shell, it, cols);
        let line = if is_faded { line.all(Tone::Dim) } else { line };
        let line = Pieces::new().plain(format!("{cursor} ")).join(line).cut(cols, theme);
        put(buffer, area, 1 + at - top, &line.line(theme, has_keys));
    }
}

fn row(shell: &Shell, it: &Webhook, cols: usize) -> Pieces {
    let glyphs = &shell.theme.glyphs;
    let (mark, tone) = match (it.enabled, &it.disabled_reason) {
        (true, _) => (glyphs.live, Tone::Good),
        (false, Some(_)) => (glyphs.bad, Tone::Bad),
        (false, None) => (glyphs.offline, Tone::Dim),
    };
    let first = it.events.first().map_or(glyphs.none, |event| event.as_str());
    let events = match it.events.len() {
        0 | 1 => first.to_owned(),
        count => format!("{first} +{}", count - 1),
    };
    let last = match (it.enabled, it.last_delivery_at) {
        (false, _) => "disabled".to_owned(),
        (true, Some(at)) => clock(shell.zone, at, shell.now),
        (true, None) => "never".to_owned(),
    };
    cells([mark, &short_id(it.id), &it.url, &events, &last], tone, cols, glyphs)
}

fn cells(cells: [&str; 5], tone: Tone, cols: usize, glyphs: &Glyphs) -> Pieces {
    let [mark, id, url, events, last] = cells;
    let (id_cols, events_cols) = match cols {
        110.. => (ID_COLS, 36),
        76.. => (ID_COLS, 20),
        _ => (0, 0),
    };
    let gap = |width: usize| if width > 0 { width + 1 } else { 0 };
    let used = 2 + 3 + gap(id_cols) + gap(events_cols) + CLOCK_DATED + 1;
    let mut line = Pieces::new().add(tone, format!("{} ", fit(mark, 2, glyphs)));
    if id_cols > 0 {
        line = line.add(Tone::Dim, format!("{} ", fit(id, id_cols, glyphs)));
    }
    line = line.plain(format!("{} ", fit(url, cols.saturating_sub(used).max(8), glyphs)));
    if events_cols > 0 {
        line = line.add(Tone::Dim, format!("{} ", fit(events, events_cols, glyphs)));
    }
    line.add(Tone::Dim, fit(last, CLOCK_DATED, glyphs))
}

/// Draws a text over the whole body.
fn zoomed(webhooks: &Webhooks, shell: &Shell, buffer: &mut Buffer, area: Rect, text: ZoomedText, top: usize) {
    let (theme, cols) = (&shell.theme, usize::from(area.width));
    let (title, lines) = zoomed_lines(webhooks, shell, text, cols);
    let back = format!("{} back", shell.key(WEBHOOKS_SCOPE, Action::Back));
    put(buffer, area, 0, &rule(&title, &back, cols, theme).line(theme, false));
    let room = usize::from(area.height.saturating_sub(1));
    let top = top.min(lines.len().saturating_sub(room));
    for (at, line) in lines.into_iter().skip(top).take(room).enumerate() {
        put(buffer, area, 1 + at, &line.cut(cols, theme).line(theme, false));
    }
}

fn zoomed_lines(webhooks: &Webhooks, shell: &Shell, text: ZoomedText, cols: usize) -> (String, Vec<Pieces>) {
    match text {
        ZoomedText::Ping(id) => {
            let result = webhooks.pings.get(&id).map(|ping| test::result_lines(shell, ping, cols));
            (format!("last ping of {}", short_id(id)), result.unwrap_or_default())
        }
        ZoomedText::Delivery(id) => {
            let delivery = webhooks.log.items.iter().find(|it| it.id == id);
            let lines = delivery.map(|it| log::lines(shell, it, cols, true));
            (format!("delivery {}", short_id(id)), lines.unwrap_or_default())
        }
    }
}

/// Returns the number of lines of the text that fills the body, for scrolling.
pub fn zoomed_len(webhooks: &Webhooks, shell: &Shell) -> usize {
    let cols = usize::from(crate::layout::frame(shell.size).body.width);
    webhooks.zoom.map_or(0, |(text, _)| zoomed_lines(webhooks, shell, text, cols).1.len())
}

/// Returns the lines of a response body, wrapped.
fn body_lines(body: &str, cols: usize) -> Vec<Pieces> {
    let body = &body[..body.floor_char_boundary(MAX_SHOWN_BYTES)];
    let wrapped = body.lines().flat_map(|line| wrap(&clean(line), cols.saturating_sub(6)));
    wrapped.map(|part| Pieces::new().plain("    ").add(Tone::Text, part)).collect()
}

/// Returns the tone of an HTTP status: 0 and statuses outside 200 to 299 are failures.
const fn status_tone(status: u16) -> Tone {
    if matches!(status, 200..=299) { Tone::Good } else { Tone::Bad }
}
