//! The vectors of questions in words, for as long as somebody may page through the answers, and
//! as long as who embeds is the same.
//!
//! A provider answers the same question with slightly different numbers each time, and costs money
//! and time. So its answer is kept for some minutes, by each process for itself. When it is gone,
//! the question is asked anew, and a span just at the border of two pages may be on both or neither.

use std::{sync::Arc, time::Duration};

use api::Plan;
use moka::sync::Cache;
use store::vectors::UnitVector;
use uuid::Uuid;

use crate::{
    embedding::{Embedder, Who},
    error::Result,
};

/// How long an answer is kept.
const KEPT: Duration = Duration::from_secs(600);
/// How many are kept; each takes about 6 KiB.
const MOST: u64 = 2_000;

/// What has been asked, by tenant, who answered with which model, and words.
pub struct Questions(Cache<(Uuid, Who, String, String), Arc<Question>>);

/// What a provider answered.
#[derive(Debug)]
pub struct Question {
    /// What the words mean.
    pub vector: UnitVector,
    /// The model that says so.
    pub model: String,
}

impl Default for Questions {
    fn default() -> Self {
        Self(Cache::builder().max_capacity(MOST).time_to_live(KEPT).build())
    }
}

impl Questions {
    /// The vector of a question of a tenant on this plan.
    ///
    /// # Errors
    /// As [`Embedder::query`].
    pub async fn ask(
        &self,
        embedder: &Embedder,
        tenant: Uuid,
        plan: Plan,
        words: &str,
    ) -> Result<Arc<Question>> {
        let chosen = embedder.for_questions(tenant, plan).await?;
        let model = chosen.model().to_owned();
        let key = (tenant, chosen.who(), model.clone(), words.to_owned());
        if let Some(known) = self.0.get(&key) {
            return Ok(known);
        }
        let vector = embedder.query(&chosen, words).await?;
        let question = Arc::new(Question { vector, model });
        self.0.insert(key, Arc::clone(&question));
        Ok(question)
    }
}
