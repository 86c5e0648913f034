//! The attribute keys that have a meaning, and a fast look-up.
//!
//! A span has about thirty attributes, so looking up a key is the innermost step of ingest: one hash
//! over a few bytes and, nearly always, one comparison. The table is built at compile time. The meaning
//! of each key is in the files of the conventions.

macro_rules! keys {
    ($($variant:ident = $name:literal),+ $(,)?) => {
        /// An attribute key that a convention defines.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(super) enum Key { $(#[doc = $name] $variant),+ }

        /// Every key, in the order of declaration.
        const ALL: &[Key] = &[$(Key::$variant),+];
        const KEY_NAMES: &[&str] = &[$($name),+];
    };
}

keys! {
    // Loupe's own exports
    LoupeRecord = "loupe.record",
    // Any sender
    SessionId = "session.id",
    UserId = "user.id",
    EndUserId = "enduser.id",
    Tags = "tags",
    TraceComplete = "trace.complete",
    TraceExternalId = "trace.external_id",
    ErrorType = "error.type",
    ErrorMessage = "error.message",
    HttpStatus = "http.response.status_code",
    HttpStatusOld = "http.status_code",
    DbSystem = "db.system",
    DbSystemName = "db.system.name",
    // OpenTelemetry GenAI, and conventions that adopted its names
    OperationName = "gen_ai.operation.name",
    System = "gen_ai.system",
    ProviderName = "gen_ai.provider.name",
    RequestModel = "gen_ai.request.model",
    ResponseModel = "gen_ai.response.model",
    ResponseId = "gen_ai.response.id",
    ConversationId = "gen_ai.conversation.id",
    InputMessages = "gen_ai.input.messages",
    OutputMessages = "gen_ai.output.messages",
    SystemInstructions = "gen_ai.system_instructions",
    ToolName = "gen_ai.tool.name",
    ToolCallId = "gen_ai.tool.call.id",
    ToolCallArguments = "gen_ai.tool.call.arguments",
    ToolCallResult = "gen_ai.tool.call.result",
    RetrievalDocuments = "gen_ai.retrieval.documents",
    RetrievalQuery = "gen_ai.retrieval.query.text",
    MemoryQuery = "gen_ai.memory.query.text",
    MemoryRecords = "gen_ai.memory.records",
    UsageInput = "gen_ai.usage.input_tokens",
    UsageOutput = "gen_ai.usage.output_tokens",
    UsageCacheRead = "gen_ai.usage.cache_read.input_tokens",
    UsageCacheCreation = "gen_ai.usage.cache_creation.input_tokens",
    UsageCacheWrite = "gen_ai.usage.cache_write.input_tokens",
    UsageReasoning = "gen_ai.usage.reasoning_tokens",
    UsageReasoningOutput = "gen_ai.usage.reasoning.output_tokens",
    EvaluationName = "gen_ai.evaluation.name",
    EvaluationScore = "gen_ai.evaluation.score.value",
    EvaluationLabel = "gen_ai.evaluation.score.label",
    EvaluationExplanation = "gen_ai.evaluation.explanation",
    // Earlier names of the OpenTelemetry GenAI conventions, and OpenLLMetry
    UsagePrompt = "gen_ai.usage.prompt_tokens",
    UsageCompletion = "gen_ai.usage.completion_tokens",
    UsageCacheReadOld = "gen_ai.usage.cache_read_input_tokens",
    UsageCacheCreationOld = "gen_ai.usage.cache_creation_input_tokens",
    RequestType = "llm.request.type",
    TraceloopKind = "traceloop.span.kind",
    TraceloopName = "traceloop.entity.name",
    TraceloopInput = "traceloop.entity.input",
    TraceloopOutput = "traceloop.entity.output",
    TaskInput = "gen_ai.task.input",
    TaskOutput = "gen_ai.task.output",
    // OpenInference
    OpeninferenceKind = "openinference.span.kind",
    InputValue = "input.value",
    InputMime = "input.mime_type",
    OutputValue = "output.value",
    OutputMime = "output.mime_type",
    LlmModel = "llm.model_name",
    LlmRequestModel = "llm.request.model_name",
    LlmResponseModel = "llm.response.model_name",
    LlmInvocation = "llm.invocation_parameters",
    LlmProvider = "llm.provider",
    LlmSystem = "llm.system",
    EmbeddingModel = "embedding.model_name",
    RerankerModel = "reranker.model_name",
    LlmPrompt = "llm.token_count.prompt",
    LlmCompletion = "llm.token_count.completion",
    LlmCacheRead = "llm.token_count.prompt_details.cache_read",
    LlmCacheWrite = "llm.token_count.prompt_details.cache_write",
    LlmReasoning = "llm.token_count.completion_details.reasoning",
    LlmCost = "llm.cost.total",
    OpeninferenceToolName = "tool.name",
    OpeninferenceToolCallId = "tool_call.id",
    TagTags = "tag.tags",
    Metadata = "metadata",
    // Vercel AI SDK
    AiOperation = "ai.operationId",
    AiModel = "ai.model.id",
    AiProvider = "ai.model.provider",
    AiResponseModel = "ai.response.model",
    AiResponseId = "ai.response.id",
    AiPrompt = "ai.prompt",
    AiPromptMessages = "ai.prompt.messages",
    AiValue = "ai.value",
    AiValues = "ai.values",
    AiText = "ai.response.text",
    AiObject = "ai.response.object",
    AiToolCalls = "ai.response.toolCalls",
    AiPromptTokens = "ai.usage.promptTokens",
    AiCompletionTokens = "ai.usage.completionTokens",
    AiInputTokens = "ai.usage.inputTokens",
    AiOutputTokens = "ai.usage.outputTokens",
    AiTokens = "ai.usage.tokens",
    AiCachedTokens = "ai.usage.cachedInputTokens",
    AiReasoningTokens = "ai.usage.reasoningTokens",
    AiEmbedding = "ai.embedding",
    AiEmbeddings = "ai.embeddings",
    AiToolName = "ai.toolCall.name",
    AiToolId = "ai.toolCall.id",
    AiToolArgs = "ai.toolCall.args",
    AiToolResult = "ai.toolCall.result",
    // Langfuse
    LangfuseType = "langfuse.observation.type",
    LangfuseInput = "langfuse.observation.input",
    LangfuseOutput = "langfuse.observation.output",
    LangfuseModel = "langfuse.observation.model.name",
    LangfuseUsage = "langfuse.observation.usage_details",
    LangfuseCost = "langfuse.observation.cost_details",
    LangfuseLevel = "langfuse.observation.level",
    LangfuseStatus = "langfuse.observation.status_message",
    LangfuseObservationMetadata = "langfuse.observation.metadata",
    LangfuseSession = "langfuse.session.id",
    LangfuseUser = "langfuse.user.id",
    LangfuseTraceName = "langfuse.trace.name",
    LangfuseTraceInput = "langfuse.trace.input",
    LangfuseTraceOutput = "langfuse.trace.output",
    LangfuseTraceTags = "langfuse.trace.tags",
    LangfuseTraceMetadata = "langfuse.trace.metadata",
    // Logfire and Pydantic AI
    LogfireMessage = "logfire.msg",
    LogfireTemplate = "logfire.msg_template",
    LogfireSchema = "logfire.json_schema",
    LogfireTags = "logfire.tags",
    AllMessages = "pydantic_ai.all_messages",
    FinalResult = "final_result",
    ToolArguments = "tool_arguments",
    ToolResponse = "tool_response",
    ModelName = "model_name",
    OperationCost = "operation.cost",
    DetailsCacheRead = "gen_ai.usage.details.cache_read_input_tokens",
    DetailsCacheReadNew = "gen_ai.usage.details.cache_read_tokens",
    DetailsCacheWrite = "gen_ai.usage.details.cache_creation_input_tokens",
    DetailsCacheWriteNew = "gen_ai.usage.details.cache_write_tokens",
    DetailsReasoning = "gen_ai.usage.details.reasoning_tokens",
    DetailsCachedContent = "gen_ai.usage.details.cached_content_tokens",
    DetailsThoughts = "gen_ai.usage.details.thoughts_tokens",
    RawInput = "raw_input",
    Response = "response",
    RequestData = "request_data",
    ResponseData = "response_data",
    Events = "events",
    PlainInput = "input",
    PlainOutput = "output",
    PlainName = "name",
    PlainError = "error",
    ThreadId = "thread_id",
    GroupId = "group_id",
    PlainResponseId = "response_id",
    UsageRaw = "gen_ai.usage.raw",
    // Google ADK
    AdkRequest = "gcp.vertex.agent.llm_request",
    AdkResponse = "gcp.vertex.agent.llm_response",
    AdkToolArguments = "gcp.vertex.agent.tool_call_args",
    AdkToolResponse = "gcp.vertex.agent.tool_response",
    AdkSession = "gcp.vertex.agent.session_id",
    // LangSmith
    LangsmithKind = "langsmith.span.kind",
    LangsmithName = "langsmith.trace.name",
    LangsmithSession = "langsmith.trace.session_id",
    LangsmithTags = "langsmith.span.tags",
    LangsmithUsage = "langsmith.usage_metadata",
    // Model Context Protocol
    McpMethod = "mcp.method.name",
    // MLflow
    MlflowType = "mlflow.spanType",
    MlflowInputs = "mlflow.spanInputs",
    MlflowOutputs = "mlflow.spanOutputs",
    MlflowUsage = "mlflow.chat.tokenUsage",
    MlflowModel = "mlflow.llm.model",
    MlflowCost = "mlflow.llm.cost",
    MlflowSession = "mlflow.trace.session",
    MlflowUser = "mlflow.trace.user",
    PlainModel = "model",
    // Strands
    UsageCacheWriteOld = "gen_ai.usage.cache_write_input_tokens",
    // OpenLIT
    OpenlitCost = "gen_ai.usage.cost",
    OpenlitPrompt = "gen_ai.prompt",
    OpenlitCompletion = "gen_ai.completion",
    OpenlitToolArguments = "gen_ai.tool.args",
    // LiteLLM
    LitellmCost = "gen_ai.cost.total_cost",
    LitellmUser = "llm.user",
    LitellmMessages = "llm.openai.messages",
    LitellmChoices = "llm.openai.choices",
    LitellmAnthropicMessages = "llm.anthropic.messages",
    LitellmEmbedded = "llm.None.input",
    LitellmAnthropicContent = "llm.anthropic.content",
}

