//! Decides whether a chunk of a message, a text without space or brackets, is variable.

/// The class of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkClass {
    /// A word, or a name that may be the same in all messages.
    Constant,
    /// A number, an identifier, a path or an address.
    Variable,
    /// A key of this length with its separator; the rest is classified on its own.
    Key(usize),
}

/// Top-level domains by which a host is recognized.
const TOP_LEVEL_DOMAINS: &[&str] = &[
    "com",
    "org",
    "net",
    "io",
    "ai",
    "dev",
    "app",
    "edu",
    "gov",
    "co",
    "local",
    "internal",
    "svc",
    "cloud",
    "localdomain",
    "arpa",
    "hk",
    "de",
    "uk",
    "cn",
    "jp",
    "fr",
    "eu",
    "ru",
    "in",
    "br",
    "nl",
    "tw",
    "kr",
    "au",
    "ca",
    "it",
    "es",
    "se",
    "ch",
    "pl",
];

/// Names with digits that are words.
const WORDS_WITH_DIGITS: &[&str] = &[
    "utf-8", "utf8", "utf-16", "base64", "http/1.1", "http/2", "http/1.0", "http2", "s3", "ec2", "oauth2",
    "ipv4", "ipv6", "sha256", "sha1", "md5", "x509", "int32", "int64", "float32", "float64", "uint8", "k8s",
    "h2", "tls1.2", "tls1.3", "ssl3", "ssh2", "psycopg2", "urllib3", "boto3", "win32", "x86", "log4j", "mp3",
    "mp4",
];

/// First words of the reason phrases of HTTP statuses of errors.
pub const REASON_PHRASES: &[&str] = &[
    "Bad Request",
    "Bad Gateway",
    "Unauthorized",
    "Payment Required",
    "Forbidden",
    "Not Found",
    "Method Not",
    "Request Time",
    "Conflict",
    "Too Many",
    "Unprocessable",
    "Internal Server",
    "Not Implemented",
    "Service Unavailable",
    "Service Temporarily",
    "Gateway Time",
];

/// Returns whether a number is the HTTP status of an error in a phrase that says so.
pub fn is_status(chunk: &str, before: &str, after: &str) -> bool {
    if chunk.len() != 3
        || !chunk.bytes().all(|it| it.is_ascii_digit())
        || !matches!(chunk.as_bytes()[0], b'4' | b'5')
    {
        return false;
    }
    let start = before.ceil_char_boundary(before.len().saturating_sub(16));
    let before = before[start..].to_ascii_lowercase();
    let after = after.trim_start();
    before.ends_with("status code ")
        || before.ends_with("status code: ")
        || before.ends_with("error code: ")
        || before.ends_with("http ")
        || REASON_PHRASES.iter().any(|it| after.starts_with(it))
}

/// Units that belong to the number before them. Units that say what a number counts, such as tokens, stay.
const SCALED_UNITS: &[&str] = &[
    "B", "kB", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "ns", "us", "µs", "ms", "s", "sec",
    "secs", "h",
];

/// Returns the length of the unit after a number, with the space between them; 0 if there is none.
pub fn unit_length(after: &str) -> usize {
    let Some(rest) = after.strip_prefix(' ') else { return 0 };
    let length = rest.find(|it: char| !it.is_alphanumeric()).unwrap_or(rest.len());
    if SCALED_UNITS.contains(&&rest[..length]) { 1 + length } else { 0 }
}

