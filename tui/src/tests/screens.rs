//! Tests of the drawn screens, as text.

use ratatui::{
    Terminal,
    backend::TestBackend,
    style::{Color, Modifier},
};

use crate::app::view::draw;
use crate::tests::*;
use present::text::width;

/// Returns the screen as lines without trailing blanks; wide characters take their two columns.
pub fn screen(state: &App) -> String {
    let mut terminal = Terminal::new(TestBackend::new(state.shell.size.0, state.shell.size.1)).unwrap();
    terminal.draw(|frame| draw(state, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for y in 0..buffer.area.height {
        let mut line = String::new();
        let mut x = 0;
        while x < buffer.area.width {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            x += u16::try_from(width(symbol).max(1)).unwrap();
        }
        assert!(width(&line) <= usize::from(state.shell.size.0), "{line}");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Returns whether the first line that contains these words shows them dimmed.
pub fn faded(state: &App, words: &str) -> bool {
    let text = screen(state);
    let (y, line) = text.lines().enumerate().find(|(_, line)| line.contains(words)).unwrap();
    let x = width(&line[..line.find(words).unwrap()]);
    let mut terminal = Terminal::new(TestBackend::new(state.shell.size.0, state.shell.size.1)).unwrap();
    terminal.draw(|frame| draw(state, frame)).unwrap();
    let cell = &terminal.backend().buffer()[(u16::try_from(x).unwrap(), u16::try_from(y).unwrap())];
    cell.modifier.contains(Modifier::DIM)
}

/// Returns the screen as cells.
fn cells(state: &App) -> ratatui::buffer::Buffer {
    let mut terminal = Terminal::new(TestBackend::new(state.shell.size.0, state.shell.size.1)).unwrap();
    terminal.draw(|frame| draw(state, frame)).unwrap();
    terminal.backend().buffer().clone()
}

pub const TERMINAL_SIZES: [(u16, u16); 3] = [(120, 40), (80, 24), (60, 20)];

pub fn snap(name: &str, state: &App) {
    insta::with_settings!({snapshot_path => "../../snapshots", prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!(format!("{name}-{}x{}", state.shell.size.0, state.shell.size.1), screen(state));
    });
}

#[test]
fn loading_list_is_drawn_at_every_size() {
    for size in TERMINAL_SIZES {
        let (mut state, _) = started(size, UNICODE_THEME);
        tick(&mut state, 1);
        snap("loading", &state);
    }
}

#[test]
fn empty_list_is_drawn_at_every_size() {
    for size in TERMINAL_SIZES {
        let (mut state, effects) = started(size, UNICODE_THEME);
        answer(&mut state, &effects, last_page(vec![]));
        snap("empty", &state);
    }
}

#[test]
fn full_list_is_drawn_at_every_size() {
    for size in TERMINAL_SIZES {
        let mut state = filled(size, UNICODE_THEME);
        press(&mut state, "jjj");
        let request = state.shell.stream.unwrap();
        update(&mut state, Msg::Stream(request, StreamEvent::Traces(vec![trace(50)])));
        snap("full", &state);
    }
}

#[test]
fn failed_list_is_drawn_at_every_size() {
    for size in TERMINAL_SIZES {
        let (mut state, effects) = started(size, UNICODE_THEME);
        reply(&mut state, &effects, Err(answered(503, "overloaded", "the database is away")));
        tick(&mut state, 1);
        snap("error", &state);
    }
}

#[test]
fn opened_trace_is_drawn_at_every_size() {
    for size in TERMINAL_SIZES {
        snap("detail", &opened(size, UNICODE_THEME));
    }
}

#[test]
fn unreachable_server_keeps_the_rows() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "R");
    reply(&mut state, &effects, Err(offline()));
    tick(&mut state, 1);
    snap("offline", &state);
}

#[test]
fn refused_credential_is_drawn_at_every_size() {
    let (mut state, effects) = started((80, 24), UNICODE_THEME);
    reply(&mut state, &effects, Err(answered(401, "unauthorized", "the key is not known")));
    snap("unauthorized", &state);
}

#[test]
fn empty_result_and_invalid_filter_are_drawn() {
    let mut state = filled((80, 24), UNICODE_THEME);
    press(&mut state, "/latency:>=80s from:-15m");
    let effects = key(&mut state, KeyCode::Enter);
    answer(&mut state, &effects, last_page(vec![]));
    snap("empty-filter", &state);
    press(&mut state, "/ latncy:>2s");
    key(&mut state, KeyCode::Enter);
    snap("wrong-filter", &state);
}

#[test]
fn panels_and_overlays_are_drawn() {
    let mut state = filled((80, 24), UNICODE_THEME);
    press(&mut state, "1?");
    snap("help", &state);
    press(&mut state, "?yi!");
    snap("problems", &state);
    press(&mut state, "!y");
    snap("copy-keys", &state);
}

#[test]
fn projects_and_an_archived_one_are_drawn() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "p");
    let projects = vec![project(1, "2025-pilot", true), project(2, "checkout-bot", false)];
    reply(&mut state, &effects, Ok(Response::new(projects)));
    press(&mut state, "hjj");
    snap("projects", &state);
    let effects = key(&mut state, KeyCode::Enter);
    answer(&mut state, &effects, last_page(vec![trace(1)]));
    snap("archived", &state);
}

