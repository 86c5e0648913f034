//! Webhooks: its requests, its keys, its changes, and every state of the screen.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use api::webhook::{
    DeliveryAttempt, DeliveryStatus, EventType, RotatedSecret, Webhook, WebhookDelivery, WebhookDeliveryList,
    WebhookTest,
};

use super::{change::WebhooksChange, state::WebhooksSection};
use crate::{
    dialog::Body,
    screen::manage::tests::wait,
    tests::screens::{TERMINAL_SIZES, screen, snap},
    tests::*,
};

/// A response that tries to clear the screen and to reorder text.
const HOSTILE_TEXT: &str = "{\"received\": \u{1b}[2Jtrue\u{202e}}\nsecond line";
const SIGNING_SECRET: &str = "s3cr3t-s3cr3t-s3cr3t";

fn ago(seconds: i64) -> Timestamp {
    Timestamp::from_micros(BASE_MICROS + 60_000_000 - seconds * 1_000_000)
}

fn webhook(n: u128, url: &str) -> Webhook {
    Webhook {
        id: id(n),
        url: url.into(),
        events: vec![EventType::FailureDetected, EventType::AnomalyDetected],
        enabled: true,
        disabled_reason: None,
        last_delivery_at: Some(ago(60)),
        created_at: ago(86_400),
        updated_at: ago(86_400),
    }
}

fn webhooks() -> Vec<Webhook> {
    let mut all = vec![
        webhook(81, "https://hooks.example.dev/loupe/with/a/rather/long/path/that/does/not/fit/into/columns"),
        webhook(82, "https://old.demo.dev/\u{1b}[31min"),
        webhook(83, "https://フック.example/受信"),
    ];
    all[1].enabled = false;
    all[1].disabled_reason = Some("the receiver returned 410 Gone\u{7}".into());
    all[2].enabled = false;
    all[2].last_delivery_at = None;
    all
}

fn attempt(n: u32, status: u16, error: Option<&str>) -> DeliveryAttempt {
    DeliveryAttempt {
        attempt: n,
        started_at: ago(300 - i64::from(n) * 60),
        status,
        latency_ms: 88,
        error: error.map(str::to_owned),
        response_body: (status > 0).then(|| HOSTILE_TEXT.to_owned()),
    }
}

fn deliveries() -> Vec<WebhookDelivery> {
    let delivery = |n: u128, status, attempts: Vec<DeliveryAttempt>| WebhookDelivery {
        id: id(n),
        webhook_id: id(81),
        event_id: id(n + 100),
        event_type: EventType::FailureDetected,
        status,
        attempts,
        next_attempt_at: (status == DeliveryStatus::Pending).then(|| ago(-40)),
        created_at: ago(i64::try_from(n).unwrap()),
        completed_at: (status != DeliveryStatus::Pending).then(|| ago(0)),
    };
    let failed = "connection timed out \u{1b}[5m";
    vec![
        delivery(201, DeliveryStatus::Delivered, vec![attempt(1, 200, None)]),
        delivery(202, DeliveryStatus::Pending, vec![attempt(1, 0, Some(failed)), attempt(2, 500, None)]),
        delivery(203, DeliveryStatus::Dead, vec![attempt(9, 0, Some(failed))]),
        delivery(204, DeliveryStatus::Cancelled, vec![]),
    ]
}

fn delivery_list(deliveries: Vec<WebhookDelivery>, next: Option<&str>) -> WebhookDeliveryList {
    WebhookDeliveryList { deliveries, has_more: next.is_some(), next_cursor: next.map(str::to_owned) }
}

/// Responds to every request among the effects, and to the requests that follow.
fn answer_all(state: &mut App, effects: &[Effect]) {
    for sent in requests(effects) {
        let response = if sent.gets("/v1/webhooks") {
            Response::new(webhooks())
        } else if sent.gets("/v1/webhooks/*/deliveries") {
            let own = deliveries().into_iter().filter(|it| Some(it.webhook_id) == sent.path_id());
            Response::new(delivery_list(own.collect(), None))
        } else {
            panic!("{sent:?}")
        };
        let more = update(state, Msg::Reply(sent.id, Ok(response)));
        answer_all(state, &more);
    }
}

/// Returns a console on screen 6 after responses to all requests.
fn hooked(size: (u16, u16), theme: Theme) -> App {
    let mut state = filled(size, theme);
    let effects = press(&mut state, "6");
    answer_all(&mut state, &effects);
    state.shell.target.protected = false;
    state
}

