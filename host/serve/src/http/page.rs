//! The page that is embedded in the program. Its files are served to everyone, since nothing of a user is in them: what it shows, it
//! asks for with the token of its user.

use axum::body::Body;
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Method, Response, StatusCode};

use super::problem::Problem;

/// A file of the page. Those whose names end with `.gz` are compressed, and requested without this ending.
struct File {
    address: &'static str,
    bytes: &'static [u8],
}

/// Empty where the page was not built before the program.
static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// The addresses of the page and of its files.
const INDEX: &str = "/";
const INDEX_FILE: &str = "/index.html";
const ASSETS: &str = "/assets/";

/// What the page is allowed to do: load its own files, and talk with its own server. Markup becomes a script nowhere, as no string is
/// accepted where a browser would execute it.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data: blob:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

const HEADERS: [(HeaderName, HeaderValue); 4] = [
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (
        HeaderName::from_static("permissions-policy"),
        HeaderValue::from_static("camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ),
];

/// The names of assets contain digests of their contents.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// Returns whether the page was built into this program.
pub(super) fn is_built() -> bool {
    find(FILES, INDEX).is_some()
}

/// Answers a request for a file of the page; `None`: it asks for something else.
pub(super) fn answer(head: &Parts) -> Option<Response<Body>> {
    answer_of(FILES, &head.method, head.uri.path())
}

fn answer_of(files: &[File], method: &Method, path: &str) -> Option<Response<Body>> {
    let is_page = path == INDEX || path.starts_with(ASSETS);
    if !is_page || ![Method::GET, Method::HEAD].contains(method) {
        return None;
    }
    let Some(file) = find(files, path) else {
        return Some(if files.is_empty() { not_built().response() } else { Problem::not_found().response() });
    };
    let mut response = Response::new(if method == Method::HEAD { Body::empty() } else { Body::from(file.bytes) });
    let headers = response.headers_mut();
    headers.extend(HEADERS);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind(file.address)));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(file.bytes.len()));
    if file.address.ends_with(".gz") {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    if path != INDEX {
        headers.insert(header::CACHE_CONTROL, FOR_EVER);
    }
    Some(response)
}

fn find<'a>(files: &'a [File], path: &str) -> Option<&'a File> {
    let path = if path == INDEX { INDEX_FILE } else { path };
    files.iter().find(|file| file.address.strip_suffix(".gz").unwrap_or(file.address) == path)
}

fn not_built() -> Problem {
    let how =
        "this program was built without its page: run `cargo xtask page`, and build it again; the API is at `/v1`";
    Problem::new(StatusCode::NOT_FOUND, "page_not_built", how)
}

fn kind(address: &str) -> &'static str {
    match address.strip_suffix(".gz").unwrap_or(address).rsplit_once('.') {
        Some((_, "html")) => "text/html; charset=utf-8",
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "svg")) => "image/svg+xml",
        Some((_, "txt")) => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const BUILT: [File; 2] = [
        File { address: "/assets/index-1.js.gz", bytes: b"compressed" },
        File { address: "/index.html", bytes: b"<!doctype html>" },
    ];

    fn headers(path: &str, names: [HeaderName; 3]) -> [String; 3] {
        let response = answer_of(&BUILT, &Method::GET, path).unwrap();
        assert!(
            response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().starts_with("default-src 'none'")
        );
        names.map(|name| response.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned())
    }

    #[test]
    fn files_have_their_types_and_only_named_ones_are_kept() {
        let names = [header::CONTENT_TYPE, header::CONTENT_ENCODING, header::CACHE_CONTROL];
        assert_eq!(headers("/", names.clone()), ["text/html; charset=utf-8", "", ""]);
        let asset = ["text/javascript; charset=utf-8", "gzip", "public, max-age=31536000, immutable"];
        assert_eq!(headers("/assets/index-1.js", names), asset);
    }

    #[test]
    fn other_requests_are_not_for_the_page() {
        assert!(answer_of(&BUILT, &Method::POST, "/").is_none());
        assert!(answer_of(&BUILT, &Method::GET, "/v1/sessions").is_none());
        assert_eq!(answer_of(&BUILT, &Method::GET, "/assets/no.js").unwrap().status(), 404);
        assert_eq!(answer_of(&BUILT, &Method::HEAD, "/").unwrap().status(), 200);
    }

    #[test]
    fn a_page_that_was_not_built_is_no_empty_answer() {
        for path in ["/", "/assets/index-1.js"] {
            assert_eq!(answer_of(&[], &Method::GET, path).unwrap().status(), 404, "{path}");
        }
        assert!(not_built().detail().contains("cargo xtask page"));
    }
}
