//! Maps a span of any convention to a draft.
//!
//! Several conventions may occur on one span: the Vercel SDK adds GenAI keys, Langfuse receives spans
//! of other senders, traceloop wraps other instrumentations. Each field therefore has its own order of
//! precedence, stated here field by field; the meaning of a convention's keys is in that convention's
//! file. A value that repeats the chosen one is dropped, not stored twice.

use api::SpanType;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};

use super::{
    adk,
    attributes::Attributes,
    events::{self, EventContents},
    genai, hints, instructions,
    keys::{Group, Key},
    langfuse, langsmith, litellm, llamaindex, logfire, mcp, memory, messages,
    metadata::{self, MappedFields},
    mlflow, openinference, openlit, openllmetry,
    provider::{Request, ResponseFacts},
    record::{self, SpanFrame},
    text, time, tokens, value, vercel,
};
use crate::{
    draft::{EvaluationDraft, SpanDraft},
    failure::{Evidence, classify},
};

/// `STATUS_CODE_ERROR`.
pub(super) const STATUS_ERROR: i32 = 2;
/// `SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK` and `SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK`: the parent is in another process.
const PARENT_IS_REMOTE: u32 = 0x300;

/// Keys of the arguments of a tool, in order of precedence.
const TOOL_INPUT_KEYS: &[Key] = &[
    Key::ToolCallArguments,
    Key::InputValue,
    Key::AiToolArgs,
    Key::TraceloopInput,
    Key::ToolArguments,
    Key::PlainInput,
];
const TOOL_OUTPUT_KEYS: &[Key] = &[
    Key::ToolCallResult,
    Key::OutputValue,
    Key::AiToolResult,
    Key::TraceloopOutput,
    Key::ToolResponse,
    Key::PlainOutput,
];
/// Keys that repeat the chosen input.
const INPUT_KEYS: &[Key] = &[
    Key::LangfuseInput,
    Key::InputMessages,
    Key::AiPrompt,
    Key::AiPromptMessages,
    Key::AiValue,
    Key::AiValues,
    Key::TraceloopInput,
    Key::TaskInput,
    Key::InputValue,
    Key::OpenlitPrompt,
    Key::AdkRequest,
];
const OUTPUT_KEYS: &[Key] = &[
    Key::LangfuseOutput,
    Key::OutputMessages,
    Key::AiText,
    Key::TraceloopOutput,
    Key::TaskOutput,
    Key::OutputValue,
    Key::OpenlitCompletion,
    Key::AdkResponse,
];
/// Values by which spans of vector databases name the database.
const VECTOR_STORES: &[&str] =
    &["pinecone", "chroma", "chromadb", "qdrant", "weaviate", "milvus", "lancedb", "marqo", "pgvector"];

/// Why a span was rejected.
pub(super) type SpanRejection = &'static str;

