//! Compares a template with the template of a message, word by word.

use crate::words::{MAX_TEMPLATE_WORDS, Word, WordKind};

/// Cost of a wildcard of the template for which the message has no words.
const MISSING_VALUE_COST: u32 = 2;
/// Cost of a wildcard of the message for which the template has no words.
const ADDED_VALUE_COST: u32 = 3;
/// Divisor of the cost of sentences of advice that only one of the messages contains.
const ADDED_ADVICE_DIVISOR: u32 = 4;
/// Number of words of prose that a wildcard absorbs at no cost.
const FREE_ABSORBED_WORDS: u32 = 2;
/// Minimum weight of the common words at which a wildcard absorbs words of prose.
const MIN_ABSORBING_WEIGHT: u32 = 30;
/// Cost of each further absorbed word of prose.
const ABSORBED_WORD_COST: u32 = 3;

/// The words that two templates have in common, in order.
#[derive(Debug, Clone, Default)]
pub struct Alignment {
    /// Indexes of equal words, in the template and in the other one.
    pub pairs: Vec<(usize, usize)>,
    /// Number of words of the other template.
    pub other_words: usize,
    /// Weight of the words in common.
    pub matched: u32,
    /// Cost of the differences.
    pub cost: u32,
    /// Number of the template's words that are not wildcards and not in common.
    pub lost: usize,
    /// Whether all words that are not in common are values or wildcards.
    pub only_values: bool,
    /// Whether all words that are not in common are values, wildcards or names.
    pub only_names: bool,
    /// Whether words of prose stand in place of other words of prose.
    pub replaces_prose: bool,
    /// Whether a status is not in common.
    pub replaces_status: bool,
}

impl Alignment {
    /// Aligns a template with the template of a message. If `takes_any_end`, the wildcard at the end of the template
    /// stands for any text.
    pub fn new(template: &[Word], other: &[Word], takes_any_end: bool) -> Self {
        let mut alignment = Self { other_words: other.len(), ..Self::default() };
        alignment.pairs = common_words(template, other);
        alignment.matched = alignment.pairs.iter().map(|it| template[it.0].weight).sum();
        alignment.count_differences(template, other, takes_any_end);
        alignment
    }

    /// Returns the cost of the differences, in thousandths of the whole.
    pub fn distance(&self) -> u32 {
        let whole = self.matched + self.cost;
        (self.cost * 1000).checked_div(whole).unwrap_or(0)
    }

    /// Returns whether the template covers the message: the words of the message differ only in place of wildcards.
    pub fn is_exact(&self) -> bool {
        self.cost == 0 && self.lost == 0
    }

    /// Returns whether the other template has words between its word that is paired with the template's word
    /// `mine` and the pair before.
    pub fn has_other_words_before(&self, mine: usize) -> bool {
        let at = self.pairs.partition_point(|it| it.0 < mine);
        let end = self.pairs.get(at).map_or(self.other_words, |it| it.1);
        let start = if at == 0 { 0 } else { self.pairs[at - 1].1 + 1 };
        end > start
    }

    fn count_differences(&mut self, template: &[Word], other: &[Word], takes_any_end: bool) {
        let mut next = (0, 0);
        (self.only_values, self.only_names) = (true, true);
        let end = (template.len(), other.len());
        for index in 0..=self.pairs.len() {
            let pair = self.pairs.get(index).copied().unwrap_or(end);
            let mine = &template[next.0..pair.0];
            let theirs = &other[next.1..pair.1];
            let is_any_end = takes_any_end && pair == end && mine.len() == 1;
            if !is_any_end {
                self.cost += difference(mine, theirs, self.matched);
            }
            let mut both = mine.iter().chain(theirs);
            self.replaces_status |= both.clone().any(|it| it.kind == WordKind::Status);
            self.only_values &=
                both.clone().all(|it| matches!(it.kind, WordKind::Value | WordKind::Wildcard));
            self.only_names &=
                both.all(|it| matches!(it.kind, WordKind::Value | WordKind::Wildcard | WordKind::Name));
            self.replaces_prose |= replaces_prose(mine, theirs);
            self.lost += mine.iter().filter(|it| !it.is_wildcard()).count();
            next = (pair.0 + 1, pair.1 + 1);
        }
    }
}

