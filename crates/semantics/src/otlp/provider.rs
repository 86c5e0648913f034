//! Complete requests to model providers and their responses, stored in one attribute.
//!
//! MLflow and LangSmith record the arguments and the result of a call in the provider's own form:
//! OpenAI's two interfaces, Anthropic's, Gemini's, Amazon Bedrock's, Ollama's, or LangChain's.

use super::{
    messages::{self, MessageList},
    raw::{self, RawObject},
    text::{self, clean, push_json_str, readable},
};
use crate::usage::Usage;

/// Members of a request that make up its messages.
const MESSAGE_MEMBERS: &[&str] = &[
    "messages",
    "input",
    "contents",
    "prompt",
    "prompts",
    "system",
    "instructions",
    "system_instruction",
    "systemInstruction",
];

/// Members that only concern the transport of a request.
const TRANSPORT_MEMBERS: &[&str] = &["http_options", "extra_headers", "timeout"];

/// The request of a model call.
pub(super) struct Request {
    /// The messages, or the plain prompt.
    pub(super) input: String,
    /// The other members, as a JSON object: parameters, tools.
    pub(super) parameters: Option<String>,
}

/// Parses the request of a model call.
pub(super) fn request(json: &str) -> Option<Request> {
    let sent = RawObject::parse(json)?;
    let input = conversation(&sent)?;
    let mut parameters = String::new();
    push_parameters(&mut parameters, &sent);
    if !parameters.is_empty() {
        parameters.push('}');
    }
    Some(Request { input, parameters: (!parameters.is_empty()).then(|| readable(clean(parameters))) })
}

fn push_parameters(out: &mut String, sent: &RawObject<'_>) {
    for (name, value) in sent
        .members()
        .filter(|(name, _)| !MESSAGE_MEMBERS.contains(name) && !TRANSPORT_MEMBERS.contains(name))
    {
        // Gemini nests the parameters in a member.
        if name == "config"
            && let Some(config) = RawObject::parse(value)
        {
            push_parameters(out, &config);
            continue;
        }
        out.push(if out.is_empty() { '{' } else { ',' });
        push_json_str(out, name);
        out.push(':');
        out.push_str(value);
    }
}

fn conversation(sent: &RawObject<'_>) -> Option<String> {
    if let Some(prompts) = sent.list("prompts") {
        return match prompts.as_slice() {
            [one] => raw::string(one).map(clean),
            _ => None,
        };
    }
    let config = ["config", "generation_config"].iter().find_map(|it| sent.object(it));
    let instruction = ["system_instruction", "systemInstruction"];
    let system = sent
        .first(&["system", "instructions"])
        .or_else(|| sent.first(&instruction))
        .or_else(|| config.as_ref()?.first(&instruction));
    let turns = sent.first(&["messages", "contents"]).or_else(|| {
        // These names are common words, so they indicate a request only together with a model.
        sent.get("model").or(sent.get("instructions"))?;
        sent.first(&["input", "prompt"])
    })?;
    if let (None, Some(text)) = (system, raw::string(turns)) {
        return Some(clean(text));
    }
    let mut list = MessageList::default();
    if let Some(system) = system {
        let content = RawObject::parse(system).and_then(|it| it.first(&["parts", "content"]));
        list.add("system", content.unwrap_or(system));
    }
    list.add_all(turns, "user");
    list.finish()
}

/// Returns the content of a provider's response: its text, or its messages if they contain more than
/// text.
pub(super) fn answer(json: &str) -> Option<String> {
    if json.starts_with('[') {
        return messages_in(json);
    }
    let response = RawObject::parse(json)?;
    if let Some(choices) = response.list("choices") {
        let mut list = MessageList::default();
        for choice in choices {
            let choice = RawObject::parse(choice)?;
            list.add_any(choice.first(&["message", "delta", "text"])?, "assistant");
        }
        return list.finish().map(shown);
    }
    if let Some(generations) = response.get("generations") {
        return generated(generations);
    }
    if let Some(output) = response.get("output") {
        return match RawObject::parse(output) {
            // Amazon Bedrock.
            Some(output) => Some(shown(messages::rewritten(output.get("message")?, "assistant")?)),
            // OpenAI's Responses.
            None => response_items(output),
        };
    }
    if let Some(candidates) = response.list("candidates") {
        let mut list = MessageList::default();
        for candidate in candidates {
            list.add_any(RawObject::parse(candidate)?.get("content")?, "assistant");
        }
        return list.finish().map(shown);
    }
    // Ollama and LlamaIndex wrap one message.
    let message = response.get("message").filter(|it| messages::are_messages(it)).unwrap_or(json);
    messages_in(message)
}

/// Returns messages in the form of a response, if the JSON contains nothing else.
fn messages_in(json: &str) -> Option<String> {
    messages::are_messages(json).then(|| messages::rewritten(json, "assistant").map(shown))?
}

