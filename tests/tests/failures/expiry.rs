//! Rows that expire.

use entities::{failure_cluster, failure_clustering};
use sea_orm::{
    ActiveModelTrait, IntoActiveModel,
    sea_query::{Expr, ExprTrait},
};
use serde_json::json;
use server::{features::ALL, housekeeping};
use store::new_id;
use tests::on_both_databases;

use super::*;

const DAY: i64 = 86_400;
/// Maximum number of clusters of a type; further failures join the type's overflow cluster.
const MAX_CLUSTERS_PER_TYPE: i32 = 1_000;

on_both_databases! {
    /// A cluster expires when it has no failures and was not seen for 90 days.
    async fn clusters_without_failures_expire(app: TestApp) {
        let (kept, gone) = (fail(app, TIMEOUT_MESSAGE).await, fail(app, OTHER_MESSAGE).await);
        assert_eq!(app.full_key().delete(&format!("/v1/traces/{gone}")).await.status, 204);
        app.advance(89 * DAY);
        housekeeping::run_round(&app.app, ALL).await.unwrap();
        assert_eq!(clusters(app, "").await.len(), 2);
        app.advance(2 * DAY);
        housekeeping::run_round(&app.app, ALL).await.unwrap();
        let left = clusters(app, "").await;
        assert_eq!((left.len(), &left[0]["sample_trace_ids"]), (1, &json!([kept])));
        // The process still has the expired cluster in memory: such a failure creates another one.
        fail(app, OTHER_MESSAGE).await;
        let again = clusters(app, "failure_type=other").await;
        assert_eq!((again.len(), &again[0]["count"]), (1, &json!(1)));
        assert_eq!(clusters(app, "").await.len(), 2);
    }

    /// The process has all clusters of the type in memory, also those that have expired.
    async fn full_type_gets_new_clusters_after_others_expire(app: TestApp) {
        fail(app, OTHER_MESSAGE).await;
        let db = &app.app.db.write;
        let row = failure_cluster::Entity::find().one(db).await.unwrap().unwrap();
        for block in (1..MAX_CLUSTERS_PER_TYPE).collect::<Vec<_>>().chunks(100) {
            let rows = block.iter().map(|it| failure_cluster::Model { id: new_id(), span_name: format!("step {it}"), ..row.clone() });
            failure_cluster::Entity::insert_many(rows.map(|it| it.into_active_model().reset_all())).exec_without_returning(db).await.unwrap();
        }
        let next = Expr::col(failure_clustering::Column::Version).add(1);
        failure_clustering::Entity::update_many().col_expr(failure_clustering::Column::Version, next).exec(db).await.unwrap();
        app.advance(91 * DAY);
        fail(app, "no paper in the printer").await;
        assert_eq!(clusters(app, "").await[0]["span_name"], "", "the overflow cluster");
        housekeeping::run_round(&app.app, ALL).await.unwrap();
        fail(app, "the kettle has boiled dry").await;
        assert_eq!(clusters(app, "").await[0]["span_name"], "call");
    }

    /// A match expires after some time, so the trace can match again.
    async fn trends_and_matches_expire(app: TestApp) {
        fail(app, TIMEOUT_MESSAGE).await;
        let rows = async |table: &str| {
            let sql = format!("SELECT tenant_id FROM {table}");
            let statement = sea_orm::Statement::from_string(app.app.db.dialect.backend(), sql);
            sea_orm::ConnectionTrait::query_all_raw(&app.app.db.write, statement).await.unwrap().len()
        };
        assert_eq!((rows("failure_trend").await, rows("failure_rule_match").await), (1, 1));
        app.advance(31 * DAY);
        housekeeping::run_round(&app.app, ALL).await.unwrap();
        assert_eq!((rows("failure_trend").await, rows("failure_rule_match").await), (1, 0));
        app.advance(60 * DAY);
        housekeeping::run_round(&app.app, ALL).await.unwrap();
        assert_eq!((rows("failure_trend").await, rows("failure").await, rows("failure_cluster").await), (0, 1, 1));
    }
}
