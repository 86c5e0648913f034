//! The encoding of facts and nodes: protocol buffers, so that later versions can add fields. Facts are
//! encoded by column, which takes about ten bytes per fact.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use prost::{DecodeError, Message};

use super::{
    fact::Fact,
    node::{ByModel, Node},
    sums::{Latencies, Sums, Totals},
};

const ERROR_FLAG: u32 = 1;
/// Position of the feedback label, above the error bit; 0 if there is none.
const FEEDBACK_SHIFT: u32 = 1;

/// Facts by column; all columns have the same length.
#[derive(Clone, PartialEq, Message)]
pub struct Facts {
    /// Names of the models to which `model` refers.
    #[prost(string, repeated, tag = "1")]
    pub models: Vec<String>,
    /// Models as positions in `models`, counted from 1; 0 means none.
    #[prost(uint32, repeated, tag = "2")]
    pub model: Vec<u32>,
    /// Differences between consecutive values.
    #[prost(sint64, repeated, tag = "3")]
    pub at: Vec<i64>,
    /// Flags: bit 0 is an error, and the feedback label is above it.
    #[prost(uint32, repeated, tag = "4")]
    pub flags: Vec<u32>,
    /// Milliseconds, plus one; 0 means unknown.
    #[prost(uint64, repeated, tag = "5")]
    pub latency: Vec<u64>,
    /// Pico-dollars.
    #[prost(sint64, repeated, tag = "6")]
    pub cost: Vec<i64>,
    /// Weights of the facts: the number of traces with the fact.
    #[prost(sint64, repeated, tag = "7")]
    pub weight: Vec<i64>,
    /// Number of tokens. Shorter than the other columns if an earlier version stored the facts.
    #[prost(sint64, repeated, tag = "8")]
    pub tokens: Vec<i64>,
}

/// Encodes facts by column.
#[derive(Default)]
pub struct Writer {
    facts: Facts,
    model_indexes: HashMap<Arc<str>, u32>,
    last: i64,
}

impl Writer {
    /// Adds a fact.
    pub fn push(&mut self, fact: &Fact, weight: i64) {
        let model = fact.model.as_ref().map_or(0, |name| self.index_of_model(name));
        let facts = &mut self.facts;
        facts.model.push(model);
        facts.at.push(fact.at.wrapping_sub(self.last));
        self.last = fact.at;
        let feedback = fact.feedback.and_then(|it| u32::try_from(it).ok()).map_or(0, |it| it + 1);
        facts.flags.push(feedback << FEEDBACK_SHIFT | if fact.error { ERROR_FLAG } else { 0 });
        facts.latency.push(fact.latency_ms.and_then(|it| u64::try_from(it).ok()).map_or(0, |it| it + 1));
        facts.cost.push(fact.cost);
        facts.tokens.push(fact.tokens);
        facts.weight.push(weight);
    }

    fn index_of_model(&mut self, name: &Arc<str>) -> u32 {
        if let Some(index_of_model) = self.model_indexes.get(name) {
            return *index_of_model;
        }
        self.facts.models.push(name.to_string());
        let index_of_model = u32::try_from(self.facts.models.len()).unwrap_or(u32::MAX);
        self.model_indexes.insert(Arc::clone(name), index_of_model);
        index_of_model
    }

    /// Returns the encoded facts.
    pub fn finish(self) -> Facts {
        self.facts
    }
}

impl Facts {
    /// Iterates over the facts with their weights.
    pub fn iter(&self) -> impl Iterator<Item = (Fact, i64)> {
        let models: Vec<Arc<str>> = self.models.iter().map(|it| Arc::from(it.as_str())).collect();
        let mut at = 0_i64;
        let columns = self.model.iter().zip(&self.at).zip(&self.flags).zip(&self.latency).zip(&self.cost);
        let tokens = self.tokens.iter().copied().chain(std::iter::repeat(0));
        let columns = columns.zip(&self.weight).zip(tokens);
        columns.map(move |((((((model, more), flags), latency), cost), weight), tokens)| {
            at = at.wrapping_add(*more);
            let model = usize::try_from(*model).ok().and_then(|it| it.checked_sub(1));
            let fact = Fact {
                at,
                model: model.and_then(|it| models.get(it).cloned()),
                error: flags & ERROR_FLAG != 0,
                feedback: (flags >> FEEDBACK_SHIFT).checked_sub(1).and_then(|it| i16::try_from(it).ok()),
                latency_ms: latency.checked_sub(1).and_then(|it| i64::try_from(it).ok()),
                cost: *cost,
                tokens,
            };
            (fact, *weight)
        })
    }
}

/// A node of either kind. Totals by model are decoded only for queries about models.
#[derive(Clone, PartialEq, Message)]
struct NodeMessage {
    /// The facts of a leaf.
    #[prost(message, optional, tag = "1")]
    facts: Option<Facts>,
    /// The encoded [`SumsMessage`] of each model.
    #[prost(bytes = "vec", repeated, tag = "2")]
    named: Vec<Vec<u8>>,
    /// The totals of models without separate totals.
    #[prost(bytes = "vec", optional, tag = "3")]
    rest: Option<Vec<u8>>,
    #[prost(message, optional, tag = "4")]
    all: Option<SumsMessage>,
}