fn replaces_prose(mine: &[Word], theirs: &[Word]) -> bool {
    let is_fixed = |words: &[Word]| !words.iter().any(Word::is_wildcard) && words.iter().any(Word::is_prose);
    is_fixed(mine) && is_fixed(theirs)
}

/// Returns the cost of the words between two pairs. `matched` is the weight of the words that the templates have
/// in common.
fn difference(mine: &[Word], theirs: &[Word], matched: u32) -> u32 {
    if mine.is_empty() && theirs.is_empty() {
        return 0;
    }
    if (mine.is_empty() || theirs.is_empty()) && mine.iter().chain(theirs).all(|it| it.is_advice) {
        let added: u32 = mine.iter().chain(theirs).map(|it| it.weight).sum();
        return added.div_ceil(ADDED_ADVICE_DIVISOR);
    }
    let weight = |words: &[Word]| words.iter().map(|it| it.weight).sum::<u32>();
    let has_wildcard = |words: &[Word]| words.iter().any(Word::is_wildcard);
    match (has_wildcard(mine), has_wildcard(theirs)) {
        (true, _) => {
            let prose = theirs.iter().filter(|it| it.is_prose()).count() as u32;
            // In a short template, a wildcard could stand for the whole message.
            let free = if matched >= MIN_ABSORBING_WEIGHT {
                FREE_ABSORBED_WORDS
            } else {
                matched / MIN_ABSORBING_WEIGHT.div_ceil(2)
            };
            let absorbed = prose.saturating_sub(free) * ABSORBED_WORD_COST;
            let missing = if theirs.is_empty() { MISSING_VALUE_COST } else { 0 };
            weight(mine) + absorbed + missing
        }
        (false, true) if mine.is_empty() => ADDED_VALUE_COST + weight(theirs),
        (false, true) => (weight(mine) / 2).max(weight(theirs)),
        (false, false) => weight(mine).max(weight(theirs)),
    }
}

/// Returns the pairs of equal words with the largest weight that keep the order.
fn common_words(template: &[Word], other: &[Word]) -> Vec<(usize, usize)> {
    let is_equal = |mine: usize, theirs: usize| template[mine].hash == other[theirs].hash;
    let shorter = template.len().min(other.len());
    let head = (0..shorter).take_while(|it| is_equal(*it, *it)).count();
    let tail =
        (0..shorter - head).take_while(|it| is_equal(template.len() - 1 - it, other.len() - 1 - it)).count();
    let mut pairs: Vec<(usize, usize)> = (0..head).map(|it| (it, it)).collect();
    let (rows, columns) = (template.len() - head - tail, other.len() - head - tail);
    if rows > 0 && columns > 0 {
        middle(&template[head..head + rows], &other[head..head + columns], head, &mut pairs);
    }
    pairs.extend((0..tail).rev().map(|it| (template.len() - 1 - it, other.len() - 1 - it)));
    pairs
}

/// Width of the table of partial sums.
const TABLE_WIDTH: usize = MAX_TEMPLATE_WORDS + 1;

fn middle(template: &[Word], other: &[Word], offset: usize, pairs: &mut Vec<(usize, usize)>) {
    // `best[row * TABLE_WIDTH + column]` is the largest weight of pairs from this row and column to the ends.
    let mut best = [0_u16; TABLE_WIDTH * TABLE_WIDTH];
    for row in (0..template.len()).rev() {
        for column in (0..other.len()).rev() {
            let at = row * TABLE_WIDTH + column;
            let skip = best[at + TABLE_WIDTH].max(best[at + 1]);
            let both = best[at + TABLE_WIDTH + 1] + pair_weight(&template[row]);
            best[at] = if template[row].hash == other[column].hash { skip.max(both) } else { skip };
        }
    }
    let (mut row, mut column) = (0, 0);
    while row < template.len() && column < other.len() {
        let at = row * TABLE_WIDTH + column;
        let is_pair = template[row].hash == other[column].hash
            && best[at] == best[at + TABLE_WIDTH + 1] + pair_weight(&template[row]);
        if is_pair {
            pairs.push((row + offset, column + offset));
            row += 1;
            column += 1;
        } else if best[at + TABLE_WIDTH] >= best[at + 1] {
            row += 1;
        } else {
            column += 1;
        }
    }
}

/// Returns the weight by which pairs are chosen. Wildcards are paired too, unless that prevents a pair of words.
fn pair_weight(word: &Word) -> u16 {
    (word.weight as u16) * 4 + u16::from(word.is_wildcard())
}
