//! The clusters of one failure type and span name.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::align::Alignment;
use crate::template::Template;
use crate::words::WordKind;

/// Maximum number of clusters that are aligned with a message.
const MAX_ALIGNED_CLUSTERS: usize = 24;
/// Maximum number of remembered decisions.
const MAX_REMEMBERED_DECISIONS: usize = 512;
/// Largest distance, in thousandths, at which a message joins a cluster.
const JOIN_DISTANCE: u32 = 90;
/// Largest distance, in thousandths, at which a message that differs in values only joins a cluster.
const VALUES_JOIN_DISTANCE: u32 = 300;
/// Minimum weight of the common words at which a name counts as a value.
const MIN_NAMING_WEIGHT: u32 = 40;
/// Largest distance, in thousandths, at which clusters are siblings of a message: they differ in the same place.
const SIBLING_DISTANCE: u32 = 350;
/// Minimum weight of the words that siblings have in common.
const MIN_SIBLING_WEIGHT: u32 = 23;
/// Minimum number of siblings for the place in which they differ to count as variable.
const MIN_SIBLINGS: usize = 2;
/// If this many clusters have the same words before a colon and one failure each, the text after the colon counts
/// as free text.
const MIN_FREE_TEXTS: usize = 5;
/// Minimum weight of the words before the colon.
const MIN_HEAD_WEIGHT: u32 = 13;
/// Key of templates without words in the index.
const NO_WORDS: u64 = 0;

/// The decision whether a failure joins a cluster.
#[derive(Debug)]
pub enum JoinDecision {
    /// The failure joins this cluster.
    Join(usize),
    /// The failure joins this cluster, whose template is replaced by the given one.
    Generalize(usize, Template),
    /// The failure starts a new cluster.
    Create,
}

/// The clusters of one failure type and span name, by their words.
#[derive(Debug, Default)]
pub struct Scope {
    members: Vec<ScopeMember>,
    /// Indexes in `members` of the clusters that have a word.
    by_word: HashMap<u64, Vec<u32>>,
    /// Decisions to join, by the words of the message. Cleared when a template changes, so that they equal the
    /// result of a comparison.
    remembered: HashMap<u64, usize>,
}

/// A cluster of a scope.
#[derive(Debug)]
struct ScopeMember {
    /// Position of the cluster in the set.
    at: usize,
    /// Weight of all words of the template.
    weight: u32,
}

/// A cluster that is compared with a message.
struct Candidate {
    at: usize,
    alignment: Alignment,
    count: u64,
}

impl Scope {
    /// Adds a cluster, whose position is after those of the others.
    pub fn insert(&mut self, at: usize, template: &Template) {
        let index = self.members.len() as u32;
        self.members.push(ScopeMember { at, weight: template.weight() });
        self.add_words(index, template);
    }

    /// Replaces the template of a cluster.
    pub fn replace(&mut self, at: usize, old: &Template, new: &Template) {
        let Ok(index) = self.members.binary_search_by_key(&at, |it| it.at) else { return };
        for (word, _) in index_words(old) {
            if let Some(list) = self.by_word.get_mut(&word) {
                list.retain(|it| *it as usize != index);
                if list.is_empty() {
                    self.by_word.remove(&word);
                }
            }
        }
        self.members[index].weight = new.weight();
        self.add_words(index as u32, new);
    }

    fn add_words(&mut self, index: u32, template: &Template) {
        for (word, _) in index_words(template) {
            self.by_word.entry(word).or_default().push(index);
        }
        self.remembered.clear();
    }

    /// Decides which cluster a message joins. `is_lenient` accepts clusters that are only near.
    pub fn decide<'a>(
        &mut self,
        message: &Template,
        template_of: impl Fn(usize) -> (&'a Template, u64),
        is_lenient: bool,
    ) -> JoinDecision {
        let sequence = sequence_hash(message);
        if let Some(at) = self.remembered.get(&sequence) {
            return JoinDecision::Join(*at);
        }
        let candidates: Vec<Candidate> = self
            .nearest(message)
            .into_iter()
            .map(|at| {
                let (template, count) = template_of(at);
                Candidate {
                    at,
                    alignment: Alignment::new(template.words(), message.words(), template.takes_any_end()),
                    count,
                }
            })
            .collect();
        let best = candidates
            .iter()
            .filter(|it| is_comparable(it, message, template_of(it.at).0))
            .filter(|it| it.alignment.distance() <= limit(&it.alignment, is_lenient))
            .min_by_key(|it| {
                (
                    Reverse(it.alignment.matched.saturating_sub(2 * it.alignment.cost)),
                    it.alignment.distance(),
                    it.at,
                )
            });
        if let Some(best) = best {
            if best.alignment.is_exact() {
                if self.remembered.len() >= MAX_REMEMBERED_DECISIONS {
                    self.remembered.clear();
                }
                self.remembered.insert(sequence, best.at);
                return JoinDecision::Join(best.at);
            }
            // A message that is only similar must not make the template more general.
            let is_near = best.alignment.distance() > limit(&best.alignment, false);
            return if is_near {
                JoinDecision::Join(best.at)
            } else {
                generalized(best, template_of(best.at).0)
            };
        }
        if let Some(sibling) = sibling(&candidates, message) {
            return generalized(sibling, template_of(sibling.at).0);
        }
        free_text(&candidates, message, &template_of)
            .map_or(JoinDecision::Create, |(at, template)| JoinDecision::Generalize(at, template))
    }