/// Maps one span; `scope` is the name of the instrumentation, `shared` the metadata of its scope.
pub(super) fn span(span: Span, scope: &str, shared: &str) -> Result<SpanDraft, SpanRejection> {
    let Span {
        trace_id,
        span_id,
        parent_span_id,
        name,
        start_time_unix_nano,
        end_time_unix_nano,
        mut attributes,
        events,
        links,
        status,
        flags,
        ..
    } = span;
    let trace_id = id(&trace_id).ok_or("trace_id must be 16 bytes that are not all zero")?;
    let span_id = id(&span_id).ok_or("span_id must be 8 bytes that are not all zero")?;
    let parent_span_id = match parent_span_id.as_slice() {
        [] => None,
        sent if sent.iter().all(|byte| *byte == 0) => None,
        sent => Some(id(sent).ok_or("parent_span_id must be 8 bytes")?),
    };
    let start_us = time(start_time_unix_nano);
    let end_us = time(end_time_unix_nano).map(|end| end.max(start_us.unwrap_or(end)));

    mlflow::decode(&mut attributes);
    let mut attributes = Attributes::new(attributes);
    if let Some(record) = record::of(&attributes) {
        let frame = SpanFrame { trace_id, span_id, parent_span_id, name, start_us, end_us, status, events };
        return Ok(record::draft(frame, attributes, record));
    }
    let mut contents = events::read(events);
    let name = logfire::name(&mut attributes, text::clean(name));
    // OTLP treats an empty name as unknown.
    let name = if name.is_empty() { "unknown".to_owned() } else { name };
    let span_type = kind(&attributes, &contents, scope, &name);

    let facts = facts(&mut attributes, &span_type);
    // Which tokens the counts include depends on the model, so usage is read before the model is taken.
    let usage = tokens::usage(&mut attributes, scope);
    let model = model(&mut attributes, facts.model.as_ref(), &span_type, scope, &name);
    let usage = facts.complete(usage);
    let failed = error(&mut attributes, status, &contents);
    let (error, failure) = failed.unzip();
    let sent_cost =
        if span_type == SpanType::Llm && error.is_none() { tokens::cost(&attributes) } else { None };
    let mut hints = hints::read(&mut attributes);
    hints.has_remote_parent = parent_span_id.is_some() && flags & PARENT_IS_REMOTE == PARENT_IS_REMOTE;
    let response_id = response_id(&mut attributes).or(facts.id);
    let mut extra = MappedFields {
        request_model: model.asked.clone(),
        response_id: response_id.clone(),
        chunks: contents.chunks,
        links,
        ..MappedFields::default()
    };
    if span_type == SpanType::Tool {
        extra.tool_name = tool_name(&mut attributes, &name);
        extra.tool_call_id =
            attributes.take_first(&[Key::ToolCallId, Key::AiToolId, Key::OpeninferenceToolCallId]);
    } else {
        // On the span of a model call: the tool that the model called.
        extra.tool_name = attributes.str(Key::ToolName).map(str::to_owned);
    }
    extra.finish_reasons = facts.finish_reasons;
    let documents = documents(&mut attributes, scope, &mut contents);
    let input = match request(&mut attributes, &span_type) {
        Some(Request { input, parameters }) => {
            extra.parameters = parameters;
            Some(input)
        }
        None => input(&mut attributes, &span_type, scope, &mut contents),
    };
    let input = instructions::join(&mut attributes, &mut contents, &span_type, input);
    let mut output = output(&mut attributes, &span_type, scope, &mut contents);
    match (&output, documents) {
        (None, Some(documents)) => output = Some(documents),
        (Some(_), documents) => extra.documents = documents,
        (None, None) => {}
    }
    let mut evaluations = contents.evaluations;
    evaluations.extend(evaluation(&mut attributes));
    drop_repeated(&mut attributes, scope, input.is_some(), output.is_some());
    if attributes.str(Key::LangsmithName) == Some(&name) {
        attributes.drop_key(Key::LangsmithName);
    }

    Ok(SpanDraft {
        trace_id,
        span_id,
        parent_span_id,
        name,
        span_type,
        start_us,
        end_us,
        input,
        output,
        error,
        failure,
        model: model.name,
        request_model: model.asked,
        response_id,
        usage,
        sent_cost,
        hints,
        trace_input: attributes.take_text(Key::LangfuseTraceInput).map(text::unquoted),
        trace_output: attributes.take_text(Key::LangfuseTraceOutput).map(text::unquoted),
        metadata: metadata::write(attributes, extra, shared),
        events: contents.drafts,
        evaluations,
        record: None,
    })
}

fn id<const N: usize>(sent: &[u8]) -> Option<[u8; N]> {
    sent.try_into().ok().filter(|id: &[u8; N]| id.iter().any(|byte| *byte != 0))
}

