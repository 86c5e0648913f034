//! Reads the pages of a list.

use api::{
    client::{Call, Client, Error, calls::Page},
    page::MAX_LIMIT,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::Result;

/// Returns every row of a list, for resources with few rows.
pub async fn all<L, T: DeserializeOwned>(
    client: &Client,
    plural: &str,
    call: impl Fn(&Page) -> Call<L>,
) -> Result<Vec<T>> {
    let mut rows = Vec::new();
    let mut page = Page { limit: Some(MAX_LIMIT), cursor: None };
    loop {
        let mut document = client.value(&call(&page)).await?;
        let more = document.get_mut(plural).map(Value::take).unwrap_or_default();
        let more: Vec<T> = serde_json::from_value(more).map_err(|source| Error::Unreadable { source })?;
        rows.extend(more);
        page.cursor = next_cursor(&document);
        if page.cursor.is_none() {
            return Ok(rows);
        }
    }
}

/// Returns the cursor of the next page, if there is one.
pub fn next_cursor(document: &Value) -> Option<String> {
    let more = document.get("has_more").and_then(Value::as_bool).unwrap_or_default();
    document.get("next_cursor").and_then(Value::as_str).filter(|_| more).map(str::to_owned)
}
