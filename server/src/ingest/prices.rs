//! The prices that apply to one tenant, with the answers remembered.

use std::{
    collections::HashMap,
    sync::{Arc, RwLock},
};

use semantics::{
    cost::Rate,
    prices::{Overrides, PriceTable},
};

/// Prices of a tenant: its own, then the operator's file, then the built-in table.
#[derive(Debug)]
pub struct PriceBook {
    table: Arc<PriceTable>,
    own: Overrides,
    /// Resolving a name tries several spellings, and a service uses few models.
    found: RwLock<HashMap<String, Option<Rate>>>,
}

/// Names remembered; a sender that makes up names must not fill the memory.
const MOST_NAMES: usize = 2_000;

impl PriceBook {
    /// The prices of a tenant that has set `own`.
    pub fn new(table: Arc<PriceTable>, own: Overrides) -> Self {
        Self { table, own, found: RwLock::default() }
    }

    /// The price of a model's name as a span gives it; none if unknown.
    pub fn find(&self, model: &str) -> Option<Rate> {
        if let Ok(found) = self.found.read()
            && let Some(known) = found.get(model)
        {
            return known.clone();
        }
        let answer = self.table.rate(model, &self.own);
        if let Ok(mut found) = self.found.write()
            && found.len() < MOST_NAMES
        {
            found.insert(model.to_owned(), answer.clone());
        }
        answer
    }
}
