//! Paths of requests: the route that they belong to, and whether they lead to a model.

use gateway::Wire;

/// A path leads to an endpoint but is not written in its normal form.
#[derive(Debug)]
pub(super) struct Disguised;

/// Returns the wire format of a guarded endpoint by the path that the server gets. `base`: the path of the server's URL. `rest`: the part
/// of the client's path behind the route's path.
///
/// # Errors
/// The path is an alias of an endpoint's path, or has `..` segments that could lead to one.
pub(super) fn wire(base: &str, rest: &str) -> Result<Option<Wire>, Disguised> {
    let written = plain(rest)?;
    let read = plain(&on_server(base, rest))?;
    let found = wire_of(read.split('/'));
    let is_as_written = written == rest || (written.is_empty() && rest == "/");
    // Some servers ignore characters behind a name.
    let is_disguised = match found {
        Some(_) => !is_as_written,
        None => wire_of(read.split('/').map(name)).is_some(),
    };
    if is_disguised { Err(Disguised) } else { Ok(found) }
}

/// Refuses a path with `..` segments, and an alias of an endpoint's path, before any route is looked up.
///
/// # Errors
/// The path has such segments, or is such an alias.
pub(super) fn check(path: &str) -> Result<(), Disguised> {
    let read = plain(path)?;
    if wire_of(read.split('/')).is_some() && read != path.to_lowercase() { Err(Disguised) } else { Ok(()) }
}

fn wire_of<'p>(parts: impl Iterator<Item = &'p str>) -> Option<Wire> {
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses].into_iter().find(|wire| {
        let endpoint: Vec<&str> = wire.endpoint().split('/').collect();
        parts.strip_suffix(endpoint.as_slice()).is_some_and(|before| !(*wire == Wire::Anthropic && is_thread(before)))
    })
}

/// Returns the prefix of a path segment that consists of letters, digits, hyphens and underscores.
fn name(part: &str) -> &str {
    let end = part.find(|c: char| !(c.is_ascii_alphanumeric() || "-_".contains(c))).unwrap_or(part.len());
    &part[..end]
}

/// Returns whether a path is that of a thread, which has messages in the Assistants API of OpenAI.
fn is_thread(parts: &[&str]) -> bool {
    parts.len() >= 2 && parts[parts.len() - 2] == "threads"
}

/// The content of a request to an endpoint whose answers are not guarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unguarded {
    /// A count of tokens.
    Count(Wire),
    /// A summary of its conversation.
    Compact(Wire),
    /// Files, or usage data of a client: nothing that a model reads with this request.
    Other,
    /// Anything else, which can be text for a model in a form that callbacks cannot be given.
    Unread,
}

/// Returns the content of a request by the path that the server gets. Endpoints of models are too many to be known.
pub(super) fn unguarded(path: &str) -> Unguarded {
    let Ok(read) = plain(path) else { return Unguarded::Unread };
    let parts: Vec<&str> = read.split('/').filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        [.., "messages", "count_tokens"] => Unguarded::Count(Wire::Anthropic),
        [.., "responses", "input_tokens"] => Unguarded::Count(Wire::OpenAiResponses),
        [.., "responses", "compact"] => Unguarded::Compact(Wire::OpenAiResponses),
        ["files" | "uploads"] => Unguarded::Other,
        [.., before, "files" | "uploads"] if is_version(before) || *before == "openai" => Unguarded::Other,
        [.., "uploads", _, "parts" | "complete" | "cancel"] => Unguarded::Other,
        // Claude Code sends them to the address of its model.
        [.., "api", "event_logging", "batch"] | [.., "api", "event_logging", "v2", "batch"] => Unguarded::Other,
        _ => Unguarded::Unread,
    }
}