/// The part of [`SumsMessage`] that names the model.
#[derive(Clone, PartialEq, Message)]
struct ModelNameMessage {
    #[prost(string, optional, tag = "1")]
    model: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct SumsMessage {
    #[prost(string, optional, tag = "1")]
    model: Option<String>,
    #[prost(sint64, tag = "2")]
    traces: i64,
    #[prost(sint64, tag = "3")]
    errors: i64,
    /// The upper and the lower half of 128 bits.
    #[prost(sint64, tag = "4")]
    cost_high: i64,
    #[prost(uint64, tag = "5")]
    cost_low: u64,
    #[prost(sint64, tag = "6")]
    labelled: i64,
    #[prost(sint64, tag = "7")]
    good: i64,
    /// Differences between consecutive buckets.
    #[prost(uint32, repeated, tag = "8")]
    bins: Vec<u32>,
    #[prost(sint64, repeated, tag = "9")]
    counts: Vec<i64>,
    /// The upper and the lower half of 128 bits.
    #[prost(sint64, tag = "10")]
    tokens_high: i64,
    #[prost(uint64, tag = "11")]
    tokens_low: u64,
}

impl SumsMessage {
    fn of(model: Option<&Arc<str>>, sums: &Sums) -> Self {
        let Totals { traces, errors, cost, tokens, labelled, good } = sums.totals;
        let mut last = 0;
        let bins = sums.latencies.0.iter().map(|(bin, _)| {
            let more = bin - last;
            last = *bin;
            u32::from(more)
        });
        Self {
            model: model.map(ToString::to_string),
            traces,
            errors,
            cost_high: (cost >> 64) as i64,
            cost_low: cost as u64,
            labelled,
            good,
            bins: bins.collect(),
            counts: sums.latencies.0.iter().map(|it| it.1).collect(),
            tokens_high: (tokens >> 64) as i64,
            tokens_low: tokens as u64,
        }
    }

    fn sums(&self) -> Sums {
        let mut bin = 0_u16;
        let latencies = self.bins.iter().zip(&self.counts).map(|(more, count)| {
            bin = bin.saturating_add(u16::try_from(*more).unwrap_or(u16::MAX));
            (bin, *count)
        });
        Sums {
            latencies: Latencies(latencies.collect()),
            totals: Totals {
                traces: self.traces,
                errors: self.errors,
                cost: i128::from(self.cost_high) << 64 | i128::from(self.cost_low),
                tokens: i128::from(self.tokens_high) << 64 | i128::from(self.tokens_low),
                labelled: self.labelled,
                good: self.good,
            },
        }
    }
}

/// Encodes a node.
pub fn encode(node: &Node) -> Vec<u8> {
    let stored = match node {
        Node::Leaf(list) => {
            let mut writer = Writer::default();
            for (fact, weight) in list {
                writer.push(fact, *weight);
            }
            NodeMessage { facts: Some(writer.finish()), ..NodeMessage::default() }
        }
        Node::Sums(ByModel { all, named, rest }) => NodeMessage {
            facts: None,
            named: named
                .iter()
                .map(|(model, sums)| SumsMessage::of(model.as_ref(), sums).encode_to_vec())
                .collect(),
            rest: rest.as_ref().map(|sums| SumsMessage::of(None, sums).encode_to_vec()),
            all: Some(SumsMessage::of(None, all)),
        },
    };
    stored.encode_to_vec()
}

/// Decodes a node.
///
/// # Errors
///
/// Fails when the bytes are damaged.
pub fn decode(bytes: &[u8]) -> Result<Node, DecodeError> {
    let stored = EncodedNode::open(bytes)?;
    if let Some(facts) = stored.facts() {
        return Ok(Node::Leaf(facts.collect::<BTreeMap<_, _>>()));
    }
    let named = stored.named()?.into_iter().collect();
    Ok(Node::Sums(ByModel { all: stored.all(), named, rest: stored.rest()? }))
}

/// Models with their totals.
pub type Named = Vec<(Option<Arc<str>>, Sums)>;

/// A node that is decoded lazily.
pub struct EncodedNode(NodeMessage);

impl EncodedNode {
    /// Opens an encoded node.
    ///
    /// # Errors
    ///
    /// Fails when the bytes are damaged.
    pub fn open(bytes: &[u8]) -> Result<Self, DecodeError> {
        NodeMessage::decode(bytes).map(Self)
    }

    /// Returns its facts with their weights, if it is a leaf.
    pub fn facts(&self) -> Option<impl Iterator<Item = (Fact, i64)>> {
        self.0.facts.as_ref().map(Facts::iter)
    }

    /// Returns the totals of all models.
    pub fn all(&self) -> Sums {
        self.0.all.as_ref().map(SumsMessage::sums).unwrap_or_default()
    }

    /// Returns the totals of every model with separate totals.
    ///
    /// # Errors
    ///
    /// Fails when they are damaged.
    pub fn named(&self) -> Result<Named, DecodeError> {
        let read = |bytes: &Vec<u8>| {
            let sums = SumsMessage::decode(bytes.as_slice())?;
            Ok((sums.model.as_deref().map(Arc::from), sums.sums()))
        };
        self.0.named.iter().map(read).collect()
    }

    /// Returns the totals of one model, if it has separate totals.
    ///
    /// # Errors
    ///
    /// Fails when they are damaged.
    pub fn of_model(&self, model: &str) -> Result<Option<Sums>, DecodeError> {
        for bytes in &self.0.named {
            if ModelNameMessage::decode(bytes.as_slice())?.model.as_deref() == Some(model) {
                return Ok(Some(SumsMessage::decode(bytes.as_slice())?.sums()));
            }
        }
        Ok(None)
    }

    /// Returns the totals of models without separate totals.
    ///
    /// # Errors
    ///
    /// Fails when they are damaged.
    pub fn rest(&self) -> Result<Option<Sums>, DecodeError> {
        let rest = self.0.rest.as_ref();
        rest.map(|it| Ok(SumsMessage::decode(it.as_slice())?.sums())).transpose()
    }
}
