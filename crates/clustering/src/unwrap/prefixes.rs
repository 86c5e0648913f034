//! Wrappings that are known texts before or after a message.

use crate::mask::REASON_PHRASES;

/// Removes a known text before the message.
pub fn remove_prefix(text: &str) -> Option<&str> {
    PREFIX_RULES.iter().find_map(|rule| rule(text)).map(str::trim).filter(|it| !it.is_empty())
}

/// Removes the known texts after a message.
pub fn remove_suffix(mut text: &str) -> &str {
    let end = MESSAGE_SUFFIXES.iter().filter_map(|it| text.find(it)).filter(|it| *it > 0).min();
    text = end.map_or(text, |it| text[..it].trim_end());
    // Ollama's client.
    match text.rfind(" (status code: ") {
        Some(start) if text.len() - start <= 24 => text[..start].trim_end(),
        _ => text,
    }
}

/// Beginnings of the texts that clients append.
const MESSAGE_SUFFIXES: &[&str] = &[
    "\nReceived Model Group=",
    " Received Model Group=",
    "\nAvailable Model Group",
    " LiteLLM Retried:",
    "\nFor troubleshooting, visit",
    " For troubleshooting, visit",
    "\nDuring task with name",
    "\nFor more information check:",
    "\nFor more information check ",
    "\n    For further information visit",
    " For further information visit",
    " (request_id:",
    " (request id:",
    " (Request ID:",
    " (Service: ",
    " [{\"@type\"",
    "\nnote: run with `RUST_BACKTRACE",
];

/// Maximum length of a framework's text before a known text.
const MAX_INTRODUCTION_BYTES: usize = 80;

type Rule = fn(&str) -> Option<&str>;

const PREFIX_RULES: &[Rule] = &[
    openai_status,
    response_body,
    mistral_status,
    botocore,
    grpc_details,
    grpc_description,
    go_openai,
    google_node,
    langchain_retry,
    last_error,
    litellm_provider,
    azure_code,
    http_status,
    uncaught,
    bytes_literal,
];

/// `Error code: 429 - message`
fn openai_status(text: &str) -> Option<&str> {
    let (_, rest) = status_number(text.strip_prefix("Error code: ")?)?;
    rest.strip_prefix(" - ")
}

/// `headers: {…}, status_code: 429, body: message`
fn response_body(text: &str) -> Option<&str> {
    let starts = text.starts_with("status_code: ") || text.starts_with("headers: ");
    let at = text.find("body: ").filter(|_| starts)?;
    Some(&text[at + "body: ".len()..])
}

/// `API error occurred: Status 429. Body: message`
fn mistral_status(text: &str) -> Option<&str> {
    let (_, rest) = status_number(text.strip_prefix("API error occurred: Status ")?)?;
    rest.strip_prefix(". Body: ").or_else(|| rest.strip_prefix('\n'))
}

/// `An error occurred (ThrottlingException) when calling the InvokeModel operation (reached max retries: 4): message`
fn botocore(text: &str) -> Option<&str> {
    // LangChain and others write a few words before it.
    let start = text.find("An error occurred (").filter(|it| *it <= MAX_INTRODUCTION_BYTES)?;
    let rest = &text[start..];
    let at = rest.find(" operation")? + " operation".len();
    let rest = &rest[at..];
    let end = rest.find(": ")?;
    // The number of retries contains the separator too.
    if rest.starts_with(" (reached max retries: ") {
        return rest.split_once("): ").map(|(_, message)| message);
    }
    Some(&rest[end + 2..])
}

/// `<_InactiveRpcError of RPC that terminated with: status = … details = "message" …>`
fn grpc_details(text: &str) -> Option<&str> {
    let at = text.find("RpcError").filter(|it| *it < 80)?;
    let start = at + text[at..].find("details = \"")? + "details = \"".len();
    let end = start + text[start..].find("\"\n").or_else(|| text[start..].find('"'))?;
    Some(&text[start..end])
}

