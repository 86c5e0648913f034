//! `loupe webhooks verify`: verifies the signature of a captured request, without any network.

use std::{io::Read, time::Duration};

use clap::Args;
use serde_json::{Value, json};

use super::{
    freshness::staleness,
    mistake::likely_cause,
    secret::WebhookSecretArgs,
    signature::{Headers, SERVICE_SIGNATURE_HEADER, header, service_signature, valid_header},
    view::{VERIFICATION_VIEW, verification_sheet},
};
use crate::{
    commands::{evals::wait::combine_results, flag_value},
    config::duration,
    ctx::Ctx,
    env::now,
    error::{CliError, Result},
    exit::Exit,
};

/// Maximum size of a body in bytes. The server sends at most 64 KiB.
pub const MAX_BODY_BYTES: usize = 1 << 20;

/// Arguments of `webhooks verify`. The body is on stdin.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Value of the header X-Service-Signature
    #[arg(long, required_unless_present = "headers", allow_hyphen_values = true)]
    signature: Option<String>,
    /// File with the headers of the request, one `name: value` a line, as `webhooks listen --save`
    /// writes them
    #[arg(long, value_name = "FILE", conflicts_with = "signature")]
    headers: Option<String>,
    /// Refuse requests whose signed timestamp differs from the current time by more than this, such as 5m
    #[arg(long, value_name = "DURATION", requires = "headers")]
    tolerance: Option<String>,
    #[command(flatten)]
    secret: WebhookSecretArgs,
}

/// The result of the verification of a request.
pub struct SignatureCheck {
    /// The header whose signature is valid, if any.
    pub header: Option<&'static str>,
    /// The received service signature.
    pub received: Option<String>,
    /// The service signature that the secret gives.
    pub computed: String,
    /// Whether a signature is valid, but the timestamp is not.
    pub is_stale: bool,
    /// Why the request is refused: the likely cause of a wrong signature, or the timestamp.
    pub cause: Option<String>,
}

impl SignatureCheck {
    /// Verifies the signatures of a request, and with a tolerance its timestamp.
    pub fn new(headers: &Headers, secret: &str, body: &[u8], tolerance: Option<Duration>) -> Self {
        let valid = valid_header(headers, secret, body);
        let received = header(headers, SERVICE_SIGNATURE_HEADER).map(str::to_owned);
        let now = now().timestamp();
        let tolerance = tolerance.filter(|_| valid.is_some());
        let staleness = tolerance.and_then(|it| staleness(headers, secret, body, it, now));
        let is_stale = staleness.is_some();
        let cause = match &received {
            _ if valid.is_some() => staleness,
            Some(received) => likely_cause(received, secret, body),
            None => Some("the header X-Service-Signature is missing".to_owned()),
        };
        let computed = service_signature(secret.as_bytes(), body);
        Self { header: valid, received, computed, is_stale, cause }
    }

    /// Returns whether the request is authentic: a signature is valid, and so is the timestamp if it is checked.
    pub fn is_valid(&self) -> bool {
        self.header.is_some() && !self.is_stale
    }
}

/// Verifies a captured request. Ends with code 6 if no signature is valid.
pub fn run(ctx: &mut Ctx, args: VerifyArgs) -> Result {
    ctx.out.check(&VERIFICATION_VIEW)?;
    let tolerance = args.tolerance.as_deref().map(duration).transpose()?;
    let secret = args.secret.read(ctx)?;
    let headers = match (&args.headers, args.signature) {
        (Some(file), _) => parse_headers(&flag_value::text("--headers", file)?),
        (None, signature) => {
            vec![(SERVICE_SIGNATURE_HEADER.to_owned(), signature.unwrap_or_default())]
        }
    };
    let body = read_body()?;
    let check = SignatureCheck::new(&headers, &secret, &body, tolerance);
    let row = json!({
        "valid": check.is_valid(), "header": check.header, "received": check.received,
        "computed": check.computed, "cause": check.cause,
    });
    let written = ctx.out.whole(&VERIFICATION_VIEW, &row, verification_sheet);
    combine_results(written, verdict(&row, body.is_empty()))
}

fn verdict(row: &Value, is_empty: bool) -> Result {
    if row["valid"] == true {
        return Ok(());
    }
    if row["header"].is_string() {
        return Err(CliError::new(Exit::Failed, row["cause"].as_str().unwrap_or_default()));
    }
    let error = CliError::new(Exit::Failed, "the signature is not valid for this body and secret");
    Err(match row["cause"].as_str() {
        Some(cause) => error.hint(format!("likely cause: {cause}")),
        None if is_empty => error.hint("the body is empty; pass it on stdin: < 001.body"),
        None => error.hint("no known mistake fits: the secret is another one, or the body was changed"),
    })
}

/// Parses headers, one `name: value` a line. Lines of another form, such as the request line, are skipped.
fn parse_headers(text: &str) -> Headers {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned())).collect()
}

fn read_body() -> Result<Vec<u8>> {
    let mut body = Vec::new();
    let limit = u64::try_from(MAX_BODY_BYTES).unwrap_or(u64::MAX) + 1;
    std::io::stdin().take(limit).read_to_end(&mut body).map_err(|error| {
        CliError::new(Exit::Unexpected, format!("can't read stdin: {}", api::plain::io_error(&error)))
    })?;
    if body.len() > MAX_BODY_BYTES {
        return Err(CliError::usage(format!("the body has more than {} MiB", MAX_BODY_BYTES >> 20)));
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_parsed_with_names_in_lower_case() {
        let text = "POST / HTTP/1.1\r\nX-Service-Signature: sha256=00\r\nWebhook-Id:a:b\n\n";
        let headers = parse_headers(text);
        assert_eq!(header(&headers, "x-service-signature"), Some("sha256=00"));
        assert_eq!(header(&headers, "webhook-id"), Some("a:b"));
        assert_eq!(headers.len(), 2);
    }
}
