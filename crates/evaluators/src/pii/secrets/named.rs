//! Secrets that the name before them indicates: `api_key = "…"`, `the password is …`.

use super::{
    super::{Hit, Kind, reserved},
    entropy,
};

/// The kind of value that a name indicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Class {
    /// A long random value.
    Key,
    /// A value that a person may have chosen.
    Password,
    /// A token after `Bearer`.
    Bearer,
}

use Class::{Bearer, Key, Password};

/// Names of secrets in lower case, matched in any case.
pub(in super::super) const SECRET_NAMES: &[(&str, Class)] = &[
    ("api_key", Key),
    ("api-key", Key),
    ("apikey", Key),
    ("api key", Key),
    ("api token", Key),
    ("secret", Key),
    ("token", Key),
    ("access_key", Key),
    ("access-key", Key),
    ("accesskey", Key),
    ("access key", Key),
    ("private_key", Key),
    ("privatekey", Key),
    ("client_secret", Key),
    ("encryption_key", Key),
    ("signing_key", Key),
    ("credential", Key),
    ("account_key", Key),
    ("authorization: basic", Bearer),
    ("bearer ", Bearer),
    ("password", Password),
    ("passwd", Password),
    ("passphrase", Password),
    ("passcode", Password),
    ("pwd", Password),
    ("_pass", Password),
    ("-pass", Password),
    ("passwort", Password),
    ("kennwort", Password),
    ("contraseña", Password),
    ("mot de passe", Password),
    ("senha", Password),
    ("wachtwoord", Password),
    ("пароль", Password),
    ("密码", Password),
    ("パスワード", Password),
];

/// Names of tokens that are not secrets.
const PUBLIC_NAMES: [&str; 15] = [
    "tokeniz",
    "page",
    "next",
    "cursor",
    "continuation",
    "sync",
    "eos",
    "bos",
    "pad_",
    "stop",
    "count",
    "prompt",
    "completion",
    "csrf",
    "public",
];

/// Returns the value after this name.
pub(super) fn read(text: &str, start: usize, end: usize, class: Class) -> Option<Hit> {
    let bytes = text.as_bytes();
    let identifier = |it: &u8| it.is_ascii_alphanumeric() || *it == b'_' || *it == b'-';
    // The rest of the name, such as `_2` after `secret` in `client_secret_2`.
    let after = end + bytes[end..].iter().take(32).take_while(|it| identifier(it) && class != Bearer).count();
    let before = bytes[..start].iter().rev().take(32).take_while(|it| identifier(it)).count();
    let from = if class == Bearer {
        skip(bytes, after, b" :\"'`", 4)
    } else {
        assigned(text, after).or_else(|| follows(bytes, after, class))?
    };
    // After the assignment, which most words of prose do not have.
    let name = text.get(start - before..after)?.to_ascii_lowercase();
    if PUBLIC_NAMES.iter().any(|it| name.contains(it)) || name.contains("hash") && class == Key {
        return None;
    }
    let length = bytes[from..].iter().take(512).take_while(|it| !ends(**it)).count();
    let whole = text.get(from..from + length)?;
    let value = whole.trim_end_matches(['.', '!', '?', ':']);
    let is = match class {
        Key => key(value),
        Bearer => value.len() >= 20 && key(value),
        Password => password(value),
    };
    (is && !reserved::template(whole)).then_some(Hit {
        kind: Kind::Secret,
        what: if class == Password { "password" } else { "key or token" },
        start: from,
        end: from + value.len(),
        reserved: value.ends_with("EXAMPLE") || value.ends_with("EXAMPLEKEY"),
    })
}

/// Returns the start of the value that follows a name and an assignment sign or word.
fn assigned(text: &str, end: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let at = skip(bytes, end, b"\"'`]*) ", 5);
    let rest = bytes.get(at..)?;
    let sign = [&b":="[..], b"=>", b"==", b"=", b":", b"\xEF\xBC\x9A"]
        .iter()
        .find(|it| rest.starts_with(it))
        .map(|it| it.len());
    let words = ["is ", "was ", "ist ", "lautet ", "es ", "est ", "is: ", "are ", "to ", "был ", "是", "は"];
    let word = || words.iter().find(|it| rest.starts_with(it.as_bytes())).map(|it| it.len());
    let length = sign.or_else(word)?;
    Some(skip(bytes, at + length, b" \"'`*:", 6))
}

/// Returns the start of a password that follows its name after a blank, as in `user bob password hunter22`.
fn follows(bytes: &[u8], end: usize, class: Class) -> Option<usize> {
    let rest = bytes.get(end..)?.strip_prefix(b" ")?;
    let value = &rest[..rest.iter().take(64).take_while(|it| !ends(**it)).count()];
    let mixed = value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic);
    (class == Password && value.len() >= 8 && mixed).then_some(end + 1)
}

/// Skips at most `most` of these bytes; returns the next position.
fn skip(bytes: &[u8], from: usize, these: &[u8], most: usize) -> usize {
    from + bytes[from.min(bytes.len())..].iter().take(most).take_while(|it| these.contains(it)).count()
}

fn ends(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b"\"'`,;)<>}|".contains(&byte) || byte >= 0x80
}

fn key(value: &str) -> bool {
    let bytes = value.as_bytes();
    let set = |it: &u8| it.is_ascii_alphanumeric() || b"_-+/=.~!@#$%^&*".contains(it);
    bytes.len() >= 16
        && bytes.iter().all(set)
        && bytes.iter().any(u8::is_ascii_digit)
        && bytes.iter().any(u8::is_ascii_alphabetic)
        && entropy(bytes) >= 3.0
        && !value.contains("://")
}

/// Returns whether a value contains letters mixed with digits or signs, unlike words and sentences.
fn password(value: &str) -> bool {
    let bytes = value.as_bytes();
    let letters = bytes.iter().any(u8::is_ascii_alphabetic);
    let digits = bytes.iter().any(u8::is_ascii_digit);
    let cases = bytes.iter().any(u8::is_ascii_uppercase) && bytes.iter().any(u8::is_ascii_lowercase);
    let signs = bytes.iter().any(|it| b"!@#$%^&*?+=~".contains(it));
    let call = value.contains(['(', '[', '{', '\\']) || value.contains("://");
    let compound = value.contains('-') && !cases;
    (6..=128).contains(&bytes.len()) && letters && (digits || signs) && !call && !compound
}
