//! A session as a file: what was shown of it, and nothing else. The records, with what rules and extensions kept back, are the operator's.

use std::fmt::Write as _;

use axum::body::Body;
use axum::http::Response;
use axum::http::header::{self, HeaderValue};
use chat::{Author, Block, BlockKind, ChatMessage, ChatSession, SavedChat, ToolEntry, ToolStatus};
use tidegate::SessionId;

use super::problem::Problem;

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Markdown,
    Html,
    Jsonl,
}

impl Format {
    /// Reads the value of `format`; without one it is Markdown.
    ///
    /// # Errors
    /// There is no such format.
    pub(super) fn of(name: Option<&str>) -> Result<Self, Problem> {
        match name {
            None | Some("md") => Ok(Self::Markdown),
            Some("html") => Ok(Self::Html),
            Some("jsonl") => Ok(Self::Jsonl),
            Some(_) => Err(Problem::invalid("`format` is `md`, `html` or `jsonl`")),
        }
    }
}

/// Returns the export of a session.
pub(super) fn response(id: &SessionId, saved: SavedChat, format: Format) -> Response<Body> {
    let mut chat = ChatSession::default();
    let _changed = chat.restore(saved);
    let state = chat.snapshot();
    let messages = state.messages.messages().map(|message| ChatMessage::clone(&message));
    let (kind, text) = match format {
        Format::Markdown => ("text/markdown; charset=utf-8", messages.map(|message| markdown(&message)).collect()),
        Format::Html => ("text/html; charset=utf-8", page(id.as_str(), messages)),
        Format::Jsonl => ("application/x-ndjson", messages.map(|message| line(&message)).collect::<String>()),
    };
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    // A page with what a model wrote has no rights, whatever is in it.
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    response
}

fn author(message: &ChatMessage) -> &'static str {
    match message.author {
        Author::User => "User",
        Author::Assistant => "Assistant",
        _ => "Host",
    }
}

/// The parts of a message: what each is, and its text.
fn parts(message: &ChatMessage) -> Vec<(&'static str, String)> {
    let blocks = message.blocks.iter().filter(|block| block.void.is_none()).map(|block| (kind(block), text(block)));
    let calls = message.calls.iter().flat_map(|call| {
        let name = ("Tool call", call.tool.to_string());
        let shown = |kind, text: &Option<chat::Str>| text.as_ref().map(|text| (kind, text.to_string()));
        let output = shown("Output", &call.output).filter(|_| has_run(call));
        [Some(name), output, shown("Change", &call.diff)].into_iter().flatten()
    });
    blocks.chain(calls).filter(|(_, text)| !text.is_empty()).collect()
}

/// What is shown of a call that did not run is that it did not.
fn has_run(call: &ToolEntry) -> bool {
    matches!(call.status, ToolStatus::Done | ToolStatus::Failed)
}

fn kind(block: &Block) -> &'static str {
    if block.kind == BlockKind::Reasoning { "Reasoning" } else { "" }
}

fn text(block: &Block) -> String {
    block.text.chunks().collect()
}

fn markdown(message: &ChatMessage) -> String {
    let mut out = format!("## {}\n\n", author(message));
    for (kind, text) in parts(message) {
        // A string takes everything.
        let _ = match kind {
            "" => write!(out, "{text}\n\n"),
            _ => write!(out, "{kind}:\n\n{}\n\n", fenced(&text)),
        };
    }
    out
}

/// A text in a fence that is longer than any in it.
fn fenced(text: &str) -> String {
    let longest = text.split(|byte| byte != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

fn page(id: &str, messages: impl Iterator<Item = ChatMessage>) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{}</title></head>\n<body>\n",
        escaped(id)
    );
    for message in messages {
        let _ = writeln!(out, "<h2>{}</h2>", author(&message));
        for (kind, text) in parts(&message) {
            let _ = match kind {
                "" => writeln!(out, "<pre>{}</pre>", escaped(&text)),
                _ => writeln!(out, "<h3>{kind}</h3>\n<pre>{}</pre>", escaped(&text)),
            };
        }
    }
    out + "</body>\n</html>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A message as a line of JSON: its author and its parts.
fn line(message: &ChatMessage) -> String {
    let parts: Vec<_> = parts(message)
        .into_iter()
        .map(|(kind, text)| match kind {
            "" => serde_json::json!({"kind": "text", "text": text}),
            _ => serde_json::json!({"kind": kind.to_lowercase().replace(' ', "_"), "text": text}),
        })
        .collect();
    let author = author(message).to_lowercase();
    format!(
        "{}\n",
        serde_json::json!({"id": message.id.as_str(), "author": author, "at_ms": message.at_ms, "parts": parts})
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_wrote_cannot_leave_its_place() {
        assert_eq!(escaped("<script>\"&\"</script>"), "&lt;script&gt;&quot;&amp;&quot;&lt;/script&gt;");
        assert_eq!(fenced("a"), "```\na\n```");
        assert_eq!(fenced("````\nb\n"), "`````\n````\nb\n`````");
    }
}
