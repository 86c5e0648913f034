//! Failed attempts: the schedule, the end of a delivery, and webhooks that the server disables.

use serde_json::{Value, json};
use server::clock::Clock;

use crate::{
    installation::{Installation, WEBHOOK_SECRET, all},
    receiver::{Receiver, Response, response},
    signed::verify,
    with_receivers,
};

const DAY: i64 = 86_400;

/// Moves the clock to the next attempt of the newest delivery. Returns the delay in seconds; none if there is no
/// further attempt.
async fn next(home: &Installation, webhook: &str) -> Option<f64> {
    let newest = home.deliveries(webhook).await[0].clone();
    let at: api::Timestamp = newest["next_attempt_at"].as_str()?.parse().unwrap();
    let delay = at.micros() - home.app.clock.now();
    home.app.clock.advance(delay);
    home.app.drain().await;
    Some(delay as f64 / 1e6)
}

/// Publishes an event and returns the delay before its second attempt.
async fn first_delay(home: &Installation, receiver: &Receiver) -> f64 {
    let webhook = home.webhook(receiver).await;
    home.publish(0..1).await;
    home.app.drain().await;
    next(home, &webhook).await.unwrap()
}

with_receivers! {
    async fn failing_delivery_follows_the_schedule_and_ends(home: Installation) {
        let receiver = home.receiver(|_, _| response(500, &[], b"broken")).await;
        let id = home.webhook(&receiver).await;
        home.publish(0..1).await;
        home.app.drain().await;
        let began = home.app.clock.now();
        let mut delays = Vec::new();
        while let Some(delay) = next(home, &id).await {
            // No attempt is made before it is due.
            assert_eq!(receiver.received().len(), delays.len() + 2);
            delays.push(delay);
        }
        let expected = [5.0, 60.0, 300.0, 1_800.0, 7_200.0, 21_600.0, 43_200.0, 86_400.0];
        assert_eq!(delays.len(), expected.len());
        for (delay, expected) in delays.iter().zip(expected) {
            assert!((expected..=expected * 1.2).contains(delay), "{delay} s instead of {expected} s");
        }
        assert!(delays.iter().zip(expected).any(|(delay, expected)| *delay > expected), "no jitter");
        assert!(home.app.clock.now() - began > DAY * 1_000_000);
        let received = receiver.received();
        assert_eq!(received.len(), 9);
        for request in &received {
            verify(request, WEBHOOK_SECRET);
            for name in ["webhook-id", "x-service-delivery", "x-service-event"] {
                assert_eq!(request.headers[name], received[0].headers[name]);
            }
            assert_eq!(request.body, received[0].body);
        }
        let delivery = home.deliveries(&id).await[0].clone();
        assert_eq!((&delivery["status"], delivery["completed_at"].is_string()), (&json!("dead"), true));
        let attempts = delivery["attempts"].as_array().unwrap();
        assert_eq!(all(attempts, "attempt"), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        for attempt in attempts {
            assert_eq!((&attempt["status"], &attempt["response_body"]), (&json!(500), &json!("broken")));
            assert_eq!(attempt["error"], "the receiver returned status 500");
        }
        home.app.advance(10 * DAY);
        assert_eq!(home.app.drain().await, 0, "jobs are left");
        assert_eq!(home.shown(&id).await["last_delivery_at"], Value::Null);
    }

    async fn delivery_succeeds_on_a_later_attempt(home: Installation) {
        let receiver = home.receiver(|_, before| Response::Status([500, 404, 204][before.min(2)])).await;
        let id = home.webhook(&receiver).await;
        home.publish(0..1).await;
        home.app.drain().await;
        while next(home, &id).await.is_some() {}
        let delivery = home.deliveries(&id).await[0].clone();
        assert_eq!(delivery["status"], "delivered");
        assert_eq!(all(delivery["attempts"].as_array().unwrap(), "status"), [500, 404, 204]);
    }

    async fn retry_after_lengthens_a_delay(home: Installation) {
        for (status, header, from, to) in [
            (503, "Retry-After: 600", 600.0, 600.0),
            (429, "Retry-After: Mon, 15 Jun 2026 12:30:00 GMT", 60.0, 1_800.0),
            (429, "Retry-After: 2", 5.0, 6.0),
            (503, "Retry-After: 99999999", 86_400.0, 86_400.0),
            (503, "Retry-After: soon", 5.0, 6.0),
            (500, "Retry-After: 600", 5.0, 6.0),
        ] {
            let receiver = home.receiver(move |_, before| match before {
                0 => response(status, &[header], b""),
                _ => Response::Status(200),
            }).await;
            // The clock has not reached the date yet in the first rounds.
            let delay = first_delay(home, &receiver).await;
            assert!((from..=to).contains(&delay), "{header}: {delay} s");
            let page = home.key().get("/v1/webhooks").await.ok();
            let id = page["webhooks"][0]["id"].as_str().unwrap();
            home.key().delete(&format!("/v1/webhooks/{id}")).await.ok();
        }
    }

    async fn redirects_are_failures_and_are_not_followed(home: Installation) {
        let canary = home.receiver(|_, _| Response::Status(200)).await;
        let target = format!("Location: {}", canary.url());
        for status in [301, 302, 303, 307, 308] {
            let target = target.clone();
            let receiver = home.receiver(move |_, _| response(status, &[&target], b"")).await;
            let id = home.webhook(&receiver).await;
            home.publish(0..1).await;
            home.app.drain().await;
            let delivery = home.deliveries(&id).await[0].clone();
            assert_eq!((&delivery["status"], &delivery["attempts"][0]["status"]), (&json!("pending"), &json!(status)));
            assert!(delivery["attempts"][0]["error"].as_str().unwrap().contains("redirects are not followed"));
            home.key().delete(&format!("/v1/webhooks/{id}")).await.ok();
        }
        assert!(canary.received().is_empty());
    }

    async fn occasional_failures_do_not_delay_the_other_deliveries(home: Installation) {
        let fails = |before: usize| before.is_multiple_of(4);
        let receiver = home.receiver(move |_, before| Response::Status(if fails(before) { 500 } else { 200 })).await;
        let id = home.webhook(&receiver).await;
        home.publish(0..20).await;
        home.app.drain().await;
        assert_eq!(receiver.received().len(), 20, "without waiting");
        let pending = async || {
            home.deliveries(&id).await.iter().filter(|it| it["status"] == "pending").count()
        };
        assert_eq!(pending().await, 5);
        home.app.advance(7);
        home.app.drain().await;
        assert_eq!((receiver.received().len(), pending().await), (25, 2), "requests 21 and 25 failed");
    }

    /// After two failed attempts in a row, the receiver is probed with one delivery, and the others are not counted.
    async fn outage_postpones_the_other_deliveries(home: Installation) {
        let receiver = home.receiver(|_, before| Response::Status(if before < 4 { 500 } else { 200 })).await;
        let id = home.webhook(&receiver).await;
        home.publish(0..20).await;
        home.app.drain().await;
        assert_eq!(receiver.received().len(), 2);
        home.app.advance(7);
        home.app.drain().await;
        assert_eq!(receiver.received().len(), 3);
        home.app.advance(120);
        home.app.drain().await;
        assert_eq!(receiver.received().len(), 4);
        home.app.advance(600);
        home.app.drain().await;
        let deliveries = home.deliveries(&id).await;
        assert!(deliveries.iter().all(|it| it["status"] == "delivered"));
        let attempts: usize = deliveries.iter().map(|it| it["attempts"].as_array().unwrap().len()).sum();
        assert_eq!((deliveries.len(), attempts, receiver.received().len()), (20, 24, 24));
        assert_eq!(home.app.drain().await, 0);
    }

    async fn gone_receiver_disables_its_webhook(home: Installation) {
        let receiver = home.receiver(|_, before| Response::Status(if before == 0 { 410 } else { 200 })).await;
        let id = home.webhook(&receiver).await;
        home.publish(0..5).await;
        home.app.drain().await;
        assert_eq!(receiver.received().len(), 1);
        let shown = home.shown(&id).await;
        assert_eq!(shown["enabled"], false);
        assert!(shown["disabled_reason"].as_str().unwrap().contains("410"), "{shown}");
        let deliveries = home.deliveries(&id).await;
        assert!(deliveries.iter().all(|it| it["status"] == "cancelled"), "{deliveries:?}");
        home.publish(5..6).await;
        home.app.drain().await;
        assert_eq!(home.deliveries(&id).await.len(), 5);

        let shown = home.change(&id, json!({"enabled": true})).await;
        assert_eq!((&shown["enabled"], &shown["disabled_reason"]), (&json!(true), &Value::Null));
        home.publish(6..7).await;
        home.app.drain().await;
        assert_eq!((receiver.received().len(), &home.deliveries(&id).await[0]["status"]), (2, &json!("delivered")));
    }

    async fn five_days_without_a_success_disable_a_webhook(home: Installation) {
        let receiver = home.receiver(|_, before| Response::Status(if before == 0 { 200 } else { 500 })).await;
        let id = home.webhook(&receiver).await;
        home.publish(0..1).await;
        home.app.drain().await;
        home.app.advance(30 * DAY);
        // The time counts from the first failure, not from the last success.
        for day in 0..5 {
            home.publish(day..day + 1).await;
            home.app.drain().await;
            assert_eq!(home.shown(&id).await["enabled"], true, "day {day}");
            home.app.advance(DAY);
        }
        home.app.drain().await;
        let shown = home.shown(&id).await;
        assert_eq!(shown["enabled"], false);
        let reason = shown["disabled_reason"].as_str().unwrap();
        assert!(reason.contains("five days") && reason.contains("status 500"), "{reason}");
        let audit = home.app.session(api::Role::Owner).get("/v1/audit-log").await.ok();
        let disabled = audit["audit_log"].as_array().unwrap().iter().find(|it| it["action"] == "webhook.disable").cloned().unwrap();
        assert_eq!((&disabled["actor"]["kind"], &disabled["detail"]["reason"]), (&json!("system"), &json!(reason)));
        assert!(home.deliveries(&id).await.iter().all(|it| it["status"] != "pending"));
    }

    async fn success_ends_the_time_of_failures(home: Installation) {
        let receiver = home.receiver(|_, before| Response::Status(if before == 3 { 200 } else { 500 })).await;
        let id = home.webhook(&receiver).await;
        for n in 0..8 {
            home.publish(n..n + 1).await;
            home.app.drain().await;
            home.app.advance(DAY);
        }
        assert_eq!(home.shown(&id).await["enabled"], true);
        assert!(home.shown(&id).await["last_delivery_at"].is_string());
    }

    /// The first attempt fails; six days later, a batch begins with a success.
    async fn success_before_a_failure_of_the_batch_is_considered(home: Installation) {
        for (failure, is_enabled) in [(500, true), (410, false)] {
            let receiver = home.receiver(move |_, before| Response::Status(match before {
                0 => 500,
                1 => 200,
                _ => failure,
            })).await;
            let id = home.webhook(&receiver).await;
            home.publish(0..1).await;
            home.app.drain().await;
            home.app.advance(6 * DAY);
            home.publish(1..2).await;
            home.app.drain().await;
            assert_eq!(receiver.received().len(), 3, "{failure}");
            let shown = home.shown(&id).await;
            assert_eq!(shown["enabled"], is_enabled, "{failure}: {shown}");
            assert!(shown["last_delivery_at"].is_string(), "{failure}: {shown}");
            home.key().delete(&format!("/v1/webhooks/{id}")).await.ok();
        }
    }

    async fn disabled_or_deleted_webhook_cancels_its_deliveries(home: Installation) {
        let receiver = home.receiver(|_, _| Response::Status(500)).await;
        let (disabled, deleted) = (home.webhook(&receiver).await, home.webhook(&receiver).await);
        home.publish(0..600).await;
        home.app.drain().await;
        assert_eq!(receiver.received().len(), 4, "two for each webhook");
        home.change(&disabled, json!({"enabled": false})).await;
        home.key().delete(&format!("/v1/webhooks/{deleted}")).await.ok();
        home.app.drain().await;
        assert!(home.deliveries(&disabled).await.iter().all(|it| it["status"] == "cancelled"));
        home.app.advance(5 * DAY);
        home.app.drain().await;
        assert_eq!((receiver.received().len(), home.app.drain().await), (4, 0));
    }
}
