//! Draws the deliveries of a webhook, and the attempts of the selected one.

use api::webhook::{DeliveryAttempt, DeliveryStatus, WebhookDelivery};
use ratatui::{buffer::Buffer, layout::Rect};

use super::{body_lines, status_tone};
use crate::{
    keymap::Action,
    screen::webhooks::keys::{DELIVERIES_SCOPE, REDELIVER_EVENT, WEBHOOKS_SCOPE},
    screen::webhooks::state::{Webhooks, WebhooksSection},
    shell::{Shell, notice},
    theme::{Glyphs, Tone},
    widgets::table::{Pieces, first_visible, packed, put, put_pane, put_panel, rule},
};
use present::{
    format::{CLOCK_DATED, clock, elapsed, latency, moment, short_id},
    text::{clean, cut, fit, fit_right, wrap},
};

/// Width in columns of the longest event that the service sends today.
const EVENT_COLS: usize = 17;
/// Width in columns of an HTTP status and of an attempt's number.
const NUMBER_COLS: usize = 4;
/// Width in columns of a duration.
const LATENCY_COLS: usize = 7;
/// Width in columns of the end of an id.
const ID_COLS: usize = 8;

/// Draws the deliveries, or why there are none.
pub fn draw(webhooks: &Webhooks, shell: &Shell, buffer: &mut Buffer, area: Rect) {
    let Some(webhook) = webhooks.current() else { return };
    let theme = &shell.theme;
    let cols = usize::from(area.width);
    let has_keys = webhooks.section == WebhooksSection::Deliveries;
    let key = |action| shell.key(DELIVERIES_SCOPE, action);
    let note = match (has_keys, shell.target.read_only) {
        (false, _) => format!("{} opens", shell.key(WEBHOOKS_SCOPE, Action::Open)),
        (true, true) => format!("{} attempts", key(Action::Open)),
        (true, false) => {
            format!("{} attempts {} {} again", key(Action::Open), theme.glyphs.dot, key(REDELIVER_EVENT))
        }
    };
    let title = format!("deliveries of {}", short_id(webhook.id));
    put(buffer, area, 0, &rule(&title, &note, cols, theme).line(theme, false));
    let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let rows = &webhooks.log;
    if rows.items.is_empty() {
        let lines = match (&rows.error, rows.loaded) {
            (Some(error), _) => notice::failure(shell, error, rows.next),
            (None, false) => vec![(Tone::Dim, format!("loading{}", theme.glyphs.ellipsis))],
            (None, true) => vec![(Tone::Dim, "No event was sent yet.".to_owned())],
        };
        return put_panel(buffer, below, theme, &lines);
    }
    let head = cells(
        ["TIME", "", "EVENT", "HTTP", "TRY", "TOOK", "DELIVERY", "RESULT"],
        Tone::Dim,
        cols,
        &theme.glyphs,
    );
    put(
        buffer,
        below,
        0,
        &Pieces::new().plain("  ").join(head.all(Tone::Dim)).cut(cols, theme).line(theme, false),
    );
    let visible = usize::from(below.height.saturating_sub(1));
    let top = first_visible(rows.selected, rows.items.len(), visible);
    let is_faded = rows.error.is_some() || shell.failure().is_some();
    for (at, it) in rows.items.iter().enumerate().skip(top).take(visible) {
        let is_selected = at == rows.selected;
        let cursor = if is_selected { theme.glyphs.cursor } else { " " };
        let line = row(shell, it, cols);
        let line = if is_faded { line.all(Tone::Dim) } else { line };
        let line = Pieces::new().plain(format!("{cursor} ")).join(line).cut(cols, theme);
        put(buffer, below, 1 + at - top, &line.line(theme, is_selected && has_keys));
    }
}

fn row(shell: &Shell, it: &WebhookDelivery, cols: usize) -> Pieces {
    let glyphs = &shell.theme.glyphs;
    let (mark, tone) = match it.status {
        DeliveryStatus::Delivered => (glyphs.ok, Tone::Good),
        DeliveryStatus::Pending => (glyphs.unfinished, Tone::Warn),
        DeliveryStatus::Dead => (glyphs.failed, Tone::Bad),
        DeliveryStatus::Cancelled => (glyphs.offline, Tone::Dim),
    };
    let last = it.attempts.last();
    let number = |value: Option<String>| value.unwrap_or_else(|| glyphs.none.to_owned());
    let status = number(last.map(|attempt| attempt.status.to_string()));
    let attempt = number(last.map(|attempt| attempt.attempt.to_string()));
    let took = number(last.map(|attempt| latency(attempt.latency_ms)));
    let time = clock(shell.zone, it.created_at, shell.now);
    let result = result_text(shell, it);
    cells(
        [&time, mark, it.event_type.as_str(), &status, &attempt, &took, &short_id(it.id), &result],
        tone,
        cols,
        glyphs,
    )
}

