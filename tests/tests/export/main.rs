//! `GET /v1/traces/export`: its contents, its errors, and the import of its output.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contents;
mod random_traces;
mod round_trip;

use serde_json::Value;
use tests::Caller;

/// Returns the lines of an export.
async fn lines(caller: &Caller, query: &str) -> Vec<Value> {
    let reply = caller.get(&format!("/v1/traces/export{query}")).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let text = reply.text();
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is whole");
    text.lines().map(|it| serde_json::from_str(it).unwrap_or_else(|e| panic!("{e}: {it}"))).collect()
}