    /// Returns the clusters that share the most weight of words with a message.
    fn nearest(&self, message: &Template) -> Vec<usize> {
        let mut shared = vec![0_u32; self.members.len()];
        for (word, weight) in index_words(message) {
            for index in self.by_word.get(&word).into_iter().flatten() {
                shared[*index as usize] += weight;
            }
        }
        let total = message.weight();
        let similarity = |(member, shared): (&ScopeMember, &u32)| {
            (Reverse(shared * 2000 / (member.weight + total + 1)), member.at)
        };
        let mut list: Vec<(Reverse<u32>, usize)> =
            self.members.iter().zip(&shared).filter(|it| *it.1 > 0).map(similarity).collect();
        if list.len() > MAX_ALIGNED_CLUSTERS {
            list.select_nth_unstable(MAX_ALIGNED_CLUSTERS);
            list.truncate(MAX_ALIGNED_CLUSTERS);
        }
        list.sort_unstable();
        list.into_iter().map(|it| it.1).collect()
    }
}

/// Returns the largest distance at which a message joins.
fn limit(alignment: &Alignment, is_lenient: bool) -> u32 {
    if is_lenient {
        SIBLING_DISTANCE
    } else if alignment.only_values || (alignment.only_names && alignment.matched >= MIN_NAMING_WEIGHT) {
        VALUES_JOIN_DISTANCE
    } else if alignment.replaces_prose {
        0
    } else {
        JOIN_DISTANCE
    }
}

/// Returns whether a template and a message have enough words in common to be compared.
fn is_comparable(candidate: &Candidate, message: &Template, template: &Template) -> bool {
    candidate.alignment.matched > 0 || (message.text() == template.text())
}

fn generalized(candidate: &Candidate, template: &Template) -> JoinDecision {
    let general = template.generalize(&candidate.alignment);
    if general == *template {
        JoinDecision::Join(candidate.at)
    } else {
        JoinDecision::Generalize(candidate.at, general)
    }
}

/// Returns the oldest of the clusters that differ from a message in the same place, if there are enough of them.
fn sibling<'a>(candidates: &'a [Candidate], message: &Template) -> Option<&'a Candidate> {
    let mut places: HashMap<u64, Vec<&Candidate>> = HashMap::new();
    for it in candidates.iter().filter(|it| is_sibling(&it.alignment)) {
        places.entry(place_hash(&it.alignment, message)).or_default().push(it);
    }
    let enough = places.into_values().filter(|it| it.len() >= MIN_SIBLINGS);
    enough
        .max_by_key(|it| (it.len(), it[0].alignment.matched, Reverse(it[0].at)))?
        .into_iter()
        .min_by_key(|it| (it.alignment.lost, it.at))
}

fn is_sibling(alignment: &Alignment) -> bool {
    alignment.distance() <= SIBLING_DISTANCE
        && alignment.matched >= MIN_SIBLING_WEIGHT
        && !alignment.replaces_status
}

/// Returns a cluster of the messages that have the same words before a colon as this one, if a different text
/// follows each time.
fn free_text<'a>(
    candidates: &[Candidate],
    message: &Template,
    template_of: &impl Fn(usize) -> (&'a Template, u64),
) -> Option<(usize, Template)> {
    let head = head_words(message)?;
    let same_head = |it: &&Candidate| {
        let words = template_of(it.at).0.words();
        head_words(template_of(it.at).0) == Some(head)
            && words[..head].iter().zip(&message.words()[..head]).all(|(mine, other)| mine.hash == other.hash)
    };
    let texts: Vec<&Candidate> = candidates.iter().filter(|it| it.count <= 1).filter(same_head).collect();
    let oldest = texts.iter().map(|it| it.at).min()?;
    (texts.len() >= MIN_FREE_TEXTS).then(|| (oldest, template_of(oldest).0.keep_head(head)))
}

/// Returns the number of words before the first colon, if these have enough weight.
fn head_words(template: &Template) -> Option<usize> {
    let colon = template.text().find(": ")?;
    let words = template.words();
    let head = words.iter().take_while(|it| it.end as usize <= colon).count();
    let weight: u32 = words[..head].iter().map(|it| it.weight).sum();
    (weight >= MIN_HEAD_WEIGHT && head < words.len()).then_some(head)
}

/// Identifies the place in which a message differs from a template.
fn place_hash(alignment: &Alignment, message: &Template) -> u64 {
    let words = message.words();
    let is_fixed = |it: &&(usize, usize)| !matches!(words[it.1].kind, WordKind::Value | WordKind::Wildcard);
    alignment.pairs.iter().filter(is_fixed).fold(17, |sum, (_, theirs)| mix(sum, *theirs as u64))
}

fn sequence_hash(template: &Template) -> u64 {
    template.words().iter().fold(19, |sum, it| mix(sum, it.hash))
}

fn mix(sum: u64, value: u64) -> u64 {
    (sum.rotate_left(5) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Returns the different words of a template, with their weights. A template without words has the word
/// [`NO_WORDS`].
fn index_words(template: &Template) -> Vec<(u64, u32)> {
    let fixed = template.words().iter().filter(|it| !it.is_wildcard());
    let mut list: Vec<(u64, u32)> = fixed.map(|it| (it.hash, it.weight)).collect();
    list.sort_unstable_by_key(|it| (it.0, Reverse(it.1)));
    list.dedup_by_key(|it| it.0);
    if list.is_empty() {
        list.push((NO_WORDS, 1));
    }
    list
}
