//! Jobs with chosen IDs that are moved to an earlier time.

use queue::{claim, enqueue_by};
use tests::on_both_databases;

use super::*;

/// Returns a job whose ID is its number.
fn numbered(app: &TestApp, n: u128, run_at: i64) -> job::Model {
    job::Model { id: Uuid::from_u128(n), ..new_job(app.tenant, &Work { n: 0 }, run_at, now(app)) }
}

/// Returns the last hexadecimal digit of the ID, the time until the job is due and the status of all jobs with a number.
async fn numbers(app: &TestApp) -> Vec<(u128, i64, String)> {
    let jobs = stored(app).await.into_iter().filter(|it| it.id.as_u128() < 10);
    jobs.map(|it| (it.id.as_u128(), it.run_at - now(app), it.status)).collect()
}

on_both_databases! {
    async fn waiting_jobs_are_moved_forward_and_never_back(app: TestApp) {
        let (db, now) = (&app.app.db.write, now(app));
        enqueue_by(db, Vec::new()).await.unwrap();
        enqueue_by(db, vec![numbered(app, 1, now + 5), numbered(app, 2, now + 5)]).await.unwrap();
        let jobs = vec![numbered(app, 1, now + 3), numbered(app, 2, now + 9), numbered(app, 3, now + 9)];
        enqueue_by(db, jobs).await.unwrap();
        let expected = [(1, 3), (2, 5), (3, 9)].map(|(n, due)| (n, due, "ready".to_owned()));
        assert_eq!(numbers(app).await, expected);
        assert_eq!(stored(app).await.len(), 3);
    }

    /// A running job may have read its rows before the caller changed them.
    async fn running_jobs_get_a_second_job(app: TestApp) {
        let (db, now) = (&app.app.db.write, now(app));
        enqueue_by(db, vec![numbered(app, 1, now), numbered(app, 2, now + 9)]).await.unwrap();
        assert_eq!(claim(&app.app.db, app.tenant, POOL, now, 9).await.unwrap().len(), 1);
        let jobs = vec![numbered(app, 1, now + 2), numbered(app, 2, now + 4), numbered(app, 3, now + 6)];
        enqueue_by(db, jobs).await.unwrap();
        let expected = [(1, 0, "running"), (2, 4, "ready"), (3, 6, "ready")];
        assert_eq!(numbers(app).await, expected.map(|(n, due, status)| (n, due, status.to_owned())));
        let jobs = stored(app).await;
        let second = jobs.iter().find(|it| it.id.as_u128() > 9).unwrap();
        assert_eq!((jobs.len(), second.run_at - now, second.status.as_str()), (4, 2, "ready"));
    }
}