#[test]
fn archived_project_without_traces_announces_none() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "p");
    reply(&mut state, &effects, Ok(Response::new(vec![project(1, "2025-pilot", true)])));
    press(&mut state, "hj");
    let effects = key(&mut state, KeyCode::Enter);
    answer(&mut state, &effects, last_page(vec![]));
    let text = screen(&state);
    assert!(!text.contains("live") && !text.contains("following"), "header, banner and body agree:\n{text}");
    snap("archived-empty", &state);
}

#[test]
fn stale_rows_stay_under_a_bar() {
    for theme in [UNICODE_THEME, Theme { colour: false, ..UNICODE_THEME }] {
        let mut state = filled((80, 24), theme);
        let effects = press(&mut state, "R");
        reply(&mut state, &effects, Err(answered(403, "member_removed", "you are no longer a member")));
        tick(&mut state, 10);
        state.shell.toast = None;
        snap("stale", &state);
        let cells = cells(&state);
        for x in 0..80 {
            let cell = &cells[(x, 0)];
            assert!(cell.modifier.contains(Modifier::REVERSED), "column {x}");
            assert_eq!(cell.fg, if theme.colour { Color::Red } else { Color::Reset }, "column {x}");
        }
        assert!(faded(&state, "embed_docs"));
    }
}

#[test]
fn failed_rows_stand_out_and_healthy_ones_are_quiet() {
    for colour in [true, false] {
        let state = filled((80, 24), Theme { colour, ..UNICODE_THEME });
        let cells = cells(&state);
        let line = |y: u16| (0..80).map(|x| cells[(x, y)].symbol()).collect::<String>();
        let row = |words: &str| (5..22).find(|y| line(*y).contains(words)).unwrap();
        let (failed, healthy) = (row("refund_agent"), row("answer_question"));
        assert_eq!((cells[(11, failed)].symbol(), cells[(11, healthy)].symbol()), ("✗", "·"));
        for x in [11, 13, 61] {
            let (bad, fine) = (&cells[(x, failed)], &cells[(x, healthy)]);
            assert!(bad.modifier.contains(Modifier::BOLD) && !fine.modifier.contains(Modifier::BOLD), "{x}");
            assert_eq!(bad.fg, if colour { Color::Red } else { Color::Reset }, "{x}");
            assert_eq!(fine.fg, Color::Reset, "{x}");
        }
    }
}

#[test]
fn rate_limit_appears_only_when_it_runs_low() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let mut limited = |remaining, limit, seconds: i64| {
        let reset = Some(Timestamp::from_micros(state.shell.now.micros() + seconds * 1_000_000));
        update(&mut state, Msg::Limit(crate::net::RateLimit { limit, remaining, reset }));
        screen(&state).lines().next().unwrap().to_owned()
    };
    assert!(!limited(52, 60, 30).contains("RL"));
    assert!(!limited(13, 60, 30).contains("RL"));
    assert!(limited(12, 60, 30).contains("RL 12/60"));
    assert!(limited(0, 60, 30).contains("RL 0/60 · 30s"));
    assert!(!limited(0, 60, -1).contains("RL"), "the window has ended");
}

