//! Checks of the addresses that tenants set as receivers, and of the secrets that sign requests to them.

use api::ErrorCode;
use outbound::AddressRejection::{self, NotHttps, Private, Unresolvable};

use crate::{
    app::App,
    error::{Problem, Result},
};

/// Minimum number of characters of a secret.
const MIN_SECRET_CHARS: usize = 16;
/// Maximum number of characters of a secret.
const MAX_SECRET_CHARS: usize = 1_000;

/// Error codes of an address that is rejected.
pub const URL_ERRORS: &[ErrorCode] =
    &[ErrorCode::WebhookUrlNotHttps, ErrorCode::WebhookUrlPrivateIp, ErrorCode::WebhookUrlUnresolvable];

/// Validates the secret in a field of a request.
///
/// # Errors
///
/// Fails with `validation_failed` if it is too short or too long.
pub fn check_secret(field: &str, secret: &str) -> Result<()> {
    if (MIN_SECRET_CHARS..=MAX_SECRET_CHARS).contains(&secret.chars().count()) {
        return Ok(());
    }
    let message = format!("must have {MIN_SECRET_CHARS} to {MAX_SECRET_CHARS} characters");
    Err(Problem::field(field, message).into())
}

/// Validates the address in a field of a request.
///
/// # Errors
///
/// Fails with one of [`URL_ERRORS`] if requests cannot be sent to it.
pub async fn check_url(app: &App, field: &str, url: &str) -> Result<()> {
    match app.outbound.check(url).await {
        Ok(_) => Ok(()),
        Err(rejection) => Err(url_problem(field, rejection, url).into()),
    }
}

/// Returns the error for a rejected address.
pub fn url_problem(field: &str, rejection: AddressRejection, url: &str) -> Problem {
    let code = match rejection {
        NotHttps => ErrorCode::WebhookUrlNotHttps,
        Private => ErrorCode::WebhookUrlPrivateIp,
        Unresolvable => ErrorCode::WebhookUrlUnresolvable,
    };
    Problem { code, ..Problem::field(field, outbound::remedy::describe(rejection, url)) }
}
