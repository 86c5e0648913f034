//! Draws Failures: the tabs, the panels of tabs without rows, and the parts of the selected tab.

mod anomalies;
mod clusters;
mod events;
mod feedback;

use ratatui::{buffer::Buffer, layout::Rect};

use crate::{
    keymap::Action,
    screen::failures::keys::CLUSTERS_SCOPE,
    screen::failures::state::{Failures, FailuresTab},
    screen::failures::update::layout,
    shell::{
        PagedRow, PagedRows, ScreenView, Shell,
        freshness::{Cause, Stale},
        notice,
    },
    theme::Tone,
    widgets::table::{Pieces, first_visible, put, put_panel},
};
use api::{anomaly::AnomalyStatus, failure::ClusterStatus};
use present::{
    format::{clock, thousands},
    text::clean,
};

impl ScreenView for Failures {
    fn has_records(&self, _shell: &Shell) -> bool {
        self.clusters.loaded || self.anomalies.loaded || self.feedback.loaded
    }

    fn draw(&self, shell: &Shell, buffer: &mut Buffer, _area: Rect) {
        let parts = layout(self, shell);
        match (self.tab, &self.events) {
            (FailuresTab::Clusters, Some(events)) if shell.has_session() => {
                events::draw(events, shell, buffer, &parts);
            }
            (FailuresTab::Clusters, _) => {
                clusters::draw(self, shell, buffer, &parts);
                if parts.anomalies.height > 0 {
                    anomalies::newest(self, shell, buffer, parts.anomalies);
                }
            }
            (FailuresTab::Anomalies, _) => anomalies::draw(self, shell, buffer, &parts),
            (FailuresTab::Feedback, _) => feedback::draw(self, shell, buffer, &parts),
        }
    }

    fn line(&self, shell: &Shell, cols: usize) -> Pieces {
        let theme = &shell.theme;
        if let (FailuresTab::Clusters, Some(events)) = (self.tab, &self.events) {
            let title = clean(&events.cluster.title).into_owned();
            let back = format!("{} back to the clusters", shell.key(CLUSTERS_SCOPE, Action::Back));
            let line = Pieces::new().add(Tone::Dim, format!(" {} Clusters / ", theme.glyphs.back));
            let line = line.add(Tone::Strong, format!("{} ", events.cluster.failure_type)).plain(title);
            return line.with_end(Pieces::new().add(Tone::Dim, back), cols, theme);
        }
        let mut tabs = Pieces::new();
        for tab in FailuresTab::ALL {
            tabs = if tab == self.tab {
                tabs.add(Tone::Strong, format!("[{}] ", tab.title()))
            } else {
                tabs.add(Tone::Dim, format!(" {}  ", tab.title()))
            };
        }
        let line = match self.tab {
            FailuresTab::Clusters if self.text.is_empty() => Pieces::new().add(Tone::Dim, " / no filter"),
            FailuresTab::Clusters => {
                Pieces::new().add(Tone::Dim, " / ").plain(clean(&self.text).into_owned())
            }
            FailuresTab::Anomalies => Pieces::new().add(Tone::Dim, " newest first"),
            FailuresTab::Feedback => Pieces::new().add(Tone::Dim, " marked bad, newest first"),
        };
        line.with_end(tabs.trimmed(), cols, theme)
    }

    fn status(&self, shell: &Shell) -> String {
        let dot = shell.theme.glyphs.dot;
        let mut parts = match (self.tab, &self.events) {
            (FailuresTab::Clusters, Some(events)) => count(shell, &events.rows, "failure"),
            (FailuresTab::Clusters, None) => {
                let mut parts = count(shell, &self.clusters, "cluster");
                if let Some(newest) = self.clusters.items.first() {
                    parts.push(format!("newest failure {}", clock(shell.zone, newest.last_seen, shell.now)));
                }
                let open = self.clusters.items.iter().filter(|it| it.status == ClusterStatus::Open).count();
                if self.clusters.loaded {
                    parts.push(format!("{} open", thousands(open)));
                }
                parts
            }
            (FailuresTab::Anomalies, _) => {
                let open = self.anomalies.items.iter().filter(|it| it.status == AnomalyStatus::Open).count();
                let mut parts = count(shell, &self.anomalies, "anomaly");
                if self.anomalies.loaded {
                    parts.push(format!("{} open", thousands(open)));
                }
                parts
            }
            (FailuresTab::Feedback, _) => count(shell, &self.feedback, "bad label"),
        };
        parts.retain(|part| !part.is_empty());
        parts.join(&format!(" {dot} "))
    }

