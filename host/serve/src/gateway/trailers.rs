//! Trailers: fields behind a body that comes in chunks (RFC 9110, 6.5). They pass in both directions. hyper sends those of a response to a
//! client that asks for them (`TE: trailers`), as far as the head of the response names them (`Trailer`).

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::head;

/// Fields with a digest of the body, which differs from the digest of a body that was changed.
const DIGESTS: [HeaderName; 4] = [
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-md5"),
];

/// Returns whether the sender of a request accepts trailers.
pub(super) fn are_accepted(headers: &HeaderMap) -> bool {
    names(headers.get_all(header::TE).iter()).any(|name| name.eq_ignore_ascii_case("trailers"))
}

/// Sets `TE: trailers` in a request.
pub(super) fn accept(headers: &mut HeaderMap) {
    headers.insert(header::TE, HeaderValue::from_static("trailers"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("te"));
}

/// Returns the names of the trailers that the head of a response announces, without those that do not pass; `None` if there are none.
pub(super) fn announced(headers: &HeaderMap) -> Option<HeaderValue> {
    let all = names(headers.get_all(header::TRAILER).iter());
    let named = all.filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok());
    announcement(named.filter(|name| !head::is_own(name)))
}

/// Returns the header that announces these trailers; `None` if there are none.
pub(super) fn announcement(all: impl Iterator<Item = HeaderName>) -> Option<HeaderValue> {
    let all: Vec<String> = all.map(|name| name.to_string()).collect();
    HeaderValue::from_str(&all.join(", ")).ok().filter(|value| !value.is_empty())
}

/// Removes the digests of a body that is changed, or can be.
pub(super) fn without_digests(fields: &mut HeaderMap) {
    DIGESTS.iter().for_each(|name| drop(fields.remove(name)));
}

fn names<'h>(values: impl Iterator<Item = &'h HeaderValue>) -> impl Iterator<Item = &'h str> {
    values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).map(str::trim)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn of(name: &HeaderName, values: &[&'static str]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn trailers_are_accepted_by_name() {
        for (values, accepted) in [
            (&[][..], false),
            (&["gzip"], false),
            (&["trailers"], true),
            (&["gzip;q=0.5, Trailers"], true),
            (&["gzip", "trailers"], true),
            (&["trailersx"], false),
        ] {
            assert_eq!(are_accepted(&of(&header::TE, values)), accepted, "{values:?}");
        }
    }

    #[test]
    fn names_are_announced_that_pass() {
        for (values, named) in [
            (&[][..], None),
            (&[""], None),
            (&["Content-Length, connection"], None),
            (&["X-Cost, Server-Timing"], Some("x-cost, server-timing")),
            (&["x-cost", "transfer-encoding, x y, x-end"], Some("x-cost, x-end")),
        ] {
            let found = announced(&of(&header::TRAILER, values));
            assert_eq!(found.as_ref().map(|value| value.to_str().unwrap()), named, "{values:?}");
        }
    }
}