/// Returns the output of a LangChain model: for each prompt a list of alternatives.
fn generated(json: &str) -> Option<String> {
    let prompts = raw::list(json)?;
    let mut list = MessageList::default();
    for prompt in &prompts {
        let alternatives = raw::list(prompt).unwrap_or_else(|| vec![prompt]);
        for alternative in alternatives {
            let alternative = RawObject::parse(alternative)?;
            match alternative.get("message") {
                Some(message) => list.add_any(message, "assistant"),
                None => list.add("assistant", alternative.get("text")?),
            }
        }
    }
    list.finish().map(shown)
}

/// Returns the text of the items of OpenAI's Responses API, or the items if they hold more than text.
fn response_items(json: &str) -> Option<String> {
    let items = raw::list(json)?;
    let is_item = |it: &&str| RawObject::parse(it).is_some_and(|it| it.get("type").is_some());
    if items.is_empty() || !items.iter().all(is_item) {
        return None;
    }
    if let [one] = items.as_slice()
        && let Some(text) = RawObject::parse(one).and_then(|it| text::plain_parts(it.get("content")?))
    {
        return Some(text);
    }
    Some(readable(clean(json.to_owned())))
}

/// Converts messages to a response: plain text if they are a single text.
fn shown(messages: String) -> String {
    text::plain_answer(&messages).unwrap_or(messages)
}

/// Returns whether a response is empty: one message that contains only a role.
pub(super) fn is_empty(answer: &str) -> bool {
    matches!(
        answer,
        "" | r#"[{"role":"assistant","parts":[]}]"#
            | r#"[{"role":"assistant"}]"#
            | r#"[{"content":"","role":"assistant"}]"#
            | r#"[{"role":"assistant","content":""}]"#
    )
}

/// Properties of a response, except its content.
#[derive(Default)]
pub(super) struct ResponseFacts {
    /// The model in the response.
    pub(super) model: Option<String>,
    /// The response ID.
    pub(super) id: Option<String>,
    /// The token counts.
    pub(super) usage: Option<Usage>,
    /// Finish reasons, as a JSON list of texts.
    pub(super) finish_reasons: Option<String>,
}

impl ResponseFacts {
    /// Adds the token counts that a span's attributes lack.
    pub(super) fn complete(&self, usage: Usage) -> Usage {
        let Some(told) = &self.usage else { return usage };
        if !usage.is_reported() {
            return told.clone();
        }
        Usage {
            prompt: usage.prompt.or(told.prompt),
            completion: usage.completion.or(told.completion),
            cached: usage.cached.or(told.cached),
            cache_write: usage.cache_write.or(told.cache_write),
            reasoning: usage.reasoning.or(told.reasoning),
            // The flag comes from the source of the prompt count, because one source may include cached
            // tokens that the other excludes.
            cached_in_prompt: if usage.prompt.is_some() && usage.prompt != told.prompt {
                usage.cached_in_prompt
            } else {
                told.cached_in_prompt
            },
        }
    }
}

/// Extracts the facts from a response.
pub(super) fn facts(json: &str) -> ResponseFacts {
    let Some(response) = RawObject::parse(json) else { return ResponseFacts::default() };
    let choices = response.list("choices").or_else(|| response.list("candidates")).unwrap_or_default();
    let reasons: Vec<&str> = choices
        .iter()
        .filter_map(|it| RawObject::parse(it)?.first(&["finish_reason", "finishReason"]))
        .chain(response.first(&["stop_reason", "stopReason"]))
        .filter(|it| it.starts_with('"'))
        .collect();
    let is_call =
        !choices.is_empty() || response.get("stop_reason").is_some() || response.get("output").is_some();
    let (mut model, mut id) = (response.text("model"), response.text("id").filter(|_| is_call));
    let mut usage = response.get("usage_metadata").and_then(langchain_usage);
    usage = usage.or_else(|| response.get("usage").and_then(super::langfuse::usage_of));
    if let Some(message) = langchain_message(&response) {
        let facts = message.object("response_metadata");
        let fact = |name| facts.as_ref()?.text(name);
        model = model.or_else(|| fact("model_name")).or_else(|| fact("model"));
        id = id.or_else(|| fact("id"));
        usage = usage.or_else(|| langchain_usage(message.get("usage_metadata")?));
    }
    ResponseFacts {
        model: model.filter(|it| !it.is_empty()).map(clean),
        id: id.filter(|it| !it.is_empty()).map(clean),
        usage,
        finish_reasons: (!reasons.is_empty()).then(|| clean(format!("[{}]", reasons.join(",")))),
    }
}

/// Returns the fields of the first message of LangChain's output.
fn langchain_message<'a>(response: &RawObject<'a>) -> Option<RawObject<'a>> {
    let prompt = *response.list("generations")?.first()?;
    let generation = match raw::list(prompt) {
        Some(alternatives) => *alternatives.first()?,
        None => prompt,
    };
    let message = RawObject::parse(generation)?.object("message")?;
    Some(message.object("kwargs").unwrap_or(message))
}

