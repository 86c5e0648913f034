//! Traces that were stored or removed since the last search.

use api::Role;
use serde_json::{Value, json};
use store::vectors::{self, UnitVector};
use tests::{TestApp, on_both_databases};

use super::{item, names, search, store, vector};

async fn remove(app: &TestApp, name: &str) {
    let list = app.full_key().get(&format!("/v1/traces?external_id={name}")).await.ok();
    let id = list["traces"][0]["id"].as_str().unwrap();
    assert_eq!(app.session(Role::Owner).delete(&format!("/v1/traces/{id}")).await.status, 204);
}

on_both_databases! {
    async fn stored_and_removed_spans_are_seen_immediately(app: TestApp) {
        let mut random = fastrand::Rng::with_seed(21);
        let question = vector(&mut random);
        let found = async || {
            let page = search(app, &json!({"vector": question, "limit": 200})).await.ok();
            let mut names = names(&page);
            assert_eq!(page["searched"].as_u64().unwrap() as usize, names.len());
            names.sort();
            names
        };
        assert_eq!(found().await, [""; 0]);
        let items: Vec<Value> = (0..9).map(|i| item(&format!("t{i}"), &vector(&mut random))).collect();
        store(app, &items[..3]).await;
        assert_eq!(found().await, ["t0", "t1", "t2"]);
        store(app, &items[3..5]).await;
        assert_eq!(found().await, ["t0", "t1", "t2", "t3", "t4"]);
        // Removes one trace from the middle, and then the newest one, whose row ID the next row may reuse.
        remove(app, "t1").await;
        assert_eq!(found().await, ["t0", "t2", "t3", "t4"]);
        remove(app, "t4").await;
        store(app, &items[5..6]).await;
        assert_eq!(found().await, ["t0", "t2", "t3", "t5"]);
        // Stores as many vectors as were removed.
        remove(app, "t0").await;
        store(app, &items[6..7]).await;
        assert_eq!(found().await, ["t2", "t3", "t5", "t6"]);
        for name in ["t2", "t3", "t5", "t6"] {
            remove(app, name).await;
        }
        assert_eq!(found().await, [""; 0]);
        store(app, &[item("t2", &question)]).await;
        let page = search(app, &json!({"vector": question})).await.ok();
        assert!(page["results"][0]["distance"].as_f64().unwrap() < 1e-5, "{page}");
    }

    async fn spans_stored_by_another_process_are_found(app: TestApp) {
        let mut random = fastrand::Rng::with_seed(22);
        let other = app.beside().await;
        let items: Vec<Value> = (0..6).map(|i| item(&format!("t{i}"), &vector(&mut random))).collect();
        let question = vector(&mut random);
        for (i, it) in items.iter().enumerate() {
            let (here, there) = if i % 2 == 0 { (app, &other) } else { (&other, app) };
            store(here, std::slice::from_ref(it)).await;
            for side in [here, there] {
                let page = search(side, &json!({"vector": question})).await.ok();
                assert_eq!(names(&page).len(), i + 1);
            }
        }
        other.stop().await;
    }

    async fn removed_span_gets_no_vector(app: TestApp) {
        let mut random = fastrand::Rng::with_seed(23);
        let bare = json!({"id": "bare", "spans": [{"name": "bare", "input": "x"}]});
        let id = app.full_key().post("/v1/ingest", &bare).await.ok()["id"].as_str().unwrap().parse().unwrap();
        let spans = vectors::missing(&app.app.db, app.tenant, &[id], 0, None, 10).await.unwrap();
        assert_eq!(spans.len(), 1);
        let after = Some((spans[0].trace_id, spans[0].id));
        assert!(vectors::missing(&app.app.db, app.tenant, &[id], 0, after, 10).await.unwrap().is_empty());
        let rows: Vec<_> =
            spans.into_iter().map(|it| (it, UnitVector::of(&vector(&mut random)).unwrap())).collect();
        remove(app, "bare").await;
        assert_eq!(vectors::insert(&app.app.db, app.tenant, "m", &rows).await.unwrap(), 0);
        // The same trace, stored again with another text, does not get the vector of the earlier text either.
        let again = json!({"id": "bare", "spans": [{"name": "bare", "input": "y"}]});
        app.full_key().post("/v1/ingest", &again).await.ok();
        assert_eq!(vectors::insert(&app.app.db, app.tenant, "m", &rows).await.unwrap(), 0);
        let page = search(app, &json!({"vector": vector(&mut random)})).await.ok();
        assert_eq!((page["searched"].as_i64(), names(&page).len()), (Some(0), 0));
    }
}
