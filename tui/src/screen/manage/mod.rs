//! Screen 7: API keys, projects and the plan.

pub mod keys;
mod layout;
pub mod state;
#[cfg(test)]
pub mod tests;
pub mod update;
mod view;

use ratatui::{buffer::Buffer, layout::Rect};

use crate::{
    keymap::{Action, Scope},
    net::{Effect, NetError, Reply, RequestId},
    shell::{Export, Screen, Shell, Tab, notice::describe, trouble},
    widgets::table::Pieces,
};

use state::{Manage, Section};

pub use view::access;

/// The digit of the screen.
pub const SCREEN_DIGIT: u8 = 7;

impl Screen for Manage {
    fn tab(&self) -> Tab {
        Tab { digit: SCREEN_DIGIT, title: "Keys & Projects", short: "Keys" }
    }

    fn scope(&self) -> Scope {
        self.section.scope()
    }

    fn enter(&mut self, shell: &mut Shell) -> Vec<Effect> {
        update::load(self, shell)
    }

    fn act(&mut self, shell: &mut Shell, action: Action) -> Vec<Effect> {
        update::act(self, shell, action)
    }

    fn owns(&self, request: RequestId) -> bool {
        self.pending.owns(request)
    }

    fn is_busy(&self, shell: &Shell) -> bool {
        self.pending.is_slow(shell.busy_before(), |_| true)
    }

    fn reply(
        &mut self,
        shell: &mut Shell,
        request: RequestId,
        result: Result<Reply, NetError>,
    ) -> Vec<Effect> {
        if self.pending.finish(request).is_none() {
            return Vec::new();
        }
        match result {
            Ok(Reply::Keys(keys)) => {
                self.fill_keys(keys);
                Vec::new()
            }
            Ok(_) => Vec::new(),
            Err(error) if trouble::is_session_refused(shell, &error) => {
                trouble::session_refused(shell, &error)
            }
            Err(error) => {
                let effects = trouble::unauthorized(shell, &error);
                // The panel explains a role that is too low, so the log does not.
                if error.status != Some(403) && trouble::is_new(self.keys.error.as_ref(), &error) {
                    shell.report(describe(&error));
                }
                self.keys.error = Some(error);
                effects
            }
        }
    }

    fn reset(&mut self) {
        *self = Self::default();
    }

    fn export_name(&self) -> Option<String> {
        match self.section {
            Section::Keys => Some("keys.ndjson".to_owned()),
            Section::Projects => Some("projects.ndjson".to_owned()),
            Section::Plan => None,
        }
    }

    fn export(&self, shell: &Shell) -> Option<Export> {
        match self.section {
            Section::Keys => Some(Export::rows(&self.keys.items)),
            Section::Projects => Some(Export::rows(shell.projects.shown())),
            Section::Plan => None,
        }
    }

    fn copy(&self, shell: &Shell, action: Action) -> Option<(&'static str, String)> {
        // The record of a key holds no secret.
        let (id, record, id_name, record_name) = match self.section {
            Section::Keys => {
                let key = self.key()?;
                let record = serde_json::to_string_pretty(key).ok()?;
                (key.id, record, "the key's id", "the key's record")
            }
            Section::Projects => {
                let project = shell.projects.current()?;
                let record = serde_json::to_string_pretty(project).ok()?;
                (project.id, record, "the project's id", "the project's record")
            }
            Section::Plan => return None,
        };
        match action {
            Action::CopyId => Some((id_name, id.to_string())),
            Action::CopyJson => Some((record_name, record)),
            _ => None,
        }
    }

    fn draw(&self, shell: &Shell, buffer: &mut Buffer, area: Rect) {
        view::draw(self, shell, buffer, area);
    }

    fn line(&self, shell: &Shell, cols: usize) -> Pieces {
        view::sections(self, shell, cols)
    }

    fn status(&self, shell: &Shell) -> String {
        view::status(self, shell)
    }
}