/// Determines the span type: from the SDK's own attribute, then the GenAI convention's, then
/// indications of older conventions.
fn kind(attributes: &Attributes, contents: &EventContents, scope: &str, name: &str) -> SpanType {
    openinference::kind(attributes)
        .or_else(|| langfuse::kind(attributes))
        .or_else(|| vercel::kind(attributes))
        .or_else(|| mlflow::kind(attributes))
        .or_else(|| langsmith::kind(attributes))
        .or_else(|| genai::kind(attributes))
        .or_else(|| mcp::kind(attributes))
        .or_else(|| llamaindex::kind(attributes, scope))
        .or_else(|| openllmetry::kind(attributes))
        .or_else(|| openllmetry::request_kind(attributes))
        .or_else(|| adk::kind(attributes, name))
        .or_else(|| openlit::kind(scope, name))
        .or_else(|| guess_kind(attributes, contents))
        .or_else(|| logfire::kind(attributes))
        .unwrap_or_default()
}

/// Guesses the span type from the attributes of a span without explicit type.
fn guess_kind(attributes: &Attributes, contents: &EventContents) -> Option<SpanType> {
    let stores_vectors = [Key::DbSystem, Key::DbSystemName]
        .into_iter()
        .filter_map(|key| attributes.str(key))
        .any(|system| VECTOR_STORES.contains(&system));
    if contents.is_query || stores_vectors || attributes.has_group(Group::Documents) {
        return Some(SpanType::Retrieval);
    }
    let calls_model = attributes.has(Key::RequestModel);
    if !calls_model && attributes.has(Key::ToolName) {
        return Some(SpanType::Tool);
    }
    let talks =
        [Key::UsageInput, Key::UsagePrompt, Key::InputMessages, Key::OutputMessages, Key::OpenlitPrompt]
            .into_iter()
            .any(|key| attributes.has(key))
            || attributes.has_group(Group::Prompt)
            || attributes.has_group(Group::Completion);
    (calls_model && talks).then_some(SpanType::Llm)
}

struct Model {
    /// The model in the response, else the requested model.
    name: Option<String>,
    /// The requested model, if it differs.
    asked: Option<String>,
}

/// Extracts facts from the whole response of a model call, if the sender records it.
fn facts(attributes: &mut Attributes, span_type: &SpanType) -> ResponseFacts {
    if *span_type != SpanType::Llm {
        return ResponseFacts::default();
    }
    langsmith::facts(attributes).or_else(|| mlflow::facts(attributes)).unwrap_or_default()
}

fn model(
    attributes: &mut Attributes,
    in_response: Option<&String>,
    span_type: &SpanType,
    scope: &str,
    name: &str,
) -> Model {
    let answered = attributes.take_first(&[
        Key::LangfuseModel,
        Key::LlmResponseModel,
        Key::LlmModel,
        Key::ResponseModel,
        Key::AiResponseModel,
        Key::EmbeddingModel,
        Key::RerankerModel,
        Key::MlflowModel,
    ]);
    let answered = answered.or_else(|| in_response.cloned());
    let asked = attributes
        .take_first(&[Key::LlmRequestModel, Key::RequestModel, Key::AiModel])
        .or_else(|| mlflow::requested_model(attributes));
    if answered.is_some() {
        let name = answered;
        let asked = asked.or_else(|| openinference::requested_model(attributes));
        // These keys repeat the chosen or the requested model.
        attributes.drop_keys(&[
            Key::LlmModel,
            Key::ResponseModel,
            Key::AiResponseModel,
            Key::RequestModel,
            Key::AiModel,
        ]);
        return Model { asked: asked.filter(|asked| Some(asked) != name.as_ref()), name };
    }
    let guess_kind = || {
        if *span_type == SpanType::Llm {
            openinference::model_in_parameters(attributes).or_else(|| openlit::model(scope, name))
        } else {
            None
        }
    };
    let name = asked.or_else(guess_kind);
    Model { name: name.or_else(|| attributes.take_text(Key::ModelName)), asked: None }
}

