//! Draws the plan: its limits and their usage.

use api::tenant::Me;
use ratatui::{buffer::Buffer, layout::Rect};

use crate::{
    shell::{Link, Shell},
    theme::Tone,
    widgets::table::{Pieces, put},
};
use present::{
    format::{capital, elapsed, thousands},
    text::{clean, fit},
};

/// Width in columns of the name of a line.
const NAME_COLS: usize = 22;
/// Width in columns of a bar that shows the used share of a limit.
const BAR_COLS: usize = 20;
const SHORT_BAR_COLS: usize = 8;

/// Returns the number of lines.
pub fn len(shell: &Shell) -> usize {
    lines(shell).len()
}

/// Draws the plan.
pub fn draw(shell: &Shell, buffer: &mut Buffer, area: Rect) {
    for (row, line) in lines(shell).into_iter().enumerate() {
        let line = line.cut(usize::from(area.width), &shell.theme);
        put(buffer, area, row, &line.line(&shell.theme, false));
    }
}

fn lines(shell: &Shell) -> Vec<Pieces> {
    let Some(me) = &shell.me else {
        return vec![Pieces::new().add(Tone::Dim, format!("  loading{}", shell.theme.glyphs.ellipsis))];
    };
    let wide = shell.size.0 >= 100;
    let plan = Pieces::new().add(Tone::Strong, capital(me.tenant.plan.as_str()));
    let tenant = Pieces::new().plain(clean(&me.tenant.name).into_owned());
    let role = Pieces::new().plain(format!("{}{}", me.role, ends(shell, me)));
    let credential = shell.target.credential.clone().unwrap_or_default();
    let credential = Pieces::new().plain(clean(&credential).into_owned());
    let rate = rate(shell);
    let mut lines =
        pairs(shell, wide, [("plan", plan), ("tenant", tenant), ("role", role), ("reads with", credential)]);
    lines.push(named(shell, "rate limit", rate));
    lines.push(named(shell, "this console", Pieces::new().plain(how(shell))));
    let month = &me.usage.month;
    let used = [
        (format!("traces in {month}"), me.usage.traces, me.limits.traces_per_month),
        (format!("judge calls in {month}"), me.usage.llm_evaluations, me.limits.llm_evaluations_per_month),
        ("members".to_owned(), me.usage.members, me.limits.members),
    ];
    for (name, used, limit) in used {
        lines.push(named(shell, &name, usage(shell, used, limit)));
    }
    lines.extend(per_minute(shell, me));
    lines
}

/// Returns named values, two to a line where there is room.
fn pairs<const N: usize>(shell: &Shell, wide: bool, values: [(&str, Pieces); N]) -> Vec<Pieces> {
    let mut lines: Vec<Pieces> = Vec::new();
    for (at, (name, value)) in values.into_iter().enumerate() {
        let line = named(shell, name, value);
        match lines.pop() {
            Some(left) if wide && at % 2 == 1 => {
                let half = usize::from(shell.size.0) / 2;
                let left = left.cut(half.saturating_sub(1), &shell.theme);
                let gap = half.saturating_sub(left.width());
                lines.push(left.plain(" ".repeat(gap)).join(line));
            }
            Some(before) => lines.extend([before, line]),
            None => lines.push(line),
        }
    }
    lines
}

fn named(shell: &Shell, name: &str, value: Pieces) -> Pieces {
    Pieces::new().add(Tone::Field, format!("  {} ", fit(name, NAME_COLS, &shell.theme.glyphs))).join(value)
}

fn ends(shell: &Shell, me: &Me) -> String {
    match me.expires_at {
        Some(at) if at <= shell.now => " (session has ended)".to_owned(),
        Some(at) => {
            let seconds = (at.micros() - shell.now.micros()) / 1_000_000;
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

fn rate(shell: &Shell) -> Pieces {
    let text = match shell.limit {
        Some(limit) if !limit.is_unlimited() => {
            let reset = limit
                .reset
                .filter(|at| *at > shell.now)
                .map(|at| format!(", resets in {} s", shell.seconds_until(at)));
            format!(
                "{} of {} left this minute{}",
                thousands(limit.remaining),
                thousands(limit.limit),
                reset.unwrap_or_default()
            )
        }
        Some(_) => "none".to_owned(),
        None => shell.theme.glyphs.none.to_owned(),
    };
    Pieces::new().plain(text)
}

/// Returns the share of the limit that the console uses itself.
const fn how(shell: &Shell) -> &'static str {
    match shell.link {
        Link::Streaming => "follows the stream of traces",
        Link::Polling => "requests traces every 2 s, 30 times a minute",
        _ => "waits for the server",
    }
}

fn usage(shell: &Shell, used: i64, limit: Option<u64>) -> Pieces {
    let Some(limit) = limit.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX)) else {
        return Pieces::new().plain(thousands(used)).add(Tone::Dim, " (no limit)");
    };
    let share = if limit > 0 { used.max(0) as f64 / limit as f64 } else { 1.0 };
    let tone = match share {
        1.0.. => Tone::Bad,
        0.8..1.0 => Tone::Warn,
        _ => Tone::Plain,
    };
    let cols = if shell.size.0 >= 76 { BAR_COLS } else { SHORT_BAR_COLS };
    let full = ((share * cols as f64).ceil() as usize).min(cols);
    let (filled, free) = (shell.theme.glyphs.bar.repeat(full), shell.theme.glyphs.leaf.repeat(cols - full));
    let bar = format!("{filled}{free}");
    let text = format!("{} of {} ({:.0} %)", thousands(used), thousands(limit), (share * 100.0).min(999.0));
    Pieces::new().add(tone, bar).add(tone, format!(" {text}"))
}

/// Returns the limits a minute by endpoint, on as few lines as possible.
fn per_minute(shell: &Shell, me: &Me) -> Vec<Pieces> {
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
        return vec![named(shell, "requests a minute", Pieces::new().plain("no limit"))];
    }
    let room = usize::from(shell.size.0).saturating_sub(NAME_COLS + 4);
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
    lines.into_iter().zip(names).map(|(line, name)| named(shell, name, Pieces::new().plain(line))).collect()
}