impl Key {
    /// Number of keys.
    pub(super) const COUNT: usize = ALL.len();

    /// Returns the key with this name.
    pub(super) fn find(name: &str) -> Option<Self> {
        let mut at = slot_of(name.as_bytes());
        loop {
            let entry = SLOT_TABLE[at];
            if entry == FREE_SLOT {
                return None;
            }
            if KEY_NAMES[entry as usize] == name {
                return Some(ALL[entry as usize]);
            }
            at = (at + 1) % SLOT_TABLE.len();
        }
    }

    /// Returns the name on the wire.
    #[cfg(test)]
    pub(super) fn name(self) -> &'static str {
        KEY_NAMES[self as usize]
    }
}

/// Marks a free slot of the table.
const FREE_SLOT: u8 = u8::MAX;
/// The hash table. Sparse, so that most unknown keys are rejected by the first look-up.
const SLOT_TABLE: [u8; 2048] = table();

const fn table() -> [u8; 2048] {
    assert!(KEY_NAMES.len() < FREE_SLOT as usize, "more keys than the table's entries can name");
    let mut table = [FREE_SLOT; 2048];
    let mut key = 0;
    while key < KEY_NAMES.len() {
        let mut at = slot_of(KEY_NAMES[key].as_bytes());
        while table[at] != FREE_SLOT {
            at = (at + 1) % table.len();
        }
        table[at] = key as u8;
        key += 1;
    }
    table
}

