//! Structured-output modes, and the fallback when a feature is rejected. Pure.

use api::credential::Provider;

/// A structured-output mode, strictest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OutputMode {
    /// The provider enforces a JSON schema.
    Schema,
    /// The model is forced to call a tool whose argument is a verdict.
    Tool,
    /// The provider enforces a JSON object.
    Json,
    /// Only the instructions require JSON.
    Text,
}

/// The name of the token limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenLimitName {
    /// `max_completion_tokens`.
    CompletionTokens,
    /// `max_tokens`.
    Tokens,
}

/// The features that a request uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestFeatures {
    /// The structured-output mode.
    pub output_mode: OutputMode,
    /// Whether the temperature is set (to 0).
    pub temperature: bool,
    /// The token limit, if any.
    pub limit: Option<TokenLimitName>,
    /// Whether the instructions are a separate system message.
    pub system: bool,
}

/// A feature that a provider may reject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFeature {
    /// Setting the temperature, or setting it to 0.
    Temperature,
    /// The name or value of the token limit.
    Limit,
    /// The total length of prompt and maximum reply.
    Length,
    /// A message of the role `system`.
    System,
    /// The structured-output mode.
    OutputMode,
    /// The error names no feature.
    Unknown,
}

impl RequestFeatures {
    /// Returns the features of the first request: all that the provider documents.
    pub fn first(provider: Provider) -> Self {
        let limit = match provider {
            Provider::OpenAi => TokenLimitName::CompletionTokens,
            Provider::Anthropic | Provider::OpenAiCompatible => TokenLimitName::Tokens,
        };
        Self { output_mode: OutputMode::Schema, temperature: true, limit: Some(limit), system: true }
    }

    /// Returns the features of the next request when this one is rejected; `None` when there is no
    /// fallback.
    pub fn without(self, feature: RequestFeature, provider: Provider) -> Option<Self> {
        let is_anthropic = provider == Provider::Anthropic;
        match feature {
            RequestFeature::Temperature => self.temperature.then_some(Self { temperature: false, ..self }),
            // Anthropic's protocol requires a limit and separate instructions.
            RequestFeature::Limit | RequestFeature::Length | RequestFeature::System if is_anthropic => None,
            RequestFeature::Limit => {
                let usual = Self::first(provider).limit;
                let limit = match self.limit? {
                    TokenLimitName::CompletionTokens if usual == self.limit => Some(TokenLimitName::Tokens),
                    TokenLimitName::Tokens if usual == self.limit => Some(TokenLimitName::CompletionTokens),
                    _ => None,
                };
                Some(Self { limit, ..self })
            }
            RequestFeature::Length => self.limit.map(|_| Self { limit: None, ..self }),
            RequestFeature::System => self.system.then_some(Self { system: false, ..self }),
            RequestFeature::OutputMode => {
                Some(Self { output_mode: self.output_mode.next(provider)?, ..self })
            }
            RequestFeature::Unknown => match self.output_mode.next(provider) {
                Some(output_mode) => Some(Self { output_mode, ..self }),
                None => self.without(RequestFeature::Temperature, provider),
            },
        }
    }
}

impl OutputMode {
    /// Returns the next less strict mode; `None` after the last.
    pub fn next(self, provider: Provider) -> Option<Self> {
        match self {
            Self::Schema => Some(Self::Tool),
            // Anthropic has no mode for JSON without a schema.
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

    /// Returns all fallbacks if this feature is always rejected.
    fn tried(provider: Provider, feature: RequestFeature) -> Vec<RequestFeatures> {
        std::iter::successors(Some(RequestFeatures::first(provider)), |it| it.without(feature, provider))
            .collect()
    }

    #[test]
    fn output_mode_fallback_ends() {
        let output_modes =
            |provider, feature| tried(provider, feature).iter().map(|it| it.output_mode).collect::<Vec<_>>();
        let all = [OutputMode::Schema, OutputMode::Tool, OutputMode::Json, OutputMode::Text];
        assert_eq!(output_modes(Provider::OpenAi, RequestFeature::OutputMode), all);
        assert_eq!(
            output_modes(Provider::Anthropic, RequestFeature::OutputMode),
            [OutputMode::Schema, OutputMode::Tool, OutputMode::Text]
        );
        let unknown = tried(Provider::OpenAiCompatible, RequestFeature::Unknown);
        assert_eq!(unknown.len(), 5);
        assert!(!unknown[4].temperature && unknown[4].output_mode == OutputMode::Text);
        for feature in [RequestFeature::Temperature, RequestFeature::Length, RequestFeature::System] {
            assert_eq!(tried(Provider::OpenAi, feature).len(), 2);
        }
    }

    #[test]
    fn token_limit_falls_back_to_other_name() {
        let limits =
            |provider| tried(provider, RequestFeature::Limit).iter().map(|it| it.limit).collect::<Vec<_>>();
        let (new, old) = (Some(TokenLimitName::CompletionTokens), Some(TokenLimitName::Tokens));
        assert_eq!(limits(Provider::OpenAi), [new, old, None]);
        assert_eq!(limits(Provider::OpenAiCompatible), [old, new, None]);
        assert_eq!(limits(Provider::Anthropic), [old]);
    }
}
