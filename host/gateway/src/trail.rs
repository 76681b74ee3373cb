//! The evidence in a request of which conversation it belongs to: the client's name for it, and how its messages begin.
//!
//! A **point** is a place in a conversation directly behind an answer, named by a digest of everything before it. The next request of the
//! conversation has the same answers, and thus the same points. The digest contains the text of answers without white space, and the ids of
//! calls: clients send these back as received. Reasoning, cache marks, system prompts and the results of calls are not in it, because
//! clients change them or leave them out.
//!
//! A server can leave out the ids of calls, or give one twice. The decoder mints ids then, and the client others: such an answer is also named by
//! its place, its text and its calls without their ids.

mod messages;

use serde_json::Value;
use wire::Wire;

use self::messages::{Called, Item, calls, items, last_calls};
use crate::digest::{digest, short};
use crate::received::Answer;

/// Headers by which clients name a conversation.
const HEADERS: [&str; 4] = ["x-claude-code-session-id", "session-id", "session_id", "thread-id"];

/// The evidence in a request of which conversation it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trail {
    /// Digest of the owner and of the client's name for the conversation. Nothing is shared between two scopes.
    salt: [u8; 32],
    is_named: bool,
    /// Whether the name alone identifies the conversation: it is in the header that the operator has chosen.
    is_fixed: bool,
    /// The messages before the first answer.
    root: String,
    /// Digest of the messages before the first answer.
    start: [u8; 32],
    /// The points behind each answer, the oldest first.
    points: Vec<String>,
    /// The point behind the first answer, with the messages before it.
    first: Option<String>,
    /// The name of the last answer without the ids of its calls; `None` if it has no calls.
    without_ids: Option<String>,
    /// Digest of the whole request.
    head: [u8; 32],
    previous: Option<String>,
    continues: bool,
    offers_tools: bool,
    is_marked_side: bool,
}

impl Trail {
    /// Returns the trail of a request. `header`: returns the value of one of its headers, by its name in lower case. `own_header`: the
    /// header that the operator has chosen, which counts before all others. `owner`: what identifies the client, such as its credential; it is
    /// in nothing that a trail returns.
    pub fn of<'h>(
        wire: Wire,
        request: &Value,
        header: impl Fn(&str) -> Option<&'h str>,
        own_header: Option<&str>,
        owner: &[u8],
    ) -> Self {
        let own = own_header.and_then(&header).filter(|name| !name.trim().is_empty());
        let is_fixed = own.is_some();
        let name = own.map(str::to_owned).or_else(|| named(request, &header));
        let (is_named, items) = (name.is_some(), items(wire, request));
        let name = name.or_else(|| scope(request)).unwrap_or_default();
        let salt = digest(&[b"conversation", &digest(&[owner]), name.as_bytes()]);
        let first = items.iter().position(|item| item.is_answer).unwrap_or(items.len());
        let root = items[..first].iter().fold(salt, next);
        // A client that names its conversation is free to change earlier messages: they are not compared.
        let (mut head, mut points) = (if is_named { salt } else { root }, Vec::new());
        for item in &items[first..] {
            if item.is_answer || !is_named {
                head = next(head, item);
            }
            if item.is_answer {
                points.push(short(&head));
            }
        }
        let called = if is_fixed { Vec::new() } else { last_calls(wire, request) };
        let last = items.iter().rfind(|item| item.is_answer).filter(|_| !called.is_empty());
        let before = if is_named { salt } else { root };
        let without_ids = last.map(|last| short(&unidentified(before, points.len(), &last.text, &called)));
        let is_compared = is_named && !is_fixed;
        Self {
            salt,
            is_named,
            is_fixed,
            root: short(if is_fixed { &salt } else { &root }),
            start: root,
            first: items.get(first).filter(|_| is_compared).map(|answer| short(&next(root, answer))),
            points: if is_fixed { Vec::new() } else { points },
            without_ids,
            head,
            previous: request["previous_response_id"]
                .as_str()
                .filter(|_| !is_fixed)
                .map(|id| short(&response(salt, id))),
            continues: items.last().is_some_and(|item| item.is_result),
            offers_tools: request["tools"].as_array().is_some_and(|tools| !tools.is_empty()),
            is_marked_side: false,
        }
    }

    /// Returns the point behind an answer to the request, by its text and the ids of its calls as the client has received them. Behind an
    /// answer next to a conversation, it is the one that [`Trail::first`] returns for the request that continues it.
    pub fn answered<'c>(&self, text: &str, calls: impl Iterator<Item = &'c str>) -> String {
        let before = if self.is_side_request() { self.start } else { self.head };
        short(&next(before, &Item::answer(text, calls)))
    }

    /// Returns the name of an answer to the request without the ids of its calls; `None` if its point identifies it, because the client has
    /// all of the ids.
    pub fn answered_without_ids(&self, answer: &Answer) -> Option<String> {
        if self.is_fixed || !answer.calls().any(is_minted) {
            return None;
        }
        let before = if self.is_named { self.salt } else { self.start };
        let text = Item::answer(&answer.text(), std::iter::empty()).text;
        Some(short(&unidentified(before, self.points.len() + 1, &text, &calls(&answer.blocks))))
    }

    /// Returns the name of an answer by its provider's id, for requests that continue it by that id.
    pub fn response(&self, id: &str) -> String {
        short(&response(self.salt, id))
    }

    /// Returns the messages before the first answer.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Returns the points of the request, the oldest first.
    pub fn points(&self) -> &[String] {
        &self.points
    }

    /// Returns the point behind the first answer of a conversation that has a name, with the messages before it, by which the answer to a
    /// question next to the conversation is found if the client continues that.
    pub fn first(&self) -> Option<&str> {
        self.first.as_deref()
    }

    /// Returns the name of the last answer without the ids of its calls; `None` if it has none.
    pub fn without_ids(&self) -> Option<&str> {
        self.without_ids.as_deref()
    }

    /// Returns the name of the answer that the request continues by its provider's id.
    pub fn previous(&self) -> Option<&str> {
        self.previous.as_deref()
    }

    /// Returns whether the client names the conversation.
    pub fn is_named(&self) -> bool {
        self.is_named
    }

    /// Returns whether the request begins a conversation.
    pub fn begins(&self) -> bool {
        self.is_fixed || (self.points.is_empty() && self.previous.is_none() && !self.continues)
    }

    /// Returns whether the name alone identifies the conversation, whatever its messages are.
    pub fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// Returns whether the request has the results of calls, so that the turn continues.
    pub fn continues_turn(&self) -> bool {
        self.continues
    }

    /// Returns whether it is a side request: one message without tools in a named session, such as for a title. The first turn of a conversation
    /// without tools looks the same.
    pub fn is_side_request(&self) -> bool {
        self.is_marked_side || (self.is_named && !self.is_fixed && self.begins() && !self.offers_tools)
    }

    /// Marks a request whose body is not read, so that its conversation is not known, as a side request.
    #[must_use]
    pub fn as_side_request(mut self) -> Self {
        self.is_marked_side = true;
        self
    }
}

