//! The conversations behind requests, which know nothing of each other: what their rules have done, so that `once`, gaps and budgets count in
//! all of a conversation.

use std::collections::HashMap;
use std::hash::{Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use fnv::FnvHasher;
use rules::{RuleSession, RuleSet};
use serde_json::Value;
use wire::Wire;

use crate::{Exchange, HeldLimits, Memory};

/// So many conversations are remembered; for one more the one that was used least recently is forgotten.
const MAX_CONVERSATIONS: usize = 10_000;

/// Headers by which clients name a conversation.
const HEADERS: [&str; 4] = ["x-claude-code-session-id", "session-id", "session_id", "thread-id"];

/// The conversations of a server.
#[derive(Debug)]
pub struct Conversations {
    set: Arc<RuleSet>,
    watching: Watching,
    is_watched: bool,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    all: HashMap<String, Conversation>,
    /// Requests so far: the time of a conversation's last use.
    requests: u64,
}

#[derive(Debug)]
struct Conversation {
    rules: RuleSession,
    memory: Memory,
    used: u64,
    /// Exchanges of it that are over.
    ended: u64,
}

/// How conversations are told apart and watched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watching {
    /// The agent that clients are, for rules with `agents`; `None`: `main`.
    pub agent: Option<String>,
    /// A header, in lower case, in which clients name their conversation. It counts before all others.
    pub header: Option<String>,
    /// What is held back of one answer.
    pub held: HeldLimits,
}

/// Which conversation an exchange belongs to.
#[derive(Clone, Debug)]
pub struct Place {
    name: String,
    /// The exchanges of it that were over when this one began.
    ended: u64,
}

impl Place {
    /// The name of the conversation, as the audit file has it: the client's, or a digest of how it begins.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Conversations {
    /// Conversations that are watched by these rules.
    pub fn new(set: Arc<RuleSet>) -> Self {
        Self::watching(set, Watching::default())
    }

    /// The same, told apart and watched in this way.
    pub fn watching(set: Arc<RuleSet>, watching: Watching) -> Self {
        let mut conversations = Self { set, watching, is_watched: true, known: Mutex::default() };
        conversations.is_watched = !conversations.rules().gate().is_idle();
        conversations
    }

    /// The rules of a new conversation.
    fn rules(&self) -> RuleSession {
        RuleSession::of_agent(Arc::clone(&self.set), self.watching.agent.as_deref().unwrap_or("main"))
    }

    /// Whether any rule watches: without one a server passes on what it receives.
    pub fn are_watched(&self) -> bool {
        self.is_watched
    }

    /// Begins the exchange of a request. `header`: the value of one of its headers, by its name in lower case. The place goes
    /// to [`Conversations::end`].
    pub fn begin<'h>(&self, wire: Wire, body: Bytes, header: impl Fn(&str) -> Option<&'h str>) -> (Place, Exchange) {
        let request = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let own = self.watching.header.as_deref().and_then(&header);
        let named = own.map(str::to_owned).or_else(|| named(&request, header));
        let is_new = named.is_none() && begins(wire, &request);
        let name = named.unwrap_or_else(|| beginning(wire, &request));
        let mut known = self.known();
        known.requests += 1;
        let used = known.requests;
        if is_new {
            // Another conversation that begins with the same words.
            known.all.remove(&name);
        }
        if known.all.len() >= MAX_CONVERSATIONS && !known.all.contains_key(&name) {
            let oldest = known.all.iter().min_by_key(|(_, one)| one.used).map(|(name, _)| name.clone());
            oldest.map(|name| known.all.remove(&name));
        }
        let conversation = known.all.entry(name.clone()).or_insert_with(|| {
            let (rules, memory) = (self.rules(), Memory::default());
            Conversation { rules, memory, used: 0, ended: 0 }
        });
        if conversation.used > 0 && !continues(wire, &request) {
            conversation.rules.end_turn();
            conversation.rules.begin_turn();
        }
        conversation.used = used;
        let place = Place { name, ended: conversation.ended };
        let model = request["model"].as_str().unwrap_or_default();
        let body = conversation.memory.remind(wire, body);
        (place, Exchange::new(wire, body, model, conversation.rules.clone()).holding(self.watching.held))
    }

    /// An exchange is over, however it ended: what its rules have done counts in the requests that follow. Of exchanges at one time, what
    /// counts is the budget of the first that ends, and all reminders.
    pub fn end(&self, place: &Place, exchange: &Exchange) {
        if let Some(conversation) = self.known().all.get_mut(&place.name) {
            if conversation.ended == place.ended {
                conversation.rules = exchange.rules().clone();
            } else {
                conversation.rules.injected(exchange.reminded());
            }
            exchange.remember(&mut conversation.memory);
            conversation.ended += 1;
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the client calls its conversation.
fn named<'h>(request: &Value, header: impl Fn(&str) -> Option<&'h str>) -> Option<String> {
    let in_head = HEADERS.iter().find_map(|name| header(name));
    let in_body =
        || [&request["metadata"]["user_id"], &request["prompt_cache_key"]].into_iter().find_map(Value::as_str);
    in_head.or_else(in_body).map(str::to_owned)
}

/// A name for a conversation that has none: how it begins.
fn beginning(wire: Wire, request: &Value) -> String {
    let first = match messages(wire, request) {
        Value::Array(messages) => messages.iter().find(|message| message["role"] == "user").unwrap_or(&Value::Null),
        other => other,
    };
    let mut hasher = FnvHasher::default();
    first.to_string().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Whether nothing of a model is in a request.
fn begins(wire: Wire, request: &Value) -> bool {
    let is_users =
        |message: &Value| message["role"].as_str().is_some_and(|role| ["user", "system", "developer"].contains(&role));
    let all = messages(wire, request).as_array();
    request["previous_response_id"].is_null()
        && all.is_none_or(|messages| messages.iter().all(is_users))
        && !continues(wire, request)
}

/// Whether a request gives the results of calls: the turn goes on.
fn continues(wire: Wire, request: &Value) -> bool {
    let Some(last) = messages(wire, request).as_array().and_then(|messages| messages.last()) else { return false };
    match wire {
        Wire::Anthropic => {
            last["content"].as_array().is_some_and(|parts| parts.iter().any(|part| part["type"] == "tool_result"))
        }
        Wire::OpenAiChat => last["role"] == "tool",
        Wire::OpenAiResponses => last["type"].as_str().is_some_and(|kind| kind.ends_with("_output")),
    }
}

fn messages(wire: Wire, request: &Value) -> &Value {
    &request[if wire == Wire::OpenAiResponses { "input" } else { "messages" }]
}
