//! Texts of several traces in one row.

use api::Role;
use entities::body;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};
use serde_json::{Value, json};
use store::{check, text_block, text_page};
use tests::{
    TestApp,
    app::TEST_START_MICROS,
    on_both_databases,
    otlp::{Span, request},
};

use crate::{orphans, text_block_ids};

/// Returns an item with about 2 KB of text that does not compress well.
fn item(id: usize) -> Value {
    let text: Vec<String> =
        (0..128).map(|it| format!("{:x}", (id + 1) * 7_919 * (it + 1) * 104_729)).collect();
    json!({"id": id.to_string(), "spans": [{"id": "s", "name": "call", "input": text.join(" "), "output": format!("answer {id}")}]})
}

/// Returns the IDs of the traces.
async fn send(app: &TestApp, ids: impl Iterator<Item = usize>) -> Vec<String> {
    let traces: Vec<Value> = ids.map(item).collect();
    let reply = app.full_key().post("/v1/ingest/batch", &json!({"traces": traces})).await.ok();
    let results = reply["results"].as_array().unwrap();
    results.iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
}

async fn check_texts(app: &TestApp, traces: impl Iterator<Item = (usize, &String)>) {
    for (index, id) in traces {
        let trace = app.full_key().get(&format!("/v1/traces/{id}")).await.ok();
        let span = &trace["spans"][0];
        let sent = &item(index)["spans"][0];
        assert_eq!((&span["input"], &span["output"]), (&sent["input"], &sent["output"]));
    }
}

async fn text_rows(app: &TestApp) -> Vec<body::Model> {
    body::Entity::find().filter(body::Column::TenantId.eq(app.tenant)).all(&app.app.db.write).await.unwrap()
}

async fn remove(app: &TestApp, trace: &str) {
    assert_eq!(app.session(Role::Owner).delete(&format!("/v1/traces/{trace}")).await.status, 204);
}

/// Checks that spans and traces refer to all stored blocks and to no others.
async fn check_blocks(app: &TestApp) {
    let block_ids = text_block_ids(app).await;
    let rows = text_rows(app).await;
    for row in &rows {
        let blocks = match text_page::is_in_page(row.id) {
            true => text_page::blocks(&row.data).unwrap(),
            false => vec![row.data.as_slice()],
        };
        for (block, number) in blocks.into_iter().zip(0..) {
            let id = if text_page::is_in_page(row.id) { text_page::block_id(row.id, number) } else { row.id };
            assert_eq!(block_ids.contains(&id), !block.is_empty());
            assert!(block.is_empty() || text_block::unpack(block, usize::MAX).is_ok());
        }
    }
    let stored: Vec<_> = rows.iter().map(|it| it.id).collect();
    assert!(block_ids.iter().all(|it| stored.contains(&text_page::row_of(*it))));
    assert_eq!(orphans(app).await, [0, 0, 0]);
    let checked = check::run(&app.app.db, 202_606, ["", ""]).await.unwrap();
    assert_eq!(checked.checks["texts"].problems, 0, "{:?}", checked.described);
}

/// Returns the number of rows that are text pages.
async fn page_count(app: &TestApp) -> usize {
    text_rows(app).await.iter().filter(|it| text_page::is_in_page(it.id)).count()
}

