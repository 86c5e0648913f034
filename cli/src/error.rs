//! Errors of commands, as text for a terminal and as JSON for programs.

use std::{fmt, io};

use api::{
    client::{ApiError, Error},
    filter::FilterError,
    profile::ProfileError,
    text::printable,
};
use serde_json::{Map, Value, json};

use crate::exit::Exit;

/// The error of a command. Only `exit` and `message` are required.
#[derive(Debug, Clone)]
pub struct CliError {
    /// The exit status of the program.
    pub exit: Exit,
    /// A sentence without a full stop.
    pub message: String,
    /// Lines below the message that show the location or further details.
    pub detail: Vec<String>,
    /// The next step for the user.
    pub hint: Option<String>,
    /// The error response of the server.
    pub response: Option<Box<ApiError>>,
}

/// The result of a command.
pub type Result<T = ()> = std::result::Result<T, CliError>;

impl CliError {
    /// Creates an error with a message.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), detail: Vec::new(), hint: None, response: None }
    }

    /// Creates an error for an invalid command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Adds the next step for the user.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns whether the only problem is that the reader closed the pipe.
    pub fn is_closed_pipe(&self) -> bool {
        self.exit == Exit::Success
    }

    /// Formats the error for a terminal: the message, then one line for each further detail.
    pub fn text(&self) -> String {
        let mut text = format!("error: {}\n", printable(&self.message));
        for line in &self.detail {
            text.push_str(&format!("  {}\n", printable(line)));
        }
        if let Some(response) = &self.response {
            if !response.code.is_empty() {
                let plan = response.body.get("required_plan").and_then(Value::as_str);
                let plan = plan.map(|plan| format!("   required_plan {plan}")).unwrap_or_default();
                text.push_str(&format!("  code        {}{}\n", printable(&response.code), printable(&plan)));
            }
            // If one field is refused, the message may name it already.
            let is_in_message =
                |(field, message): &(&str, &str)| self.message == format!("{field}: {message}");
            for (field, message) in fields(response).filter(|it| !is_in_message(it)) {
                text.push_str(&format!("  field       {}: {}\n", printable(field), printable(message)));
            }
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("  hint        {}\n", printable(hint)));
        }
        if let Some(id) = self.response.as_ref().and_then(|response| response.request_id.as_deref()) {
            text.push_str(&format!("  request id  {}\n", printable(id)));
        }
        text
    }

    /// Formats the error for programs as a JSON object. Other members of the server's response
    /// (`required_plan`, `fields`) are copied.
    pub fn json(&self) -> Value {
        let mut error = Map::new();
        if let Some(response) = &self.response {
            if let Value::Object(body) = &response.body {
                error.extend(body.iter().map(|(name, value)| (name.clone(), value.clone())));
            }
            error.remove("error");
            error.insert("status".into(), response.status.into());
            error.insert("request_id".into(), json!(response.request_id));
        }
        error.insert("exit_code".into(), self.exit.code().into());
        error.insert("message".into(), self.message.clone().into());
        error.insert("hint".into(), json!(self.hint));
        json!({ "error": error })
    }
}

fn fields(response: &ApiError) -> impl Iterator<Item = (&str, &str)> {
    let fields = response.body.get("fields").and_then(Value::as_array).into_iter().flatten();
    fields.filter_map(|field| Some((field.get("field")?.as_str()?, field.get("message")?.as_str()?)))
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CliError {}

impl From<Error> for CliError {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Response(response) => Self {
                exit: Exit::of_response(&response),
                hint: Some(hint_for(&response)),
                message,
                detail: Vec::new(),
                response: Some(response),
            },
            Error::Unreachable { .. } => Self::new(Exit::Unreachable, message)
                .hint("check --url or LOUPE_URL, and that the server runs"),
            Error::NoCredential { session: true } => session_required("this command"),
            Error::NoCredential { session: false } => no_credential(),
            Error::BadCredential => Self::new(Exit::Unauthenticated, message)
                .hint("`loupe auth status` shows the source of the credential"),
            Error::Address { .. } => Self::usage(message).hint("an address looks like http://127.0.0.1:4600"),
            Error::Unreadable { .. } => {
                Self::new(Exit::Unexpected, message).hint("check that the address is that of a Loupe server")
            }
            Error::NotAStream => Self::new(Exit::Unexpected, message),
        }
    }
}

