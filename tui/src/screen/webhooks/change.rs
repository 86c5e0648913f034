//! The changes of Webhooks.

use api::{
    client::{
        Auth,
        calls::{self, Page},
    },
    webhook::{
        NewWebhook, NewWebhookSecret, RotatedSecret, Webhook, WebhookChange, WebhookDelivery,
        WebhookDeliveryList,
    },
};
use uuid::Uuid;

use super::{
    state::Webhooks,
    update::{load, load_log},
};
use crate::{
    change::{Change, ChangeOutcome, CheckContext, SentState},
    dialog::Dialog,
    net::{Effect, NetError, Request, RequestId, Response},
    shell::{ScreenChanges, Shell},
};
use present::format::moment;

/// A change of a webhook.
#[derive(Clone, Debug)]
pub enum WebhooksChange {
    /// Create a webhook.
    Create(Box<NewWebhook>),
    /// Change the address or the events of a webhook.
    Update {
        /// The id.
        id: Uuid,
        /// The address before.
        url: String,
        /// The new values.
        change: Box<WebhookChange>,
    },
    /// Enable or disable a webhook.
    SetEnabled {
        /// The id.
        id: Uuid,
        /// The address.
        url: String,
        /// The new value.
        on: bool,
    },
    /// Replace the secret by one that the server generates.
    RotateSecret {
        /// The id.
        id: Uuid,
        /// The address.
        url: String,
    },
    /// Delete a webhook.
    Delete {
        /// The id.
        id: Uuid,
        /// The address.
        url: String,
    },
    /// Deliver an event again.
    Redeliver {
        /// The id of the webhook.
        webhook: Uuid,
        /// The id of the delivery.
        delivery: Uuid,
        /// The id of the event.
        event: Uuid,
        /// The type of the event.
        name: String,
    },
}

impl Change for WebhooksChange {
    fn title(&self) -> &'static str {
        match self {
            Self::Create(_) => "New webhook",
            Self::Update { .. } => "Change a webhook",
            Self::SetEnabled { on: true, .. } => "Enable a webhook",
            Self::SetEnabled { on: false, .. } => "Disable a webhook",
            Self::RotateSecret { .. } => "New webhook secret",
            Self::Delete { .. } => "Delete a webhook",
            Self::Redeliver { .. } => "Deliver again",
        }
    }

    fn verb(&self) -> &'static str {
        match self {
            Self::Create(_) => "Create",
            Self::Update { .. } => "Change",
            Self::SetEnabled { on: true, .. } => "Enable",
            Self::SetEnabled { on: false, .. } => "Disable",
            Self::RotateSecret { .. } => "Replace",
            Self::Delete { .. } => "Delete",
            Self::Redeliver { .. } => "Deliver",
        }
    }

    fn consequences(&self) -> &'static str {
        match self {
            Self::Create(_) | Self::Update { .. } => "",
            Self::SetEnabled { on: true, .. } => {
                "Events from now on are delivered. Events that occurred while it was disabled are not."
            }
            Self::SetEnabled { on: false, .. } => {
                "Pending deliveries are cancelled, and new events are not sent."
            }
            Self::RotateSecret { .. } => {
                "The server generates a secret and shows it once. For 24 hours, requests are signed with the \
                 previous secret too."
            }
            Self::Delete { .. } => {
                "Pending deliveries are cancelled, and the delivery log can't be read any more. This can't be undone."
            }
            Self::Redeliver { .. } => {
                "The receiver gets the same event with the same ID once more, with retries if it fails."
            }
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Create(new) => &new.url,
            Self::Update { url, .. }
            | Self::SetEnabled { url, .. }
            | Self::RotateSecret { url, .. }
            | Self::Delete { url, .. } => url,
            Self::Redeliver { name, .. } => name,
        }
    }

    fn id(&self) -> Option<Uuid> {
        match self {
            Self::Create(_) => None,
            Self::Update { id, .. }
            | Self::SetEnabled { id, .. }
            | Self::RotateSecret { id, .. }
            | Self::Delete { id, .. } => Some(*id),
            Self::Redeliver { delivery, .. } => Some(*delivery),
        }
    }

    fn done(&self) -> String {
        let name = self.name();
        match self {
            Self::Create(_) => format!("webhook {name} was created"),
            Self::Update { .. } => format!("webhook {name} was changed"),
            Self::SetEnabled { on: true, .. } => format!("webhook {name} is enabled"),
            Self::SetEnabled { on: false, .. } => format!("webhook {name} is disabled"),
            Self::RotateSecret { .. } => format!("webhook {name} has a new secret"),
            Self::Delete { .. } => format!("webhook {name} was deleted"),
            Self::Redeliver { .. } => format!("{name} is delivered again"),
        }
    }

    fn request(&self, request: RequestId, auth: Auth) -> Request {
        match self {
            Self::Create(new) => Request::new(request, calls::create_webhook(new).with(auth)),
            Self::Update { id, change, .. } => {
                Request::new(request, calls::update_webhook(*id, change).with(auth))
            }
            Self::SetEnabled { id, on, .. } => {
                let change = WebhookChange { enabled: Some(*on), ..WebhookChange::default() };
                Request::new(request, calls::update_webhook(*id, &change).with(auth))
            }
            Self::RotateSecret { id, .. } => {
                let call = calls::rotate_webhook_secret(*id, &NewWebhookSecret::default());
                Request::new(request, call.with(auth))
            }
            Self::Delete { id, .. } => Request::new(request, calls::delete_webhook(*id).with(auth)),
            Self::Redeliver { webhook, delivery, .. } => {
                Request::new(request, calls::redeliver(*webhook, *delivery).with(auth))
            }
        }
    }

    fn check(&self, request: RequestId, _context: CheckContext) -> Option<Request> {
        Some(match self {
            Self::Redeliver { webhook, .. } => {
                Request::new(request, calls::webhook_deliveries(*webhook, &Page::default()))
            }
            _ => Request::all(request, calls::webhooks),
        })
    }
}

