//! Derives the names that a sent model name may stand for, most specific first.
//!
//! Senders use names such as `openrouter/anthropic/claude-3.5-sonnet:beta`,
//! `us.anthropic.claude-…-v1:0`, `models/gemini-2.5-pro`, `gpt-4o-2024-08-06` or the name of their own
//! deployment. A part is dropped only if it is known to say where or when a model runs, and not which
//! model it is.

/// A possible name.
#[derive(Debug, PartialEq)]
pub(super) struct NameCandidate {
    /// The name in the form of [`key`].
    pub key: String,
    /// Whether the sent name requests the free variant of this model.
    pub free: bool,
}

/// Longer names are not looked up: no model has one, and each costs time.
const MAX_NAME_BYTES: usize = 256;

/// Maximum number of dropped parts; no real name has more.
const MAX_DROPPED_PARTS: usize = 8;

/// Regions and vendors that precede a model name on Bedrock, each followed by a dot.
const DOTTED_PREFIXES: &[&str] = &[
    "ai21",
    "amazon",
    "anthropic",
    "apac",
    "au",
    "ca",
    "cohere",
    "deepseek",
    "eu",
    "global",
    "google",
    "jp",
    "meta",
    "minimax",
    "mistral",
    "moonshot",
    "moonshotai",
    "nvidia",
    "openai",
    "qwen",
    "us",
    "us-gov",
    "zai",
];

/// Providers that precede a model name, each followed by a colon.
const COLON_PREFIXES: &[&str] = &[
    "anthropic",
    "azure",
    "bedrock",
    "cerebras",
    "cohere",
    "deepseek",
    "fireworks",
    "gateway",
    "google",
    "google-gla",
    "google-vertex",
    "google_genai",
    "google_vertexai",
    "groq",
    "grok",
    "huggingface",
    "mistral",
    "mistralai",
    "moonshotai",
    "openai",
    "openai-chat",
    "openai-responses",
    "openrouter",
    "together",
    "vertex",
    "vertexai",
    "voyage",
    "xai",
];

/// Variants of a router that change how a model is served, but neither the model nor its rates.
const VARIANT_TAGS: &[&str] = &["beta", "exacto", "floor", "latest", "nitro", "online", "thinking"];

/// Words that occur around a model's name in names of deployments.
const DEPLOYMENT_WORDS: &[&str] = &[
    "aoai",
    "australiaeast",
    "azure",
    "brazilsouth",
    "canadaeast",
    "centralus",
    "datazone",
    "deploy",
    "deployment",
    "dev",
    "development",
    "eastus",
    "eastus2",
    "eu",
    "francecentral",
    "germanywestcentral",
    "global",
    "italynorth",
    "japaneast",
    "koreacentral",
    "my",
    "northcentralus",
    "northeurope",
    "norwayeast",
    "our",
    "polandcentral",
    "prd",
    "prod",
    "production",
    "ptu",
    "qa",
    "southcentralus",
    "southindia",
    "spaincentral",
    "stage",
    "staging",
    "standard",
    "stg",
    "swedencentral",
    "switzerlandnorth",
    "test",
    "testing",
    "uat",
    "uk",
    "uksouth",
    "us",
    "westeurope",
    "westus",
    "westus2",
    "westus3",
];

/// Normalizes a name for comparison: lower case, with `-` for `.`, `_` and space.
pub(super) fn key(name: &str) -> String {
    name.trim()
        .chars()
        .map(|it| match it {
            '.' | '_' | ' ' => '-',
            _ => it.to_ascii_lowercase(),
        })
        .collect()
}

/// Returns all names that `model` may stand for, in the order of look-up.
pub(super) fn candidates(model: &str) -> Vec<NameCandidate> {
    let model = model.trim();
    if model.is_empty() || model.len() > MAX_NAME_BYTES {
        return Vec::new();
    }
    let model = model.to_ascii_lowercase();
    let mut found = Vec::new();
    let mut rest = model.as_str();
    loop {
        without_provider(rest, &mut found);
        match rest.split_once('/') {
            Some((_, after)) => rest = after,
            None => return found,
        }
    }
}

