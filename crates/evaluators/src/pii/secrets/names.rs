//! Keys of JSON and of attributes whose values redaction masks as a whole, such as `password`. Unlike [`super::named`], the
//! value does not have to look like a secret.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind, Input};

use super::super::reserved;

/// Maximum length of a key in bytes.
const MAX_KEY_BYTES: usize = 128;
/// Parts of all names. A text without one of them has no such key.
const SECRET_NAME_STEMS: [&str; 15] = [
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
    "Парол",
    "ПАРОЛ",
    "密码",
];
/// Maximum length of a stem in bytes, rounded up.
const MAX_STEM_BYTES: usize = 16;
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

static STEM_AUTOMATON: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let kind = Some(AhoCorasickKind::DFA);
    AhoCorasickBuilder::new().ascii_case_insensitive(true).kind(kind).build(SECRET_NAME_STEMS).ok()
});

/// Returns whether a JSON text may have a key that is the name of a secret, also in JSON texts that are strings in JSON texts.
pub(crate) fn may_have_secret_key(text: &str) -> bool {
    let Some(stems) = &*STEM_AUTOMATON else { return true };
    let bytes = text.as_bytes();
    // The end of the last key that was examined.
    let mut examined = 0;
    memchr::memchr_iter(b':', bytes).any(|colon| {
        // Between the quotation mark of a key and the colon, there may be blanks, and in strings escaped ones, such as `\n`.
        let is_blank = |it: &u8| b" \n\r\t\\nrt".contains(it);
        let Some(quote) = bytes[examined..colon].iter().rposition(|it| !is_blank(it)) else { return false };
        let quote = examined + quote;
        if bytes[quote] != b'"' {
            return false;
        }
        let mut start = quote.saturating_sub(MAX_KEY_BYTES + MAX_STEM_BYTES).max(examined);
        match memchr::memrchr2(b'"', b'\\', &bytes[start..quote]).map(|it| start + it) {
            Some(at) if bytes[at] == b'"' && bytes[..at].last() != Some(&b'\\') => start = at,
            // With escapes, the key is longer than its text.
            Some(_) => start = examined,
            None => {}
        }
        examined = quote;
        stems.find(Input::new(text).range(start..quote)).is_some()
    })
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
        if key.len() > MAX_KEY_BYTES {
            return None;
        }
        let mut words = LastWords::of(key);
        let last = words.next().filter(|it| begins_secret_word(it))?;
        let mut is_after = |list: &[&str]| words.next().is_some_and(|it| is_one_of(it, list));
        if last.eq_ignore_ascii_case("token") {
            return (!is_after(&PUBLIC_TOKEN_WORDS)).then_some(Self::Token);
        }
        let is_secret = is_one_of(last, &LAST_WORDS)
            || last.eq_ignore_ascii_case("key") && is_after(&KEY_WORDS)
            || last.eq_ignore_ascii_case("pass") && is_after(&PASS_WORDS);
        is_secret.then_some(Self::Any)
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

/// Returns whether a last word of the names of secrets may begin like this word. Most words of keys do not.
fn begins_secret_word(word: &str) -> bool {
    word.bytes().next().is_some_and(|it| !it.is_ascii() || b"ackprstw".contains(&it.to_ascii_lowercase()))
}

/// Returns whether a word, in any case, is one of these words in lower case.
fn is_one_of(word: &str, list: &[&str]) -> bool {
    if !word.is_ascii() {
        return list.contains(&word.to_lowercase().as_str());
    }
    list.iter().any(|it| it.len() == word.len() && it.eq_ignore_ascii_case(word))
}

/// The words of a key from its last one on, without digits at its end. In `camelCase`, a capital letter begins a word.
struct LastWords<'a>(&'a str);

impl<'a> LastWords<'a> {
    fn of(key: &'a str) -> Self {
        Self(key.trim_end_matches(|it: char| it.is_ascii_digit() || "_-.[] ".contains(it)))
    }
}

impl<'a> Iterator for LastWords<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.0.trim_end_matches(|it: char| !it.is_alphanumeric());
        let mut start = rest.len();
        let mut begins_here = false;
        for (at, char) in rest.char_indices().rev() {
            if !char.is_alphanumeric() || begins_here && char.is_lowercase() {
                break;
            }
            start = at;
            begins_here = char.is_uppercase();
        }
        self.0 = &rest[..start];
        (start < rest.len()).then(|| &rest[start..])
    }
}

#[cfg(test)]
mod tests {
    use super::{
        LAST_WORDS, MAX_STEM_BYTES, SECRET_NAME_STEMS, SecretName, begins_secret_word, may_have_secret_key,
    };

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
            "userПароль",
            "CONTRASEÑA",
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
    fn all_last_words_begin_like_secret_words() {
        assert!(LAST_WORDS.iter().chain(&["token", "key", "pass"]).all(|it| begins_secret_word(it)));
        assert!(!begins_secret_word("model") && !begins_secret_word(""));
    }

    #[test]
    fn text_with_a_stem_in_a_key_may_have_a_secret_key() {
        for text in [
            r#"{"password":1}"#,
            r#"{"api_key" : "x"}"#,
            r#"{"a":"{\"authToken\": \"x\"}"}"#,
            r#"{"a":"{\"clientSecret\"\n:1}"}"#,
            r#"{"userПароль":1}"#,
            r#"{"password\"":1}"#,
            r#"{"keys_of":1}"#,
            r#"{"a":{"b":1,"c":"d:e","token"  :1}}"#,
            r#"{"a":"[{\\\"secret\\\" : 1}]"}"#,
            &format!(r#"{{"password{}":1}}"#, "\\\"".repeat(100)),
        ] {
            assert!(may_have_secret_key(text), "{text}");
        }
        assert!(SECRET_NAME_STEMS.iter().all(|it| it.len() <= MAX_STEM_BYTES));
        for text in [
            r#"{"a":"the password"}"#,
            r#"{"a":"the password","b":1}"#,
            r#"["token", "key key"]"#,
            "secret",
            "::",
            ":",
        ] {
            assert!(!may_have_secret_key(text), "{text}");
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
