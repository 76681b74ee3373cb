//! Finds secrets within a line, in one pass: each place where a word begins is tried against what a secret begins with.

/// A secret in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// What it is, in words for the user.
    pub kind: &'static str,
    /// Its first byte.
    pub start: usize,
    /// The byte after its last.
    pub end: usize,
}

/// Keys that tell themselves by how they begin: the kind, the beginning, and the least of letters behind it.
const PREFIXES: [(&str, &str, usize); 26] = [
    ("Anthropic key", "sk-ant-", 20),
    ("OpenAI key", "sk-proj-", 20),
    ("API key", "sk-", 20),
    ("Stripe key", "sk_live_", 16),
    ("Stripe key", "rk_live_", 16),
    ("GitHub token", "ghp_", 36),
    ("GitHub token", "gho_", 36),
    ("GitHub token", "ghu_", 36),
    ("GitHub token", "ghs_", 36),
    ("GitHub token", "ghr_", 36),
    ("GitHub token", "github_pat_", 22),
    ("GitLab token", "glpat-", 20),
    ("AWS key", "AKIA", 16),
    ("AWS key", "ASIA", 16),
    ("Google key", "AIza", 35),
    ("Google token", "ya29.", 20),
    ("Slack token", "xoxb-", 10),
    ("Slack token", "xoxp-", 10),
    ("Slack token", "xoxa-", 10),
    ("Slack token", "xoxs-", 10),
    ("Slack token", "xapp-", 10),
    ("npm token", "npm_", 36),
    ("PyPI token", "pypi-", 50),
    ("Hugging Face token", "hf_", 30),
    ("DigitalOcean token", "dop_v1_", 64),
    ("SendGrid key", "SG.", 30),
];

/// Names whose value is a secret. The longest that fits is taken, so a name that begins another comes after it.
const NAMES: [&str; 14] = [
    "client_secret",
    "access_token",
    "auth_token",
    "secret_key",
    "access_key",
    "private_key",
    "api_key",
    "api-key",
    "apikey",
    "passphrase",
    "password",
    "passwd",
    "secret",
    "token",
];

/// Longer words are nobody's name for a secret.
const LONGEST_NAME: usize = 64;

/// Words that stand in for a secret in examples.
const PLACEHOLDERS: [&str; 8] = ["example", "your", "placeholder", "changeme", "xxxx", "****", "...", "redacted"];

/// All secrets of a line, in order of their beginning.
pub fn secrets(line: &str) -> Vec<Span> {
    let bytes = line.as_bytes();
    let mut spans: Vec<Span> = one_line_key(line).into_iter().collect();
    let mut at = 0;
    // Where a search that goes far has already failed; from any place before it would fail again.
    let (mut no_token_before, mut no_value_before) = (0, 0);
    while at < bytes.len() {
        if at > 0 && is_word(bytes[at - 1]) && !bytes[at..].starts_with(b"://") {
            at += 1;
            continue;
        }
        let found = prefixed(bytes, at)
            .or_else(|| if at < no_token_before { None } else { web_token(bytes, at, &mut no_token_before) })
            .or_else(|| url_password(bytes, at))
            .or_else(|| bearer(bytes, at))
            .or_else(|| if at < no_value_before { None } else { assigned(bytes, at, &mut no_value_before) });
        match found {
            Some(span) => {
                at = span.end.max(at + 1);
                spans.push(span);
            }
            None => at += 1,
        }
    }
    spans
}

/// A key that begins as its maker's keys do.
fn prefixed(bytes: &[u8], at: usize) -> Option<Span> {
    let rest = &bytes[at..];
    let (kind, prefix, least) = PREFIXES.into_iter().find(|(_, prefix, _)| rest.starts_with(prefix.as_bytes()))?;
    let length = run(&rest[prefix.len()..], is_key_letter);
    (length >= least && !is_filler(&rest[prefix.len()..prefix.len() + length])).then_some(Span {
        kind,
        start: at,
        end: at + prefix.len() + length,
    })
}

/// A signed web token: three runs of base64 with dots between, the first of which is a JSON object.
fn web_token(bytes: &[u8], at: usize, no_token_before: &mut usize) -> Option<Span> {
    if !bytes[at..].starts_with(b"eyJ") {
        return None;
    }
    let mut end = at;
    for part in 0..3 {
        let length = run(&bytes[end..], is_base64_url);
        end += length;
        if length < 10 {
            *no_token_before = end;
            return None;
        }
        if part < 2 {
            if bytes.get(end) != Some(&b'.') {
                *no_token_before = end;
                return None;
            }
            end += 1;
        }
    }
    Some(Span { kind: "web token", start: at, end })
}

