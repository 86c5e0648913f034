//! Keys of JSON and of attributes whose values redaction masks as a whole, such as `password`. Unlike [`super::named`], the
//! value does not have to look like a secret.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder};

use super::super::reserved;

/// Maximum length of a key in bytes.
const MAX_KEY_BYTES: usize = 128;
/// Parts of all names. A text without one of them has no such key.
const SECRET_NAME_STEMS: [&str; 13] = [
    "pass",
    "pwd",
    "secret",
    "token",
    "authorization",
    "credential",
    "key",
    "kennwort",
    "contrase",
    "senha",
    "wachtwoord",
    "парол",
    "密码",
];
/// Last words of the names of secrets.
const LAST_WORDS: [&str; 26] = [
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "secrets",
    "authorization",
    "credential",
    "credentials",
    "apikey",
    "accesskey",
    "privatekey",
    "secretkey",
    "clientsecret",
    "accesstoken",
    "authtoken",
    "refreshtoken",
    "passwort",
    "kennwort",
    "contraseña",
    "senha",
    "wachtwoord",
    "пароль",
    "密码",
];
/// Words before `key` in the names of secrets.
const KEY_WORDS: [&str; 8] =
    ["api", "access", "private", "secret", "signing", "encryption", "account", "auth"];
/// Words before `token` in names of tokens that are text, counts or positions.
const PUBLIC_TOKEN_WORDS: [&str; 36] = [
    "next",
    "page",
    "cursor",
    "continuation",
    "sync",
    "eos",
    "bos",
    "pad",
    "stop",
    "count",
    "prompt",
    "completion",
    "csrf",
    "public",
    "first",
    "last",
    "per",
    "output",
    "input",
    "unk",
    "mask",
    "sep",
    "cls",
    "special",
    "new",
    "any",
    "single",
    "each",
    "cached",
    "reasoning",
    "total",
    "max",
    "min",
    "time",
    "sampled",
    "chosen",
];
/// Words before `pass` in the names of passwords.
const PASS_WORDS: [&str; 9] = ["db", "user", "smtp", "ftp", "admin", "root", "mysql", "postgres", "redis"];

static STEM_AUTOMATON: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasickBuilder::new().ascii_case_insensitive(true).build(SECRET_NAME_STEMS).ok());

/// Returns whether a text may contain the name of a secret.
pub(crate) fn may_contain(text: &str) -> bool {
    STEM_AUTOMATON.as_ref().is_none_or(|it| it.is_match(text))
}

/// The class of a secret by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecretName {
    /// Every value is secret.
    Any,
    /// `token`, which is also the name of a piece of text, of its number and of its position.
    Token,
}

impl SecretName {
    /// Returns the class of a key, such as `user.password`, `X-Api-Key` or `clientSecret`.
    pub(crate) fn of(key: &str) -> Option<Self> {
        if key.len() > MAX_KEY_BYTES || !may_contain(key) {
            return None;
        }
        let words = words(key);
        let mut words = words.iter().rev().map(String::as_str);
        let (last, before) = (words.next()?, words.next());
        let is_after = |list: &[&str]| before.is_some_and(|it| list.contains(&it));
        match last {
            "token" if is_after(&PUBLIC_TOKEN_WORDS) => None,
            "token" => Some(Self::Token),
            "key" if is_after(&KEY_WORDS) => Some(Self::Any),
            "pass" if is_after(&PASS_WORDS) => Some(Self::Any),
            _ => LAST_WORDS.contains(&last).then_some(Self::Any),
        }
    }

    /// Returns whether a text or a number is masked. Placeholders of templates stay.
    pub(crate) fn masks(self, value: &str) -> bool {
        let value = value.trim_ascii();
        let is_word = ["", "true", "false", "null", "none", "undefined"]
            .iter()
            .any(|it| value.eq_ignore_ascii_case(it));
        let is_placeholder = value.starts_with("[REDACTED:") && value.ends_with(']')
            || value.starts_with("${") && value.ends_with('}')
            || value.starts_with("{{") && value.ends_with("}}");
        let looks_secret = || match self {
            Self::Any => true,
            Self::Token if reserved::template(value) => false,
            Self::Token => {
                let is_word = value.bytes().all(|it| it.is_ascii_alphabetic());
                !value.bytes().any(|it| it.is_ascii_whitespace())
                    && (value.len() >= 20
                        || value.len() >= 8 && !is_word && value.bytes().any(|it| it.is_ascii_digit()))
                    || value.len() >= 20 && value.starts_with("Bearer ")
            }
        };
        !is_word && !is_placeholder && looks_secret()
    }
}

/// Returns the words of a key in lower case, without digits at its end.
fn words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for char in key.trim_end_matches(|it: char| it.is_ascii_digit() || "_-.[] ".contains(it)).chars() {
        let is_new = !char.is_alphanumeric() || char.is_uppercase() && was_lower;
        if is_new && words.last().is_some_and(|it| !it.is_empty()) {
            words.push(String::new());
        }
        was_lower = char.is_lowercase();
        if char.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(char.to_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::SecretName;

    #[test]
    fn secret_names_are_recognized_and_usage_is_not() {
        for key in [
            "password",
            "userPassword",
            "PASSWORD",
            "db.password",
            "passwd",
            "client_secret_2",
            "X-Api-Key",
            "apiKey",
            "API_KEY",
            "Authorization",
            "http.request.header.authorization",
            "пароль",
            "smtp_pass",
        ] {
            assert_eq!(SecretName::of(key), Some(SecretName::Any), "{key}");
        }
        for key in ["token", "access_token", "authToken"] {
            assert_eq!(SecretName::of(key), Some(SecretName::Token), "{key}");
        }
        for key in [
            "max_tokens",
            "total_tokens",
            "token_count",
            "llm.token_count.prompt",
            "gen_ai.usage.input_tokens",
            "maxTokens",
            "time_to_first_token",
            "next_page_token",
            "password_reset_url",
            "key",
            "public_key",
            "monkey",
            "compass",
            "first_pass",
            "tokenizer",
        ] {
            assert_eq!(SecretName::of(key), None, "{key}");
        }
    }

    #[test]
    fn values_of_tokens_must_look_like_keys() {
        assert!(SecretName::Any.masks("a") && SecretName::Any.masks("1234"));
        assert!(!SecretName::Any.masks("") && !SecretName::Any.masks("True"));
        assert!(!SecretName::Any.masks("[REDACTED:secret]") && !SecretName::Any.masks("{{password}}"));
        assert!(SecretName::Token.masks("a1b2c3d4e5") && SecretName::Token.masks("12345678"));
        for text in [" the", "Hello", "50256", "Characteristic", "two words 1234567"] {
            assert!(!SecretName::Token.masks(text), "{text}");
        }
    }
}
