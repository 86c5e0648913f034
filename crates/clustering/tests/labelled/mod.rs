//! Labelled failure messages: templates of `tests/data`, filled and wrapped by a seeded generator.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod score;
mod slots;
mod wrappings;

/// Templates of providers' messages.
pub const PROVIDER_TEMPLATES: &str = include_str!("../data/providers.txt");
/// Templates in the style of system logs.
pub const SYSTEM_LOG_TEMPLATES: &str = include_str!("../data/logs.txt");

/// The half of the templates that a figure comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// The templates with which rules and constants were chosen.
    Development,
    /// Templates that were not used to choose the rules.
    HeldOut,
}

/// A template with the wrappings that its messages arrive in.
#[derive(Debug, Clone)]
pub struct LabelledTemplate {
    /// The text with slots.
    pub text: String,
    /// Names of wrappings.
    pub wrappings: Vec<String>,
    /// The half that the template belongs to.
    pub half: Half,
}

/// A message with its label.
#[derive(Debug, Clone)]
pub struct LabelledMessage {
    /// Index of the template.
    pub label: usize,
    /// The message as a sender reports it.
    pub text: String,
}

/// Returns the templates of a file of `tests/data`.
pub fn templates(file: &str) -> Vec<LabelledTemplate> {
    let mut wrappings = Vec::new();
    let mut found = Vec::new();
    for line in file.lines().filter(|it| !it.is_empty() && !it.starts_with('#')) {
        if let Some(names) = line.strip_prefix("@ ") {
            wrappings = names.split(' ').map(str::to_owned).collect();
        } else {
            let text = line.replace("\\n", "\n").replace("\\\\", "\\");
            let half = if hash(line).is_multiple_of(2) { Half::Development } else { Half::HeldOut };
            found.push(LabelledTemplate { text, wrappings: wrappings.clone(), half });
        }
    }
    found
}

/// Returns `count` messages of the templates of a half, in a random order. Templates differ in frequency.
pub fn messages(file: &str, half: Half, count: usize, seed: u64) -> Vec<LabelledMessage> {
    let chosen: Vec<LabelledTemplate> = templates(file).into_iter().filter(|it| it.half == half).collect();
    generate(&chosen, count, seed)
}

/// Returns `count` messages of these templates. The label is the index of the template.
pub fn generate(chosen: &[LabelledTemplate], count: usize, seed: u64) -> Vec<LabelledMessage> {
    let mut random = Random::new(seed);
    let mut found = Vec::with_capacity(count);
    for index in 0..count {
        // Each template occurs at least once; the square makes some templates frequent and others rare.
        let label = if index < chosen.len() {
            index
        } else {
            let position = random.fraction() * random.fraction();
            (position * chosen.len() as f64) as usize * 61 % chosen.len()
        };
        let template = &chosen[label];
        let filled = slots::fill(&template.text, template.half, &mut random);
        found.push(LabelledMessage { label, text: wrappings::wrap(&filled, template, &mut random) });
    }
    shuffle(&mut found, &mut random);
    found
}

/// Shuffles a slice.
pub fn shuffle<T>(list: &mut [T], random: &mut Random) {
    for index in (1..list.len()).rev() {
        list.swap(index, random.below(index + 1));
    }
}

/// A small seeded generator (SplitMix64).
pub struct Random(u64);

impl Random {
    /// Creates a generator.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        it ^ (it >> 31)
    }

    /// Returns a number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Returns a number from 0 to 1.
    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns one of the values.
    pub fn choose<'a>(&mut self, values: &[&'a str]) -> &'a str {
        values[self.below(values.len())]
    }
}

/// Returns the FNV-1a hash with a final mix, so that the lowest bit depends on all bytes.
fn hash(text: &str) -> u64 {
    let sum = text
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
    (sum ^ (sum >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 17
}