/// Adds the names for one path suffix, with more and more provider prefixes removed.
fn without_provider(name: &str, found: &mut Vec<NameCandidate>) {
    if let Some(base) = fine_tuned_from(name) {
        found.push(NameCandidate { key: key(name), free: false });
        // A fine-tuned model has its own prices, listed under this prefix.
        let mut bases = Vec::new();
        without_suffixes(base, false, &mut bases);
        found.extend(bases.into_iter().map(|it| NameCandidate { key: format!("ft:{}", it.key), ..it }));
        return;
    }
    let mut name = name;
    let mut dotted = false;
    for _ in 0..MAX_DROPPED_PARTS {
        without_suffixes(name, dotted, found);
        let after_dot = name.split_once('.').filter(|(head, _)| DOTTED_PREFIXES.contains(head));
        let after_colon = name.split_once(':').filter(|(head, _)| COLON_PREFIXES.contains(head));
        match (after_dot, after_colon) {
            (Some((_, tail)), _) => (name, dotted) = (tail, true),
            (None, Some((_, tail))) => name = tail,
            (None, None) => return,
        }
    }
}

/// Returns the base model of a fine-tuned one: `ft:<base>:<organisation>:…` at OpenAI, `<base>.ft-…` at
/// Azure.
fn fine_tuned_from(name: &str) -> Option<&str> {
    if let Some(rest) = name.strip_prefix("ft:") {
        return rest.split(':').next();
    }
    name.split_once(".ft-").map(|(base, _)| base)
}

/// Adds a name, and the name with more and more suffixes removed.
fn without_suffixes(name: &str, dotted: bool, found: &mut Vec<NameCandidate>) {
    let mut state = NameParts { name, free: false, versioned: dotted };
    for _ in 0..MAX_DROPPED_PARTS {
        found.push(NameCandidate { key: key(state.name), free: state.free });
        match state.shorter() {
            Some(shorter) => state = shorter,
            None => return,
        }
    }
}

#[derive(Clone, Copy)]
struct NameParts<'a> {
    name: &'a str,
    free: bool,
    /// Whether a `-v1` at the end is Bedrock's version of a model, and not part of its name.
    versioned: bool,
}

impl<'a> NameParts<'a> {
    /// Removes one part that does not identify the model.
    fn shorter(self) -> Option<Self> {
        let same = |name| Self { name, ..self };
        if let Some((head, tag)) = self.name.rsplit_once(':') {
            return match tag {
                "free" => Some(Self { name: head, free: true, ..self }),
                _ if VARIANT_TAGS.contains(&tag) => Some(same(head)),
                // `…-v1:0` and, with a context size, `…-v1:0:200k`.
                _ if is_number(tag.trim_end_matches('k')) => {
                    Some(Self { name: head, versioned: true, ..self })
                }
                _ => None,
            };
        }
        if let Some((head, tag)) = self.name.rsplit_once('@') {
            return (is_number(tag) || matches!(tag, "default" | "latest")).then(|| same(head));
        }
        let head = without_date(self.name)
            .or_else(|| self.name.strip_suffix("-latest"))
            .or_else(|| self.versioned.then(|| without_version(self.name)).flatten())
            .or_else(|| without_deployment_word(self.name))?;
        Some(same(head))
    }
}

/// Drops `-2024-08-06`, `-20250929`, `-001`, and after `preview` or `exp` also `-05-06` and `-09-2025`.
/// Four digits alone are kept: `mistral-large-2402` and `-2407` differ in price.
fn without_date(name: &str) -> Option<&str> {
    let (head, last) = name.rsplit_once('-')?;
    if !is_number(last) {
        return None;
    }
    match last.len() {
        8 if is_date(&last[..4], &last[4..6], &last[6..]) => Some(head),
        3 if last.starts_with("00") => Some(head),
        2 | 4 => {
            let (head, middle) = head.rsplit_once('-')?;
            if let Some((before, year)) = head.rsplit_once('-')
                && is_date(year, middle, last)
            {
                return Some(before);
            }
            let preview = head.ends_with("-preview") || head.ends_with("-exp");
            (preview && middle.len() == 2 && is_number(middle)).then_some(head)
        }
        _ => None,
    }
}

fn is_date(year: &str, month: &str, day: &str) -> bool {
    let within = |text: &str, len: usize, low: u32, high: u32| {
        text.len() == len && is_number(text) && text.parse().is_ok_and(|it: u32| (low..=high).contains(&it))
    };
    within(year, 4, 2020, 2099) && within(month, 2, 1, 12) && within(day, 2, 1, 31)
}

fn without_version(name: &str) -> Option<&str> {
    let (head, last) = name.rsplit_once("-v")?;
    (last.len() == 1 && is_number(last)).then_some(head)
}

fn without_deployment_word(name: &str) -> Option<&str> {
    let separators = ['-', '_'];
    let last = name.rsplit_once(separators).filter(|(_, it)| DEPLOYMENT_WORDS.contains(it));
    let first = name.split_once(separators).filter(|(it, _)| DEPLOYMENT_WORDS.contains(it));
    last.map(|(head, _)| head).or(first.map(|(_, tail)| tail))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit())
}
