//! Model prices: the built-in table, overrides, and look-up by model name.
//!
//! `prices/names.rs` derives the names that a sent model name may stand for; [`crate::cost`] applies a
//! price to tokens. The table is data, `prices/models.json`.
//!
//! **Invariant:** look-up never guesses. No rule drops a part of a name that could distinguish two
//! models, so a new model has no cost until it is listed, rather than the price of another model.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use api::model::ModelPrice as Price;

mod names;

const BUILTIN_PRICES_JSON: &str = include_str!("prices/models.json");

/// The highest rate accepted from a file or a tenant, in US dollars per million tokens.
const MAX_PER_MILLION: f64 = 1_000_000.0;

const FREE_PRICE: Price = Price {
    input_per_million: 0.0,
    output_per_million: 0.0,
    cached_input_per_million: None,
    cache_write_per_million: None,
    reasoning_per_million: None,
};

/// The origin of a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Set by the tenant.
    Tenant,
    /// From the operator's file.
    File,
    /// Built in.
    Builtin,
}

impl Origin {
    /// Returns the name on the wire: `tenant`, `file` or `builtin`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::File => "file",
            Self::Builtin => "builtin",
        }
    }
}

/// The price found for a model name; cheap to clone, so that it can be cached per name.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// Base name of the model.
    pub model: Arc<str>,
    /// The price.
    pub price: Price,
    /// The origin of the price.
    pub origin: Origin,
}

/// The page from which a provider's prices were taken.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Source {
    /// Name of the provider.
    pub provider: String,
    /// Title of the page.
    pub page: String,
    /// Date of retrieval, `YYYY-MM-DD`.
    pub read: String,
}

/// Prices by model name: the built-in ones and overrides.
#[derive(Clone, Debug, Default)]
pub struct PriceTable {
    updated: String,
    sources: Vec<Source>,
    /// Ordered by name, for lists.
    entries: BTreeMap<Arc<str>, PriceEntry>,
    /// Normalized names and aliases (`names::key`), mapped to names in `entries`.
    by_key: HashMap<String, Arc<str>>,
}

#[derive(Clone, Copy, Debug)]
struct PriceEntry {
    price: Price,
    origin: Origin,
}

impl PriceTable {
    /// Returns the built-in table.
    pub fn builtin() -> Self {
        // A test parses the file, so the fallback (no prices) is never used.
        serde_json::from_str(BUILTIN_PRICES_JSON).map(Self::from_document).unwrap_or_default()
    }

    /// Parses the operator's file: a JSON object of model name to [`Price`].
    ///
    /// # Errors
    ///
    /// Fails when the text is not a price table, or a rate is invalid.
    pub fn parse_file(text: &str) -> Result<Overrides, PriceFileError> {
        let prices: BTreeMap<String, Price> =
            serde_json::from_str(text).map_err(|it| PriceFileError::Json(it.to_string()))?;
        for (model, price) in &prices {
            if let Some(field) = invalid_rate(price) {
                return Err(PriceFileError::Rate { model: model.clone(), field });
            }
        }
        Ok(prices.into_iter().collect())
    }

    /// Replaces or adds prices for all tenants.
    #[must_use]
    pub fn with_overrides(mut self, overrides: &Overrides) -> Self {
        for (name, price) in overrides.iter() {
            // "GPT-4o" in the file refers to the model listed as "gpt-4o".
            let key = names::key(name);
            let listed = self.by_key.get(&key).filter(|it| names::key(it) == key).cloned();
            let name = listed.unwrap_or_else(|| name.into());
            self.by_key.insert(key, name.clone());
            self.entries.insert(name, PriceEntry { price: *price, origin: Origin::File });
        }
        self
    }

    /// Returns the base name and price of a sent model name.
    pub fn resolve(&self, model: &str) -> Option<(&str, &Price)> {
        let found = names::candidates(model)
            .into_iter()
            .find_map(|it| Some((self.entries.get_key_value(self.by_key.get(&it.key)?)?, it.free)));
        found.map(|((name, entry), free)| (name.as_ref(), if free { &FREE_PRICE } else { &entry.price }))
    }

