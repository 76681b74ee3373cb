//! Who may connect over a websocket: whoever has the token, and of the pages that a browser shows only those of named origins.

use std::fmt;
use std::fmt::Write as _;

use tokio_tungstenite::tungstenite::http::{Request, StatusCode, header};

use crate::token::{self, MIN_TOKEN};

/// Bytes of a token that is made here.
const RANDOM: usize = 32;

/// What a client has to bring: a token, as `Authorization: Bearer TOKEN` or, where headers cannot be set, as `?token=TOKEN` of the URL. A request
/// with an `Origin`, which every browser sends, is refused unless the origin is named: any page that a user opens could connect otherwise.
#[derive(Clone, PartialEq, Eq)]
pub struct Access {
    token: String,
    origins: Vec<String>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("origins", &self.origins).finish_non_exhaustive()
    }
}

/// A token cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It is too short, or cannot be part of a URL.
    #[error("a token has at least {MIN_TOKEN} characters, of which each is a letter, a digit or one of `-._~`")]
    Form,
    /// The system has no random numbers.
    #[error("no token can be made: {0}")]
    Random(getrandom::Error),
}

impl Access {
    /// Admits clients with this token.
    ///
    /// # Errors
    /// It is too short to be a secret, or would have to be escaped in a URL.
    pub fn new(token: impl Into<String>) -> Result<Self, TokenError> {
        let token = token.into();
        if !token::is_token(&token) {
            return Err(TokenError::Form);
        }
        Ok(Self { token, origins: Vec::new() })
    }

    /// Admits clients with a new token of 256 random bits.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn random() -> Result<Self, TokenError> {
        let mut bytes = [0; RANDOM];
        getrandom::fill(&mut bytes).map_err(TokenError::Random)?;
        let mut token = String::new();
        for byte in bytes {
            // A string takes everything.
            let _ = write!(token, "{byte:02x}");
        }
        Ok(Self { token, origins: Vec::new() })
    }

    /// Admits pages of these origins as well, such as `http://localhost:3000`, if they have the token.
    #[must_use]
    pub fn origins(mut self, origins: impl IntoIterator<Item = String>) -> Self {
        self.origins.extend(origins);
        self
    }

    /// The token, to be given to clients and to nobody else.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Why a request is refused; `None`: it is admitted.
    pub(super) fn refusal(&self, request: &Request<()>) -> Option<(StatusCode, &'static str)> {
        let mut origins = request.headers().get_all(header::ORIGIN).iter();
        if !origins.all(|origin| self.origins.iter().any(|named| named.as_bytes() == origin.as_bytes())) {
            return Some((
                StatusCode::FORBIDDEN,
                "this origin is not allowed; restart tidegate with --allow-origin ORIGIN",
            ));
        }
        let of_header =
            request.headers().get(header::AUTHORIZATION).and_then(|value| token::bearer(value.to_str().ok()?));
        let of_url = request.uri().query().unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("token="));
        match of_header.or(of_url) {
            Some(token) if token::same(token.as_bytes(), self.token.as_bytes()) => None,
            Some(_) => Some((StatusCode::UNAUTHORIZED, "the token is wrong")),
            None => Some((
                StatusCode::UNAUTHORIZED,
                "a token is needed, as `Authorization: Bearer TOKEN` or as `?token=TOKEN` of the URL",
            )),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789ABCDEF";

    #[test]
    fn only_who_has_the_token_and_no_foreign_page_is_admitted() {
        let access = Access::new(TOKEN).unwrap().origins(["http://localhost:3000".to_owned()]);
        let (bearer, other) = (format!("Bearer {TOKEN}"), format!("Bearer {}", TOKEN.to_lowercase()));
        let url = format!("/?a=b&token={TOKEN}");
        for (path, headers, expected) in [
            ("/", &[][..], 401),
            ("/", &[("authorization", &*bearer)], 0),
            ("/any/path", &[("authorization", &*bearer.replace("Bearer", "bearer"))], 0),
            (&*url, &[], 0),
            ("/?token=", &[], 401),
            ("/?token=0123", &[], 401),
            ("/", &[("authorization", &*other)], 401),
            ("/", &[("authorization", TOKEN)], 401),
            // What the header says counts.
            (&*url, &[("authorization", &*other)], 401),
            (&*url, &[("origin", "http://localhost:3000")], 0),
            (&*url, &[("origin", "http://localhost:3000"), ("origin", "http://evil.example")], 403),
            (&*url, &[("origin", "http://localhost:30000")], 403),
            (&*url, &[("origin", "null")], 403),
            (&*url, &[("origin", "")], 403),
            ("/", &[("origin", "http://localhost:3000")], 401),
        ] {
            let mut request = Request::builder().uri(path);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let refused = access.refusal(&request.body(()).unwrap()).map_or(0, |(status, _)| status.as_u16());
            assert_eq!(refused, expected, "{path} {headers:?}");
        }
    }

    #[test]
    fn a_token_is_long_and_part_of_a_url_and_is_not_printed() {
        for bad in ["", "short", &TOKEN[1..], &format!("{TOKEN} "), &format!("{TOKEN}&"), &format!("{TOKEN}ü")] {
            assert!(Access::new(bad).is_err(), "{bad}");
        }
        let (one, two) = (Access::random().unwrap(), Access::random().unwrap());
        assert!(one != two && Access::new(one.token()).is_ok());
        assert!(!format!("{one:?}").contains(one.token()));
    }
}
