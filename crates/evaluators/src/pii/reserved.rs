//! Values that standards or issuers reserve for examples.

/// Whether values reserved for examples count as findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReservedValues {
    /// They count. Staging data and first trials consist of them, and real values look the same.
    Counts,
    /// They do not count.
    Ignored,
}

/// Returns whether RFC 2606 or RFC 6761 reserves the domain.
pub(super) fn domain(domain: &str) -> bool {
    let domain = domain.to_ascii_lowercase();
    let mut labels = domain.rsplit('.');
    let last = labels.next().unwrap_or_default();
    let second = labels.next().unwrap_or_default();
    matches!(last, "example" | "test" | "invalid" | "localhost")
        || second == "example" && matches!(last, "com" | "net" | "org")
}

/// Returns whether a North American telephone number is reserved for fiction, 555-0100 to 555-0199, by its
/// last ten digits.
pub(super) fn phone(digits: &[u8]) -> bool {
    digits.len() >= 7 && digits[digits.len() - 7..].starts_with(&[5, 5, 5, 0, 1])
}

/// Returns whether card networks or payment services publish the card number for tests.
pub(super) fn card(digits: &[u8]) -> bool {
    const TEST_CARDS: [&str; 16] = [
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
    TEST_CARDS.iter().any(|it| it.bytes().map(|it| it - b'0').eq(digits.iter().copied()))
}

/// Returns whether a US social security number was printed in advertisements or appears in many textbooks.
pub(super) fn social_security(digits: &[u8]) -> bool {
    digits == [1, 2, 3, 4, 5, 6, 7, 8, 9]
        || digits == [0, 7, 8, 0, 5, 1, 1, 2, 0]
        || digits == [2, 1, 9, 0, 9, 9, 9, 9, 9]
}

/// Returns whether a value is a placeholder, which never counts as a finding.
pub(super) fn template(value: &str) -> bool {
    const PLACEHOLDER_SIGNS: [&str; 22] = [
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
    first.is_none()
        || letters.all(|it| Some(it) == first)
        || PLACEHOLDER_SIGNS.iter().any(|it| value.contains(it))
}
