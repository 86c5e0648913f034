//! Finds personal data and secrets in text: by shape, then by checksum, then by the words nearby.
//!
//! One pass normalizes the text ([`plain`]), one records label words and the prefixes of keys ([`words`]),
//! and one reads numbers and tokens. Nothing backtracks, so the time is linear in the length of the text. A
//! finding contains kind and position, never the value.

mod card;
mod checks;
mod emails;
mod iban;
mod ip;
mod lettered;
pub(crate) mod masking;
mod national;
mod numbers;
mod phone;
mod reserved;
mod secrets;
mod words;

use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) use self::reserved::ReservedValues;
pub(crate) use self::secrets::names;
use self::{numbers::Boundaries, words::Words};
use crate::plain::NormalizedText;

/// A kind of personal data or secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// A person's e-mail address.
    Email,
    /// A telephone number.
    Phone,
    /// A payment card number.
    PaymentCard,
    /// An international bank account number.
    Iban,
    /// A number that a state assigns to a person.
    NationalId,
    /// A public IP address.
    IpAddress,
    /// A key, a token or a password.
    Secret,
}

impl Kind {
    /// All kinds, in the order of the documentation.
    pub(crate) const ALL: [Self; 7] = [
        Self::Email,
        Self::Phone,
        Self::PaymentCard,
        Self::Iban,
        Self::NationalId,
        Self::IpAddress,
        Self::Secret,
    ];

    /// Returns the word for the kind in reasonings, which is its name in configs.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Phone => "phone",
            Self::PaymentCard => "payment_card",
            Self::Iban => "iban",
            Self::NationalId => "national_id",
            Self::IpAddress => "ip_address",
            Self::Secret => "secret",
        }
    }
}

/// A finding with its position. It does not contain the value, so no message can reveal it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The kind.
    pub kind: Kind,
    /// A more specific description, such as `GitHub token`; empty if the kind is specific enough.
    pub what: &'static str,
    /// The index of the first character in the original text, from 0.
    pub start: usize,
    /// The index after the last character.
    pub end: usize,
}

/// A candidate in the normalized text, before the check whether it is allowed.
#[derive(Clone, Debug)]
struct Hit {
    kind: Kind,
    what: &'static str,
    /// The first byte in the normalized text.
    start: usize,
    end: usize,
    /// Whether a standard reserves the value for examples, such as `example.com`.
    reserved: bool,
}

/// The parameters of a search.
pub(crate) struct Search<'a> {
    /// The kinds to find.
    pub kinds: &'a [Kind],
    /// Whether values that standards reserve for examples count.
    pub reserved: ReservedValues,
    /// Returns whether the config allows a value.
    pub allowed: &'a dyn Fn(Kind, &str) -> bool,
}

impl Search<'_> {
    /// Returns the findings in a text, in order of position.
    pub(crate) fn run(&self, text: &str) -> Vec<Finding> {
        let plain = NormalizedText::of(text);
        let words = Words::of(plain.text());
        let mut hits = Vec::new();
        // In order of certainty: a candidate that overlaps an earlier one is dropped.
        secrets::find(plain.text(), &words.marks, Boundaries::Strict, &mut hits);
        emails::find(plain.text(), &mut hits);
        ip::find_v6(plain.text(), &mut hits);
        lettered::find(plain.text(), &words, Boundaries::Strict, &mut hits);
        numbers::find(plain.text(), &words, Boundaries::Strict, &mut hits);
        let mut findings: Vec<Finding> = without_overlaps(hits)
            .into_iter()
            .filter(|it| self.kinds.contains(&it.kind))
            .filter(|it| self.reserved == ReservedValues::Counts || !it.reserved)
            .filter(|it| !(self.allowed)(it.kind, plain.text().get(it.start..it.end).unwrap_or_default()))
            .map(|it| Finding {
                kind: it.kind,
                what: it.what,
                start: plain.place(it.start),
                end: plain.place(it.end),
            })
            .collect();
        findings.sort_by_key(|it| it.start);
        findings
    }
}

/// Returns the candidates that overlap no candidate of higher certainty.
fn without_overlaps(mut hits: Vec<Hit>) -> Vec<Hit> {
    // The sort is stable: of two candidates with the same start, the more certain one stays first.
    let mut order: Vec<(usize, Hit)> = hits.drain(..).enumerate().collect();
    order.sort_by_key(|(rank, it)| (it.start, *rank));
    let mut kept: Vec<(usize, Hit)> = Vec::with_capacity(order.len());
    for (rank, hit) in order {
        match kept.last() {
            Some((before, last)) if hit.start < last.end => {
                if rank < *before {
                    kept.pop();
                    kept.push((rank, hit));
                }
            }
            _ => kept.push((rank, hit)),
        }
    }
    kept.into_iter().map(|(_, it)| it).collect()
}
