//! The plan: what it allows, and what was used of it.

use api::tenant::Me;
use ratatui::{buffer::Buffer, layout::Rect};

use crate::{
    format::{capital, elapsed, thousands},
    state::{Link, State},
    text::{clean, fit},
    theme::Tone,
    widgets::table::{Pieces, put},
};

/// A limit that no one reaches stands for none in the headers.
pub const UNLIMITED: u64 = 1_000_000_000;
/// Columns of a line's name.
const NAME: usize = 22;
/// Columns of a bar that shows how much of a limit is used, and where there is little room.
const BAR: usize = 20;
const SHORT_BAR: usize = 8;

/// Number of lines.
pub fn len(state: &State) -> usize {
    lines(state).len()
}

/// Draws the plan.
pub fn draw(state: &State, buffer: &mut Buffer, area: Rect) {
    for (row, line) in lines(state).into_iter().enumerate() {
        let line = line.cut(usize::from(area.width), &state.theme);
        put(buffer, area, row, &line.line(&state.theme, false));
    }
}

fn lines(state: &State) -> Vec<Pieces> {
    let Some(me) = &state.me else {
        return vec![Pieces::new().add(Tone::Dim, format!("  loading{}", state.theme.glyphs.ellipsis))];
    };
    let wide = state.size.0 >= 100;
    let plan = Pieces::new().add(Tone::Strong, capital(me.tenant.plan.as_str()));
    let tenant = Pieces::new().plain(clean(&me.tenant.name).into_owned());
    let role = Pieces::new().plain(format!("{}{}", me.role, ends(state, me)));
    let credential = state.target.credential.clone().unwrap_or_default();
    let credential = Pieces::new().plain(clean(&credential).into_owned());
    let rate = rate(state);
    let mut lines =
        pairs(state, wide, [("plan", plan), ("tenant", tenant), ("role", role), ("reads with", credential)]);
    lines.push(named(state, "rate limit", rate));
    lines.push(named(state, "this console", Pieces::new().plain(how(state))));
    let month = &me.usage.month;
    let used = [
        (format!("traces in {month}"), me.usage.traces, me.limits.traces_per_month),
        (format!("judge calls in {month}"), me.usage.llm_evaluations, me.limits.llm_evaluations_per_month),
        ("members".to_owned(), me.usage.members, me.limits.members),
    ];
    for (name, used, limit) in used {
        lines.push(named(state, &name, usage(state, used, limit)));
    }
    lines.extend(per_minute(state, me));
    lines
}

/// Named values, two to a line where there is room.
fn pairs<const N: usize>(state: &State, wide: bool, values: [(&str, Pieces); N]) -> Vec<Pieces> {
    let mut lines: Vec<Pieces> = Vec::new();
    for (at, (name, value)) in values.into_iter().enumerate() {
        let line = named(state, name, value);
        match lines.pop() {
            Some(left) if wide && at % 2 == 1 => {
                let half = usize::from(state.size.0) / 2;
                let left = left.cut(half.saturating_sub(1), &state.theme);
                let gap = half.saturating_sub(left.width());
                lines.push(left.plain(" ".repeat(gap)).join(line));
            }
            Some(before) => lines.extend([before, line]),
            None => lines.push(line),
        }
    }
    lines
}

fn named(state: &State, name: &str, value: Pieces) -> Pieces {
    Pieces::new().add(Tone::Field, format!("  {} ", fit(name, NAME, &state.theme.glyphs))).join(value)
}

fn ends(state: &State, me: &Me) -> String {
    match me.expires_at {
        Some(at) if at <= state.now => " (session has ended)".to_owned(),
        Some(at) => {
            let seconds = (at.micros() - state.now.micros()) / 1_000_000;
            let left = match seconds {
                ..60 => format!("{seconds} s"),
                60..3_600 => format!("{} min", seconds / 60),
                3_600..172_800 => elapsed(seconds),
                _ => format!("{} days", seconds / 86_400),
            };
            format!(" (session ends in {left})")
        }
        None => String::new(),
    }
}

fn rate(state: &State) -> Pieces {
    let text = match state.limit {
        Some(limit) if limit.limit < UNLIMITED => {
            let reset = limit
                .reset
                .filter(|at| *at > state.now)
                .map(|at| format!(", resets in {} s", state.seconds_until(at)));
            format!(
                "{} of {} left of this minute{}",
                thousands(limit.remaining),
                thousands(limit.limit),
                reset.unwrap_or_default()
            )
        }
        Some(_) => "none".to_owned(),
        None => state.theme.glyphs.none.to_owned(),
    };
    Pieces::new().plain(text)
}

/// What the console itself takes of the limit.
const fn how(state: &State) -> &'static str {
    match state.link {
        Link::Streaming => "follows the stream of traces",
        Link::Polling => "asks for traces every 2 s, 30 a minute",
        _ => "waits for the server",
    }
}

fn usage(state: &State, used: i64, limit: Option<u64>) -> Pieces {
    let Some(limit) = limit.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX)) else {
        return Pieces::new().plain(thousands(used)).add(Tone::Dim, " (no limit)");
    };
    let share = if limit > 0 { used.max(0) as f64 / limit as f64 } else { 1.0 };
    let tone = match share {
        1.0.. => Tone::Bad,
        0.8..1.0 => Tone::Warn,
        _ => Tone::Plain,
    };
    let cols = if state.size.0 >= 76 { BAR } else { SHORT_BAR };
    let full = ((share * cols as f64).ceil() as usize).min(cols);
    let (filled, free) = (state.theme.glyphs.bar.repeat(full), state.theme.glyphs.leaf.repeat(cols - full));
    let bar = format!("{filled}{free}");
    let text = format!("{} of {} ({:.0} %)", thousands(used), thousands(limit), (share * 100.0).min(999.0));
    Pieces::new().add(tone, bar).add(tone, format!(" {text}"))
}

/// What the plan allows a minute, endpoint by endpoint, on as few lines as the width takes.
fn per_minute(state: &State, me: &Me) -> Vec<Pieces> {
    let it = &me.limits.requests_per_minute;
    let parts = [
        ("traces", it.traces),
        ("metrics", it.metrics),
        ("feedback", it.feedback),
        ("eval", it.eval),
        ("prompts", it.prompts),
        ("ingest", it.ingest),
        ("other", it.other),
    ];
    if parts.iter().all(|(_, limit)| limit.is_none()) {
        return vec![named(state, "requests a minute", Pieces::new().plain("no limit"))];
    }
    let room = usize::from(state.size.0).saturating_sub(NAME + 4);
    let mut lines: Vec<String> = vec![String::new()];
    for (name, limit) in parts {
        let limit = limit.map_or_else(|| "no limit".to_owned(), thousands);
        let part = format!("{name} {limit}");
        if let Some(line) = lines.last_mut().filter(|line| line.len() + part.len() + 2 <= room) {
            if !line.is_empty() {
                line.push_str("  ");
            }
            line.push_str(&part);
        } else {
            lines.push(part);
        }
    }
    let names = std::iter::once("requests a minute").chain(std::iter::repeat(""));
    lines.into_iter().zip(names).map(|(line, name)| named(state, name, Pieces::new().plain(line))).collect()
}
