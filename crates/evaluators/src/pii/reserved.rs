//! Values that standards, or their issuers, set aside for examples.

/// Whether values set aside for examples count as found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reserved {
    /// They do: staging data and first trials are made of them, and a real one looks the same.
    Counts,
    /// They do not.
    Ignored,
}

/// Returns a domain of RFC 2606 or RFC 6761.
pub(super) fn domain(domain: &str) -> bool {
    let domain = domain.to_ascii_lowercase();
    let mut labels = domain.rsplit('.');
    let last = labels.next().unwrap_or_default();
    let second = labels.next().unwrap_or_default();
    matches!(last, "example" | "test" | "invalid" | "localhost")
        || second == "example" && matches!(last, "com" | "net" | "org")
}

/// Returns a telephone number of North America set aside for fiction, 555-0100 to 555-0199, by its last ten
/// digits.
pub(super) fn phone(digits: &[u8]) -> bool {
    digits.len() >= 7 && digits[digits.len() - 7..].starts_with(&[5, 5, 5, 0, 1])
}

/// Returns a number that card networks and payment services publish for tests.
pub(super) fn card(digits: &[u8]) -> bool {
    const TEST: [&str; 16] = [
        "4111111111111111",
        "4242424242424242",
        "4000056655665556",
        "4012888888881881",
        "4000000000000002",
        "4222222222222",
        "5555555555554444",
        "5105105105105100",
        "5200828282828210",
        "2223003122003222",
        "378282246310005",
        "371449635398431",
        "378734493671000",
        "6011111111111117",
        "6011000990139424",
        "3530111333300000",
    ];
    TEST.iter().any(|it| it.bytes().map(|it| it - b'0').eq(digits.iter().copied()))
}

/// Returns a number of the US social security printed in advertisements or in every textbook.
pub(super) fn social_security(digits: &[u8]) -> bool {
    digits == [1, 2, 3, 4, 5, 6, 7, 8, 9]
        || digits == [0, 7, 8, 0, 5, 1, 1, 2, 0]
        || digits == [2, 1, 9, 0, 9, 9, 9, 9, 9]
}

/// What stands where a value is to be filled in. It is never found.
pub(super) fn template(value: &str) -> bool {
    const SIGNS: [&str; 22] = [
        "xxx",
        "***",
        "...",
        "your",
        "my-",
        "my_",
        "insert",
        "replace",
        "placeholder",
        "changeme",
        "change_me",
        "redacted",
        "dummy",
        "sample",
        "<",
        "${",
        "{{",
        "process.env",
        "os.environ",
        "getenv",
        "secrets.",
        "todo",
    ];
    let value = value.to_ascii_lowercase();
    let mut letters = value.bytes().filter(u8::is_ascii_alphanumeric);
    let first = letters.next();
    first.is_none() || letters.all(|it| Some(it) == first) || SIGNS.iter().any(|it| value.contains(it))
}