/// Returns the client's name for its conversation.
fn named<'h>(request: &Value, header: &impl Fn(&str) -> Option<&'h str>) -> Option<String> {
    let in_head = HEADERS.iter().find_map(|name| header(name)).filter(|name| !name.trim().is_empty());
    let of_user = || request["metadata"]["user_id"].as_str().and_then(session_of);
    in_head.map(str::to_owned).or_else(of_user)
}

/// Returns a name that several conversations can share: a program can use one `prompt_cache_key` for all requests that begin equally.
fn scope(request: &Value) -> Option<String> {
    request["prompt_cache_key"].as_str().filter(|key| !key.is_empty()).map(str::to_owned)
}

/// Returns whether the decoder of answers has minted the id of a call, or can have: servers use ids of this form as well.
fn is_minted(id: &str) -> bool {
    id.is_empty() || id.strip_prefix("call_").is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Returns the digest of an answer by its number, its text and its calls. `before`: that of the conversation before its first answer.
fn unidentified(before: [u8; 32], number: usize, text: &str, calls: &[Called]) -> [u8; 32] {
    let number = (number as u64).to_be_bytes();
    let mut parts: Vec<&[u8]> = vec![b"without ids", &before, &number, text.as_bytes()];
    parts.extend(calls.iter().flat_map(|call| [call.name.as_bytes(), call.arguments.as_bytes()]));
    digest(&parts)
}

/// Returns the session in the `user_id` of Claude Code: `user_…_session_UUID`, or an object as JSON. Any other user is not a conversation.
fn session_of(user: &str) -> Option<String> {
    if let Ok(Value::Object(fields)) = serde_json::from_str(user) {
        return fields.get("session_id")?.as_str().filter(|id| !id.is_empty()).map(str::to_owned);
    }
    let (_, session) = user.rsplit_once("_session_")?;
    (!session.is_empty()).then(|| session.to_owned())
}

fn response(salt: [u8; 32], id: &str) -> [u8; 32] {
    digest(&[b"response", &salt, id.as_bytes()])
}

/// Returns the digest of everything up to and including an item.
fn next(before: [u8; 32], item: &Item) -> [u8; 32] {
    let kind: &[u8] = if item.is_answer { b"answer" } else { b"input" };
    let mut parts: Vec<&[u8]> = vec![kind, &before, item.text.as_bytes()];
    parts.extend(item.ids.iter().map(|id| id.as_bytes()));
    digest(&parts)
}
