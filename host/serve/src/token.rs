//! Tokens of clients: their form, and how two are compared.

use subtle::ConstantTimeEq as _;

/// The fewest characters of a token.
pub(crate) const MIN_TOKEN: usize = 32;

/// Returns whether it is long enough to be a secret, and can be written in a header and in a URL as it is.
pub(crate) fn is_token(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.len() >= MIN_TOKEN && text.bytes().all(is_plain)
}

/// Compares in a time that does not depend on where two tokens differ.
pub(crate) fn same(given: &[u8], own: &[u8]) -> bool {
    given.ct_eq(own).into()
}

/// Returns the token of a header `Authorization`: its scheme is `Bearer`.
pub(crate) fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}