/// Returns LangChain's token counts, the same for every provider: details are parts of the totals.
pub(super) fn langchain_usage(json: &str) -> Option<Usage> {
    let sent = RawObject::parse(json)?;
    let detail = |list: &str, name: &str| sent.object(list)?.tokens(name);
    let usage = Usage {
        prompt: sent.tokens("input_tokens"),
        completion: sent.tokens("output_tokens"),
        cached: detail("input_token_details", "cache_read"),
        cache_write: detail("input_token_details", "cache_creation"),
        reasoning: detail("output_token_details", "reasoning"),
        cached_in_prompt: true,
    };
    usage.is_reported().then_some(usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_of_every_provider_is_converted_to_messages() {
        let hi = r#"[{"role":"user","content":"Hi"}]"#;
        let system = r#"{"role":"system","parts":[{"type":"text","content":"Be brief"}]}"#;
        for (sent, input, parameters) in [
            (
                r#"{"messages":[{"role":"user","content":"Hi"}],"model":"m"}"#,
                hi.to_owned(),
                Some(r#"{"model":"m"}"#),
            ),
            (
                r#"{"messages":[{"role":"user","content":"Hi"}],"system":"Be brief","model":null}"#,
                format!("[{system},{}", &hi[1..]),
                None,
            ),
            (r#"{"input":"Hi","model":"m"}"#, "Hi".to_owned(), Some(r#"{"model":"m"}"#)),
            (
                r#"{"input":"Hi","instructions":"Be brief"}"#,
                format!(r#"[{system},{{"role":"user","parts":[{{"type":"text","content":"Hi"}}]}}]"#),
                None,
            ),
            (r#"{"contents":"Hi"}"#, "Hi".to_owned(), None),
            (
                r#"{"contents":[{"parts":[{"text":"Hi"}],"role":"user"}],"config":{"system_instruction":"Be brief"}}"#,
                format!(r#"[{system},{{"role":"user","parts":[{{"type":"text","content":"Hi"}}]}}]"#),
                None,
            ),
            (r#"{"prompts":["Hi"]}"#, "Hi".to_owned(), None),
        ] {
            let read = request(sent).map(|it| (it.input, it.parameters));
            assert_eq!(read, Some((input, parameters.map(str::to_owned))), "{sent}");
        }
        for other in ["{}", r#"{"input":"Hi"}"#, r#"{"question":"Hi"}"#, "[1]", "Hi"] {
            assert!(request(other).is_none(), "{other}");
        }
    }

    #[test]
    fn response_of_every_provider_is_converted() {
        for sent in [
            r#"{"choices":[{"message":{"role":"assistant","content":"Hi","refusal":null},"finish_reason":"stop"}]}"#,
            r#"{"choices":[{"text":"Hi"}]}"#,
            r#"{"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hi"}]}]}"#,
            r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn"}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}],"role":"model"}}]}"#,
            r#"{"output":{"message":{"role":"assistant","content":[{"text":"Hi"}]}}}"#,
            r#"{"message":{"role":"assistant","content":"Hi"},"done":true}"#,
            r#"{"message":{"role":"assistant","blocks":[{"block_type":"text","text":"Hi"}]}}"#,
            r#"{"generations":[[{"text":"Hi","message":{"lc":1,"id":["AIMessage"],"kwargs":{"content":"Hi","type":"ai"}}}]]}"#,
            r#"{"generations":[[{"text":"Hi"}]]}"#,
            r#"{"content":"Hi","type":"ai","tool_calls":[]}"#,
        ] {
            assert_eq!(answer(sent).as_deref(), Some("Hi"), "{sent}");
        }
        for other in ["{}", r#"{"output":"Hi"}"#, r#"{"answer":"Hi"}"#, "Hi", "[1]"] {
            assert_eq!(answer(other), None, "{other}");
        }
    }

    #[test]
    fn response_facts_contain_model_id_and_usage() {
        let openai = facts(
            r#"{"id":"c-1","model":"m","choices":[{"finish_reason":"stop","message":{}}],"usage":{"prompt_tokens":5,"completion_tokens":4,"completion_tokens_details":{"reasoning_tokens":3}}}"#,
        );
        assert_eq!((openai.id.as_deref(), openai.model.as_deref()), (Some("c-1"), Some("m")));
        assert_eq!(openai.finish_reasons.as_deref(), Some(r#"["stop"]"#));
        assert_eq!(openai.usage.and_then(|it| it.reasoning), Some(3));
        let langchain = facts(
            r#"{"generations":[[{"message":{"lc":1,"kwargs":{"response_metadata":{"model_name":"m","id":"c-1"},"usage_metadata":{"input_tokens":5,"input_token_details":{"cache_read":2}}}}}]]}"#,
        );
        assert_eq!((langchain.id.as_deref(), langchain.model.as_deref()), (Some("c-1"), Some("m")));
        assert_eq!(langchain.usage.map(|it| (it.prompt, it.cached)), Some((Some(5), Some(2))));
    }
}
