//! Key handling of the screen Webhooks, and the schedule of its requests.

use api::{
    Timestamp,
    client::{
        Auth,
        calls::{self, Page},
    },
    webhook::{WebhookDelivery, WebhookDeliveryList},
};
use uuid::Uuid;

use crate::{
    dialog::Dialog,
    keymap::Action,
    net::{Destination, Effect, NetError, Response},
    screen::webhooks::{
        SCREEN_DIGIT,
        change::WebhooksChange,
        form,
        keys::{
            DELETE_WEBHOOK, NEW_WEBHOOK, REDELIVER_EVENT, ROTATE_SECRET, SHOW_PING, TEST_WEBHOOK,
            UPDATE_WEBHOOK,
        },
        layout::{WebhooksLayout, parts},
        state::{PingResult, Webhooks, WebhooksRequest, WebhooksSection, ZoomedText},
        view::zoomed_len,
    },
    shell::{
        Older, PagedRows, Pending, RowPage, ScreenActions, ScreenRequests, Shell, notice::describe, trouble,
    },
    travel,
};

/// Number of deliveries on a page.
const ROWS_PER_PAGE: u32 = 50;
/// Microseconds between two requests for the webhooks, which the server can disable.
const LIST_INTERVAL_MICROS: i64 = 30_000_000;
/// Microseconds between two requests for the deliveries.
const LOG_INTERVAL_MICROS: i64 = 5_000_000;

impl ScreenActions for Webhooks {
    fn enter(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let mut effects = vec![load(self, shell)];
        self.log.next = Some(shell.now);
        effects.extend(load_log(self, shell));
        effects
    }

    fn act(&mut self, shell: &mut Shell, action: Action) -> Vec<Effect> {
        if let Some(effects) = scroll_zoomed(self, shell, action) {
            return effects;
        }
        if let Some(effects) = move_cursor(self, shell, action) {
            return effects;
        }
        let protected = shell.target.protected;
        match action {
            Action::Refresh => return self.enter(shell),
            Action::Back if self.section == WebhooksSection::Deliveries => {
                self.section = WebhooksSection::List;
            }
            Action::Back => return vec![Effect::Go(Destination::Screen(1))],
            Action::Open => return open(self, shell),
            NEW_WEBHOOK => shell.dialog = Some(Dialog::form(form::new_webhook(), shell.now)),
            REDELIVER_EVENT => match self.delivery() {
                Some(it) => {
                    let change = redelivery(it);
                    shell.dialog = Some(Dialog::confirm(change, protected, shell.now));
                }
                None => shell.notify("no delivery is selected"),
            },
            Action::Enable | UPDATE_WEBHOOK | DELETE_WEBHOOK | ROTATE_SECRET | TEST_WEBHOOK | SHOW_PING => {
                let Some(webhook) = self.current() else {
                    shell.notify("no webhook is selected");
                    return Vec::new();
                };
                let (id, url) = (webhook.id, webhook.url.clone());
                let change = match action {
                    TEST_WEBHOOK => return test(self, shell, id),
                    UPDATE_WEBHOOK => {
                        shell.dialog = Some(Dialog::form(form::webhook_update(webhook), shell.now));
                        return Vec::new();
                    }
                    SHOW_PING if self.ping().is_none() => {
                        let key = shell.key(super::keys::WEBHOOKS_SCOPE, TEST_WEBHOOK);
                        shell.notify(format!("no ping was sent yet; {key} sends one"));
                        return Vec::new();
                    }
                    SHOW_PING => {
                        self.zoom = Some((ZoomedText::Ping(id), 0));
                        return Vec::new();
                    }
                    Action::Enable => WebhooksChange::SetEnabled { id, url, on: !webhook.enabled },
                    DELETE_WEBHOOK => WebhooksChange::Delete { id, url },
                    _ => WebhooksChange::RotateSecret { id, url },
                };
                shell.dialog = Some(Dialog::confirm(change, protected, shell.now));
            }
            _ => {}
        }
        Vec::new()
    }