fn response_id(attributes: &mut Attributes) -> Option<String> {
    let id = attributes.take_first(&[Key::ResponseId, Key::AiResponseId, Key::PlainResponseId])?;
    attributes.drop_keys(&[Key::AiResponseId]);
    (!text::is_placeholder(&id)).then_some(id)
}

/// Returns the message and type of the error, if the span failed.
fn error(
    attributes: &mut Attributes,
    status: Option<Status>,
    contents: &EventContents,
) -> Option<(String, api::FailureType)> {
    let status = status.unwrap_or_default();
    let noted = langfuse::error(attributes);
    if status.code != STATUS_ERROR && noted.is_none() {
        return None;
    }
    let status_message = text::clean(status.message);
    let (exception_kind, exception_message) = contents
        .exception
        .as_ref()
        .map(|(kind, message)| (kind.as_str(), message.as_str()))
        .unwrap_or_default();
    let error_kind = attributes.str(Key::ErrorType).unwrap_or_default();
    let error_message = attributes.str(Key::ErrorMessage).unwrap_or_default();
    let logged = logfire::error(attributes);
    let failure = classify(&Evidence {
        kinds: &[error_kind, exception_kind],
        messages: &[
            &status_message,
            exception_message,
            error_message,
            noted.as_deref().unwrap_or_default(),
            logged.as_deref().unwrap_or_default(),
        ],
        http_status: [Key::HttpStatus, Key::HttpStatusOld]
            .into_iter()
            .find_map(|key| attributes.get(key).and_then(value::tokens)),
    });
    let message = [status_message.as_str(), exception_message, error_message]
        .into_iter()
        .find(|it| !it.is_empty())
        .map(str::to_owned)
        .or(noted)
        .or(logged)
        .or_else(|| [error_kind, exception_kind].into_iter().find(|it| !it.is_empty()).map(str::to_owned))
        .unwrap_or_else(|| "error".to_owned());
    if attributes.str(Key::ErrorMessage) == Some(&message) {
        attributes.drop_key(Key::ErrorMessage);
    }
    Some((text::clean(message), failure))
}

fn tool_name(attributes: &mut Attributes, name: &str) -> Option<String> {
    attributes
        .take_first(&[Key::ToolName, Key::OpeninferenceToolName, Key::AiToolName, Key::TraceloopName])
        .or_else(|| logfire::tool_name(attributes))
        .or_else(|| mcp::tool_name(attributes, name))
        .or_else(|| Some(name.to_owned()))
}

fn documents(attributes: &mut Attributes, scope: &str, contents: &mut EventContents) -> Option<String> {
    openinference::documents(attributes)
        .or_else(|| llamaindex::documents(attributes, scope))
        .or_else(|| attributes.take_text(Key::RetrievalDocuments).map(text::readable))
        .or_else(|| memory::documents(attributes))
        .or_else(|| contents.documents.take())
}

/// Returns the input recorded by a framework that traces function calls.
fn request(attributes: &mut Attributes, span_type: &SpanType) -> Option<Request> {
    langsmith::input(attributes, span_type)
        .or_else(|| mlflow::input(attributes, span_type))
        .or_else(|| adk::input(attributes))
}

fn input(
    attributes: &mut Attributes,
    span_type: &SpanType,
    scope: &str,
    contents: &mut EventContents,
) -> Option<String> {
    if *span_type == SpanType::Tool {
        let sent = langfuse::input(attributes).or_else(|| take_first_text(attributes, TOOL_INPUT_KEYS));
        if let Some(arguments) = sent.or_else(|| contents.tool_input.take()) {
            return Some(text::unquoted(arguments));
        }
        if let Some(arguments) =
            attributes.str(Key::InputMessages).or(contents.input.as_deref()).and_then(messages::of_tool)
        {
            return Some(arguments);
        }
    }
    langfuse::input(attributes)
        .or_else(|| genai::input(attributes))
        .or_else(|| openllmetry::prompts(attributes))
        .or_else(|| openinference::input(attributes, span_type))
        .or_else(|| vercel::input(attributes))
        .or_else(|| llamaindex::input(attributes, scope))
        .or_else(|| openllmetry::entity_input(attributes))
        .or_else(|| openinference::value_in(attributes))
        .or_else(|| attributes.take_text(Key::RetrievalQuery))
        .or_else(|| memory::input(attributes))
        .or_else(|| openlit::input(attributes))
        .or_else(|| litellm::input(attributes))
        .or_else(|| logfire::input(attributes))
        .or_else(|| contents.input.take().map(text::readable))
}

