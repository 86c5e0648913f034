//! Deliveries by the workers of a running server.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use queue::worker;
use serde_json::json;
use tests::hang::wait_until;

use crate::{receiver::Response, with_receivers};

with_receivers! {
    /// A receiver that hangs occupies at most two workers, so the other receivers are served meanwhile.
    async fn hanging_receivers_do_not_delay_others(home: Installation) {
        let hanging = home.receiver(|_, _| Response::Hang(Vec::new())).await;
        let fine = home.receiver(|_, _| Response::Status(200)).await;
        for n in 0..30 {
            home.webhook(if n % 6 == 0 { &hanging } else { &fine }).await;
        }
        let began = Instant::now();
        home.app.app.start_workers();
        for n in 0..20 {
            home.publish(n..n + 1).await;
        }
        while fine.received().len() < 25 * 20 {
            home.wait(Duration::from_millis(10)).await;
        }
        // A request to a receiver that hangs ends after 10 seconds, and each webhook has two at a time.
        let timeouts = usize::try_from(began.elapsed().as_secs() / 10).unwrap();
        let (requests, at_most) = (hanging.received().len(), 5 * 2 * (1 + timeouts));
        assert!((5..=at_most).contains(&requests), "{requests} requests to receivers that hang");
        let deliveries: BTreeSet<_> = fine.received().iter().map(|it| it.headers["x-service-delivery"].clone()).collect();
        assert_eq!(deliveries.len(), 25 * 20, "a delivery was repeated");
    }

    /// Every commit on the way from a failing trace to its event wakes the next pool. The pools poll once a day
    /// here.
    async fn failing_trace_is_delivered_without_polling(home: Installation) {
        let receiver = home.receiver(|_, _| Response::Status(200)).await;
        home.webhook(&receiver).await;
        worker::start_polling_every(Duration::from_secs(86_400), &home.app.app);
        for n in 1..=5 {
            let item = json!({"name": "t", "spans": [{"name": "s", "error": "request timed out"}]});
            home.key().post("/v1/ingest", &item).await.ok();
            wait_until("the event is delivered", async || receiver.received().len() == n).await;
        }
    }

    /// A delivery that is interrupted because the server stops is not lost, and does not count as an
    /// attempt.
    async fn stopping_server_returns_deliveries(home: Installation) {
        let receiver = home.receiver(|_, before| match before {
            0 => Response::Hang(Vec::new()),
            _ => Response::Status(200),
        }).await;
        let id = home.webhook(&receiver).await;
        let beside = home.app.beside_with(&["--egress-allow-cidrs", "127.0.0.1/32", "--egress-ca-file", &home.ca_file()]).await;
        beside.resolver.set("hook.example", &["127.0.0.1".parse().unwrap()]);
        beside.app.start_workers();
        home.publish(0..3).await;
        while receiver.received().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        beside.stop().await;
        let deliveries = home.deliveries(&id).await;
        assert!(deliveries.iter().all(|it| it["status"] == "pending" && it["attempts"] == serde_json::json!([])));
        home.app.drain().await;
        assert!(home.deliveries(&id).await.iter().all(|it| it["status"] == "delivered"));
        assert_eq!(receiver.received().len(), 4);
        assert_eq!(receiver.received()[0].event(), receiver.received()[1].event());
    }
}