on_both_databases! {
    async fn traces_of_a_batch_share_pages(app: TestApp) {
        let traces = send(app, 0..100).await;
        let rows = text_rows(app).await;
        assert!((2..=10).contains(&rows.len()), "{} rows", rows.len());
        assert!(rows.iter().all(|it| it.data.len() <= text_page::MAX_PAGE_BYTES + 1_024));
        check_texts(app, traces.iter().enumerate()).await;
        check_blocks(app).await;
        let listed = app.full_key().get("/v1/traces?limit=100").await.ok();
        let outputs: Vec<&str> = listed["traces"].as_array().unwrap().iter().map(|it| it["output"].as_str().unwrap()).collect();
        assert!((0..100).all(|it| outputs.contains(&format!("answer {it}").as_str())), "{outputs:?}");
    }

    async fn removed_trace_keeps_other_texts_of_its_page(app: TestApp) {
        let traces = send(app, 0..10).await;
        let bytes: usize = text_rows(app).await.iter().map(|it| it.data.len()).sum();
        remove(app, &traces[3]).await;
        let left: usize = text_rows(app).await.iter().map(|it| it.data.len()).sum();
        assert!(left < bytes - 500, "{bytes} bytes before, {left} after");
        check_texts(app, traces.iter().enumerate().filter(|it| it.0 != 3)).await;
        check_blocks(app).await;
        for (index, trace) in traces.iter().enumerate().filter(|it| it.0 != 3) {
            remove(app, trace).await;
            check_texts(app, traces.iter().enumerate().filter(|it| it.0 != 3 && it.0 > index)).await;
            check_blocks(app).await;
        }
        assert!(text_rows(app).await.is_empty());
    }

    /// Removals of two traces change the same page.
    async fn concurrent_removals_leave_no_texts(app: TestApp) {
        let traces = send(app, 0..40).await;
        let beside = app.beside().await;
        let (kept, removed) = traces.split_at(4);
        let remove_all = async |app: &TestApp, first: usize| {
            for trace in removed.iter().skip(first).step_by(2) {
                remove(app, trace).await;
            }
        };
        futures::join!(remove_all(app, 0), remove_all(&beside, 1));
        check_blocks(app).await;
        check_texts(app, kept.iter().enumerate()).await;
        beside.stop().await;
    }

    /// The page of the new traces has no texts of those that are stored already.
    async fn repeated_traces_store_no_texts(app: TestApp) {
        let first = send(app, 0..5).await;
        let both = send(app, 3..9).await;
        assert_eq!(first[3..], both[..2]);
        assert_eq!(page_count(app).await, 2);
        check_texts(app, first.iter().chain(&both[2..]).enumerate()).await;
        check_blocks(app).await;
        let again = send(app, 0..9).await;
        check_blocks(app).await;
        check_texts(app, again.iter().enumerate()).await;
    }

    /// The keys of the other process's first traces are in use on SQLite, because the clock stands still: the group is
    /// stored again.
    async fn group_that_is_stored_again_has_its_texts(app: TestApp) {
        let beside = app.beside().await;
        let mut traces = send(app, 0..10).await;
        traces.extend(send(&beside, 10..20).await);
        assert_eq!(page_count(app).await, 2);
        check_texts(app, traces.iter().enumerate()).await;
        check_blocks(app).await;
        beside.stop().await;
    }

    /// Late spans have a block of their own; the trace is removed from its page and with that block.
    async fn late_spans_of_a_trace_in_a_page_are_removed_with_it(app: TestApp) {
        let key = app.full_key();
        let span = |trace: u128, id: u64| {
            let span = Span::new(trace, id, "call", TEST_START_MICROS + i64::try_from(id).unwrap()).with("input.value", format!("text {trace} {id}"));
            if id == 1 { span } else { span.under(1) }
        };
        let first: Vec<Span> = (1..=5).map(|it| span(it, 1)).collect();
        key.post("/v1/otlp/traces", &request(&first)).await.ok();
        assert_eq!(page_count(app).await, 1);
        // One trace is new, and the others are not.
        let late: Vec<Span> = (1..=6).map(|it| span(it, 2)).collect();
        key.post("/v1/otlp/traces", &request(&late)).await.ok();
        check_blocks(app).await;
        for trace in 1..=6_u128 {
            let detail = key.get(&format!("/v1/traces/{trace:032x}")).await.ok();
            let inputs: Vec<&str> = detail["spans"].as_array().unwrap().iter().map(|it| it["input"].as_str().unwrap()).collect();
            let expected: Vec<String> = [1, 2].into_iter().filter(|it| trace < 6 || *it == 2).map(|it| format!("text {trace} {it}")).collect();
            assert_eq!(inputs, expected);
            remove(app, &format!("{trace:032x}")).await;
            check_blocks(app).await;
        }
        assert!(text_rows(app).await.is_empty());
    }

    /// A damaged page makes the texts of its traces unreadable, and those of no others.
    async fn damaged_page_does_not_hide_other_texts(app: TestApp) {
        let damaged = send(app, 0..3).await;
        let mut row = text_rows(app).await.remove(0);
        row.data.pop();
        let change = body::ActiveModel { data: sea_orm::ActiveValue::Set(row.data), ..Default::default() };
        body::Entity::update_many().set(change).filter(body::Column::TenantId.eq(app.tenant)).exec(&app.app.db.write).await.unwrap();
        let sound = send(app, 3..6).await;
        check_texts(app, sound.iter().zip(3..).map(|(id, index)| (index, id))).await;
        assert_eq!(app.full_key().get(&format!("/v1/traces/{}", damaged[0])).await.status, 500);
        remove(app, &damaged[0]).await;
        assert_eq!(app.full_key().get(&format!("/v1/traces/{}", damaged[0])).await.status, 404);
        // The page is removed as a whole.
        assert_eq!(page_count(app).await, 1);
        check_texts(app, sound.iter().zip(3..).map(|(id, index)| (index, id))).await;
    }
}
