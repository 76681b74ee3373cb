//! Tokens of clients: their syntax, and their comparison.

use subtle::ConstantTimeEq as _;

/// The minimum length of a token in characters.
pub(crate) const MIN_TOKEN: usize = 32;

/// Returns whether a token is long enough to be a secret, and only has characters that need no escape in a header or a URL.
pub(crate) fn is_token(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.len() >= MIN_TOKEN && text.bytes().all(is_plain)
}

/// Compares two tokens in constant time.
pub(crate) fn same(given: &[u8], own: &[u8]) -> bool {
    given.ct_eq(own).into()
}

/// Returns the token of an `Authorization` header with the scheme `Bearer`.
pub(crate) fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}
