//! The records of Webhooks: the webhooks, the last ping of each, and the deliveries of the selected one.

use std::collections::HashMap;

use api::{
    Timestamp,
    webhook::{Webhook, WebhookDelivery, WebhookList, WebhookTest},
};
use uuid::Uuid;

use crate::{
    net::{List, NetError},
    shell::{PagedRow, PagedRows, Pending, RequestPurpose, Rows},
};

/// The section of the screen that handles the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WebhooksSection {
    /// The webhooks.
    #[default]
    List,
    /// The deliveries of the selected webhook.
    Deliveries,
}

/// A text that fills the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoomedText {
    /// The response to the last ping of a webhook, by its id.
    Ping(Uuid),
    /// The attempts of a delivery, by its id.
    Delivery(Uuid),
}

/// The purpose of an open request of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhooksRequest {
    /// The webhooks.
    List,
    /// The first page of the deliveries of a webhook.
    Deliveries(Uuid),
    /// An older page of these deliveries.
    MoreDeliveries(Uuid),
    /// A ping of a webhook.
    Test(Uuid),
}

impl RequestPurpose for WebhooksRequest {}

impl List for WebhookList {
    type Row = Webhook;

    fn into_rows(self) -> (Vec<Webhook>, Option<String>) {
        (self.webhooks, self.next_cursor)
    }
}

impl PagedRow for WebhookDelivery {
    fn id(&self) -> Uuid {
        self.id
    }

    fn time(&self) -> Timestamp {
        self.created_at
    }
}

/// The result of the last ping of a webhook.
#[derive(Debug)]
pub struct PingResult {
    /// Time at which it was sent.
    pub sent: Timestamp,
    /// The response of the receiver, or why the server did not send the ping.
    pub result: Result<WebhookTest, NetError>,
}

/// The state of the screen.
#[derive(Debug, Default)]
pub struct Webhooks {
    /// The section in use.
    pub section: WebhooksSection,
    /// The webhooks, newest first.
    pub list: Rows<Webhook>,
    /// The webhook that the cursor moves to as soon as it is loaded.
    pub created: Option<Uuid>,
    /// Time at which the webhooks last arrived.
    pub heard: Option<Timestamp>,
    /// Time at which to request the webhooks again.
    pub next: Option<Timestamp>,
    /// The last ping of each webhook, by its id.
    pub pings: HashMap<Uuid, PingResult>,
    /// The webhook that the deliveries belong to.
    pub log_of: Option<Uuid>,
    /// The deliveries, newest first.
    pub log: PagedRows<WebhookDelivery>,
    /// The text that fills the body, and its first visible line.
    pub zoom: Option<(ZoomedText, usize)>,
    /// Open requests.
    pub pending: Pending<WebhooksRequest>,
}

impl Webhooks {
    /// Returns the webhook under the cursor.
    pub fn current(&self) -> Option<&Webhook> {
        self.list.items.get(self.list.selected)
    }

    /// Returns the delivery under the cursor.
    pub fn delivery(&self) -> Option<&WebhookDelivery> {
        self.log.current().filter(|it| Some(it.webhook_id) == self.current().map(|webhook| webhook.id))
    }

    /// Returns the result of the last ping of the webhook under the cursor.
    pub fn ping(&self) -> Option<&PingResult> {
        self.pings.get(&self.current()?.id)
    }

    /// Returns whether a ping of the webhook under the cursor has no result yet.
    pub fn is_testing(&self) -> bool {
        let id = self.current().map(|it| it.id);
        self.pending.has(|it| matches!(it, WebhooksRequest::Test(webhook) if Some(*webhook) == id))
    }

    /// Stores a fresh list; the cursor stays on its webhook, or goes to the one that was created.
    pub fn fill(&mut self, webhooks: Vec<Webhook>) {
        let position = |id: Uuid| webhooks.iter().position(|it| it.id == id);
        let created = self.created.and_then(position);
        if created.is_some() {
            self.created = None;
        }
        let kept = created.or_else(|| self.current().and_then(|it| position(it.id)));
        let last = webhooks.len().saturating_sub(1);
        self.list = Rows {
            selected: kept.unwrap_or_else(|| self.list.selected.min(last)),
            items: webhooks,
            loaded: true,
            error: None,
        };
        if self.list.items.is_empty() {
            self.section = WebhooksSection::List;
        }
    }
}
