//! The forms in which an answer can be asked for, and what to do without when one is refused. Pure.

use api::credential::Provider;

/// How a verdict's form is made sure, surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rung {
    /// The provider holds the answer to a schema.
    Schema,
    /// The model has to call a function that takes a verdict.
    Tool,
    /// The provider holds the answer to being JSON.
    Json,
    /// By nothing but the instructions.
    Text,
}

/// The name under which the number of tokens is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// `max_completion_tokens`.
    CompletionTokens,
    /// `max_tokens`.
    Tokens,
}

/// The form of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Way {
    /// How the verdict's form is made sure.
    pub rung: Rung,
    /// Whether the temperature is set (to 0).
    pub temperature: bool,
    /// How the number of tokens is limited, if it is.
    pub limit: Option<Limit>,
    /// Whether instructions are a message of their own.
    pub system: bool,
}

/// What of a request's form is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A temperature, or that it is 0.
    Temperature,
    /// The name of the limit, or its height.
    Limit,
    /// That the question and the answer allowed are longer together than the model's memory.
    Length,
    /// A message of the role `system`.
    System,
    /// The rung.
    Rung,
    /// Nobody says what.
    Unknown,
}

impl Way {
    /// What a provider is asked first: all that it documents.
    pub fn first(provider: Provider) -> Self {
        let limit = match provider {
            Provider::OpenAi => Limit::CompletionTokens,
            Provider::Anthropic | Provider::OpenAiCompatible => Limit::Tokens,
        };
        Self { rung: Rung::Schema, temperature: true, limit: Some(limit), system: true }
    }

    /// The next to try when this part is refused; none when there is no other.
    pub fn without(self, part: Part, provider: Provider) -> Option<Self> {
        let is_anthropic = provider == Provider::Anthropic;
        match part {
            Part::Temperature => self.temperature.then_some(Self { temperature: false, ..self }),
            // That protocol does not do without a limit, nor without instructions of their own.
            Part::Limit | Part::Length | Part::System if is_anthropic => None,
            Part::Limit => {
                let usual = Self::first(provider).limit;
                let limit = match self.limit? {
                    Limit::CompletionTokens if usual == self.limit => Some(Limit::Tokens),
                    Limit::Tokens if usual == self.limit => Some(Limit::CompletionTokens),
                    _ => None,
                };
                Some(Self { limit, ..self })
            }
            Part::Length => self.limit.map(|_| Self { limit: None, ..self }),
            Part::System => self.system.then_some(Self { system: false, ..self }),
            Part::Rung => Some(Self { rung: self.rung.next(provider)?, ..self }),
            Part::Unknown => match self.rung.next(provider) {
                Some(rung) => Some(Self { rung, ..self }),
                None => self.without(Part::Temperature, provider),
            },
        }
    }
}

impl Rung {
    /// The one below; none below the last.
    pub fn next(self, provider: Provider) -> Option<Self> {
        match self {
            Self::Schema => Some(Self::Tool),
            // Anthropic has no JSON without a schema.
            Self::Tool if provider == Provider::Anthropic => Some(Self::Text),
            Self::Tool => Some(Self::Json),
            Self::Json => Some(Self::Text),
            Self::Text => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All ways that are tried when this is always refused.
    fn tried(provider: Provider, part: Part) -> Vec<Way> {
        std::iter::successors(Some(Way::first(provider)), |it| it.without(part, provider)).collect()
    }

    #[test]
    fn the_ladder_ends() {
        let rungs = |provider, part| tried(provider, part).iter().map(|it| it.rung).collect::<Vec<_>>();
        let all = [Rung::Schema, Rung::Tool, Rung::Json, Rung::Text];
        assert_eq!(rungs(Provider::OpenAi, Part::Rung), all);
        assert_eq!(rungs(Provider::Anthropic, Part::Rung), [Rung::Schema, Rung::Tool, Rung::Text]);
        let unknown = tried(Provider::OpenAiCompatible, Part::Unknown);
        assert_eq!(unknown.len(), 5);
        assert!(!unknown[4].temperature && unknown[4].rung == Rung::Text);
        for part in [Part::Temperature, Part::Length, Part::System] {
            assert_eq!(tried(Provider::OpenAi, part).len(), 2);
        }
    }

    #[test]
    fn a_limit_has_two_names() {
        let limits = |provider| tried(provider, Part::Limit).iter().map(|it| it.limit).collect::<Vec<_>>();
        let (new, old) = (Some(Limit::CompletionTokens), Some(Limit::Tokens));
        assert_eq!(limits(Provider::OpenAi), [new, old, None]);
        assert_eq!(limits(Provider::OpenAiCompatible), [old, new, None]);
        assert_eq!(limits(Provider::Anthropic), [old]);
    }
}
