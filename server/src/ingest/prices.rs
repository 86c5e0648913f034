//! The prices of one tenant, with a cache of look-ups.

use std::{
    collections::HashMap,
    sync::{Arc, RwLock},
};

use semantics::prices::{Overrides, PriceTable, Rate};

/// The prices of a tenant: its own, then the operator's file, then the built-in table.
#[derive(Debug)]
pub struct PriceBook {
    table: Arc<PriceTable>,
    overrides: Overrides,
    /// The rates already looked up, by model name; a look-up is slow, because it tries several spellings.
    cache: RwLock<HashMap<String, Option<Rate>>>,
}

/// Maximum number of cached names, so that invented names cannot fill the memory.
const MAX_CACHED_NAMES: usize = 2_000;

impl PriceBook {
    /// Creates the prices of a tenant that has set `overrides`.
    pub fn new(table: Arc<PriceTable>, overrides: Overrides) -> Self {
        Self { table, overrides, cache: RwLock::default() }
    }

    /// Returns the price of a sent model name; `None` if unknown.
    pub fn find(&self, model: &str) -> Option<Rate> {
        if let Ok(cache) = self.cache.read()
            && let Some(cached) = cache.get(model)
        {
            return cached.clone();
        }
        let rate = self.table.rate(model, &self.overrides);
        if let Ok(mut cache) = self.cache.write()
            && cache.len() < MAX_CACHED_NAMES
        {
            cache.insert(model.to_owned(), rate.clone());
        }
        rate
    }
}