    fn stale(&self) -> Option<Stale<'_>> {
        let (error, since, next) = match (self.tab, &self.events) {
            (FailuresTab::Clusters, Some(it)) => (&it.rows.error, it.rows.heard, it.rows.next),
            (FailuresTab::Clusters, None) => (&self.clusters.error, self.clusters.heard, self.clusters.next),
            (FailuresTab::Anomalies, _) => (&self.anomalies.error, self.anomalies.heard, self.anomalies.next),
            (FailuresTab::Feedback, _) => (&self.feedback.error, self.feedback.heard, self.feedback.next),
        };
        Some(Stale { since, cause: Cause::Failure(error.as_ref()?), next })
    }

    fn footer_word(&self, action: Action) -> Option<&'static str> {
        let is_cluster = self.tab == FailuresTab::Clusters && self.events.is_none();
        let status = self.clusters.current().map(|it| it.status).filter(|_| is_cluster);
        match (action, status) {
            (Action::Open, Some(_)) => Some("failures"),
            (Action::Open, None) if self.tab == FailuresTab::Anomalies => Some("traces"),
            (Action::Custom("failures.resolve"), Some(ClusterStatus::Resolved)) => Some("reopen"),
            (Action::Custom("failures.mute"), Some(ClusterStatus::Muted)) => Some("unmute"),
            _ => None,
        }
    }
}

/// Returns the number of loaded rows, and whether they are current.
fn count<T: PagedRow>(shell: &Shell, rows: &PagedRows<T>, word: &str) -> Vec<String> {
    if !rows.loaded {
        return Vec::new();
    }
    let loaded = rows.items.len();
    let words = match (word, loaded) {
        (word, 1) => word.to_owned(),
        ("anomaly", _) => "anomalies".to_owned(),
        (word, _) => format!("{word}s"),
    };
    let more = if rows.older.is_some() { " loaded, more below" } else { "" };
    let stale = rows.error.as_ref().map(|_| {
        let wait = rows.next.map(|at| format!(", next in {}s", shell.seconds_until(at)));
        format!("not up to date{}", wait.unwrap_or_default())
    });
    vec![format!("{} {words}{more}", thousands(loaded)), stale.unwrap_or_default()]
}

/// Returns the panel of a list without rows; none if there are rows to draw.
fn panel<T: PagedRow>(
    shell: &Shell,
    rows: &PagedRows<T>,
    empty: Vec<(Tone, String)>,
) -> Option<Vec<(Tone, String)>> {
    match (&rows.error, rows.loaded) {
        _ if !rows.items.is_empty() => None,
        (Some(error), _) => Some(notice::failure(shell, error, rows.next)),
        (None, false) => Some(vec![(Tone::Dim, format!("loading{}", shell.theme.glyphs.ellipsis))]),
        (None, true) => Some(empty),
    }
}

/// Draws column heads and rows, or the panel without rows. Returns whether rows were drawn.
fn table<T: PagedRow>(
    shell: &Shell,
    buffer: &mut Buffer,
    area: Rect,
    rows: &PagedRows<T>,
    empty: Vec<(Tone, String)>,
    head: Pieces,
    cells: impl Fn(&T) -> Pieces,
) -> bool {
    if let Some(lines) = panel(shell, rows, empty) {
        put_panel(buffer, area, &shell.theme, &lines);
        return false;
    }
    let theme = &shell.theme;
    let cols = usize::from(area.width);
    put(
        buffer,
        area,
        0,
        &Pieces::new().plain("  ").join(head.all(Tone::Dim)).cut(cols, theme).line(theme, false),
    );
    let visible = usize::from(area.height.saturating_sub(1));
    let top = first_visible(rows.selected, rows.items.len(), visible);
    let is_faded = rows.error.is_some() || shell.failure().is_some();
    for (at, row) in rows.items.iter().enumerate().skip(top).take(visible) {
        let selected = at == rows.selected;
        let cursor = if selected { theme.glyphs.cursor } else { " " };
        let line = cells(row);
        let line = if is_faded { line.all(Tone::Dim) } else { line };
        let line = Pieces::new().plain(format!("{cursor} ")).join(line).cut(cols, theme);
        put(buffer, area, 1 + at - top, &line.line(theme, selected));
    }
    true
}

/// Returns the name of a project for rows of all projects; empty if one project is shown.
fn project_name(shell: &Shell, id: uuid::Uuid) -> String {
    match shell.project {
        Some(_) => String::new(),
        None => shell.projects.get(id).map_or_else(|| present::format::short_id(id), |it| it.name.clone()),
    }
}
