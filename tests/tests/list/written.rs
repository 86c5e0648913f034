//! The number of pages that SQLite writes for new traces, with few and with many stored ones.

use sea_orm::{ConnectionTrait, Statement};
use store::trace_index;
use tests::{On, TestApp, app::TEST_START_MICROS, otlp};

/// Number of traces of a request, which are stored in one transaction.
const TRACES_PER_REQUEST: usize = 200;

/// Returns the number of pages in the write-ahead log after a checkpoint.
async fn checkpoint(app: &TestApp, mode: &str) -> i64 {
    let db = &app.app.db;
    let statement = Statement::from_string(db.dialect.backend(), format!("PRAGMA wal_checkpoint({mode})"));
    let row = db.write.query_one_raw(statement).await.unwrap().unwrap();
    row.try_get_by_index(1).unwrap()
}

/// Sends a request with traces of four spans, with random IDs, names, users and times of the last days.
async fn send(app: &TestApp, rng: &mut fastrand::Rng) {
    let mut spans = Vec::new();
    for _ in 0..TRACES_PER_REQUEST {
        let (id, start) = (rng.u128(..), TEST_START_MICROS - rng.i64(1..20 * 86_400_000_000));
        for number in 1..=4 {
            let name = format!("step {}", rng.u8(..9));
            let span = otlp::Span::new(id, number, &name, start).until(Some(start + rng.i64(1..9_000_000)));
            let span = span.with("user.id", format!("user {}", rng.u16(..500)));
            spans.push(if number > 1 { span.under(1) } else { span });
        }
    }
    app.full_key().post("/v1/otlp/traces", &otlp::request(&spans)).await.ok();
}

/// Returns the mean number of pages that a trace of three requests adds to the write-ahead log.
async fn pages_of_a_trace(app: &TestApp, rng: &mut fastrand::Rng) -> f64 {
    const MEASURED_REQUESTS: usize = 3;
    let mut pages = 0;
    for _ in 0..MEASURED_REQUESTS {
        assert_eq!(checkpoint(app, "TRUNCATE").await, 0);
        send(app, rng).await;
        pages += checkpoint(app, "PASSIVE").await;
    }
    f64::from(i32::try_from(pages).unwrap()) / (MEASURED_REQUESTS * TRACES_PER_REQUEST) as f64
}

#[tokio::test]
async fn stored_trace_changes_few_pages_at_any_store_size() {
    let app = TestApp::on(On::Sqlite).await;
    let mut rng = fastrand::Rng::with_seed(5);
    for _ in 0..5 {
        send(&app, &mut rng).await;
    }
    let few = pages_of_a_trace(&app, &mut rng).await;
    for _ in 0..40 {
        send(&app, &mut rng).await;
        trace_index::index_long_tail(&app.app.db, app.tenant, app.app.clock.now()).await.unwrap();
    }
    let many = pages_of_a_trace(&app, &mut rng).await;
    // One index, from ID to key, has keys in no order. With many stored traces it costs up to a page of a trace.
    assert!(few < 0.5 && many < 1.35, "{few}, {many}");
}
