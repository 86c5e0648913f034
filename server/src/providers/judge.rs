//! Asking judge models: one request, one answer, in the protocol of OpenAI or of Anthropic.
//!
//! How an answer of a certain form is asked for differs by server and model; a [`Way`] says which
//! form is used, and a refusal of it ([`Failure::Form`]) which part to do without. Making questions
//! and reading answers is the business of `evaluators::judge`; asking again that of
//! [`crate::judging`].

mod anthropic;
mod failure;
mod openai;
mod way;

use std::{fmt, time::Duration};

use api::credential::Provider;
use hyper::StatusCode;
use semantics::usage::Usage;
use serde_json::Value;
use url::Url;

pub use failure::{Failure, Spoilt};
pub use way::{Limit, Part, Rung, Way};

use super::{
    Egress, OPENAI,
    exchange::{Exchange, Post},
};

/// Where Anthropic answers.
const ANTHROPIC: &str = "https://api.anthropic.com";

/// Bytes of an answer that are read. A verdict takes a hundredth of it; a model that thinks aloud may
/// take more.
const MOST_BYTES: usize = 256 * 1024;

/// What a verdict is called where it needs a name.
const VERDICT: &str = "verdict";

/// What a verdict is, where it needs a description.
const DESCRIPTION: &str = "Hands in the judgement: the reasoning, then what it comes to.";

/// A provider with a key and a model. It does not print its key.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Which protocol it speaks.
    pub provider: Provider,
    /// Where, without a slash at its end; none is the provider's own address.
    pub base_url: Option<String>,
    /// Empty for a provider that needs none.
    pub key: String,
    /// The model.
    pub model: String,
    /// A tenant set the address.
    pub guarded: bool,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { provider, base_url, key: _, model, guarded } = self;
        let mut shown = formatter.debug_struct("Endpoint");
        shown
            .field("provider", provider)
            .field("base_url", base_url)
            .field("model", model)
            .field("guarded", guarded)
            .finish_non_exhaustive()
    }
}

/// A conversation with a judge, at the point where the judge has to say something.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The instructions.
    pub system: &'a str,
    /// What was said since, the user first and last, by turns.
    pub turns: &'a [String],
    /// JSON Schema of the answer.
    pub schema: &'a Value,
    /// Tokens that the answer may have.
    pub max_tokens: u32,
}

/// What a judge answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The text, or the arguments of the call that was asked for.
    pub text: String,
    /// It ends where no more tokens were allowed.
    pub is_cut: bool,
    /// In the provider's words why the model says nothing, if it declines to judge this.
    pub declined: Option<String>,
    /// What it used.
    pub usage: Usage,
}

/// Asks judges.
pub struct JudgeClient(Exchange);

impl JudgeClient {
    /// A client that reaches tenants' addresses through `egress`.
    ///
    /// # Errors
    /// When there are no authorities for TLS.
    pub fn new(egress: Egress) -> anyhow::Result<Self> {
        Ok(Self(Exchange::new(egress)?))
    }

    /// Asks once. `now` is in microseconds.
    ///
    /// # Errors
    /// When there is no answer, with what helps.
    pub async fn ask(
        &self,
        endpoint: &Endpoint,
        question: &Question<'_>,
        way: Way,
        timeout: Duration,
        now: i64,
    ) -> Result<Answer, Failure> {
        let is_anthropic = endpoint.provider == Provider::Anthropic;
        let (address, body, headers) = if is_anthropic {
            let base = endpoint.base_url.as_deref().unwrap_or(ANTHROPIC);
            // Some give the address with the version, as OpenAI's is given.
            let address = format!("{}/v1/messages", base.strip_suffix("/v1").unwrap_or(base));
            (address, anthropic::request(endpoint, question, way), anthropic::headers(&endpoint.key))
        } else {
            let base = endpoint.base_url.as_deref().unwrap_or(OPENAI);
            let address = format!("{base}/chat/completions");
            (address, openai::request(endpoint, question, way), openai::headers(&endpoint.key))
        };
        let url: Url = address.parse().map_err(|_| Failure::denied("its address can't be read"))?;
        let headers = headers.ok_or_else(|| Failure::denied("its key can't be sent"))?;
        let body = body.to_string().into_bytes();
        let (guarded, max_body) = (endpoint.guarded, MOST_BYTES);
        let post = Post { url, guarded, headers, body, timeout, max_body };
        let reply = self.0.post(post).await.map_err(|it| Failure::unreached(&it))?;
        if reply.status != StatusCode::OK {
            return Err(Failure::of(reply.status, &reply.headers, &reply.body, &endpoint.key, now));
        }
        if reply.truncated {
            return Err(Failure::Unusable(format!("it answered more than {MOST_BYTES} bytes")));
        }
        let body: Value = serde_json::from_slice(&reply.body).map_err(|_| {
            Failure::Unusable("what it answered is no JSON: is its address the right one?".to_owned())
        })?;
        let answer = if is_anthropic { anthropic::answer(&body) } else { openai::answer(&body) };
        answer.map_err(|spoilt| match spoilt {
            Spoilt::Failed(error) => Failure::in_answer(&error, &endpoint.key),
            Spoilt::Foreign(what) => Failure::Unusable(what.to_owned()),
        })
    }
}

/// A schema without the bounds that some structured outputs refuse; whoever reads the answer checks
/// them in any case.
fn without_bounds(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| !matches!(name.as_str(), "minimum" | "maximum"));
            Value::Object(kept.map(|(name, it)| (name.clone(), without_bounds(it))).collect())
        }
        other => other.clone(),
    }
}

/// A count of tokens in an answer.
fn count(usage: &Value, place: &str) -> Option<i64> {
    usage.pointer(place).and_then(Value::as_i64).filter(|it| *it >= 0)
}