fn pinged(state: &mut App, status: u16, error: Option<&str>) {
    let effects = press(state, "T");
    let body = if status > 0 { HOSTILE_TEXT.to_owned() } else { String::new() };
    let result = WebhookTest { status, body, error: error.map(str::to_owned) };
    reply(state, &effects, Ok(Response::new(result)));
}

/// Sends the change of a confirmation.
fn confirm(state: &mut App, keys: &str) -> Vec<Effect> {
    press(state, keys);
    wait(state);
    press(state, "y")
}

#[test]
fn webhooks_screen_requests_the_list_and_then_the_deliveries() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "6");
    assert!(are(&effects, &["/v1/webhooks"]), "{effects:?}");
    let effects = reply(&mut state, &effects, Ok(Response::new(webhooks())));
    assert!(are(&effects, &["/v1/webhooks/*/deliveries"]), "{effects:?}");
    assert_eq!(only_request(&effects).path_id(), Some(id(81)));
    assert!(press(&mut state, "j").is_empty(), "one webhook at a time");
    let page = delivery_list(deliveries(), None);
    let effects = reply(&mut state, &effects, Ok(Response::new(page)));
    assert_eq!(only_request(&effects).path_id(), Some(id(82)));
    assert!(state.screens.webhooks.log.items.is_empty(), "the deliveries of the other webhook are dropped");
}

#[test]
fn deliveries_are_requested_again_while_the_screen_is_shown() {
    let mut state = hooked((80, 24), UNICODE_THEME);
    assert!(tick(&mut state, 4).is_empty());
    let effects = tick(&mut state, 1);
    assert!(are(&effects, &["/v1/webhooks/*/deliveries"]), "{effects:?}");
    reply(&mut state, &effects, Err(answered(500, "internal", "no luck")));
    let text = screen(&state);
    assert!(text.contains("failure.detected") && text.contains("hooks.example.dev"), "{text}");
    press(&mut state, "1");
    assert!(!tick(&mut state, 60).iter().any(|it| is_get(it, "/v1/webhooks")));
}

