//! Finding personal data and secrets in text: by shape, then by checksum, then by the words around.
//!
//! One pass folds the text ([`plain`]), one notes the words that say what a number is and the
//! beginnings of keys ([`words`]), and one walks over numbers and tokens. Nothing backtracks, so
//! time is linear in the text. What is found is told by kind and place, never by value.

mod card;
mod checks;
mod emails;
mod iban;
mod ip;
mod lettered;
mod national;
mod numbers;
mod phone;
mod reserved;
mod secrets;
mod words;

pub(crate) use self::reserved::Reserved;
use self::words::Words;
use crate::plain::Plain;

/// A group of findings, as `kinds` of the config names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// An e-mail address of a person.
    Email,
    /// A telephone number.
    Phone,
    /// A number of a payment card.
    PaymentCard,
    /// An international bank account number.
    Iban,
    /// A number that a state gives a person.
    NationalId,
    /// A public address of the internet.
    IpAddress,
    /// A key, a token or a password.
    Secret,
}

impl Kind {
    /// All of them, in the order of the documentation.
    pub(crate) const ALL: [Self; 7] = [
        Self::Email,
        Self::Phone,
        Self::PaymentCard,
        Self::Iban,
        Self::NationalId,
        Self::IpAddress,
        Self::Secret,
    ];

    /// Returns the word used in configs and reasonings.
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

/// What was found, and where. It does not hold the value, so it can't be told by mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The group.
    pub kind: Kind,
    /// More exactly, such as `GitHub token`; empty when the kind says it all.
    pub what: &'static str,
    /// First character, from 0, of the text as given.
    pub start: usize,
    /// The character after the last.
    pub end: usize,
}

/// A finding in the folded text, before it is known whether it is allowed.
#[derive(Clone, Debug)]
struct Hit {
    kind: Kind,
    what: &'static str,
    /// Bytes of the folded text.
    start: usize,
    end: usize,
    /// Set aside by a standard for examples, such as `example.com`.
    reserved: bool,
}

/// What to look for.
pub(crate) struct Search<'a> {
    /// The kinds that count.
    pub kinds: &'a [Kind],
    /// Whether values that standards set aside for examples count.
    pub reserved: Reserved,
    /// Whether this value may be told to anybody.
    pub allowed: &'a dyn Fn(Kind, &str) -> bool,
}

impl Search<'_> {
    /// What there is in a text, in order of place.
    pub(crate) fn run(&self, text: &str) -> Vec<Finding> {
        let plain = Plain::of(text);
        let words = Words::of(plain.text());
        let mut hits = Vec::new();
        // In order of certainty: what overlaps an earlier one is dropped.
        secrets::find(plain.text(), &words, &mut hits);
        emails::find(plain.text(), &mut hits);
        ip::find_v6(plain.text(), &mut hits);
        lettered::find(plain.text(), &words, &mut hits);
        numbers::find(plain.text(), &words, &mut hits);
        let mut findings: Vec<Finding> = apart(hits)
            .into_iter()
            .filter(|it| self.kinds.contains(&it.kind))
            .filter(|it| self.reserved == Reserved::Counts || !it.reserved)
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

/// Those that overlap none before them in the order of certainty.
fn apart(mut hits: Vec<Hit>) -> Vec<Hit> {
    // Stable: of two that begin at the same place, the more certain stays first.
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
