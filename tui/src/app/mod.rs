//! The console as a whole: the loop, the messages, the frame around the screens, and the overlays.
//!
//! A message goes into [`update::update`], which changes the [`App`] and returns effects. The driver performs
//! the effects and sends back their results as messages. [`view::draw`] draws the [`App`] and changes nothing.

mod bookmarks;
pub mod connection;
mod context;
mod copy;
mod dialog;
pub mod driver;
pub mod export;
mod help;
pub mod palette;
mod permission;
mod picker;
mod typing;
pub mod update;
pub mod view;

use api::Timestamp;

use crate::{
    options::Target,
    screen::{Screens, default_keymap},
    shell::{LoadedIds, Location, Screen, Shell},
    theme::Theme,
};
use present::format::Zone;

/// The state of the console.
#[derive(Debug)]
pub struct App {
    /// The state that all screens share.
    pub shell: Shell,
    /// The screens.
    pub screens: Screens,
}

impl App {
    /// Returns a console that has just started.
    pub fn new(target: Target, theme: Theme, zone: Zone, now: Timestamp, size: (u16, u16)) -> Self {
        let mut app = Self { shell: Shell::new(target, theme, zone, now, size), screens: Screens::default() };
        app.shell.keymap = default_keymap();
        app.settle();
        app
    }

    /// Returns the current screen.
    pub fn screen(&self) -> &dyn Screen {
        self.screens.get(self.shell.screen)
    }

    /// Returns the current place.
    pub fn place(&self) -> Location {
        Location { screen: self.shell.screen, trace: self.screens.traces.detail.as_ref().map(|open| open.id) }
    }

    /// Returns the ids of all loaded records.
    pub fn loaded_ids(&self) -> LoadedIds {
        let mut ids = LoadedIds::default();
        ids.records.extend(self.shell.projects.items.iter().map(|project| project.id));
        for screen in self.screens.all() {
            screen.loaded_ids(&mut ids);
        }
        ids
    }

    /// Brings derived state up to date.
    fn settle(&mut self) {
        let (shell, screens) = (&mut self.shell, &mut self.screens);
        shell.scope = screens.get(shell.screen).scope();
        let traces = &screens.traces;
        let feed = traces.pending.oldest(|it| it.is_of_feed());
        let lookup = shell.pending.oldest(|it| *it == crate::shell::Purpose::Lookup);
        shell.unanswered = feed.into_iter().chain(lookup).min();
        shell.no_traces = traces.list.loaded && traces.list.is_empty() && traces.filter.text.is_empty();
        for screen in screens.all_mut() {
            screen.settle(shell);
        }
    }
}
