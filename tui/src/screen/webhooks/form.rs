//! The forms of a new webhook and of its changes.

use std::sync::Arc;

use api::webhook::{EventType, NewWebhook, Webhook, WebhookChange};
use uuid::Uuid;

use super::change::WebhooksChange;
use crate::{
    change::Change,
    dialog::{Choice, Field, FieldError, FieldName, Form, FormPurpose},
    ids::LoadedIds,
};

const URL_FIELD: FieldName = FieldName { title: "URL", hint: "https, with a public host" };
const SECRET_FIELD: FieldName =
    FieldName { title: "Secret", hint: "signs the requests; at least 16 characters, shown masked" };
const EVENTS_FIELD: FieldName = FieldName {
    title: "Events",
    hint: "failure.detected, anomaly.detected, evaluation.failed, control_action.pending_approval, \
           prompt_deployment.ab_passed, prompt_deployment.regressed",
};
const STATE_FIELD: FieldName = FieldName { title: "State", hint: "left and right choose" };
/// Minimum number of characters of a secret.
const MIN_SECRET_CHARS: usize = 16;
/// The word of a webhook that receives nothing yet.
const DISABLED_WORD: &str = "disabled";

/// Creates a webhook.
#[derive(Clone, Copy, Debug)]
struct NewWebhookForm;

impl FormPurpose for NewWebhookForm {
    fn title(&self) -> &'static str {
        "New webhook"
    }

    fn verb(&self) -> &'static str {
        "Create"
    }

    fn read(&self, form: &Form, _loaded: &LoadedIds) -> Result<Arc<dyn Change>, FieldError> {
        let url = url(form)?;
        let secret = form.typed(SECRET_FIELD);
        if secret.chars().count() < MIN_SECRET_CHARS {
            return Err(form.error(SECRET_FIELD, "the secret needs at least 16 characters"));
        }
        Ok(Arc::new(WebhooksChange::Create(Box::new(NewWebhook {
            url: url.to_owned(),
            secret: secret.to_owned(),
            events: Some(events(form)?),
            enabled: Some(form.word(STATE_FIELD).as_deref() != Some(DISABLED_WORD)),
        }))))
    }
}

/// Changes the address and the events of a webhook.
#[derive(Clone, Debug)]
struct WebhookUpdateForm {
    id: Uuid,
    url: String,
    events: Vec<String>,
}

impl FormPurpose for WebhookUpdateForm {
    fn title(&self) -> &'static str {
        "Change a webhook"
    }

    fn verb(&self) -> &'static str {
        "Change"
    }

    fn read(&self, form: &Form, _loaded: &LoadedIds) -> Result<Arc<dyn Change>, FieldError> {
        let (url, events) = (url(form)?, events(form)?);
        let change = WebhookChange {
            url: (url != self.url).then(|| url.to_owned()),
            events: (events != self.events).then_some(events),
            enabled: None,
        };
        if change == WebhookChange::default() {
            return Err(form.error(URL_FIELD, "neither the address nor the events have changed"));
        }
        Ok(Arc::new(WebhooksChange::Update { id: self.id, url: self.url.clone(), change: Box::new(change) }))
    }
}

/// Returns the address.
fn url(form: &Form) -> Result<&str, FieldError> {
    let url = form.typed(URL_FIELD);
    if !url.starts_with("https://") {
        return Err(form.error(URL_FIELD, "an address that begins with https:// is required"));
    }
    Ok(url)
}

/// Returns the subscribed events, which are separated by commas or blanks.
fn events(form: &Form) -> Result<Vec<String>, FieldError> {
    let words = form.typed(EVENTS_FIELD).split([',', ' ']).filter(|word| !word.is_empty());
    let mut events: Vec<String> = Vec::new();
    for word in words {
        match word.parse::<EventType>() {
            Ok(EventType::Ping) => {
                return Err(form.error(EVENTS_FIELD, "`ping` is sent to every webhook; leave it out"));
            }
            Ok(event) if events.iter().any(|it| it == event.as_str()) => {}
            Ok(event) => events.push(event.as_str().to_owned()),
            Err(_) => {
                let known = EventType::ALL.iter().filter(|event| **event != EventType::Ping);
                let known: Vec<&str> = known.map(|event| event.as_str()).collect();
                let problem = format!("there is no event `{word}`; events: {}", known.join(", "));
                return Err(form.error(EVENTS_FIELD, problem));
            }
        }
    }
    if events.is_empty() {
        return Err(form.error(EVENTS_FIELD, "at least one event is required"));
    }
    Ok(events)
}

/// Returns the form of a new webhook.
pub fn new_webhook() -> Form {
    let fields = vec![
        Field::text(URL_FIELD, "https://"),
        Field::secret(SECRET_FIELD),
        Field::text(EVENTS_FIELD, EventType::FailureDetected.as_str()),
        Field::choice(STATE_FIELD, Choice::of(&["enabled", DISABLED_WORD])),
    ];
    Form::new(Arc::new(NewWebhookForm), fields)
}

/// Returns the form that changes a webhook, filled with its address and events.
pub fn webhook_update(webhook: &Webhook) -> Form {
    let events: Vec<String> = webhook.events.iter().map(|it| it.as_str().to_owned()).collect();
    let fields = vec![Field::text(URL_FIELD, &webhook.url), Field::text(EVENTS_FIELD, &events.join(", "))];
    Form::new(Arc::new(WebhookUpdateForm { id: webhook.id, url: webhook.url.clone(), events }), fields)
}