/// Hashes the length, the last eight bytes and two bytes from within: keys share long prefixes.
const fn slot_of(name: &[u8]) -> usize {
    let len = name.len();
    if len == 0 {
        return 0;
    }
    let mut mixed: u64 = 0;
    let mut at = len.saturating_sub(8);
    while at < len {
        mixed = (mixed << 8) | name[at] as u64;
        at += 1;
    }
    mixed ^= ((name[len / 2] as u64) << 17) ^ ((name[len / 3] as u64) << 41) ^ ((len as u64) << 31);
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 53) as usize
}

macro_rules! groups {
    ($($variant:ident = $prefix:literal),+ $(,)?) => {
        /// A family of keys with a common prefix, followed by an index or a free name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Group { $(#[doc = $prefix] $variant),+ }

        const GROUP_PREFIXES: &[(&str, Group)] = &[$(($prefix, Group::$variant)),+];
    };
}

groups! {
    LlmInput = "llm.input_messages.",
    LlmOutput = "llm.output_messages.",
    Prompt = "gen_ai.prompt.",
    Completion = "gen_ai.completion.",
    Documents = "retrieval.documents.",
    Reranked = "reranker.output_documents.",
    Embeddings = "embedding.embeddings.",
    Association = "traceloop.association.properties.",
    AiMetadata = "ai.telemetry.metadata.",
    LangfuseTrace = "langfuse.trace.metadata.",
    LangfuseObservation = "langfuse.observation.metadata.",
    LangsmithMetadata = "langsmith.metadata.",
    MlflowTag = "mlflow.traceTag.",
    Metadata = "metadata.",
}