fn is_version(part: &str) -> bool {
    part.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Normalizes a path as a server may read it: without escapes and empty segments, in lower case.
///
/// # Errors
/// The path has `..` segments, which lead elsewhere.
fn plain(path: &str) -> Result<String, Disguised> {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let escaped = more.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[2..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    let path = String::from_utf8_lossy(&bytes).replace('\\', "/").to_lowercase();
    let parts = path.split('/').map(|part| part.split(['?', '#', ';']).next().unwrap_or_default().trim());
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    if parts.iter().any(|part| [".", ".."].contains(part)) {
        return Err(Disguised);
    }
    Ok(parts.iter().flat_map(|part| ["/", part]).collect())
}

/// Returns the rest behind the path of a route, which is empty or begins with a slash; `None` if the path is not below the route.
pub(super) fn below<'p>(route: &str, path: &'p str) -> Option<&'p str> {
    let rest = path.strip_prefix(route.trim_end_matches('/'))?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// Returns the path on a server whose URL has the path `base`. A version that `base` ends with and `rest` begins with is used once: clients
/// differ in whether it is a part of their base URL.
pub(super) fn on_server(base: &str, rest: &str) -> String {
    let base = base.trim_end_matches('/');
    let version = base.rsplit('/').next().filter(|last| is_version(last));
    let again = version.and_then(|version| below(version, rest.strip_prefix('/')?));
    format!("{base}{}", again.unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_has_one_path() {
        for (path, found) in [
            ("/v1/messages", Some(Some(Wire::Anthropic))),
            ("/v1/responses", Some(Some(Wire::OpenAiResponses))),
            ("/chat/completions", Some(Some(Wire::OpenAiChat))),
            ("/api/v1/messages", Some(Some(Wire::Anthropic))),
            ("/api/v1/chat/completions", Some(Some(Wire::OpenAiChat))),
            ("/openai/deployments/gpt/chat/completions", Some(Some(Wire::OpenAiChat))),
            ("/openai/responses", Some(Some(Wire::OpenAiResponses))),
            ("/v1/threads/1/messages", Some(None)),
            ("/v1/projects/p/messages", Some(Some(Wire::Anthropic))),
            ("/openai/deployments/GPT-4.1/chat/completions", None),
            ("/openai/deployments/gpt-4.1/chat/completions", Some(Some(Wire::OpenAiChat))),
            ("/v1/files/A.txt", Some(None)),
            ("/v1/messages/count_tokens", Some(None)),
            ("/v1/responses/resp_1/cancel", Some(None)),
            ("/v1/models", Some(None)),
            ("/", Some(None)),
            ("/v1/messages/", None),
            ("//v1/messages", None),
            ("/v1/./messages", None),
            ("/v1/x/../messages", None),
            ("/x/../chat/completions", None),
            ("/../../v1/other", None),
            ("/v1/%2e%2e/other", None),
            ("/v1/chat/completions%3Fx", None),
            ("/v1/%6dessages", None),
            ("/v1%2Fmessages", None),
            ("/V1/Messages", None),
            ("/v1/messages%20", None),
            ("/v1/messages;a", None),
            ("/v1/messages.", None),
            ("/v1/messages%00", None),
            ("/v1/messages:x", None),
            ("/v1/messages&a", None),
            ("/chat/completions,", None),
            ("/v1\\messages", None),
        ] {
            assert_eq!(wire("/", path).ok(), found, "{path}");
        }
    }

    #[test]
    fn the_path_on_the_server_counts() {
        for (base, rest, found) in [
            ("/v1", "/messages", Some(Some(Wire::Anthropic))),
            ("/Team/API/v1", "/messages", Some(Some(Wire::Anthropic))),
            ("/v1", "/v1/messages", Some(Some(Wire::Anthropic))),
            ("/v1/threads", "/1/messages", Some(None)),
            ("/v1/messages", "", Some(Some(Wire::Anthropic))),
            ("/v1/messages", "/", Some(Some(Wire::Anthropic))),
            ("/v1/chat", "/completions", Some(Some(Wire::OpenAiChat))),
            ("/v1/chat", "/Completions", None),
        ] {
            assert_eq!(wire(base, rest).ok(), found, "{base} {rest}");
        }
    }

    #[test]
    fn what_a_model_gets_is_known_at_other_endpoints() {
        let count = |wire| Unguarded::Count(wire);
        for (path, found) in [
            ("/v1/messages/count_tokens", count(Wire::Anthropic)),
            ("/v1/responses/input_tokens", count(Wire::OpenAiResponses)),
            ("/v1/responses/compact", Unguarded::Compact(Wire::OpenAiResponses)),
            ("/v1/Responses/%63ompact/", Unguarded::Compact(Wire::OpenAiResponses)),
            ("/v1/files", Unguarded::Other),
            ("/openai/files", Unguarded::Other),
            ("/upload/v1beta/files", Unguarded::Other),
            ("/v1/uploads/upload_1/complete", Unguarded::Other),
            ("/api/event_logging/v2/batch", Unguarded::Other),
        ] {
            assert_eq!(unguarded(path), found, "{path}");
        }
        for path in [
            "/",
            "/v1/messages/batches",
            "//v1//completions",
            "/v1/complete",
            "/v1/embeddings",
            "/v1/conversations/conv_1/items",
            "/v1/threads/1/messages",
            "/v1/vector_stores/1/files",
            "/v1/files/f:generateContent",
            "/v1/files%00",
            "/model/files/converse",
            "/model/uploads/x/complete/converse",
            "/v1beta/models/m:streamGenerateContent",
            "/v1/projects/p/locations/l/publishers/anthropic/models/m:streamRawPredict",
            "/model/m/invoke-with-response-stream",
            "/api/chat",
            "/api/event_logging/x/batch",
            "/completion",
            "/infill",
        ] {
            assert_eq!(unguarded(path), Unguarded::Unread, "{path}");
        }
    }

    #[test]
    fn a_route_has_whole_parts() {
        for (route, path, rest) in [
            ("/", "/", Some("/")),
            ("/", "/v1/messages", Some("/v1/messages")),
            ("/a", "/a", Some("")),
            ("/a", "/a/v1", Some("/v1")),
            ("/a", "/ab", None),
            ("/a", "/b/a", None),
            ("/a/b", "/a", None),
            ("/a", "/A", None),
        ] {
            assert_eq!(below(route, path), rest, "{route} {path}");
        }
    }

    #[test]
    fn a_version_is_there_once() {
        for (base, rest, path) in [
            ("/", "/v1/messages", "/v1/messages"),
            ("/v1", "/v1/messages", "/v1/messages"),
            ("/v1/", "/messages", "/v1/messages"),
            ("/api/v1", "/v1", "/api/v1"),
            ("/v1", "/v10/messages", "/v1/v10/messages"),
            ("/v1beta", "/v1/messages", "/v1beta/v1/messages"),
            ("/x", "/x/messages", "/x/x/messages"),
            ("/v1", "", "/v1"),
        ] {
            assert_eq!(on_server(base, rest), path, "{base} {rest}");
        }
    }
}
