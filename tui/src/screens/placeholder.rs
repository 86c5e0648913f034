//! The screens that are still to come: what they will be, and what does that work today.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::{state::State, theme::Tone, widgets::table::put_panel};

/// A screen: its title at full width, a shorter one, and what stands in for it.
pub struct Screen {
    /// Its title.
    pub title: &'static str,
    /// The title for 80 columns.
    pub short: &'static str,
    what: &'static str,
    today: &'static str,
}

impl Screen {
    /// Returns whether this version of the console has the screen.
    pub const fn is_built(&self) -> bool {
        self.what.is_empty()
    }
}

/// The screens in the order of their digits.
pub const SCREENS: [Screen; 8] = [
    Screen { title: "Traces", short: "Traces", what: "", today: "" },
    Screen { title: "Evals", short: "Evals", what: "", today: "" },
    Screen { title: "Metrics", short: "Metrics", what: "", today: "" },
    Screen {
        title: "Failures",
        short: "Failures",
        what: "Clusters of failures and the actions taken on them. Acting will need a session token.",
        today: "The filter error:true or failure:timeout on screen 1, and loupe traces list --filter.",
    },
    Screen {
        title: "Approvals",
        short: "Appr",
        what: "Remediations and deployments that wait for a decision.",
        today: "Nothing waits yet: this server does not act by itself. Deciding will need a session token.",
    },
    Screen {
        title: "Webhooks",
        short: "Hooks",
        what: "Endpoints that are told of events, and their deliveries.",
        today: "loupe traces tail -o ndjson feeds any program as traces arrive.",
    },
    Screen { title: "Keys & Projects", short: "Keys", what: "", today: "" },
    Screen { title: "Search", short: "Search", what: "", today: "" },
];

/// Draws the screen's panel.
pub fn draw(state: &State, buffer: &mut Buffer, area: Rect) {
    let Some(screen) = SCREENS.get(usize::from(state.screen).saturating_sub(1)) else { return };
    let lines = [
        (
            Tone::Strong,
            format!("The screen {} is not part of this version of the console yet.", screen.title),
        ),
        (Tone::Plain, String::new()),
        (Tone::Plain, format!("What it will show: {}", screen.what)),
        (Tone::Plain, String::new()),
        (Tone::Plain, format!("Until then: {}", screen.today)),
        (Tone::Plain, String::new()),
        (Tone::Dim, "1 or esc goes to Traces, - to the place before.".to_owned()),
    ];
    put_panel(buffer, area, &state.theme, &lines);
}
