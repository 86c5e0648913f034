//! The texts that SDKs and frameworks put around a provider's message.

use super::{Half, LabelledTemplate, Random};

/// Wrappings that occur in the held-out half only.
const HELD_OUT_WRAPPINGS: &[&str] = &["go-openai", "cohere", "java", "google-node", "litellm-bedrock"];

/// Wraps a message in one of the wrappings of its template.
pub fn wrap(message: &str, template: &LabelledTemplate, random: &mut Random) -> String {
    let allowed: Vec<&str> = template
        .wrappings
        .iter()
        .map(String::as_str)
        .filter(|it| template.half == Half::HeldOut || !HELD_OUT_WRAPPINGS.contains(it))
        .collect();
    let name = random.choose(&allowed);
    let (code, status, class) = *[
        ("400", "Bad Request", "BadRequestError"),
        ("429", "Too Many Requests", "RateLimitError"),
        ("500", "Internal Server Error", "InternalServerError"),
    ]
    .get(message.len() % 3)
    .unwrap();
    let python = python_string(message);
    let json = json_string(message);
    let id = format!("req_{:016x}", random.next());
    let openai = format!(
        "{{'error': {{'message': {python}, 'type': 'invalid_request_error', 'param': None, 'code': None}}}}"
    );
    let anthropic = format!(
        "{{'type': 'error', 'error': {{'type': 'invalid_request_error', 'message': {python}}}, 'request_id': '{id}'}}"
    );
    match name {
        "plain" => message.to_owned(),
        "openai-python" => format!("Error code: {code} - {openai}"),
        "openai-node" | "groq" => format!("{code} {message}"),
        "litellm-openai" => match random.below(3) {
            0 => format!("litellm.{class}: OpenAIException - {message}"),
            1 => format!("litellm.{class}: {class}: OpenAIException - Error code: {code} - {openai}"),
            _ => format!(
                "litellm.{class}: AzureException {class} - {message}\nReceived Model Group=gpt-4o\nAvailable Model Group Fallbacks=None LiteLLM Retried: 2 times, LiteLLM Max Retries: 3"
            ),
        },
        "azure" => match random.below(2) {
            0 => format!(
                "({}) {message}\nCode: {}\nMessage: {message}",
                status.replace(' ', ""),
                status.replace(' ', "")
            ),
            _ => format!("Error code: {code} - {{'error': {{'code': '{code}', 'message': {python}}}}}"),
        },
        "pydantic-ai" => format!(
            "status_code: {code}, model_name: gpt-4o, body: {{'message': {python}, 'type': 'tokens', 'param': None, 'code': 'x_y'}}"
        ),
        "traceback" => {
            let last = if template.wrappings[0] == "class" || message.starts_with("ollama") {
                message.to_owned()
            } else {
                format!("openai.{class}: Error code: {code} - {openai}")
            };
            let line = random.below(900);
            let frame = format!(
                "  File \"/app/src/agent_{}.py\", line {line}, in run\n    return await self.client.create(**kwargs)\n           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n",
                random.below(20)
            );
            match random.below(2) {
                0 => format!("Traceback (most recent call last):\n{frame}{frame}{last}"),
                _ => format!(
                    "Traceback (most recent call last):\n{frame}ValueError: retry {line}\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n{frame}{last}\n"
                ),
            }
        }
        "langchain-retry" => format!(
            "Retrying langchain_openai.chat_models.base.ChatOpenAI.completion_with_retry.<locals>._completion_with_retry in {}.0 seconds as it raised {class}: {message}.",
            random.below(60)
        ),
        "go-openai" => format!("error, status code: {code}, status: {code} {status}, message: {message}"),
        "anthropic-python" => format!("Error code: {code} - {anthropic}"),
        "anthropic-node" => format!(
            "{code} {{\"type\":\"error\",\"error\":{{\"type\":\"api_error\",\"message\":{json}}},\"request_id\":\"{id}\"}}"
        ),
        "litellm-anthropic" => format!(
            "litellm.{class}: AnthropicException - {{\"type\":\"error\",\"error\":{{\"type\":\"api_error\",\"message\":{json}}}}}"
        ),
        "vercel" => match random.below(3) {
            0 => format!("AI_APICallError: {message}"),
            1 => format!("AI_RetryError: Failed after 3 attempts. Last error: {message}"),
            _ => format!("AI_RetryError: Failed after 3 attempts. Last error: AI_APICallError: {message}"),
        },
        "botocore" => {
            let retries = if random.below(2) == 0 { " (reached max retries: 4)" } else { "" };
            let operation = random.choose(&["InvokeModel", "Converse", "ConverseStream"]);
            let class = random.choose(&["", "botocore.errorfactory.ThrottlingException: "]);
            format!(
                "{class}An error occurred (ThrottlingException) when calling the {operation} operation{retries}: {message}"
            )
        }
        "litellm-bedrock" => format!("litellm.{class}: BedrockException - {{\"message\":{json}}}"),
        "java" => format!(
            "java.util.concurrent.ExecutionException: software.amazon.awssdk.services.bedrockruntime.model.ValidationException: {message} (Service: BedrockRuntime, Status Code: {code}, Request ID: {id})"
        ),
        "google-genai" => format!(
            "{code} RESOURCE_EXHAUSTED. {{'error': {{'code': {code}, 'message': {python}, 'status': 'RESOURCE_EXHAUSTED', 'details': [{{'@type': 'type.googleapis.com/google.rpc.Help', 'links': [{{'description': 'Learn more', 'url': 'https://example.com'}}]}}]}}}}"
        ),
        "google-node" => format!(
            "[GoogleGenerativeAI Error]: Error fetching from https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent: [{code} {status}] {message}"
        ),
        "google-core" => format!("{code} {message}"),
        "litellm-vertex" => format!(
            "litellm.{class}: VertexAIException - {{\n  \"error\": {{\n    \"code\": {code},\n    \"message\": {json},\n    \"status\": \"INVALID_ARGUMENT\"\n  }}\n}}\n"
        ),
        "mistral" => match random.below(2) {
            0 => format!(
                "API error occurred: Status {code}\n{{\"object\":\"error\",\"message\":{json},\"type\":\"invalid_model\",\"param\":null,\"code\":\"1500\"}}"
            ),
            _ => format!(
                "API error occurred: Status {code}. Body: {{\"object\":\"error\",\"message\":{json},\"type\":\"x\",\"code\":null}}"
            ),
        },
        "cohere" => format!(
            "headers: {{'content-type': 'application/json', 'x-trace-id': '{id}'}}, status_code: {code}, body: {{'id': '{id}', 'message': {python}}}"
        ),
        "litellm-other" => format!(
            "litellm.{class}: GroqException - {{\"error\":{{\"message\":{json},\"type\":\"invalid_request_error\"}}}}"
        ),
        "ollama" => match random.below(2) {
            0 => format!("{message} (status code: {code})"),
            _ => format!("ollama._types.ResponseError: {message} (status code: {code})"),
        },
        "class" => match random.below(3) {
            0 => message.to_owned(),
            1 => short_class(message),
            _ => without_class(message),
        },
        "js" => match random.below(3) {
            0 => message.to_owned(),
            1 => format!(
                "{message}\n    at processTicksAndRejections (node:internal/process/task_queues:105:5)\n    at async run (file:///app/dist/index.js:{}:{})",
                random.below(999),
                random.below(99)
            ),
            _ => without_class(message),
        },
        "html" => match random.below(2) {
            0 => format!(
                "<html>\r\n<head><title>{message}</title></head>\r\n<body>\r\n<center><h1>{message}</h1></center>\r\n<hr><center>nginx/1.25.3</center>\r\n</body>\r\n</html>"
            ),
            _ => format!(
                "Error code: {code} - <!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{message}</title></head><body><p>Please try again in a few minutes.</p></body></html>"
            ),
        },
        "grpc" => match random.below(2) {
            0 => format!(
                "<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n\tdetails = {json}\n\tdebug_error_string = \"UNKNOWN:Error received from peer {{created_time:\\\"2026-01-02T03:04:05.{:06}+00:00\\\", grpc_status:14, grpc_message:{json}}}\"\n>",
                random.below(999_999)
            ),
            _ => format!("rpc error: code = Unavailable desc = {message}"),
        },
        other => panic!("no wrapping {other}"),
    }
}

/// Returns a text as Python's `repr` writes it.
fn python_string(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('\n', "\\n");
    if text.contains('\'') && !text.contains('"') {
        format!("\"{escaped}\"")
    } else {
        format!("'{}'", escaped.replace('\'', "\\'"))
    }
}

fn json_string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\""))
}

/// Removes the module path of the class at the beginning.
fn short_class(message: &str) -> String {
    let end = message.find(": ").unwrap_or(message.len());
    let start = message[..end].rfind('.').map_or(0, |it| it + 1);
    message[start..].to_owned()
}

/// Removes the class at the beginning if the rest identifies the failure.
fn without_class(message: &str) -> String {
    match message.split_once(": ") {
        Some((class, rest)) if !class.contains(' ') && rest.split(' ').count() > 2 => rest.to_owned(),
        _ => message.to_owned(),
    }
}
