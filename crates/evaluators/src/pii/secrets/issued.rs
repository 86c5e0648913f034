//! Secrets with an issuer's prefix.

use super::{
    super::{Hit, Kind, numbers::Boundaries, reserved},
    entropy,
};

/// A kind of secret with its prefix.
pub(in super::super) struct IssuedKey {
    /// The prefix, case-sensitive.
    pub begins: &'static str,
    what: &'static str,
    /// The minimum number of characters after the prefix.
    pub(super) least: usize,
    /// Further characters of the secret.
    pub(super) also: &'static [u8],
}

const WORD_BYTES: &[u8] = b"_-";
const NONE: &[u8] = b"";

/// Creates a kind whose secrets have at least `least` letters, digits and characters of `also` after the
/// prefix.
const fn issued(begins: &'static str, what: &'static str, least: usize, also: &'static [u8]) -> IssuedKey {
    IssuedKey { begins, what, least, also }
}

pub(in super::super) const ISSUED_KEYS: &[IssuedKey] = &[
    issued("AKIA", "AWS access key", 16, NONE),
    issued("ASIA", "AWS access key", 16, NONE),
    issued("ABSK", "AWS Bedrock key", 100, b"+/="),
    issued("ghp_", "GitHub token", 36, NONE),
    issued("gho_", "GitHub token", 36, NONE),
    issued("ghu_", "GitHub token", 36, NONE),
    issued("ghs_", "GitHub token", 36, NONE),
    issued("ghr_", "GitHub token", 36, NONE),
    issued("github_pat_", "GitHub token", 50, b"_"),
    issued("glpat-", "GitLab token", 20, WORD_BYTES),
    issued("gldt-", "GitLab token", 20, WORD_BYTES),
    issued("glrt-", "GitLab token", 20, WORD_BYTES),
    issued("xoxb-", "Slack token", 20, b"-"),
    issued("xoxp-", "Slack token", 20, b"-"),
    issued("xoxa-", "Slack token", 20, b"-"),
    issued("xoxr-", "Slack token", 20, b"-"),
    issued("xoxs-", "Slack token", 20, b"-"),
    issued("xapp-", "Slack token", 20, b"-"),
    issued("hooks.slack.com/services/", "Slack webhook", 40, b"/"),
    issued("discord.com/api/webhooks/", "Discord webhook", 60, b"/_-"),
    issued("sk_live_", "Stripe key", 16, NONE),
    issued("sk_test_", "Stripe key", 16, NONE),
    issued("rk_live_", "Stripe key", 16, NONE),
    issued("rk_test_", "Stripe key", 16, NONE),
    issued("whsec_", "webhook secret", 24, b"+/="),
    issued("sk-ant-", "Anthropic key", 24, WORD_BYTES),
    issued("sk-proj-", "OpenAI key", 24, WORD_BYTES),
    issued("sk-svcacct-", "OpenAI key", 24, WORD_BYTES),
    issued("sk-or-v1-", "OpenRouter key", 32, NONE),
    issued("sk-", "OpenAI key", 32, NONE),
    issued("AIza", "Google key", 35, WORD_BYTES),
    issued("ya29.", "Google token", 20, WORD_BYTES),
    issued("GOCSPX-", "Google secret", 24, WORD_BYTES),
    issued("npm_", "npm token", 36, NONE),
    issued("pypi-AgEIcHlwaS", "PyPI token", 50, WORD_BYTES),
    issued("hf_", "Hugging Face token", 30, NONE),
    issued("gsk_", "Groq key", 40, NONE),
    issued("xai-", "xAI key", 60, NONE),
    issued("r8_", "Replicate token", 37, NONE),
    issued("SG.", "SendGrid key", 40, b"_-."),
    issued("dop_v1_", "DigitalOcean token", 60, NONE),
    issued("shpat_", "Shopify token", 32, NONE),
    issued("shpss_", "Shopify secret", 32, NONE),
    issued("sq0atp-", "Square token", 22, WORD_BYTES),
    issued("sq0csp-", "Square secret", 40, WORD_BYTES),
    issued("lin_api_", "Linear key", 32, NONE),
    issued("ntn_", "Notion token", 40, NONE),
    issued("dckr_pat_", "Docker token", 24, WORD_BYTES),
    issued("hvs.", "Vault token", 24, WORD_BYTES),
    issued("vercel_", "Vercel token", 24, NONE),
    issued("sbp_", "Supabase token", 40, NONE),
    issued("glsa_", "Grafana token", 32, b"_"),
    issued("lp_", "Loupe key", 49, NONE),
    issued("eyJ", "JWT", 30, b"_-."),
    issued("-----BEGIN ", "private key", 0, NONE),
    issued("://", "URL with a password", 0, NONE),
    issued("AccountKey=", "Azure storage key", 80, b"+/="),
    issued("AGE-SECRET-KEY-1", "age key", 58, NONE),
];