impl ScreenChanges for Webhooks {
    type Change = WebhooksChange;

    fn changed(
        &mut self,
        shell: &mut Shell,
        change: &WebhooksChange,
        response: Response,
    ) -> Result<Vec<Effect>, NetError> {
        match change {
            WebhooksChange::Create(_) => self.created = Some(response.decoded::<Webhook>()?.id),
            WebhooksChange::RotateSecret { url, .. } => {
                show_secret(shell, change, url, response.decoded()?);
                return Ok(reload(self, shell));
            }
            WebhooksChange::Redeliver { .. } => {
                response.decoded::<WebhookDelivery>()?;
            }
            WebhooksChange::Update { .. }
            | WebhooksChange::SetEnabled { .. }
            | WebhooksChange::Delete { .. } => {}
        }
        shell.notify(change.done());
        Ok(reload(self, shell))
    }

    fn checked(
        &mut self,
        shell: &mut Shell,
        change: &WebhooksChange,
        sent: SentState<'_>,
        response: Response,
    ) -> Result<(ChangeOutcome, Vec<Effect>), NetError> {
        let is_new = |id: Uuid| !sent.records.contains(&id);
        if let WebhooksChange::Redeliver { event, .. } = change {
            let list: WebhookDeliveryList = response.decoded()?;
            let made = list.deliveries.iter().any(|it| it.event_id == *event && is_new(it.id));
            return Ok((ChangeOutcome::of(made), reload(self, shell)));
        }
        self.fill(response.decoded()?);
        let webhook = |id: &Uuid| self.list.items.iter().find(|it| it.id == *id);
        let outcome = match change {
            WebhooksChange::Create(new) => {
                let made = self.list.items.iter().position(|it| it.url == new.url && is_new(it.id));
                self.list.selected = made.unwrap_or(self.list.selected);
                ChangeOutcome::of(made.is_some())
            }
            WebhooksChange::Update { id, change, .. } => {
                ChangeOutcome::of(webhook(id).is_some_and(|it| has_values(it, change)))
            }
            WebhooksChange::SetEnabled { id, on, .. } => {
                ChangeOutcome::of(webhook(id).is_some_and(|it| it.enabled == *on))
            }
            WebhooksChange::Delete { id, .. } => ChangeOutcome::of(webhook(id).is_none()),
            // The list shows no secrets.
            _ => ChangeOutcome::NeedsAttention(format!(
                "the response with the new secret of {} was lost; replace the secret once more",
                change.name()
            )),
        };
        Ok((outcome, load_log(self, shell)))
    }

    fn change_refused(&mut self, shell: &mut Shell, _change: &WebhooksChange) -> Vec<Effect> {
        reload(self, shell)
    }
}

/// Whether a webhook has the new values of a change.
fn has_values(webhook: &Webhook, change: &WebhookChange) -> bool {
    let events = || webhook.events.iter().map(|it| it.as_str());
    change.url.as_ref().is_none_or(|it| *it == webhook.url)
        && change.events.as_ref().is_none_or(|it| events().eq(it.iter().map(String::as_str)))
}

/// Requests the webhooks and the deliveries at once.
fn reload(webhooks: &mut Webhooks, shell: &mut Shell) -> Vec<Effect> {
    webhooks.log.next = Some(shell.now);
    let mut effects = vec![load(webhooks, shell)];
    effects.extend(load_log(webhooks, shell));
    effects
}

/// Shows the new secret in a dialog.
fn show_secret(shell: &mut Shell, change: &WebhooksChange, url: &str, rotated: RotatedSecret) {
    let until = moment(shell.zone, rotated.previous_secret_expires_at, shell.now);
    match rotated.secret {
        Some(secret) => {
            let sentence = format!("New secret of {url}. The previous one signs until {until}.");
            shell.dialog = Some(Dialog::secret(change.title(), sentence, secret, shell.now));
        }
        None => shell.report(format!("{}, but the response contains no secret", change.done())),
    }
}