    /// Like [`Self::resolve`], but a tenant's own prices take precedence.
    ///
    /// The result depends only on the arguments, so it can be cached per model name.
    pub fn rate(&self, model: &str, own: &Overrides) -> Option<Rate> {
        names::candidates(model).into_iter().find_map(|it| {
            let listed = self.by_key.get(&it.key);
            let own_price = own.get(&it.key).or_else(|| own.get(&names::key(listed?)));
            let (name, price, origin) = match own_price {
                Some((name, price)) => (name, *price, Origin::Tenant),
                None => {
                    let (name, entry) = self.entries.get_key_value(listed?)?;
                    (name, entry.price, entry.origin)
                }
            };
            let price = if it.free { FREE_PRICE } else { price };
            Some(Rate { model: name.clone(), price, origin })
        })
    }

    /// Iterates over all models by name, with the origins of their prices.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Price, Origin)> {
        self.entries.iter().map(|(name, it)| (name.as_ref(), &it.price, it.origin))
    }

    /// Returns the date of the newest built-in price, `YYYY-MM-DD`.
    pub fn updated(&self) -> &str {
        &self.updated
    }

    /// Returns the sources of the built-in prices.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    fn from_document(document: PriceDocument) -> Self {
        let mut table = Self { updated: document.updated, ..Self::default() };
        for provider in document.providers {
            table.sources.push(provider.source);
            for (name, row) in provider.models {
                let name: Arc<str> = name.into();
                for spelling in row.aliases.iter().map(String::as_str).chain([name.as_ref()]) {
                    table.by_key.insert(names::key(spelling), name.clone());
                }
                table.entries.insert(name, PriceEntry { price: row.price, origin: Origin::Builtin });
            }
        }
        table
    }
}

/// Prices that take precedence over a table: an operator's file, or a tenant's own prices.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    by_key: BTreeMap<String, (Arc<str>, Price)>,
}

impl Overrides {
    /// Returns whether there are no overrides.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Iterates over the names and their prices.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Price)> {
        self.by_key.values().map(|(name, price)| (name.as_ref(), price))
    }

    fn get(&self, key: &str) -> Option<&(Arc<str>, Price)> {
        self.by_key.get(key)
    }
}

impl FromIterator<(String, Price)> for Overrides {
    fn from_iter<I: IntoIterator<Item = (String, Price)>>(prices: I) -> Self {
        let by_key = prices.into_iter().map(|(name, price)| (names::key(&name), (name.into(), price)));
        Self { by_key: by_key.collect() }
    }
}

/// Why a price file is invalid.
#[derive(Clone, Debug, PartialEq)]
pub enum PriceFileError {
    /// Not a JSON object of model name to price; with the parser's message.
    Json(String),
    /// A rate is negative, not finite, or too high.
    Rate {
        /// The model.
        model: String,
        /// The field.
        field: &'static str,
    },
}

impl fmt::Display for PriceFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(message) => {
                write!(f, "expected a JSON object of model name to price: {message}")
            }
            Self::Rate { model, field } => {
                write!(f, "{field} of \"{model}\" must be from 0 to {MAX_PER_MILLION} dollars")
            }
        }
    }
}

impl std::error::Error for PriceFileError {}

/// Returns the first invalid rate of a price: negative, not finite or above a million dollars.
pub fn invalid_rate(price: &Price) -> Option<&'static str> {
    let rates = [
        ("input_per_million", Some(price.input_per_million)),
        ("output_per_million", Some(price.output_per_million)),
        ("cached_input_per_million", price.cached_input_per_million),
        ("cache_write_per_million", price.cache_write_per_million),
        ("reasoning_per_million", price.reasoning_per_million),
    ];
    let wrong = |rate: Option<f64>| rate.is_some_and(|it| !(0.0..=MAX_PER_MILLION).contains(&it));
    rates.into_iter().find(|&(_, rate)| wrong(rate)).map(|(field, _)| field)
}

/// Shape of the built-in file.
#[derive(Deserialize)]
struct PriceDocument {
    updated: String,
    providers: Vec<ProviderPrices>,
}

#[derive(Deserialize)]
struct ProviderPrices {
    #[serde(flatten)]
    source: Source,
    models: BTreeMap<String, ModelRow>,
}

#[derive(Deserialize)]
struct ModelRow {
    #[serde(flatten)]
    price: Price,
    /// Aliases of the model with the same price.
    #[serde(default)]
    aliases: Vec<String>,
}

#[cfg(test)]
mod tests;