fn cells(cells: [&str; 8], tone: Tone, cols: usize, glyphs: &Glyphs) -> Pieces {
    let [time, mark, event, status, attempt, took, id, result] = cells;
    let mut line = Pieces::new()
        .add(Tone::Dim, format!("{} ", fit(time, CLOCK_DATED, glyphs)))
        .add(tone, format!("{} ", fit(mark, glyphs.mark_width(), glyphs)))
        .plain(format!("{} ", fit(event, EVENT_COLS, glyphs)))
        .add(tone, format!("{} ", fit_right(status, NUMBER_COLS, glyphs)))
        .plain(format!("{} ", fit_right(attempt, NUMBER_COLS, glyphs)));
    if cols >= 76 {
        line = line.plain(format!("{} ", fit_right(took, LATENCY_COLS, glyphs)));
    }
    if cols >= 110 {
        line = line.add(Tone::Dim, format!("{} ", fit(id, ID_COLS, glyphs)));
    }
    let room = cols.saturating_sub(2 + line.width());
    line.plain(cut(result, room, glyphs))
}

/// Returns the result: the time until the next attempt, the error, or the first line of the response.
fn result_text(shell: &Shell, it: &WebhookDelivery) -> String {
    let last = it.attempts.last();
    let error = last.and_then(|attempt| attempt.error.as_deref());
    let body = last.and_then(|attempt| attempt.response_body.as_deref()).filter(|body| !body.is_empty());
    let next = it.next_attempt_at.map(|at| match shell.seconds_until(at) {
        0 => "next try now".to_owned(),
        seconds @ 1..60 => format!("next try in {seconds}s"),
        seconds => format!("next try in {}", elapsed(seconds)),
    });
    let words = match it.status {
        DeliveryStatus::Delivered => return body.unwrap_or("delivered").to_owned(),
        DeliveryStatus::Pending => next.unwrap_or_else(|| "waiting".to_owned()),
        DeliveryStatus::Dead => "given up".to_owned(),
        DeliveryStatus::Cancelled => "cancelled".to_owned(),
    };
    match error.or(body) {
        Some(reason) => format!("{words}: {reason}"),
        None => words,
    }
}

/// Draws the selected delivery.
pub fn pane(webhooks: &Webhooks, shell: &Shell, buffer: &mut Buffer, area: Rect) {
    let Some(it) = webhooks.delivery() else { return };
    let cols = usize::from(area.width);
    let open = shell.key(DELIVERIES_SCOPE, Action::Open);
    let note =
        if webhooks.section == WebhooksSection::Deliveries { format!("{open} all") } else { String::new() };
    let head = rule(&format!("delivery {}", short_id(it.id)), &note, cols, &shell.theme);
    put_pane(buffer, area, &shell.theme, head, lines(shell, it, cols, false));
}

/// Returns the facts of a delivery and its attempts, newest first. `whole` adds the response bodies of all attempts.
pub fn lines(shell: &Shell, it: &WebhookDelivery, cols: usize, whole: bool) -> Vec<Pieces> {
    let mut fields = vec![
        ("event", it.event_type.to_string()),
        ("status", it.status.to_string()),
        ("created", moment(shell.zone, it.created_at, shell.now)),
    ];
    if let Some(at) = it.next_attempt_at {
        fields.push(("next try", moment(shell.zone, at, shell.now)));
    }
    if let Some(at) = it.completed_at {
        fields.push(("ended", moment(shell.zone, at, shell.now)));
    }
    if whole {
        fields.push(("id", it.id.to_string()));
        fields.push(("event id", it.event_id.to_string()));
    }
    let mut lines = packed(&fields, cols);
    if it.attempts.is_empty() {
        lines.push(Pieces::new().plain("  ").add(Tone::Dim, "no attempt yet"));
    }
    for (at, attempt) in it.attempts.iter().rev().enumerate() {
        lines.extend(attempt_lines(shell, attempt, cols, whole || at == 0));
    }
    lines
}

fn attempt_lines(shell: &Shell, it: &DeliveryAttempt, cols: usize, with_body: bool) -> Vec<Pieces> {
    let tone = status_tone(it.status);
    let first = Pieces::new()
        .plain("  ")
        .add(Tone::Field, format!("try {:<3}", it.attempt))
        .add(Tone::Dim, format!(" {}  ", moment(shell.zone, it.started_at, shell.now)))
        .add(tone, format!("{:>3}", it.status))
        .plain(format!("  {}", latency(it.latency_ms)));
    let mut lines = vec![first];
    if let Some(error) = &it.error {
        let wrapped = wrap(&clean(error), cols.saturating_sub(6));
        lines.extend(wrapped.into_iter().map(|part| Pieces::new().plain("    ").add(Tone::Bad, part)));
    }
    if let Some(body) = it.response_body.as_ref().filter(|_| with_body) {
        lines.extend(body_lines(body, cols));
    }
    lines
}
