//! The keys of Webhooks.

use api::Role;

use super::SCREEN_DIGIT;
use crate::keymap::{
    Action, Binding, Group, Scope, bindings,
    groups::{
        COPY_CURL_KEYS, COPY_KEYS, COPY_TEXT_KEYS, END_STEP_KEYS, EXPORT_KEYS, OPEN_KEYS, REFRESH_KEYS,
        SCREEN_KEYS, SCREEN_STEP_KEYS,
    },
};

/// Creates a webhook.
pub const NEW_WEBHOOK: Action = Action::Custom("webhooks.create");
/// Changes the address and the events of the webhook.
pub const UPDATE_WEBHOOK: Action = Action::Custom("webhooks.update");
/// Sends a ping to the webhook.
pub const TEST_WEBHOOK: Action = Action::Custom("webhooks.test");
/// Deletes the webhook.
pub const DELETE_WEBHOOK: Action = Action::Custom("webhooks.delete");
/// Replaces the secret of the webhook.
pub const ROTATE_SECRET: Action = Action::Custom("webhooks.rotate-secret");
/// Shows the response to the ping in full.
pub const SHOW_PING: Action = Action::Custom("webhooks.ping");
/// Delivers an event again.
pub const REDELIVER_EVENT: Action = Action::Custom("deliveries.redeliver");

/// The webhooks.
pub const WEBHOOK_KEYS: Group = Group { name: "webhooks", position: 10 };
/// The deliveries.
pub const DELIVERY_KEYS: Group = Group { name: "deliveries", position: 10 };

/// The webhooks.
pub const WEBHOOKS_SCOPE: Scope = Scope::screen(
    "Webhooks",
    &[
        OPEN_KEYS,
        WEBHOOK_KEYS,
        COPY_KEYS,
        COPY_CURL_KEYS,
        EXPORT_KEYS,
        REFRESH_KEYS,
        END_STEP_KEYS,
        SCREEN_STEP_KEYS,
    ],
);
/// The deliveries of a webhook.
pub const DELIVERIES_SCOPE: Scope = Scope::screen(
    "Webhooks: deliveries",
    &[
        OPEN_KEYS,
        DELIVERY_KEYS,
        COPY_KEYS,
        COPY_TEXT_KEYS,
        COPY_CURL_KEYS,
        EXPORT_KEYS,
        REFRESH_KEYS,
        END_STEP_KEYS,
        SCREEN_STEP_KEYS,
    ],
);

/// The scopes of the screen.
pub const SCREEN_SCOPES: &[Scope] = &[WEBHOOKS_SCOPE, DELIVERIES_SCOPE];

/// The bindings of the screen.
pub const SCREEN_BINDINGS: &[Binding] = bindings! {
    Action::Screen(SCREEN_DIGIT), "screen.webhooks", ["6"], SCREEN_KEYS, "Webhooks";
    NEW_WEBHOOK, "webhooks.create", ["c"], WEBHOOK_KEYS, "create a webhook", "new" => Role::Member;
    TEST_WEBHOOK, "webhooks.test", ["T"], WEBHOOK_KEYS, "send a ping to the webhook and show the response", "test" => Role::Member;
    SHOW_PING, "webhooks.ping", ["z"], WEBHOOK_KEYS, "the response to the last ping in full";
    UPDATE_WEBHOOK, "webhooks.update", ["u"], WEBHOOK_KEYS, "change the address and the events of the webhook" => Role::Member;
    Action::Enable, "webhooks.enable", ["E"], WEBHOOK_KEYS, "enable or disable the webhook, after a confirmation", "on/off" => Role::Member;
    ROTATE_SECRET, "webhooks.rotate-secret", ["S"], WEBHOOK_KEYS, "replace the secret; the new one is shown once", "secret" => Role::Member;
    DELETE_WEBHOOK, "webhooks.delete", ["d"], WEBHOOK_KEYS, "delete the webhook, after a confirmation", "delete" => Role::Owner;
    REDELIVER_EVENT, "deliveries.redeliver", ["r"], DELIVERY_KEYS, "deliver the event again, after a confirmation", "again" => Role::Member;
};