impl Group {
    /// Number of groups.
    pub(super) const COUNT: usize = GROUP_PREFIXES.len();

    /// Returns the group of a key.
    pub(super) fn find(name: &str) -> Option<Self> {
        let first = *name.as_bytes().first()?;
        GROUP_PREFIXES
            .iter()
            .find(|(prefix, _)| prefix.as_bytes()[0] == first && name.starts_with(prefix))
            .map(|(_, group)| *group)
            .filter(|group| {
                !group.is_list() || name.as_bytes().get(group.prefix().len()).is_some_and(u8::is_ascii_digit)
            })
    }

    /// Whether the prefix is followed by an index. For example, `gen_ai.prompt.name` is not part of a list.
    fn is_list(self) -> bool {
        match self {
            Self::LlmInput
            | Self::LlmOutput
            | Self::Prompt
            | Self::Completion
            | Self::Documents
            | Self::Reranked
            | Self::Embeddings => true,
            Self::Association
            | Self::AiMetadata
            | Self::LangfuseTrace
            | Self::LangfuseObservation
            | Self::LangsmithMetadata
            | Self::MlflowTag
            | Self::Metadata => false,
        }
    }

    /// Returns the prefix of its keys, including the dot.
    pub(super) fn prefix(self) -> &'static str {
        GROUP_PREFIXES[self as usize].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_by_its_name() {
        for key in ALL {
            assert_eq!(Key::find(key.name()), Some(*key), "{}", key.name());
        }
        for unknown in ["", "x", "gen_ai.request.temperature", "gen_ai.usage.input_token", "Session.id"] {
            assert_eq!(Key::find(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn names_are_unique_and_spread_over_the_table() {
        let mut names = KEY_NAMES.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Key::COUNT);
        let away = KEY_NAMES
            .iter()
            .enumerate()
            .filter(|(at, name)| SLOT_TABLE[slot_of(name.as_bytes())] != *at as u8)
            .count();
        assert!(away < Key::COUNT / 8, "{away} keys are not in their own slot");
    }

    #[test]
    fn key_groups_are_found_by_prefix() {
        assert_eq!(Group::find("llm.input_messages.0.message.role"), Some(Group::LlmInput));
        assert_eq!(Group::find("gen_ai.prompt"), None);
        assert_eq!(Group::find("gen_ai.prompt.name"), None);
        assert_eq!(Group::find("gen_ai.prompt.0.role").map(Group::prefix), Some("gen_ai.prompt."));
    }

    /// The documentation of the mapping for users.
    const MAPPING_PAGE: &str = include_str!("../../../../docs/otlp-mapping.md");

    /// Returns the names in the first column of the page's tables of attributes.
    fn documented_names() -> Vec<&'static str> {
        let mut in_table = false;
        let mut names = Vec::new();
        for line in MAPPING_PAGE.lines() {
            in_table = line.starts_with("| Attribute |") || (in_table && line.starts_with('|'));
            if in_table {
                let first_column = line.split('|').nth(1).unwrap_or_default();
                names.extend(first_column.split('`').skip(1).step_by(2));
            }
        }
        names
    }

    #[test]
    fn every_key_and_group_is_on_the_mapping_page() {
        let documented = documented_names();
        let groups = GROUP_PREFIXES.iter().map(|(prefix, _)| format!("{prefix}*"));
        let known = KEY_NAMES.iter().map(|name| (*name).to_owned()).chain(groups);
        let missing: Vec<String> = known.filter(|name| !documented.contains(&name.as_str())).collect();
        assert!(missing.is_empty(), "add to a table of docs/otlp-mapping.md: {missing:?}");
    }

    #[test]
    fn mapping_page_tables_name_only_known_keys() {
        let is_group = |name: &str| {
            name.strip_suffix('*').is_some_and(|it| GROUP_PREFIXES.iter().any(|known| known.0 == it))
        };
        let unknown: Vec<&str> =
            documented_names().into_iter().filter(|it| Key::find(it).is_none() && !is_group(it)).collect();
        assert!(unknown.is_empty(), "remove from the tables of docs/otlp-mapping.md: {unknown:?}");
    }
}