/// Returns the next step for an error response of the server.
fn hint_for(response: &ApiError) -> String {
    match (response.status, response.code.as_str()) {
        (401, _) => {
            "the credential is not valid here; see `loupe auth status`, renew with `loupe auth login`".into()
        }
        (402, "plan_upgrade_required") => {
            "`loupe auth status` shows your plan; `loupe traces list --filter ...` works on every plan".into()
        }
        (402, "ingest_quota_exceeded") => {
            "`loupe auth status` shows the monthly quota; no more traces are stored until the month ends"
                .into()
        }
        (402, "eval_quota_exceeded") => {
            "`loupe auth status` shows the monthly quota; evaluations of type rule are not counted".into()
        }
        (402, "eval_rules_quota_exceeded") => {
            "delete a rule (loupe rules list, loupe rules delete RULE) or upgrade the plan".into()
        }
        (402, "seat_limit_exceeded") => {
            "free a seat (loupe members remove MEMBER, as owner) or upgrade the plan".into()
        }
        (402, _) => "`loupe auth status` shows the plan".into(),
        (403, "member_removed") => {
            "an owner can restore your membership: loupe members restore MEMBER".into()
        }
        (403, "session_required") => "set LOUPE_SESSION_TOKEN or run `loupe auth login --session`".into(),
        (403, "scope_forbidden") => "the API key is restricted; `loupe auth status` shows its scopes".into(),
        (403, "plan_forbidden") => "webhooks need a higher plan; `loupe auth status` shows yours".into(),
        (403, "error.project.archived") => "unarchive it: loupe projects unarchive PROJECT".into(),
        (403, "forbidden_role") => {
            "`loupe auth status` shows your role; a member with the required role can do it".into()
        }
        (403, _) => "`loupe auth status` shows your credential and its role".into(),
        (404, _) => "ids belong to one tenant; `loupe auth status` shows the tenant".into(),
        (405, _) => {
            "the server does not support this operation; check that it is not older than this program".into()
        }
        (409, "error.project.cannot_archive_last") => {
            "a tenant needs one active project; create another one first".into()
        }
        (409, "idempotency_in_flight") => "the same request is still running; repeat it in a moment".into(),
        (409, _) => "check the current state first, then repeat the command if it is still needed".into(),
        (422, "webhook.url.not_https" | "webhook.url.private_ip") => {
            "the server delivers to public https addresses; for a receiver on this machine, see `loupe help webhooks`"
                .into()
        }
        (422, "webhook.url.unresolvable") => {
            "check the spelling of the host name; the server must be able to resolve it".into()
        }
        (422, "idempotency_key_reused") => "use a new idempotency key for each request".into(),
        (422, "judge_not_configured") => {
            "the operator must configure a judge on the server; evaluators of type rule need none".into()
        }
        (422, "provider_credentials_missing") => "store one: loupe credentials set PROVIDER".into(),
        (429, _) => "wait for the next minute, or send fewer requests; `loupe doctor` shows the limit".into(),
        (400, "invalid_cursor") => {
            "a cursor is valid only for the filters of its list; begin without a cursor".into()
        }
        (502, _) => {
            "a text search needs your embedding provider, see `loupe credentials list`; --vector needs none"
                .into()
        }
        (503, _) => "the server is overloaded; try again in a moment".into(),
        (400..=499, _) => "--help shows the accepted values, with examples".into(),
        _ => "report the request id to the operator of the server".into(),
    }
}

/// Creates the error for an operation that requires a session token when there is none.
pub fn session_required(subject: &str) -> CliError {
    let message = format!(
        "{subject} needs a session token: set LOUPE_SESSION_TOKEN or run `loupe auth login --session`"
    );
    CliError::new(Exit::Unauthenticated, message).hint("an API key is not sufficient; see `loupe help auth`")
}

/// Creates the error for a missing credential.
pub fn no_credential() -> CliError {
    let mut error = CliError::new(Exit::Unauthenticated, "no credential; set one in one of three ways");
    error.detail = [
        "set LOUPE_API_KEY (or LOUPE_SESSION_TOKEN) in the environment",
        "name a file that holds it in LOUPE_API_KEY_FILE (or LOUPE_SESSION_TOKEN_FILE)",
        "store one: loupe auth login --url URL",
    ]
    .map(str::to_owned)
    .into();
    error.hint("if there is no server yet, `loupe-server` starts one and prints a key")
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // The reader closed the pipe, which is not an error.
            io::ErrorKind::BrokenPipe => Self::new(Exit::Success, "the output was closed"),
            _ => Self::new(
                Exit::Unexpected,
                format!("can't write the output: {}", api::plain::io_error(&error)),
            ),
        }
    }
}

impl From<ProfileError> for CliError {
    fn from(error: ProfileError) -> Self {
        Self::new(Exit::Unexpected, error.to_string())
    }
}

impl From<FilterError> for CliError {
    fn from(error: FilterError) -> Self {
        let mut failed = Self::usage(format!("filter: {}", error.message));
        // The caret's column refers to the displayed text, in which control characters are made visible.
        let before = printable(error.text.get(..error.at).unwrap_or_default()).into_owned();
        failed.detail = vec![error.text.clone(), format!("{}^", " ".repeat(present::text::width(&before)))];
        failed.hint = Some(error.hint.unwrap_or_else(|| "see `loupe help filters`".to_owned()));
        failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(status: u16, body: &str) -> CliError {
        Error::Response(Box::new(ApiError::new(status, &Default::default(), body.as_bytes()))).into()
    }

    #[test]
    fn error_response_keeps_code_plan_and_request_id() {
        let body = r#"{"error":"Needs Pro","code":"plan_upgrade_required","request_id":"r-1","required_plan":"pro"}"#;
        let error = error_of(402, body);
        assert_eq!(error.json()["error"]["required_plan"], "pro");
        assert_eq!(error.json()["error"]["exit_code"], 10);
        assert_eq!(error.json()["error"]["message"], "Needs Pro");
        let text = error.text();
        assert!(
            text.starts_with("error: Needs Pro\n  code        plan_upgrade_required   required_plan pro\n"),
            "{text}"
        );
        assert!(text.ends_with("  request id  r-1\n"), "{text}");
    }

    #[test]
    fn server_message_has_no_control_characters() {
        let text = error_of(500, r#"{"error":"\u001b[2J","code":"internal"}"#).text();
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn filter_error_points_at_the_invalid_term() {
        let error: CliError =
            FilterError { text: "é:1 x".into(), at: 5, message: "m".into(), hint: None }.into();
        assert_eq!(error.detail, ["é:1 x", "    ^"]);
    }
}