/// `rpc error: code = Unavailable desc = message`
fn grpc_description(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("rpc error: code = ")?;
    rest.split_once(" desc = ").map(|(_, message)| message)
}

/// `error, status code: 429, status: 429 Too Many Requests, message: message`
fn go_openai(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("error, status code: ")?;
    rest.split_once(", message: ").map(|(_, message)| message)
}

/// `[GoogleGenerativeAI Error]: Error fetching from https://…: [429 Too Many Requests] message`
fn google_node(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("[GoogleGenerativeAI Error]: ")?;
    let Some(fetching) = rest.strip_prefix("Error fetching from ") else { return Some(rest) };
    let (_, answer) = fetching.split_once(": ")?;
    let Some((_, message)) = answer.strip_prefix('[').and_then(|it| it.split_once("] ")) else {
        return Some(answer);
    };
    Some(message)
}

/// `Retrying … in 4.0 seconds as it raised RateLimitError: message.`
fn langchain_retry(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("Retrying ")?;
    let (_, raised) = rest.split_once(" seconds as it raised ")?;
    Some(raised.strip_suffix('.').unwrap_or(raised))
}

/// `Failed after 3 attempts. Last error: message`
fn last_error(text: &str) -> Option<&str> {
    let at = text.find("Last error: ").filter(|it| *it < 120)?;
    Some(&text[at + "Last error: ".len()..])
}

/// `AzureException BadRequestError - message`
fn litellm_provider(text: &str) -> Option<&str> {
    let (provider, message) = text.split_once(" - ")?;
    let mut words = provider.split(' ');
    let is_provider = words.next().is_some_and(|it| it.ends_with("Exception"));
    let is_class = words.next().is_none_or(|it| it.ends_with("Error")) && words.next().is_none();
    (is_provider && is_class).then_some(message)
}

/// `(TooManyRequests) message` and the lines `Code: …`, `Message: …` of Azure's client.
fn azure_code(text: &str) -> Option<&str> {
    let (code, message) = text.strip_prefix('(')?.split_once(") ")?;
    let is_code = code.len() <= 60 && code.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
    let end = message.find("\nCode: ");
    match end {
        Some(end) if is_code => Some(&message[..end]),
        _ => None,
    }
}

/// `429 message`, `HTTP 429: message`, `429 RESOURCE_EXHAUSTED. message`. A status alone, or with its reason
/// phrase, stays.
fn http_status(text: &str) -> Option<&str> {
    let number = text.strip_prefix("HTTP ").unwrap_or(text);
    let (_, rest) = status_number(number)?;
    let rest = rest.strip_prefix([' ', ':'])?.trim_start().trim_start_matches("- ");
    let name = rest.bytes().position(|it| !(it.is_ascii_uppercase() || it == b'_')).unwrap_or(rest.len());
    let rest = if name > 4 { rest[name..].trim_start_matches(['.', ':', ' ']) } else { rest };
    (rest.contains(char::is_alphabetic) && !is_reason_phrase(rest)).then_some(rest)
}

/// Returns whether a text is the reason phrase of an HTTP status.
fn is_reason_phrase(text: &str) -> bool {
    text.len() <= 32 && REASON_PHRASES.iter().any(|it| text.starts_with(it))
}

fn uncaught(text: &str) -> Option<&str> {
    ["Uncaught (in promise) ", "Uncaught exception: ", "Unhandled exception: ", "Uncaught "]
        .iter()
        .find_map(|it| text.strip_prefix(it))
}

/// `b'message'`
fn bytes_literal(text: &str) -> Option<&str> {
    text.strip_prefix("b'")?.strip_suffix('\'')
}

/// Splits an HTTP status of an error from the text that follows it.
fn status_number(text: &str) -> Option<(u16, &str)> {
    let number: u16 = text.get(..3)?.parse().ok()?;
    let rest = &text[3..];
    ((400..600).contains(&number) && !rest.starts_with(|it: char| it.is_ascii_alphanumeric()))
        .then_some((number, rest))
}
