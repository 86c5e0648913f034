//! Clients that send the next request as soon as they get a response.

use reqwest::Method;
use tests::Caller;
use tokio::task::JoinSet;

use super::history::{History, SentRequest};

/// Number of traces per request.
const TRACES_PER_REQUEST: u128 = 3;

/// Running clients.
pub struct Load(JoinSet<Vec<SentRequest>>);

impl Load {
    /// Starts clients that send until a request fails. `round` separates their trace ids from those of other
    /// rounds.
    pub fn start(key: &Caller, clients: u128, round: u128) -> Self {
        let mut tasks = JoinSet::new();
        for client in 0..clients {
            let key = key.clone();
            tasks.spawn(async move { send_on(&key, (round << 64) + (client << 48)).await });
        }
        Self(tasks)
    }

    /// Waits until all clients were disconnected.
    pub async fn history(mut self) -> History {
        let mut all = Vec::new();
        while let Some(done) = self.0.join_next().await {
            all.append(&mut done.unwrap());
        }
        History(all)
    }
}

async fn send_on(key: &Caller, first: u128) -> Vec<SentRequest> {
    let mut sent: Vec<SentRequest> = Vec::new();
    for n in 0.. {
        let mut next = request_of(&sent, first, n);
        let response = key.request(Method::POST, "/v1/otlp/traces").json(&next.body()).send().await;
        match response {
            Ok(response) if response.status().is_success() => next.acknowledged = true,
            // The server is busy or stopping, and says so.
            Ok(response) if response.status() == 503 => {}
            Ok(response) => panic!("{}: {}", response.status(), response.text().await.unwrap_or_default()),
            Err(_) => {
                sent.push(next);
                return sent;
            }
        }
        sent.push(next);
    }
    sent
}

/// Builds a request: usually new traces, sometimes late spans of earlier traces, or a repetition of an
/// earlier request.
fn request_of(sent: &[SentRequest], first: u128, n: u128) -> SentRequest {
    let earlier = usize::try_from(n / 2).ok().and_then(|it| sent.get(it));
    let traces = match (n % 4, earlier) {
        (2, Some(earlier)) => {
            let spans = u64::try_from(10 + n * 4 % 40).unwrap();
            earlier.traces.iter().map(|(trace, _)| (*trace, (spans..spans + 3).collect())).collect()
        }
        (3, Some(earlier)) => earlier.traces.clone(),
        _ => (0..TRACES_PER_REQUEST)
            .map(|i| {
                (
                    first + n * TRACES_PER_REQUEST + i + 1,
                    (1..=u64::try_from(1 + (n + i) % 5).unwrap()).collect(),
                )
            })
            .collect(),
    };
    SentRequest { traces, acknowledged: false }
}