impl IssuedKey {
    /// Returns the secret that begins here, and the end of the text that was read.
    pub(super) fn read(&self, text: &str, start: usize, boundaries: Boundaries) -> (Option<Hit>, usize) {
        let bytes = text.as_bytes();
        let found = |start: usize, end: usize, reserved: bool| Hit {
            kind: Kind::Secret,
            what: self.what,
            start,
            end,
            reserved,
        };
        if !bytes[start..].starts_with(self.begins.as_bytes()) {
            return (None, start);
        }
        match self.begins {
            "://" => {
                let (secret, until) = password(text, start);
                return (secret.map(|(from, to)| found(from, to, false)), until);
            }
            "-----BEGIN " => {
                let (end, until) = block(text, start);
                return (end.map(|end| found(start, end, false)), until);
            }
            _ => {}
        }
        let inside = |it: u8| {
            it.is_ascii_alphanumeric() || boundaries == Boundaries::Strict && (it == b'_' || it == b'-')
        };
        let host = self.begins.contains('/') || self.begins.ends_with('=');
        if !host && start.checked_sub(1).is_some_and(|it| inside(bytes[it])) {
            return (None, start);
        }
        let from = start + self.begins.len();
        let length = bytes[from..]
            .iter()
            .take(4_096)
            .take_while(|it| it.is_ascii_alphanumeric() || self.also.contains(it))
            .count();
        let until = from + length;
        let value = text.get(from..until).unwrap_or_default().trim_end_matches(['.', '-']);
        let parts = self.begins == "eyJ" && !jwt(value);
        if value.len() < self.least || parts || entropy(value.as_bytes()) < 2.5 || reserved::template(value) {
            return (None, until);
        }
        // AWS keys have exactly sixteen further characters, in capitals.
        let aws = self.least == 16 && self.begins.ends_with("IA");
        if aws && (value.len() != 16 || value.bytes().any(|it| it.is_ascii_lowercase())) {
            return (None, until);
        }
        (Some(found(start, from + value.len(), value.ends_with("EXAMPLE"))), until)
    }
}

/// Returns whether a value is a JSON Web Token: header, claims and signature. The claims begin like the
/// header, with `{"`.
fn jwt(value: &str) -> bool {
    let mut parts = value.split('.');
    let header = parts.next().unwrap_or_default();
    let claims = parts.next().unwrap_or_default();
    let signature = parts.next().unwrap_or_default();
    header.len() >= 8 && claims.starts_with("eyJ") && claims.len() >= 8 && signature.len() >= 16
}

/// Returns the password in `scheme://name:password@host`, and the end of the text that was read.
fn password(text: &str, start: usize) -> (Option<(usize, usize)>, usize) {
    let from = start + 3;
    let bytes = text.as_bytes();
    let length = bytes[from..]
        .iter()
        .take(512)
        .take_while(|it| !it.is_ascii_whitespace() && !b"/?#\"'<>`".contains(it))
        .count();
    let until = from + length;
    let secret = text.get(from..until).and_then(in_authority);
    (secret.map(|(begin, end)| (from + begin, from + end)), until)
}

/// Returns the password in `name:password@host`.
fn in_authority(authority: &str) -> Option<(usize, usize)> {
    let (user, _) = authority.rsplit_once('@')?;
    let (name, secret) = user.split_once(':')?;
    let ours =
        ["password", "pass", "pw", "pwd", "secret", "token"].contains(&secret.to_ascii_lowercase().as_str());
    // The number in `localhost:8080@` is a port.
    let port = secret.len() < 6 && secret.bytes().all(|it| it.is_ascii_digit());
    if secret.len() < 3
        || port
        || ours
        || name == secret
        || reserved::template(secret)
        || secret.starts_with(['$', '{', '[', '%'])
    {
        return None;
    }
    let begin = name.len() + 1;
    Some((begin, begin + secret.len()))
}

/// Returns the end of a private key block, even if it is incomplete, and the end of the text that was read.
/// Reading stops at the beginning of the next block.
fn block(text: &str, start: usize) -> (Option<usize>, usize) {
    const KEY_BLOCK_BEGIN: &str = "-----BEGIN ";
    const MAX_KEY_BLOCK_BYTES: usize = 16_384;
    let block = &text[start..text.floor_char_boundary(start + MAX_KEY_BLOCK_BYTES)];
    let next = block[KEY_BLOCK_BEGIN.len()..]
        .find(KEY_BLOCK_BEGIN)
        .map_or(block.len(), |it| KEY_BLOCK_BEGIN.len() + it);
    let block = &block[..next];
    (end_of_key(block).map(|it| start + it), start + block.len())
}

/// Returns the end of the private key in a block.
fn end_of_key(block: &str) -> Option<usize> {
    let head = block[..block.floor_char_boundary(64)].find("KEY")?;
    if !block[..head].contains("PRIVATE ") {
        return None;
    }
    let from = head + "KEY".len();
    let end = block[from..].find("-----END").map(|it| from + it);
    let body = &block[from..end.unwrap_or(block.len())];
    // In documentation, a header may have no key after it.
    let letters = body.bytes().filter(u8::is_ascii_alphanumeric).count();
    let shown = if end.is_some() { body } else { &body[..body.floor_char_boundary(200)] };
    if letters < 40 || reserved::template(shown) {
        return None;
    }
    Some(
        end.map_or(block.len(), |it| {
            block[it + 8..].find("-----").map_or(block.len(), |more| it + 13 + more)
        }),
    )
}