#[test]
fn tags_are_readable_at_every_width() {
    let tags = |tags: &[&str], cols: u16| {
        let (mut state, effects) = started((cols, 24), UNICODE_THEME);
        let row = Trace { tags: tags.iter().map(|tag| (*tag).to_owned()).collect(), ..trace(1) };
        answer(&mut state, &effects, last_page(vec![row]));
        screen(&state).lines().find(|line| line.contains("answer_question")).unwrap().to_owned()
    };
    for cols in [60, 80, 120] {
        assert!(tags(&["env:prod"], cols).contains(" env:prod "), "{cols}");
    }
    let long = ["tenant:acme-corp-europe-west", "env:prod", "vip"];
    assert!(tags(&long, 80).contains(" tenan…-west +2 "), "{}", tags(&long, 80));
    assert!(tags(&long, 120).contains(" tenant:a…ope-west +2 "), "{}", tags(&long, 120));
    assert!(tags(&long, 200).contains(" tenant:acme-corp-europe-west env:prod vip "), "{}", tags(&long, 200));
}

#[test]
fn failures_only_is_shown_in_the_header() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "F");
    answer(&mut state, &effects, last_page(rows().into_iter().filter(|row| row.error.is_some()).collect()));
    snap("failures-only", &state);
    assert!(screen(&state).lines().next().unwrap().contains("failures only"));
}

#[test]
fn ascii_has_no_other_bytes_outside_data() {
    let mut state = filled((80, 24), ASCII_THEME);
    press(&mut state, "j");
    snap("ascii-list", &state);
    let data = ["summarise_レポート", "🙏", "👩", "⟦"];
    for text in [screen(&state), screen(&opened((120, 40), ASCII_THEME))] {
        for line in text.lines().filter(|line| !data.iter().any(|word| line.contains(word))) {
            let foreign: String = line.chars().filter(|c| !c.is_ascii()).collect();
            assert!(
                foreign.is_empty() || line.contains("返金") || line.chars().any(|c| ('А'..='я').contains(&c)),
                "{line}"
            );
        }
    }
    assert!(screen(&state).contains("ERR refund_agent"));
}

#[test]
fn no_colour_is_drawn_without_colours() {
    let state = filled((80, 24), Theme { colour: false, glyphs: Glyphs::UNICODE });
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    terminal.draw(|frame| draw(&state, frame)).unwrap();
    let cells = &terminal.backend().buffer().content;
    assert!(cells.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
}

#[test]
fn columns_stay_aligned_under_wide_characters() {
    for size in TERMINAL_SIZES {
        let state = filled(size, UNICODE_THEME);
        let text = screen(&state);
        let ends: Vec<usize> = text
            .lines()
            .skip(4)
            .filter_map(|line| {
                ["1.84s", "30.0s", "6.71s", "96ms"]
                    .iter()
                    .find_map(|it| Some(line.find(it)? + it.len()))
                    .map(|at| width(&line[..at]))
            })
            .collect();
        assert!(ends.len() > 5 && ends.iter().all(|end| *end == ends[0]), "{ends:?}\n{text}");
    }
}

#[test]
fn every_terminal_size_is_drawn() {
    let mut state = opened((80, 24), UNICODE_THEME);
    for cols in [1, 5, 20, 39, 40, 45, 59, 60, 79, 80, 109, 110, 200] {
        for rows in [1, 2, 5, 9, 10, 14, 15, 24, 60] {
            update(&mut state, Msg::Resize(cols, rows));
            screen(&state);
            let mut list = filled((cols, rows), UNICODE_THEME);
            screen(&list);
            press(&mut list, "?");
            screen(&list);
        }
    }
    update(&mut state, Msg::Resize(38, 9));
    assert!(screen(&state).starts_with("terminal too small (38x9), needs 40x"));
    update(&mut state, Msg::Resize(20, 4));
    let text = screen(&state).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.starts_with("terminal too small (20x4), needs 40x10"), "{text}");
}

#[test]
fn shrunken_window_is_drawn_before_its_size_is_known() {
    for state in [filled((120, 40), UNICODE_THEME), opened((120, 40), UNICODE_THEME)] {
        for size in [(119, 40), (60, 12), (1, 1)] {
            let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
            terminal.draw(|frame| draw(&state, frame)).unwrap();
        }
    }
}

#[test]
fn split_detail_shows_two_panes() {
    let text = screen(&opened((120, 40), UNICODE_THEME));
    assert!(text.lines().filter(|line| line.contains('│')).count() >= 10, "{text}");
    assert!(!screen(&opened((80, 24), UNICODE_THEME)).contains('│'));
}
