//! The conversations behind requests, which know nothing of each other: what their rules have done, so that `once`, gaps and budgets count in
//! all of a conversation.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fnv::FnvHasher;
use rules::{RuleSession, RuleSet};
use serde_json::Value;
use wire::Wire;

use crate::Exchange;

/// So many conversations are remembered; for one more the one that was used least recently is forgotten.
pub const MAX_CONVERSATIONS: usize = 10_000;

/// Headers by which clients name a conversation.
const HEADERS: [&str; 4] = ["x-claude-code-session-id", "session-id", "session_id", "thread-id"];

/// The conversations of a server.
#[derive(Debug)]
pub struct Conversations {
    set: Arc<RuleSet>,
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
    used: u64,
    /// Exchanges of it that are over.
    ended: u64,
}

/// Which conversation an exchange belongs to.
#[derive(Clone, Debug)]
pub struct Place {
    name: String,
    /// The exchanges of it that were over when this one began.
    ended: u64,
}

impl Conversations {
    /// Conversations that are watched by these rules.
    pub fn new(set: Arc<RuleSet>) -> Self {
        Self { set, known: Mutex::default() }
    }

    /// The rules that all of them are watched by.
    pub fn rules(&self) -> &Arc<RuleSet> {
        &self.set
    }

    /// Begins the exchange of a request. `header`: the value of one of its headers, by its name in lower case. The place goes
    /// to [`Conversations::end`].
    pub fn begin<'h>(&self, wire: Wire, body: Vec<u8>, header: impl Fn(&str) -> Option<&'h str>) -> (Place, Exchange) {
        let request: Option<Value> = serde_json::from_slice(&body).ok();
        let name = name(wire, request.as_ref(), header);
        let mut known = self.known();
        known.requests += 1;
        let used = known.requests;
        if known.all.len() >= MAX_CONVERSATIONS && !known.all.contains_key(&name) {
            let oldest = known.all.iter().min_by_key(|(_, one)| one.used).map(|(name, _)| name.clone());
            oldest.map(|name| known.all.remove(&name));
        }
        let conversation = known.all.entry(name.clone()).or_insert_with(|| {
            let mut rules = RuleSession::new(Arc::clone(&self.set));
            rules.begin_turn();
            Conversation { rules, used, ended: 0 }
        });
        let is_first = conversation.used == used;
        conversation.used = used;
        if !is_first && !continues(wire, request.as_ref()) {
            conversation.rules.end_turn();
            conversation.rules.begin_turn();
        }
        (Place { name, ended: conversation.ended }, Exchange::new(wire, body, conversation.rules.clone()))
    }

    /// An exchange is over, however it ended: what its rules have done counts in the requests that follow. Of exchanges at one time, what
    /// counts is the budget of the first that ends, and all reminders.
    pub fn end(&self, place: &Place, exchange: &Exchange) {
        if let Some(conversation) = self.known().all.get_mut(&place.name) {
            if conversation.ended == place.ended {
                conversation.rules = exchange.rules().clone();
            } else {
                conversation.rules.injected(&exchange.reminded());
            }
            conversation.ended += 1;
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a conversation is known by: what the client says, else how it begins.
fn name<'h>(wire: Wire, request: Option<&Value>, header: impl Fn(&str) -> Option<&'h str>) -> String {
    if let Some(told) = HEADERS.iter().find_map(|name| header(name)) {
        return told.to_owned();
    }
    let Some(request) = request else { return String::new() };
    let told = [&request["metadata"]["user_id"], &request["prompt_cache_key"]].into_iter().find_map(Value::as_str);
    if let Some(told) = told {
        return told.to_owned();
    }
    let first = match messages(wire, request) {
        Value::Array(messages) => messages.iter().find(|message| message["role"] == "user").unwrap_or(&Value::Null),
        other => other,
    };
    let mut hasher = FnvHasher::default();
    std::hash::Hash::hash(&first.to_string(), &mut hasher);
    format!("{:016x}", std::hash::Hasher::finish(&hasher))
}

/// Whether a request gives the results of calls: the turn goes on.
fn continues(wire: Wire, request: Option<&Value>) -> bool {
    let Some(Value::Array(messages)) = request.map(|request| messages(wire, request)) else { return false };
    let Some(last) = messages.last() else { return false };
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
