//! E-mail addresses, also in the form `name [at] firm [dot] com`.

use super::{Hit, Kind, reserved};

/// Maximum number of characters of a local part that are read (RFC 5321 allows 64 bytes).
const MAX_LOCAL_PART_CHARS: usize = 64;
const MAX_DOMAIN_CHARS: usize = 253;

/// Local parts of role addresses, which do not belong to a person.
const ROLE_LOCAL_PARTS: [&str; 40] = [
    "abuse",
    "accounts",
    "admin",
    "billing",
    "bot",
    "careers",
    "contact",
    "customercare",
    "customerservice",
    "do-not-reply",
    "donotreply",
    "enquiries",
    "feedback",
    "hello",
    "help",
    "helpdesk",
    "hostmaster",
    "hr",
    "info",
    "inquiries",
    "it",
    "jobs",
    "legal",
    "mail",
    "marketing",
    "newsletter",
    "no-reply",
    "noreply",
    "office",
    "orders",
    "postmaster",
    "press",
    "privacy",
    "root",
    "sales",
    "security",
    "service",
    "support",
    "team",
    "webmaster",
];

/// Placeholder names on domains without an owner.
const PLACEHOLDER_LOCAL_PARTS: [&str; 22] = [
    "a",
    "address",
    "email",
    "example",
    "first.last",
    "firstname.lastname",
    "foo",
    "bar",
    "me",
    "name",
    "recipient",
    "sender",
    "someone",
    "test",
    "user",
    "user1",
    "username",
    "you",
    "your.email",
    "your.name",
    "youremail",
    "yourname",
];

pub(super) fn find(text: &str, hits: &mut Vec<Hit>) {
    let mut free = 0;
    for (at, _) in text.match_indices('@') {
        let start = local(text, free, at);
        let end = domain(text, at + 1);
        if let Some(end) = end
            && start < at
            && let Some(hit) = classify_address(text, start, at, at + 1, end)
        {
            free = hit.end;
            hits.push(hit);
        }
    }
    spelled(text, hits);
}

/// Returns the start of the local part that ends at `end`.
fn local(text: &str, free: usize, end: usize) -> usize {
    let from = floor(text, end.saturating_sub(MAX_LOCAL_PART_CHARS * 2)).max(free);
    let mut start = end;
    for (at, char) in text[from..end].char_indices().rev() {
        if !(char.is_alphanumeric() || "._%+-'".contains(char)) {
            break;
        }
        start = from + at;
    }
    // Leading characters may be a quotation mark or the end of a sentence.
    start + text[start..end].len() - text[start..end].trim_start_matches(['.', '\'', '-', '%', '+']).len()
}

/// Returns the end of the domain that begins at `start`, if there is one.
fn domain(text: &str, start: usize) -> Option<usize> {
    let until = floor(text, (start + MAX_DOMAIN_CHARS).min(text.len()));
    let rest = &text[start..until];
    let end = rest.find(|it: char| !(it.is_alphanumeric() || it == '.' || it == '-')).unwrap_or(rest.len());
    let name = rest[..end].trim_end_matches(['.', '-']);
    let (host, top) = name.rsplit_once('.')?;
    let letters = top.chars().all(char::is_alphabetic) && top.chars().count() >= 2;
    let punycode = top.starts_with("xn--");
    let labels = host.split('.').all(|it| !it.is_empty() && !it.starts_with('-'));
    // Images for high-density displays have names such as `logo@2x.png`.
    const FILE_EXTENSIONS: [&str; 8] = ["png", "jpg", "jpeg", "gif", "webp", "svg", "css", "js"];
    ((letters || punycode) && labels && !FILE_EXTENSIONS.contains(&top)).then_some(start + name.len())
}

fn classify_address(text: &str, start: usize, at: usize, host: usize, end: usize) -> Option<Hit> {
    let name = text[start..at].to_ascii_lowercase();
    let domain = &text[host..end];
    let before = text[..start].chars().next_back();
    // `@name@server` is a social network account; `git@host:path` is a repository.
    if before == Some('@') || matches!(text.as_bytes().get(end), Some(b':')) && name == "git" {
        return None;
    }
    if matches!(before, Some('/' | ':')) && name.is_empty() {
        return None;
    }
    let reserved = reserved::domain(domain);
    let has_no_owner = reserved
        || ["domain.com", "yourdomain.com", "email.com", "company.com", "mail.com", "yourcompany.com"]
            .contains(&domain.to_ascii_lowercase().as_str());
    let plain = name.split('+').next().unwrap_or_default();
    if ROLE_LOCAL_PARTS.contains(&plain)
        || has_no_owner && PLACEHOLDER_LOCAL_PARTS.contains(&plain)
        || name.chars().all(|it| it == 'x')
    {
        return None;
    }
    Some(Hit { kind: Kind::Email, what: "", start, end, reserved })
}

/// Finds `name [at] firm [dot] com`, in square or round brackets.
fn spelled(text: &str, hits: &mut Vec<Hit>) {
    for sign in ["[at]", "(at)", "[AT]", "(AT)", "{at}"] {
        for (at, _) in text.match_indices(sign) {
            let before = text[..at].trim_end_matches(' ');
            if at - before.len() > 1 {
                continue;
            }
            let start = local(text, 0, before.len());
            let after = at + sign.len();
            let host = after + text[after..].len() - text[after..].trim_start_matches(' ').len();
            let until = floor(text, (host + MAX_DOMAIN_CHARS).min(text.len()));
            if let Some(length) = spelled_domain(&text[host..until])
                && start < before.len()
            {
                hits.push(Hit { kind: Kind::Email, what: "", start, end: host + length, reserved: false });
            }
        }
    }
}

/// Returns the length of `firm [dot] com`, `firm.com` or `firm dot com`.
fn spelled_domain(text: &str) -> Option<usize> {
    let word =
        |text: &str| text.find(|it: char| !(it.is_ascii_alphanumeric() || it == '-')).unwrap_or(text.len());
    let mut end = word(text);
    let mut labels = usize::from(end > 0);
    while labels > 0 {
        let rest = &text[end..];
        let Some(dot) =
            ["[dot]", "(dot)", " [dot] ", " (dot) ", " dot ", "."].iter().find(|it| rest.starts_with(**it))
        else {
            break;
        };
        let next = word(&rest[dot.len()..]);
        if next < 2 {
            break;
        }
        end += dot.len() + next;
        labels += 1;
    }
    (labels >= 2).then_some(end)
}

/// Returns the nearest character boundary at or before this byte.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