    fn tick(&mut self, shell: &mut Shell) -> Vec<Effect> {
        if shell.screen != SCREEN_DIGIT || shell.overlay.is_some() || shell.is_unauthorized() {
            return Vec::new();
        }
        let is_due = self.next.is_some_and(|at| at <= shell.now);
        let mut effects = if is_due { vec![load(self, shell)] } else { Vec::new() };
        effects.extend(load_log(self, shell));
        effects
    }

    fn reconnected(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let has_failed = self.list.error.is_some() || self.log.error.is_some();
        if shell.screen == SCREEN_DIGIT && has_failed { self.enter(shell) } else { Vec::new() }
    }
}

impl ScreenRequests for Webhooks {
    type Purpose = WebhooksRequest;

    fn pending(&self) -> &Pending<WebhooksRequest> {
        &self.pending
    }

    fn pending_mut(&mut self) -> &mut Pending<WebhooksRequest> {
        &mut self.pending
    }

    fn fill(
        &mut self,
        shell: &mut Shell,
        purpose: WebhooksRequest,
        sent: Timestamp,
        response: Response,
    ) -> Result<Vec<Effect>, NetError> {
        match purpose {
            WebhooksRequest::List => {
                self.fill(response.decoded()?);
                self.heard = Some(shell.now);
                self.next = shell.after(LIST_INTERVAL_MICROS);
            }
            WebhooksRequest::Deliveries(id) => {
                let page = delivery_page(response.decoded()?);
                if self.log_of == Some(id) {
                    self.log.renew(page, sent, shell.now, LOG_INTERVAL_MICROS);
                }
            }
            WebhooksRequest::MoreDeliveries(id) => {
                let page = delivery_page(response.decoded()?);
                if self.log_of == Some(id) {
                    self.log.extend(page, sent);
                }
            }
            WebhooksRequest::Test(id) => {
                let result = Ok(response.decoded()?);
                self.pings.insert(id, PingResult { sent, result });
            }
        }
        Ok(load_log(self, shell))
    }

    fn fail(&mut self, shell: &mut Shell, purpose: WebhooksRequest, error: NetError) -> Vec<Effect> {
        let effects = trouble::unauthorized(shell, &error);
        match purpose {
            WebhooksRequest::List => {
                // The panel explains a plan or a role that is too low, so the log does not.
                if !matches!(error.status, Some(402 | 403))
                    && trouble::is_new(self.list.error.as_ref(), &error)
                {
                    shell.report(describe(&error));
                }
                let wait = trouble::retry_after(&error).max(LIST_INTERVAL_MICROS);
                self.next = shell.after(wait);
                self.list.error = Some(error);
            }
            WebhooksRequest::Deliveries(id) => {
                if self.log_of == Some(id) {
                    self.log.fail(shell, LOG_INTERVAL_MICROS, error);
                }
            }
            WebhooksRequest::MoreDeliveries(_) => shell.report(describe(&error)),
            WebhooksRequest::Test(id) => {
                shell.report(format!("the ping: {}", describe(&error)));
                self.pings.insert(id, PingResult { sent: shell.now, result: Err(error) });
            }
        }
        effects
    }
}

fn delivery_page(list: WebhookDeliveryList) -> RowPage<WebhookDelivery> {
    RowPage { rows: list.deliveries, has_more: list.has_more, next_cursor: list.next_cursor }
}

/// Returns the layout of the screen.
pub fn layout(webhooks: &Webhooks, shell: &Shell) -> WebhooksLayout {
    parts(shell.size, webhooks.section, webhooks.list.items.len())
}

/// Requests the webhooks.
pub fn load(webhooks: &mut Webhooks, shell: &mut Shell) -> Effect {
    webhooks.next = None;
    webhooks.pending.send_all(shell.ticket(), WebhooksRequest::List, calls::webhooks)
}

