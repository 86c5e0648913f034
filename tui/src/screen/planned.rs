//! Screens that this version does not have: their purpose, and the commands to use instead.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::{
    change::NoChange,
    keymap::{
        Action, Binding, Scope, bindings,
        groups::{COPY_CURL_KEYS, END_STEP_KEYS, SCREEN_KEYS, SCREEN_STEP_KEYS},
    },
    net::{Destination, Effect, NetError, RequestId, Response},
    shell::{
        Screen, ScreenActions, ScreenChanges, ScreenLines, ScreenRecords, ScreenReplies, ScreenView, Shell,
        Tab,
    },
    theme::Tone,
    widgets::table::put_panel,
};

/// The key scope of these screens.
pub const PANEL_SCOPE: Scope = Scope::screen("Screen", &[COPY_CURL_KEYS, END_STEP_KEYS, SCREEN_STEP_KEYS]);

/// The bindings of these screens.
pub const SCREEN_BINDINGS: &[Binding] = bindings! {
    Action::Screen(5), "screen.approvals", ["5"], SCREEN_KEYS, "Approvals";
};

/// A screen that this version does not have.
#[derive(Debug)]
pub struct Planned {
    tab: Tab,
    content: &'static str,
    alternative: &'static str,
}

/// The screen that this version does not have.
pub const PLANNED_SCREEN: Planned = Planned {
    tab: Tab { digit: 5, title: "Approvals", short: "Appr" },
    content: "Remediations and deployments that wait for a decision.",
    alternative: "Nothing waits for a decision, because servers take no actions yet. Deciding will need a session token.",
};

impl Screen for Planned {
    fn tab(&self) -> Tab {
        self.tab
    }

    fn is_built(&self) -> bool {
        false
    }

    fn scope(&self) -> Scope {
        PANEL_SCOPE
    }
}

impl ScreenActions for Planned {
    fn act(&mut self, _shell: &mut Shell, action: Action) -> Vec<Effect> {
        if action == Action::Back { vec![Effect::Go(Destination::Screen(1))] } else { Vec::new() }
    }
}

impl ScreenView for Planned {
    fn draw(&self, shell: &Shell, buffer: &mut Buffer, area: Rect) {
        let title = self.tab.title;
        let lines = [
            (Tone::Strong, format!("This version of the console does not have the screen {title} yet.")),
            (Tone::Plain, String::new()),
            (Tone::Plain, format!("What it will show: {}", self.content)),
            (Tone::Plain, String::new()),
            (Tone::Plain, format!("Until then: {}", self.alternative)),
            (Tone::Plain, String::new()),
            (Tone::Dim, "1 or esc goes to Traces, - to the previous screen.".to_owned()),
        ];
        put_panel(buffer, area, &shell.theme, &lines);
    }
}

// These screens send no requests.
impl ScreenReplies for Planned {
    fn owns(&self, _request: RequestId) -> bool {
        false
    }

    fn is_busy(&self, _shell: &Shell) -> bool {
        false
    }

    fn reply(
        &mut self,
        _shell: &mut Shell,
        _request: RequestId,
        _result: Result<Response, NetError>,
    ) -> Vec<Effect> {
        Vec::new()
    }
}

impl ScreenChanges for Planned {
    type Change = NoChange;
}

impl ScreenRecords for Planned {}

impl ScreenLines for Planned {}
