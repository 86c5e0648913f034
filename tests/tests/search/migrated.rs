//! Vectors that were stored when the ID of the trace was part of their primary key.

use entities::{dialect::Dialect, span_vector};
use migrations::{Migrator, MigratorTrait, SchemaManager};
use sea_orm::{ConnectionTrait, EntityTrait};
use serde_json::{Value, json};
use tests::{TestApp, on_both_databases, stored_spans};

use super::{item, names, search, store, vector};

/// Turns the table into the one of the version before, with the same vectors.
async fn restore_earlier_version(app: &TestApp) {
    let db = &app.app.db;
    let columns =
        "tenant_id, trace_id, id, project_id, started_at, kind_hash, model_hash, embedding_model, vector";
    let earlier = match db.dialect {
        Dialect::Sqlite => format!(
            "CREATE TABLE earlier AS SELECT {columns} FROM span_vector ORDER BY id; DROP TABLE span_vector; \
             ALTER TABLE earlier RENAME TO span_vector; \
             CREATE UNIQUE INDEX ux_earlier ON span_vector (tenant_id, trace_id, id); \
             CREATE INDEX ix_span_vector_filter ON span_vector (tenant_id, project_id, started_at); \
             CREATE INDEX ix_span_vector_arrival ON span_vector (tenant_id, project_id);"
        ),
        // The primary key is dropped together with the column.
        Dialect::Postgres => "ALTER TABLE span_vector DROP COLUMN trace_key; \
             ALTER TABLE span_vector ADD CONSTRAINT span_vector_pkey PRIMARY KEY (tenant_id, trace_id, id); \
             UPDATE span_vector SET indexed = true;"
            .to_owned(),
    };
    db.write.execute_unprepared(&earlier).await.unwrap();
}

on_both_databases! {
    async fn vectors_of_an_earlier_version_are_found_after_the_migration(app: TestApp) {
        let mut random = fastrand::Rng::with_seed(31);
        let items: Vec<Value> = (0..30).map(|i| item(&format!("t{i}"), &vector(&mut random))).collect();
        store(app, &items).await;
        let (_, other) = app.other_tenant(api::Plan::Enterprise).await;
        other.post("/v1/ingest", &item("theirs", &vector(&mut random))).await.ok();
        let body = json!({"vector": vector(&mut random), "limit": 30});
        let before = search(app, &body).await.ok();
        assert_eq!(names(&before).len(), 30);
        let db = &app.app.db;

        restore_earlier_version(app).await;
        let migration = Migrator::migrations().into_iter().find(|it| it.name() == "m0023_vectors_by_arrival").unwrap();
        migration.up(&SchemaManager::new(&db.write)).await.unwrap();

        // A process that starts has no vectors in memory.
        let restarted = app.beside().await;
        assert_eq!(search(&restarted, &body).await.ok(), before);
        let rows = span_vector::Entity::find().all(&db.write).await.unwrap();
        assert_eq!(rows.len(), 31);
        for row in &rows {
            let spans = stored_spans::all(app, row.tenant_id).await;
            let span = spans.iter().find(|it| it.id == row.id).unwrap();
            assert_eq!((row.trace_key, row.trace_id), (span.trace_key, span.trace_id));
        }
        // New vectors are stored beside them, and removed with their traces.
        store(app, &[item("new", &vector(&mut random))]).await;
        let list = app.full_key().get("/v1/traces?external_id=t7").await.ok();
        let id = list["traces"][0]["id"].as_str().unwrap();
        assert_eq!(app.session(api::Role::Owner).delete(&format!("/v1/traces/{id}")).await.status, 204);
        assert_eq!(span_vector::Entity::find().all(&db.write).await.unwrap().len(), 31);
        let found = names(&search(&restarted, &json!({"vector": body["vector"], "limit": 100})).await.ok());
        assert_eq!(found.len(), 30);
        assert!(found.contains(&"new".to_owned()) && !found.contains(&"t7".to_owned()));
        restarted.stop().await;
    }
}