/// The password of `://user:password@host`.
fn url_password(bytes: &[u8], at: usize) -> Option<Span> {
    let authority = bytes[at..].strip_prefix(b"://")?;
    let length =
        run(authority, |byte| !byte.is_ascii_whitespace() && !matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'<'));
    let authority = &authority[..length];
    let host = authority.iter().rposition(|byte| *byte == b'@')?;
    let colon = authority[..host].iter().position(|byte| *byte == b':')?;
    let password = &authority[colon + 1..host];
    (!password.is_empty() && !is_placeholder(password)).then_some(Span {
        kind: "password",
        start: at + 3 + colon + 1,
        end: at + 3 + host,
    })
}

/// What follows `Bearer` or `Basic` in a header.
fn bearer(bytes: &[u8], at: usize) -> Option<Span> {
    let scheme = ["Bearer ", "bearer ", "Basic "].iter().find(|scheme| bytes[at..].starts_with(scheme.as_bytes()))?;
    let start = at + scheme.len();
    let length = run(&bytes[start..], |byte| is_base64_url(byte) || matches!(byte, b'.' | b'+' | b'/' | b'=' | b'~'));
    let value = &bytes[start..start + length];
    (length >= 16 && looks_random(value) && !is_placeholder(value)).then_some(Span {
        kind: "token",
        start,
        end: start + length,
    })
}

/// The value of a name that says it is a secret: `password = "…"`, `API_KEY=…`, `"token": "…"`.
fn assigned(bytes: &[u8], at: usize, no_value_before: &mut usize) -> Option<Span> {
    // The whole word, so that `DB_PASSWORD` counts and `tokens` does not.
    let word = run(&bytes[at..bytes.len().min(at + LONGEST_NAME + 1)], |byte| is_word(byte) || byte == b'-');
    let name = bytes[at..at + word].to_ascii_lowercase();
    if word == 0 || word > LONGEST_NAME || !NAMES.iter().any(|secret| name.ends_with(secret.as_bytes())) {
        return None;
    }
    let mut start = at + word;
    start += run(&bytes[start..], |byte| matches!(byte, b'"' | b'\'')).min(1);
    start += run(&bytes[start..], |byte| byte == b' ');
    if !matches!(bytes.get(start), Some(b'=' | b':')) {
        return None;
    }
    start += 1;
    start += run(&bytes[start..], |byte| byte == b' ');
    let quote = bytes.get(start).copied().filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    let (value, least) = match quote {
        Some(quote) => {
            start += 1;
            let length = run(&bytes[start..], |byte| byte != quote);
            // Without its closing quote it is no value.
            bytes.get(start + length)?;
            (&bytes[start..start + length], 6)
        }
        None => {
            let length = run(&bytes[start..], |byte| {
                byte.is_ascii_graphic()
                    && !matches!(byte, b'"' | b'\'' | b'`' | b',' | b';' | b')' | b'(' | b'<' | b'>')
            });
            (&bytes[start..start + length], 12)
        }
    };
    let secret = value.len() >= least
        && !is_placeholder(value)
        && !value.contains(&b' ')
        && (quote.is_some() || looks_random(value));
    if !secret && quote.is_none() {
        *no_value_before = start + value.len();
    }
    secret.then_some(Span { kind: "password", start, end: start + value.len() })
}

/// A whole key block on one line, its line ends written as `\n`.
fn one_line_key(line: &str) -> Option<Span> {
    let start = line.find("-----BEGIN ")?;
    let label = line[start..].find("PRIVATE KEY")?;
    let end_line = start + label + line[start + label..].find("-----END ")?;
    let close = end_line + "-----END ".len();
    let end = line[close..].find("-----").map_or(line.len(), |dashes| close + dashes + 5);
    Some(Span { kind: crate::key_block::KIND, start, end })
}

fn run(bytes: &[u8], part: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|byte| !part(*byte)).unwrap_or(bytes.len())
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_base64_url(byte: u8) -> bool {
    is_word(byte) || byte == b'-'
}

fn is_key_letter(byte: u8) -> bool {
    is_base64_url(byte) || byte == b'.'
}

/// One letter again and again, as in an example.
fn is_filler(value: &[u8]) -> bool {
    value.windows(2).all(|pair| pair[0] == pair[1])
}

/// Letters and digits together: words alone are no secret.
fn looks_random(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic)
}

/// Stands in for a secret: an example, a variable, a template's field.
fn is_placeholder(value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    let text = String::from_utf8_lossy(&lower);
    PLACEHOLDERS.iter().any(|word| text.contains(word)) || text.starts_with(['$', '<', '{', '%']) || is_filler(value)
}
