//! The prices of one tenant, with a cache of look-ups.

use std::{
    collections::HashMap,
    sync::{Arc, RwLock},
};

use semantics::{
    cost::Rate,
    prices::{Overrides, PriceTable},
};

/// The prices of a tenant: its own, then the operator's file, then the built-in table.
#[derive(Debug)]
pub struct PriceBook {
    table: Arc<PriceTable>,
    own: Overrides,
    /// The rates already looked up, by model name; a look-up is slow, because it tries several spellings.
    found: RwLock<HashMap<String, Option<Rate>>>,
}

/// Maximum number of cached names, so that invented names can't fill the memory.
const MAX_CACHED_NAMES: usize = 2_000;

impl PriceBook {
    /// Creates the prices of a tenant that has set `own`.
    pub fn new(table: Arc<PriceTable>, own: Overrides) -> Self {
        Self { table, own, found: RwLock::default() }
    }

    /// Returns the price of a sent model name; `None` if unknown.
    pub fn find(&self, model: &str) -> Option<Rate> {
        if let Ok(found) = self.found.read()
            && let Some(known) = found.get(model)
        {
            return known.clone();
        }
        let answer = self.table.rate(model, &self.own);
        if let Ok(mut found) = self.found.write()
            && found.len() < MAX_CACHED_NAMES
        {
            found.insert(model.to_owned(), answer.clone());
        }
        answer
    }
}
