//! Screen 3: metrics of traces.

mod change;
pub mod keys;
mod layout;
pub mod state;
#[cfg(test)]
pub mod tests;
mod unusual;
mod update;
mod view;

use api::client::calls;
use ratatui::{buffer::Buffer, layout::Rect};

use crate::{
    keymap::{Action, Scope},
    net::{Effect, NetError, Reply, RequestId},
    shell::{
        Export, Screen, Shell, Tab,
        freshness::{Cause, Stale},
        trouble,
    },
    widgets::table::Pieces,
};

use state::{Metrics, MetricsRequest};

/// The digit of the screen.
pub const SCREEN_DIGIT: u8 = 3;

impl Screen for Metrics {
    fn tab(&self) -> Tab {
        Tab { digit: SCREEN_DIGIT, title: "Metrics", short: "Metrics" }
    }

    fn scope(&self) -> Scope {
        keys::METRICS_SCOPE
    }

    fn enter(&mut self, shell: &mut Shell) -> Vec<Effect> {
        update::load(self, shell)
    }

    fn act(&mut self, shell: &mut Shell, action: Action) -> Vec<Effect> {
        update::act(self, shell, action)
    }

    fn tick(&mut self, shell: &mut Shell) -> Vec<Effect> {
        update::tick(self, shell)
    }

    fn owns(&self, request: RequestId) -> bool {
        self.pending.owns(request)
    }

    fn is_busy(&self, shell: &Shell) -> bool {
        self.pending.is_slow(shell.busy_before(), |it| *it == MetricsRequest::Current)
    }

    fn reply(
        &mut self,
        shell: &mut Shell,
        request: RequestId,
        result: Result<Reply, NetError>,
    ) -> Vec<Effect> {
        let Some((purpose, _)) = self.pending.finish(request) else { return Vec::new() };
        match result {
            Ok(reply) => update::fill(self, shell, purpose, reply),
            Err(error) => {
                let effects = trouble::unauthorized(shell, &error);
                update::fail(self, shell, purpose, error);
                effects
            }
        }
    }

    fn project_changed(&mut self, shell: &mut Shell) -> Vec<Effect> {
        update::reload(self, shell)
    }

    fn reconnected(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let open = self.pending.has(|it| *it == MetricsRequest::Current);
        if shell.screen == SCREEN_DIGIT && !open { update::load(self, shell) } else { Vec::new() }
    }

    fn reset(&mut self) {
        *self = Self { stretch: self.stretch, ..Self::default() };
    }

    fn export_name(&self) -> Option<String> {
        (!self.points().is_empty()).then(|| format!("metrics-{}.csv", self.stretch.label()))
    }

    fn export(&self, _shell: &Shell) -> Option<Export> {
        Some(Export::rows(self.points()))
    }

    fn copy(&self, shell: &Shell, action: Action) -> Option<(&'static str, String)> {
        let query = self.stretch.query(shell.project.as_ref(), shell.now);
        let curl = || shell.curl(&calls::metrics(&query).target());
        (action == Action::CopyCurl).then(|| ("the curl command", curl()))
    }

    fn draw(&self, shell: &Shell, buffer: &mut Buffer, area: Rect) {
        view::draw(self, shell, buffer, area);
    }

    fn line(&self, shell: &Shell, cols: usize) -> Pieces {
        view::line(self, shell, cols)
    }

    fn status(&self, shell: &Shell) -> String {
        view::status(self, shell)
    }

    fn stale(&self) -> Option<Stale<'_>> {
        let cause = Cause::Failure(self.error.as_ref()?);
        Some(Stale { since: self.at, cause, next: self.next })
    }
}