fn output(
    attributes: &mut Attributes,
    span_type: &SpanType,
    scope: &str,
    contents: &mut EventContents,
) -> Option<String> {
    let returned = langsmith::output(attributes, span_type)
        .or_else(|| mlflow::output(attributes, span_type))
        .or_else(|| adk::output(attributes));
    if returned.is_some() {
        return returned;
    }
    if *span_type == SpanType::Tool {
        if let Some(result) =
            langfuse::output(attributes).or_else(|| take_first_text(attributes, TOOL_OUTPUT_KEYS))
        {
            return Some(messages::of_block(&result).unwrap_or_else(|| text::unquoted(result)));
        }
        if let Some(result) =
            attributes.str(Key::OutputMessages).or(contents.output.as_deref()).and_then(messages::of_tool)
        {
            return Some(result);
        }
    }
    langfuse::output(attributes)
        .or_else(|| genai::output(attributes))
        .or_else(|| openllmetry::completions(attributes))
        .or_else(|| openinference::output(attributes, span_type))
        .or_else(|| vercel::output(attributes))
        .or_else(|| llamaindex::output(attributes, scope))
        .or_else(|| openllmetry::entity_output(attributes))
        .or_else(|| openinference::value_out(attributes))
        .or_else(|| openlit::output(attributes))
        .or_else(|| litellm::output(attributes))
        .or_else(|| logfire::output(attributes))
        .or_else(|| {
            let sent = contents.output.take().filter(|it| !text::is_empty_answer(it))?;
            Some(text::plain_answer(&sent).unwrap_or_else(|| text::readable(sent)))
        })
}

/// Takes the first of these keys that has a meaningful value.
fn take_first_text(attributes: &mut Attributes, keys: &[Key]) -> Option<String> {
    keys.iter().find_map(|key| attributes.take_text(*key).filter(|it| !text::is_placeholder(it)))
}

/// Returns an external evaluation that is sent as attributes of the span instead of an event.
fn evaluation(attributes: &mut Attributes) -> Option<EvaluationDraft> {
    let name = attributes.take_text(Key::EvaluationName)?;
    let score = attributes.number(Key::EvaluationScore);
    attributes.drop_key(Key::EvaluationScore);
    Some(EvaluationDraft {
        name,
        score,
        label: attributes.take_text(Key::EvaluationLabel),
        explanation: attributes.take_text(Key::EvaluationExplanation),
    })
}

/// Excludes attributes that are already stored, and vectors, from the metadata.
fn drop_repeated(attributes: &mut Attributes, scope: &str, has_input: bool, has_output: bool) {
    if has_input {
        attributes.drop_keys(INPUT_KEYS);
        attributes.drop_group(Group::LlmInput);
        attributes.drop_group(Group::Prompt);
    }
    if has_output {
        attributes.drop_keys(OUTPUT_KEYS);
        attributes.drop_group(Group::LlmOutput);
        attributes.drop_group(Group::Completion);
    }
    attributes.drop_keys(&[Key::InputMime, Key::OutputMime, Key::AiEmbedding, Key::AiEmbeddings]);
    attributes.drop_group(Group::Embeddings);
    logfire::drop_repeated(attributes, scope, has_input, has_output);
}

#[cfg(test)]
mod tests;
