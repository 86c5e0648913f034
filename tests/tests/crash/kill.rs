//! The server is killed while clients send as fast as they can.

use std::{collections::BTreeSet, time::Duration};

use tests::On;

use super::{
    Home,
    history::{History, listed},
    load::Load,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_data_survives_kills_on_sqlite() {
    kills(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_data_survives_kills_on_postgres() {
    kills(On::Postgres).await;
}

async fn kills(database: On) {
    let home = Home::on(database).await;
    let kills = kill_count();
    let (mut stored, mut slowest, mut requests) = (0, Duration::ZERO, 0);
    let mut all = BTreeSet::new();
    let mut server = home.setup.start();
    for round in 0..kills {
        let load = Load::start(&home.caller(&server.url), 4, u128::from(round) + 1);
        // The delay differs each time, so that the kill interrupts different work.
        tokio::time::sleep(Duration::from_millis(250 + round * 137 % 400)).await;
        server.kill();
        let history: History = load.history().await;
        server = home.setup.start();
        slowest = slowest.max(server.took);
        requests += history.acknowledged();
        stored += history.check(&home.caller(&server.url)).await;
        all.extend(
            history.0.iter().filter(|it| it.acknowledged).flat_map(|it| it.traces.iter().map(|it| it.0)),
        );
        home.check_integrity().await;
    }
    assert!(requests > usize::try_from(kills).unwrap() * 5, "no load: {requests} requests were acknowledged");
    // Traces stored before the first kill are stored after the last, without duplicates.
    let listed = listed(&home.caller(&server.url)).await;
    assert_eq!(listed.len(), stored);
    for trace in all {
        assert!(listed.contains(&uuid::Uuid::from_u128(trace).to_string()), "lost: {trace:032x}");
    }
    println!(
        "{database:?}: {kills} kills, {requests} requests acknowledged, {stored} traces, ready within {slowest:?}"
    );
}

/// Returns how often a suite kills the server.
#[expect(clippy::disallowed_methods, reason = "an environment variable selects a long run")]
pub fn kill_count() -> u64 {
    std::env::var("LOUPE_TEST_KILLS").ok().map_or(5, |it| it.parse().unwrap())
}
