//! Draws the selected webhook and the result of its last ping.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{body_lines, status_tone};
use crate::{
    keymap::Action,
    screen::webhooks::keys::{SHOW_PING, TEST_WEBHOOK, WEBHOOKS_SCOPE},
    screen::webhooks::state::{PingResult, Webhooks},
    shell::{Shell, notice},
    theme::Tone,
    widgets::table::{Pieces, packed, put_pane, rule},
};
use present::{
    format::{clock, short_id},
    text::{clean, wrap},
};

/// Draws the pane of the selected webhook.
pub fn draw(webhooks: &Webhooks, shell: &Shell, buffer: &mut Buffer, area: Rect) {
    let Some(it) = webhooks.current() else { return };
    let cols = usize::from(area.width);
    let key = |action: Action| shell.key(WEBHOOKS_SCOPE, action);
    let mut notes = Vec::new();
    if !shell.target.read_only {
        notes.push(format!("{} sends a ping", key(TEST_WEBHOOK)));
    }
    if webhooks.ping().is_some() {
        notes.push(format!("{} all", key(SHOW_PING)));
    }
    let note = notes.join(&format!(" {} ", shell.theme.glyphs.dot));
    let head = rule(&format!("test of {}", short_id(it.id)), &note, cols, &shell.theme);
    let events = it.events.iter().map(|event| event.as_str()).collect::<Vec<_>>().join(", ");
    let mut lines = Vec::new();
    if let Some(reason) = &it.disabled_reason {
        let text = format!("disabled by the server: {reason}");
        let wrapped = wrap(&clean(&text), cols.saturating_sub(4));
        lines.extend(wrapped.into_iter().map(|part| Pieces::new().plain("  ").add(Tone::Bad, part)));
    }
    lines.extend(packed(&[("url", it.url.clone()), ("events", events)], cols));
    let plain = |tone, text: String| vec![Pieces::new().plain("  ").add(tone, text)];
    lines.extend(match webhooks.ping() {
        _ if webhooks.is_testing() => {
            plain(Tone::Dim, format!("waiting for the receiver{}", shell.theme.glyphs.ellipsis))
        }
        Some(ping) => result_lines(shell, ping, cols),
        None => plain(Tone::Dim, "A ping is signed like an event and is not in the log.".to_owned()),
    });
    put_pane(buffer, area, &shell.theme, head, lines);
}

/// Returns the result of a ping: the status, the error and the first 4 KiB of the response.
pub fn result_lines(shell: &Shell, ping: &PingResult, cols: usize) -> Vec<Pieces> {
    let at = clock(shell.zone, ping.sent, shell.now);
    let start = Pieces::new().plain("  ").add(Tone::Field, "ping ").plain(format!("{at}   "));
    let response = match &ping.result {
        Ok(response) => response,
        Err(error) => {
            let mut lines = vec![start.add(Tone::Bad, "not sent")];
            let advice = notice::advice(shell, error).into_iter();
            let texts = std::iter::once(notice::describe(error)).chain(advice);
            let wrapped = texts.flat_map(|text| wrap(&clean(&text), cols.saturating_sub(6)));
            lines.extend(wrapped.map(|part| Pieces::new().plain("    ").add(Tone::Bad, part)));
            return lines;
        }
    };
    let tone = status_tone(response.status);
    let first = start.add(Tone::Field, "status ").add(tone, response.status.to_string());
    let first = if response.status == 0 { first.add(tone, "   no complete response") } else { first };
    let mut lines = vec![first];
    if let Some(error) = &response.error {
        let wrapped = wrap(&clean(error), cols.saturating_sub(6));
        lines.extend(wrapped.into_iter().map(|part| Pieces::new().plain("    ").add(Tone::Bad, part)));
    }
    if response.body.is_empty() {
        lines.push(Pieces::new().plain("    ").add(Tone::Dim, "(no body)"));
    }
    lines.extend(body_lines(&response.body, cols));
    lines
}