/// Returns whether a word is the name of a day or a month in a date.
pub fn is_date_word(chunk: &str, before: &str, after: &str) -> bool {
    const DATE_NAMES: [&str; 19] = [
        "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul",
        "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let name = chunk.trim_end_matches(',');
    if !DATE_NAMES.contains(&name) {
        return false;
    }
    let after = after.trim_start_matches([',', ' ']);
    before.trim_end().ends_with(super::TEMPLATE_WILDCARD)
        || after.starts_with(|it: char| it.is_ascii_digit())
        || after.get(..3).is_some_and(|it| DATE_NAMES.contains(&it))
}

/// Returns the length of a URL or an ARN at the beginning of a text, which may contain separators.
pub fn address_length(text: &str) -> Option<usize> {
    let scheme = text.bytes().position(|it| !(it.is_ascii_alphanumeric() || b"+.-".contains(&it)))?;
    let is_url = scheme > 1 && text[scheme..].starts_with("://");
    if !is_url && !text.starts_with("arn:") {
        return None;
    }
    let end = text
        .find(|it: char| {
            it.is_whitespace() || matches!(it, '"' | '\'' | '`' | '<' | '>' | ')' | ']' | '}' | '|')
        })
        .unwrap_or(text.len());
    Some(text[..end].trim_end_matches(['.', ',', ':', ';', '!', '?']).len())
}

/// Classifies a chunk without punctuation at its end.
pub fn classify(chunk: &str) -> ChunkClass {
    if chunk.is_empty() {
        return ChunkClass::Constant;
    }
    let bytes = chunk.as_bytes();
    let has_digit = bytes.iter().any(u8::is_ascii_digit);
    if is_email(chunk) || is_path(chunk, has_digit) || is_redacted(bytes) || is_host(chunk) {
        return ChunkClass::Variable;
    }
    // `key:value` and `key=value`; the latter was split before.
    if let Some(colon) = chunk.find(':') {
        let is_key = colon > 0
            && colon + 1 < chunk.len()
            && !bytes[..colon].iter().any(u8::is_ascii_digit)
            && bytes[0].is_ascii_alphabetic();
        if is_key {
            return ChunkClass::Key(colon + 1);
        }
    }
    let is_variable = if has_digit { is_variable_with_digits(chunk) } else { is_random(bytes) };
    if is_variable { ChunkClass::Variable } else { ChunkClass::Constant }
}

fn is_email(chunk: &str) -> bool {
    chunk.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'))
}

fn is_path(chunk: &str, has_digit: bool) -> bool {
    let slashes = chunk.bytes().filter(|it| *it == b'/').count();
    let starts =
        ["/", "~/", "./", "../", "#/"].iter().any(|it| chunk.len() > it.len() && chunk.starts_with(it));
    let is_word = || WORDS_WITH_DIGITS.contains(&chunk.to_ascii_lowercase().as_str());
    starts
        || slashes >= 2
        || (slashes == 1 && (has_digit || chunk.contains('.')) && !is_word())
        || (chunk.contains('\\') && chunk.len() > 3)
}

/// Returns whether a text is a key that a provider shows in part, `sk-ab****wxyz`.
fn is_redacted(bytes: &[u8]) -> bool {
    bytes.len() >= 6
        && bytes.windows(2).any(|it| it == b"**" || it == b"..")
        && bytes.iter().any(u8::is_ascii_alphanumeric)
}

/// Returns whether a chunk is a host name, with or without a port.
fn is_host(chunk: &str) -> bool {
    let (name, port) = chunk.split_once(':').unwrap_or((chunk, "80"));
    let is_port = !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit());
    if chunk.contains(':')
        && is_port
        && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-' || it == b'.')
    {
        return true;
    }
    let Some((rest, domain)) = name.rsplit_once('.') else { return false };
    let is_name = name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-' || it == b'.' || it == b'_');
    is_port && is_name && TOP_LEVEL_DOMAINS.contains(&domain) && !rest.is_empty() && !rest.ends_with('.')
}

fn is_variable_with_digits(chunk: &str) -> bool {
    if WORDS_WITH_DIGITS.contains(&chunk.to_ascii_lowercase().as_str()) {
        return false;
    }
    let body =
        chunk.trim_start_matches(['+', '-', '$', '#', '~', '*', '%', '&', '.', ':', '@', '_', '€', '£']);
    if body.starts_with(|it: char| it.is_ascii_digit()) {
        return true;
    }
    let mut digits = 0;
    for it in chunk.bytes() {
        digits = if it.is_ascii_digit() { digits + 1 } else { 0 };
        if digits >= 5 {
            return true;
        }
    }
    chunk.split(['_', '-', ':', '.', '/']).any(|part| {
        let bytes = part.as_bytes();
        let count = bytes.iter().filter(|it| it.is_ascii_digit()).count();
        let is_hex = bytes.len() >= 6 && count >= 2 && bytes.iter().all(u8::is_ascii_hexdigit);
        let is_mixed = bytes.len() >= 10 && count >= 2 && count < bytes.len() && is_interleaved(bytes);
        is_hex || is_mixed
    })
}

/// Returns whether letters and digits alternate as in a random identifier.
fn is_interleaved(bytes: &[u8]) -> bool {
    let changes = bytes.windows(2).filter(|it| it[0].is_ascii_digit() != it[1].is_ascii_digit()).count();
    changes >= 3 || is_random(bytes)
}

/// Returns whether letters look like a random identifier: long, and changing case often.
fn is_random(bytes: &[u8]) -> bool {
    if bytes.len() < 16 || !bytes.is_ascii() || bytes.contains(&b'.') {
        return false;
    }
    let raises =
        bytes.windows(2).filter(|it| it[0].is_ascii_uppercase() && it[1].is_ascii_lowercase()).count();
    let falls =
        bytes.windows(2).filter(|it| it[0].is_ascii_lowercase() && it[1].is_ascii_uppercase()).count();
    let uppers = bytes.iter().filter(|it| it.is_ascii_uppercase()).count();
    // `NewConnectionError` changes as often as it has words; a random text has upper-case runs too.
    falls >= 3 && uppers * 3 >= bytes.len() && raises + falls >= 6
}