/// Requests the deliveries of the webhook under the cursor when they are due, one webhook at a time.
pub fn load_log(webhooks: &mut Webhooks, shell: &mut Shell) -> Vec<Effect> {
    let Some(id) = webhooks.current().map(|it| it.id) else { return Vec::new() };
    if webhooks.log_of != Some(id) {
        webhooks.log_of = Some(id);
        webhooks.log = PagedRows::default();
        webhooks.log.next = Some(shell.now);
    }
    let is_open = webhooks.pending.has(|it| matches!(it, WebhooksRequest::Deliveries(_)));
    let is_shown = layout(webhooks, shell).log.height > 0;
    if is_open || !is_shown || !webhooks.log.is_due(shell.now) {
        return Vec::new();
    }
    webhooks.log.next = None;
    let call = calls::webhook_deliveries(id, &Page { limit: Some(ROWS_PER_PAGE), cursor: None });
    vec![webhooks.pending.send(shell.ticket(), WebhooksRequest::Deliveries(id), call)]
}

/// Sends a ping, unless one is under way.
fn test(webhooks: &mut Webhooks, shell: &mut Shell, id: Uuid) -> Vec<Effect> {
    if webhooks.pending.has(|it| matches!(it, WebhooksRequest::Test(_))) {
        shell.notify("a ping is under way");
        return Vec::new();
    }
    let auth = if shell.has_session() { Auth::Session } else { Auth::Key };
    let call = calls::test_webhook(id).with(auth);
    vec![webhooks.pending.send(shell.ticket(), WebhooksRequest::Test(id), call)]
}

fn redelivery(it: &WebhookDelivery) -> WebhooksChange {
    WebhooksChange::Redeliver {
        webhook: it.webhook_id,
        delivery: it.id,
        event: it.event_id,
        name: it.event_type.to_string(),
    }
}

/// Opens the deliveries of the webhook, or the attempts of the delivery.
fn open(webhooks: &mut Webhooks, shell: &mut Shell) -> Vec<Effect> {
    match webhooks.section {
        WebhooksSection::List if webhooks.current().is_some() => {
            webhooks.section = WebhooksSection::Deliveries;
            load_log(webhooks, shell)
        }
        WebhooksSection::List => Vec::new(),
        WebhooksSection::Deliveries => {
            webhooks.zoom = webhooks.delivery().map(|it| (ZoomedText::Delivery(it.id), 0));
            Vec::new()
        }
    }
}

/// Handles the keys of a text that fills the body; returns none if there is no such text, or the key has its usual
/// meaning.
fn scroll_zoomed(webhooks: &mut Webhooks, shell: &mut Shell, action: Action) -> Option<Vec<Effect>> {
    let (text, top) = webhooks.zoom?;
    let rows = usize::from(crate::layout::frame(shell.size).body.height.saturating_sub(1)).max(1);
    let last = zoomed_len(webhooks, shell).saturating_sub(rows);
    if let Some(to) = travel::to(action, top.min(last), last, rows.max(2) - 1) {
        webhooks.zoom = Some((text, to));
        return Some(Vec::new());
    }
    let closes = matches!(action, Action::Open | Action::Back | SHOW_PING);
    closes.then(|| {
        webhooks.zoom = None;
        Vec::new()
    })
}

/// Moves the cursor of the section; returns none if the action is not a movement.
fn move_cursor(webhooks: &mut Webhooks, shell: &mut Shell, action: Action) -> Option<Vec<Effect>> {
    let parts = layout(webhooks, shell);
    if webhooks.section == WebhooksSection::List {
        let last = webhooks.list.items.len().saturating_sub(1);
        let page = parts.rows().max(2) - 1;
        webhooks.list.selected = travel::to(action, webhooks.list.selected, last, page)?;
        return Some(load_log(webhooks, shell));
    }
    if !webhooks.log.travel(action, parts.log_rows().max(2) - 1) {
        return None;
    }
    let is_open = webhooks.pending.has(|it| matches!(it, WebhooksRequest::MoreDeliveries(_)));
    let older = webhooks.log.missing_older().filter(|_| !is_open).zip(webhooks.log_of);
    let Some((Older { cursor, .. }, id)) = older else { return Some(Vec::new()) };
    let call = calls::webhook_deliveries(id, &Page { limit: Some(ROWS_PER_PAGE), cursor: Some(cursor) });
    Some(vec![webhooks.pending.send(shell.ticket(), WebhooksRequest::MoreDeliveries(id), call)])
}
