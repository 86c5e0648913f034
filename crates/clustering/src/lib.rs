//! Failure clustering: turns messages of failures into templates and groups failures by them.
//!
//! # Pipeline
//!
//! 1. [`unwrap`](unwrap::unwrap) removes the texts that SDKs, frameworks and gateways put around the message of a
//!    provider: exception classes, status lines, JSON and Python objects, stack traces, HTML pages.
//! 2. [`mask`](mask::mask) replaces numbers, identifiers, paths, addresses, structured values and quoted text by the
//!    wildcard [`TEMPLATE_WILDCARD`].
//! 3. [`Template`] splits the masked text into words. A word is prose, a function word, or a value (an identifier, or
//!    a word in quotes), and differences between values count less than differences between prose.
//! 4. [`ClusterSet::assign`] compares the template with the clusters of the same failure type and span name, and joins
//!    the nearest one or creates a cluster. The template of a cluster becomes more general when a message that differs
//!    little joins it.
//!
//! # Guarantees
//!
//! - A failure never moves between clusters, and a cluster keeps its ID when its template becomes more general.
//! - The result depends on the clusters and on the messages in their order, and on nothing else.
//! - Work and memory per message are bounded, whatever the message contains: at most [`MAX_MESSAGE_BYTES`] bytes are
//!   examined, and a template has at most [`MAX_TEMPLATE_WORDS`] words.
//! - A project has at most [`MAX_CLUSTERS_PER_TYPE`] clusters of a failure type. Further failures join a cluster that
//!   is near, or else the type's overflow cluster, whose template is a single wildcard.
//!
//! # Presentation
//!
//! A template reads `Rate limit reached for gpt-4o in organization <*> on tokens per min (TPM): Limit <*>`. A value
//! that has always been the same, such as the model in this example, stays readable until another value is seen. A
//! template that ends in `: <*>…` stands for messages with a free text after the colon. [`Template::title`] is its
//! first sentence. The template shows no values that are masked, so the list of clusters needs samples: [`Samples`]
//! keeps the first failure and the latest ones.
//!
//! # Storage
//!
//! A cluster's row has its ID, failure type, span name, number of failures and [`Template::fingerprint`]: the version of
//! the rules, a colon and the text of the template. The text is parsed when the cluster is loaded.
//! A fingerprint of another version is not comparable ([`Template::parse`] returns `None`): its cluster keeps its failures and gets no new ones.
//!
//! **Invariant:** no I/O, no clock, no randomness.

mod align;
mod cluster_set;
pub mod mask;
mod samples;
mod template;
pub mod unwrap;
mod words;

pub use cluster_set::{
    Assignment, ClusterChange, ClusterSet, FailureText, MAX_CLUSTERS_PER_TYPE, StoredCluster,
};
pub use mask::TEMPLATE_WILDCARD;
pub use samples::Samples;
pub use template::{FINGERPRINT_VERSION, Template};
pub use unwrap::MAX_MESSAGE_BYTES;
pub use words::MAX_TEMPLATE_WORDS;
