//! Interprets the claims of a session token, of any issuer.

use api::Role;
use serde_json::Value;

use super::{session::Session, strict_json::Object};

/// Seconds after its expiry for which a token is accepted. Synchronized clocks differ by less, and it
/// hardly extends the use of a stolen token.
const EXPIRY_LEEWAY_SECONDS: i64 = 5;
/// Seconds before its start of validity for which a token is accepted. More than [`EXPIRY_LEEWAY_SECONDS`], because a
/// token from a fast clock grants nothing that its issuer did not intend.
const START_LEEWAY_SECONDS: i64 = 60;
/// Maximum length in characters of a subject (OpenID Connect Core, section 2) or a tenant's name.
const MAX_NAME_CHARS: usize = 255;

/// Names of the claims that Loupe defines.
#[derive(Clone, Debug)]
pub struct ClaimNames {
    /// The tenant's ID, or its name at the identity provider.
    pub tenant: String,
    /// `owner`, `member` or `viewer`.
    pub role: String,
}

impl Default for ClaimNames {
    fn default() -> Self {
        Self { tenant: "tenant_id".to_owned(), role: "role".to_owned() }
    }
}

/// Returns the session that the claims describe, if they are complete and valid at `now`
/// (microseconds).
pub fn session(claims: &Object, names: &ClaimNames, now: i64) -> Option<Session> {
    let seconds = now.div_euclid(1_000_000);
    let expires = time(claims.get("exp")?)?;
    if expires <= seconds - EXPIRY_LEEWAY_SECONDS {
        return None;
    }
    for starts in ["nbf", "iat"].iter().filter_map(|it| claims.get(*it)) {
        if time(starts)? > seconds + START_LEEWAY_SECONDS {
            return None;
        }
    }
    Some(Session {
        subject: name(claims.get("sub")?)?,
        tenant: name(find(claims, &names.tenant)?)?,
        role: role(find(claims, &names.role)?)?,
        expires_at: expires.saturating_mul(1_000_000),
    })
}

/// Returns whether a token is intended for `audience`: the claim equals it, or is a list that contains it.
pub fn is_for_audience(claims: &Object, audience: &str) -> bool {
    match claims.get("aud") {
        Some(Value::String(one)) => one == audience,
        Some(Value::Array(list)) => list.iter().all(Value::is_string) && list.iter().any(|it| it == audience),
        _ => false,
    }
}

/// Returns a claim by its name, else by a path of names separated by dots. The name is tried first,
/// because names that are URLs contain dots.
fn find<'a>(claims: &'a Object, path: &str) -> Option<&'a Value> {
    if let Some(value) = claims.get(path) {
        return Some(value);
    }
    let (first, rest) = path.split_once('.')?;
    rest.split('.').try_fold(claims.get(first)?, |value, name| value.as_object()?.get(name))
}

/// Parses a NumericDate (RFC 7519, section 2) in whole seconds: a number, not a text.
fn time(value: &Value) -> Option<i64> {
    let whole = value.as_i64();
    // Below 2^63, so that the conversion is exact except for the fraction.
    whole.or_else(|| value.as_f64().map(f64::floor).filter(|it| it.abs() < 9.2e18).map(|it| it as i64))
}

/// Returns a text that can be a name. Blank texts cannot, and control characters would differ between a
/// log, a terminal and the database.
fn name(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    let good = !text.trim().is_empty()
        && text.chars().count() <= MAX_NAME_CHARS
        && !text.chars().any(char::is_control);
    good.then(|| text.to_owned())
}

/// Returns a role, or the only role in a list. Identity providers add their own groups to the list. Several
/// roles are ambiguous.
fn role(value: &Value) -> Option<Role> {
    match value {
        Value::String(one) => one.parse().ok(),
        Value::Array(list) => {
            let mut roles = list.iter().filter_map(|it| it.as_str()?.parse().ok());
            let role = roles.next();
            role.filter(|_| roles.next().is_none())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(claims: Value, path: &str) -> Option<Value> {
        find(claims.as_object().unwrap(), path).cloned()
    }

    #[test]
    fn claim_is_found_by_name_or_path() {
        assert_eq!(
            found(json!({"https://acme.example/role": 1}), "https://acme.example/role"),
            Some(json!(1))
        );
        assert_eq!(found(json!({"a": {"b": {"c": 1}}}), "a.b.c"), Some(json!(1)));
        assert_eq!(found(json!({"a.b": 1, "a": {"b": 2}}), "a.b"), Some(json!(1)));
        assert_eq!(found(json!({"a.b": null, "a": {"b": 2}}), "a.b"), Some(json!(null)));
        for path in ["b", "a.c", "a.b.c", "a.", ".a", "."] {
            assert_eq!(found(json!({"a": {"b": 1}}), path), None, "{path}");
        }
    }

    #[test]
    fn time_claim_must_be_a_number() {
        assert_eq!(time(&json!(-5)), Some(-5));
        assert_eq!(time(&json!(1.9)), Some(1));
        assert_eq!(time(&json!(i64::MAX)), Some(i64::MAX));
        for value in [json!("1"), json!(null), json!([1]), json!(1e300), json!(u64::MAX), json!(true)] {
            assert_eq!(time(&value), None, "{value}");
        }
    }

    #[test]
    fn role_list_must_contain_exactly_one_role() {
        assert_eq!(role(&json!("owner")), Some(Role::Owner));
        assert_eq!(role(&json!(["offline_access", "viewer", 5])), Some(Role::Viewer));
        for value in
            [json!([]), json!(["owner", "viewer"]), json!(["owner", "owner"]), json!("Owner"), json!({})]
        {
            assert_eq!(role(&value), None, "{value}");
        }
    }
}
