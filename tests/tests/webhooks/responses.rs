//! The responses in the log.

use crate::{
    receiver::{Response, response},
    with_receivers,
};

/// Number of long responses of a webhook that the log keeps.
const LONG_RESPONSES: usize = 20;

with_receivers! {
    async fn only_the_newest_long_responses_are_kept(home: Installation) {
        let receiver = home.receiver(|it, _| match it.json()["data"]["number"].as_u64().unwrap() {
            // All short responses are kept.
            number if number % 2 == 0 => response(200, &[], "é".repeat(128).as_bytes()),
            _ => response(200, &[], "é".repeat(5_000).as_bytes()),
        }).await;
        let (id, other) = (home.webhook(&receiver).await, home.webhook(&receiver).await);
        for number in 0..60 {
            home.publish(number..number + 1).await;
            home.app.drain().await;
            home.app.advance(1);
        }
        for webhook in [&id, &other] {
            let log = home.deliveries(webhook).await;
            let lengths: Vec<usize> = log.iter().map(|it| it["attempts"][0]["response_body"].as_str().unwrap().chars().count()).collect();
            // The newest delivery is number 59. 4 KiB have 2,048 of these characters.
            let expected = (0..60).map(|it| if it % 2 == 0 && it < 2 * LONG_RESPONSES { 2_048 } else { 128 });
            assert_eq!(lengths, expected.collect::<Vec<_>>());
        }
    }

    async fn failed_attempts_keep_their_newest_responses(home: Installation) {
        let receiver = home.receiver(|_, before| match before {
            40 => Response::Status(200),
            _ => response(500, &[], format!("{before} {}", "x".repeat(300)).as_bytes()),
        }).await;
        let id = home.webhook(&receiver).await;
        for number in 0..30 {
            home.publish(number..number + 1).await;
            home.app.advance(90);
            home.app.drain().await;
        }
        let log = home.deliveries(&id).await;
        let attempts = log.iter().flat_map(|it| it["attempts"].as_array().unwrap());
        let bodies: Vec<&str> = attempts.filter_map(|it| it["response_body"].as_str()).collect();
        let long = bodies.iter().filter(|it| it.len() > 300).count();
        assert_eq!(bodies.len(), receiver.received().len());
        assert!(bodies.len() > LONG_RESPONSES, "{}", bodies.len());
        assert_eq!(long, LONG_RESPONSES);
        // The beginning of every response is still stored.
        let mut numbers: Vec<usize> = bodies.iter().map(|it| it.split(' ').next().unwrap().parse().unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..bodies.len()).collect::<Vec<_>>());
    }
}