#[test]
fn ping_is_sent_once_and_its_response_is_shown() {
    let mut state = hooked((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "T");
    let sent = only_request(&effects);
    assert_eq!((sent.method.as_str(), sent.auth.as_str()), ("POST", "Session"));
    assert!(sent.path.ends_with("/test") && sent.path_id() == Some(id(81)), "{sent:?}");
    assert!(press(&mut state, "T").is_empty(), "the first one is under way");
    assert!(screen(&state).contains("waiting for the receiver"));
    let result = WebhookTest { status: 200, body: HOSTILE_TEXT.into(), error: None };
    reply(&mut state, &effects, Ok(Response::new(result)));
    let text = screen(&state);
    assert!(text.contains("status 200") && text.contains("⟦ESC⟧[2J"), "{text}");
    press(&mut state, "z");
    snap("webhooks-ping", &state);
    key(&mut state, KeyCode::Esc);
    assert!(state.screens.webhooks.zoom.is_none() && state.shell.screen == 6);
    pinged(&mut state, 0, Some("connection refused"));
    let text = screen(&state);
    assert!(text.contains("no complete response") && text.contains("connection refused"), "{text}");
}

#[test]
fn ping_that_the_plan_forbids_is_explained() {
    let mut state = hooked((120, 40), UNICODE_THEME);
    let effects = press(&mut state, "T");
    reply(&mut state, &effects, Err(answered(403, "plan_forbidden", "tests need the plan Pro")));
    state.shell.toast = None;
    let text = screen(&state);
    assert!(text.contains("not sent") && text.contains("tests need the plan Pro"), "{text}");
    assert!(text.contains("hooks.example.dev"), "the list stays");
    let mut state = hooked((80, 24), UNICODE_THEME);
    state.shell.me.as_mut().unwrap().role = Role::Viewer;
    assert!(press(&mut state, "T").is_empty());
    assert!(state.shell.toast.as_ref().unwrap().text.contains("requires the role member"));
}

#[test]
fn deliveries_open_with_their_attempts() {
    for size in TERMINAL_SIZES {
        let mut state = hooked(size, UNICODE_THEME);
        let effects = key(&mut state, KeyCode::Enter);
        answer_all(&mut state, &effects);
        assert_eq!(state.screens.webhooks.section, WebhooksSection::Deliveries);
        press(&mut state, "j");
        snap("webhooks-deliveries", &state);
        key(&mut state, KeyCode::Enter);
        snap("webhooks-attempts", &state);
        let text = screen(&state);
        assert!(text.contains("try 2") && text.contains("try 1") && text.contains("timed out"), "{text}");
        key(&mut state, KeyCode::Esc);
        key(&mut state, KeyCode::Esc);
        assert_eq!((state.screens.webhooks.section, state.shell.screen), (WebhooksSection::List, 6));
    }
}

#[test]
fn older_deliveries_load_near_the_end_of_the_log() {
    let mut state = filled((80, 24), UNICODE_THEME);
    let effects = press(&mut state, "6");
    let effects = reply(&mut state, &effects, Ok(Response::new(webhooks())));
    reply(&mut state, &effects, Ok(Response::new(delivery_list(deliveries(), Some("older")))));
    key(&mut state, KeyCode::Enter);
    let effects = press(&mut state, "j");
    assert_eq!(only_request(&effects).param("cursor"), Some("older"));
    reply(&mut state, &effects, Err(offline()));
    assert_eq!(state.screens.webhooks.log.items.len(), 4);
}

#[test]
fn changes_of_webhooks_are_sent_after_a_confirmation() {
    type IsChange = fn(&WebhooksChange) -> bool;
    let cases: [(&str, &str, IsChange); 4] = [
        ("E", "PATCH", |it| matches!(it, WebhooksChange::SetEnabled { on: false, .. })),
        ("jE", "PATCH", |it| matches!(it, WebhooksChange::SetEnabled { on: true, .. })),
        ("d", "DELETE", |it| matches!(it, WebhooksChange::Delete { .. })),
        ("S", "POST", |it| matches!(it, WebhooksChange::RotateSecret { .. })),
    ];
    for (keys, method, is_change) in cases {
        let mut state = hooked((80, 24), UNICODE_THEME);
        let effects = confirm(&mut state, keys);
        let changes = sent_changes::<WebhooksChange>(&state, &effects);
        assert!(changes.len() == 1 && is_change(&changes[0]), "{keys}: {changes:?}");
        assert_eq!(last_request(&effects).method, method);
    }
    let mut state = hooked((80, 24), UNICODE_THEME);
    let effects = confirm(&mut state, "d");
    let effects = reply(&mut state, &effects, Ok(Response::new(())));
    assert!(effects.iter().any(|it| is_get(it, "/v1/webhooks")), "{effects:?}");
    assert!(state.shell.toast.as_ref().unwrap().text.contains("was deleted"));
}

#[test]
fn deleting_requires_the_owner_and_the_typed_id_on_a_protected_context() {
    let mut state = hooked((80, 24), UNICODE_THEME);
    state.shell.target.protected = true;
    assert!(confirm(&mut state, "d").is_empty(), "y is not enough");
    snap("webhooks-delete", &state);
    state.shell.dialog = None;
    state.shell.me.as_mut().unwrap().role = Role::Member;
    press(&mut state, "d");
    assert!(state.shell.dialog.is_none());
    assert!(state.shell.toast.as_ref().unwrap().text.contains("requires the role owner"));
}

#[test]
fn rotated_secret_is_shown_once_and_in_no_record() {
    let mut state = hooked((80, 24), UNICODE_THEME);
    let effects = confirm(&mut state, "S");
    let rotated = RotatedSecret {
        id: id(81),
        secret: Some("whsec_bmV3LXNlY3JldA".into()),
        previous_secret_expires_at: ago(-86_400),
    };
    reply(&mut state, &effects, Ok(Response::new(rotated)));
    assert!(matches!(&state.shell.dialog.as_ref().unwrap().body, Body::Secret { .. }));
    assert!(!format!("{state:?}").contains("bmV3LXNlY3JldA"));
    wait(&mut state);
    assert!(!screen(&state).contains("bmV3LXNlY3JldA"), "the secret is masked");
    press(&mut state, "v");
    assert!(screen(&state).contains("whsec_bmV3LXNlY3JldA"));
    snap("webhooks-secret", &state);
}

#[test]
fn lost_response_to_a_change_of_a_webhook_reads_the_list() {
    for (keys, outcome) in [("d", "the change was not made"), ("S", "replace the secret once more")] {
        let mut state = hooked((80, 24), UNICODE_THEME);
        let effects = confirm(&mut state, keys);
        let effects = reply(&mut state, &effects, Err(offline()));
        assert!(are(&effects, &["/v1/webhooks"]), "{effects:?}");
        reply(&mut state, &effects, Ok(Response::new(webhooks())));
        let text = match &state.shell.dialog {
            Some(dialog) => dialog.complaint.clone().unwrap(),
            None => state.shell.toast.as_ref().unwrap().text.clone(),
        };
        assert!(text.contains(outcome), "{text}");
    }
}

#[test]
fn delivery_is_sent_again_and_found_after_a_lost_response() {
    let mut state = hooked((80, 24), UNICODE_THEME);
    key(&mut state, KeyCode::Enter);
    let effects = confirm(&mut state, "jr");
    let sent = last_request(&effects);
    assert!(sent.path.ends_with(&format!("/deliveries/{}/redeliver", id(202))), "{sent:?}");
    let effects = reply(&mut state, &effects, Err(offline()));
    assert!(are(&effects, &["/v1/webhooks/*/deliveries"]), "{effects:?}");
    let mut after = deliveries();
    after.insert(0, WebhookDelivery { id: id(299), ..after[1].clone() });
    reply(&mut state, &effects, Ok(Response::new(delivery_list(after, None))));
    assert!(state.shell.toast.as_ref().unwrap().text.contains("its response was lost"));
    let mut state = hooked((80, 24), UNICODE_THEME);
    key(&mut state, KeyCode::Enter);
    let effects = confirm(&mut state, "jr");
    let made = WebhookDelivery { id: id(299), ..deliveries().remove(1) };
    let effects = reply(&mut state, &effects, Ok(Response::new(made)));
    assert!(effects.iter().any(|it| is_get(it, "/v1/webhooks/*/deliveries")), "{effects:?}");
}

#[test]
fn new_webhook_is_created_with_a_masked_secret() {
    let mut state = hooked((80, 24), UNICODE_THEME);
    press(&mut state, "chooks.example.dev/in");
    wait(&mut state);
    key(&mut state, KeyCode::Tab);
    press(&mut state, "short");
    for _ in 0..4 {
        key(&mut state, KeyCode::Tab);
    }
    assert!(key(&mut state, KeyCode::Enter).is_empty());
    assert!(state.shell.dialog.as_ref().unwrap().complaint.as_ref().unwrap().contains("16 characters"));
    press(&mut state, &SIGNING_SECRET["short".len()..]);
    assert!(!format!("{state:?}").contains("shortt-s3"), "the debug output does not contain the secret");
    assert!(!screen(&state).contains("short"), "the secret is masked");
    key(&mut state, KeyCode::Tab);
    press(&mut state, ",anomaly.detected");
    snap("webhooks-new", &state);
    key(&mut state, KeyCode::Tab);
    key(&mut state, KeyCode::Tab);
    key(&mut state, KeyCode::Tab);
    let effects = key(&mut state, KeyCode::Enter);
    let changes = sent_changes::<WebhooksChange>(&state, &effects);
    let [WebhooksChange::Create(new)] = &changes[..] else { panic!("{changes:?} {effects:?}") };
    assert_eq!((new.url.as_str(), new.enabled), ("https://hooks.example.dev/in", Some(true)));
    assert_eq!(new.secret, format!("short{}", &SIGNING_SECRET["short".len()..]));
    assert_eq!(new.events.as_ref().unwrap(), &["failure.detected", "anomaly.detected"]);
    assert!(
        !format!("{effects:?} {state:?}").contains("s3cr3t"),
        "the debug output does not contain the secret"
    );
    let made = webhook(90, "https://hooks.example.dev/in");
    let effects = reply(&mut state, &effects, Ok(Response::new(made.clone())));
    let list = requests(&effects).into_iter().find(|it| it.gets("/v1/webhooks")).unwrap();
    let mut all = webhooks();
    all.insert(2, made);
    update(&mut state, Msg::Reply(list.id, Ok(Response::new(all))));
    assert_eq!(state.screens.webhooks.current().unwrap().id, id(90), "the new one is selected");
}

#[test]
fn changed_fields_of_a_webhook_are_sent() {
    let mut state = hooked((80, 24), UNICODE_THEME);
    press(&mut state, "u");
    wait(&mut state);
    for _ in 0..3 {
        key(&mut state, KeyCode::Tab);
    }
    assert!(key(&mut state, KeyCode::Enter).is_empty());
    let complaint = state.shell.dialog.as_ref().unwrap().complaint.clone().unwrap();
    assert!(complaint.contains("have changed"), "{complaint}");
    key(&mut state, KeyCode::Tab);
    press(&mut state, ", evaluation.failed");
    snap("webhooks-update", &state);
    key(&mut state, KeyCode::Tab);
    key(&mut state, KeyCode::Tab);
    let effects = key(&mut state, KeyCode::Enter);
    let changes = sent_changes::<WebhooksChange>(&state, &effects);
    let [WebhooksChange::Update { id: changed, change, .. }] = &changes[..] else {
        panic!("{changes:?} {effects:?}")
    };
    assert_eq!((*changed, &change.url, change.enabled), (id(81), &None, None));
    let events = ["failure.detected", "anomaly.detected", "evaluation.failed"];
    assert_eq!(change.events.as_ref().unwrap(), &events);
    // The response is lost; the list shows that the change was made.
    let effects = reply(&mut state, &effects, Err(offline()));
    let list = requests(&effects).into_iter().find(|it| it.gets("/v1/webhooks")).unwrap();
    let mut all = webhooks();
    all[0].events.push(EventType::EvaluationFailed);
    update(&mut state, Msg::Reply(list.id, Ok(Response::new(all))));
    assert!(state.shell.toast.as_ref().unwrap().text.contains("its response was lost"));
}

#[test]
fn form_of_a_webhook_names_the_invalid_field() {
    for (events, problem) in
        [(",failure.detectd", "there is no event `failure.detectd`"), (",ping", "sent to every webhook")]
    {
        let mut state = hooked((80, 24), UNICODE_THEME);
        press(&mut state, "cx.example");
        wait(&mut state);
        key(&mut state, KeyCode::Tab);
        press(&mut state, SIGNING_SECRET);
        key(&mut state, KeyCode::Tab);
        press(&mut state, events);
        for _ in 0..3 {
            key(&mut state, KeyCode::Tab);
        }
        assert!(key(&mut state, KeyCode::Enter).is_empty());
        let complaint = state.shell.dialog.as_ref().unwrap().complaint.clone().unwrap();
        assert!(complaint.contains(problem), "{complaint}");
    }
}

#[test]
fn webhooks_screen_draws_every_state() {
    for size in TERMINAL_SIZES {
        let mut state = filled(size, UNICODE_THEME);
        let effects = press(&mut state, "6");
        tick(&mut state, 1);
        snap("webhooks-loading", &state);
        reply(&mut state, &effects, Err(answered(503, "overloaded", "the database is away")));
        snap("webhooks-error", &state);
        let effects = press(&mut state, "R");
        reply(&mut state, &effects, Ok(Response::new(Vec::<Webhook>::new())));
        state.shell.toast = None;
        snap("webhooks-empty", &state);
        let mut state = hooked(size, UNICODE_THEME);
        pinged(&mut state, 500, None);
        snap("webhooks", &state);
        let effects = press(&mut state, "j");
        answer_all(&mut state, &effects);
        snap("webhooks-disabled", &state);
    }
}

#[test]
fn webhooks_screen_is_drawn_in_ascii_and_at_every_size() {
    let mut state = hooked((80, 24), ASCII_THEME);
    for row in &mut state.screens.webhooks.list.items {
        row.url = "https://plain.example".into();
    }
    for attempt in state.screens.webhooks.log.items.iter_mut().flat_map(|it| &mut it.attempts) {
        attempt.error = None;
        attempt.response_body = Some("plain".into());
    }
    let text = screen(&state);
    assert!(text.is_ascii(), "{text}");
    snap("ascii-webhooks", &state);
    for cols in [1, 40, 59, 60, 76, 90, 109, 200] {
        for rows in [1, 10, 14, 15, 20, 24, 33, 34, 60] {
            let mut state = hooked((80, 24), UNICODE_THEME);
            update(&mut state, Msg::Resize(cols, rows));
            pinged(&mut state, 200, None);
            for keys in ["z", "z", "c"] {
                press(&mut state, keys);
                screen(&state);
            }
            state.shell.dialog = None;
            for _ in 0..2 {
                let effects = key(&mut state, KeyCode::Enter);
                answer_all(&mut state, &effects);
                screen(&state);
            }
        }
    }
}
