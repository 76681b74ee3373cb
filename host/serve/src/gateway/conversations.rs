//! The conversations of a route: finds the one of a request, changes the request, and updates the conversation's memory after the answer.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use gateway::{Added, Exchange, Filtered, Memory, Prepared, Received, Trail, Watching, Wire, add, prepare};
use serde_json::Value;
use tidegate::gateway::{
    Conversation, ConversationCounts, ConversationLimits, ConversationOptions, Visit, WithoutStore,
};
use tidegate::metrics::Metrics;
use tidegate::rule::RuleSet;
use tidegate::{Host, HostError, PluginId, SessionId};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::forward::Upstream;
use super::progress::Progress;
use super::refusal::Refusal;
use super::request::within;

/// The conversations of a route.
#[derive(Debug)]
pub struct Conversations {
    /// `None` if nothing acts.
    keeper: Option<Arc<tidegate::gateway::Conversations>>,
    watching: Watching,
    has_rules: bool,
    has_plugins: bool,
    memories: Memories,
    /// The counts at the last call of [`Conversations::count`].
    counted: Mutex<ConversationCounts>,
}

/// The rules and plugins that act in conversations.
#[derive(Debug)]
pub struct Acting<'a> {
    /// The host that opens the conversations, with their plugins.
    pub host: &'a Host,
    /// The folder whose rules and settings apply.
    pub workspace: &'a Path,
    /// The rules that watch answers.
    pub rules: Arc<RuleSet>,
    /// The plugins of the host that act, in addition to the required ones; `None` for all.
    pub plugins: Option<Vec<PluginId>>,
    /// Whether any of these plugins has callbacks for requests or answers, or text for the prompt.
    pub has_plugins: bool,
    /// How conversations are distinguished and watched.
    pub watching: Watching,
    /// How requests are handled whose conversation cannot be read.
    pub without_store: WithoutStore,
    /// The conversations that these replace, which are closed before requests get here.
    pub before: Option<&'a Conversations>,
}

impl Conversations {
    /// Creates conversations in which nothing acts: requests and answers pass.
    pub fn idle() -> Arc<Self> {
        let (watching, memories, counted) = (Watching::default(), Memories::default(), Mutex::default());
        Arc::new(Self { keeper: None, watching, has_rules: false, has_plugins: false, memories, counted })
    }

    /// Creates the conversations of a host.
    pub fn new(acting: Acting<'_>) -> Arc<Self> {
        let Acting { host, workspace, rules, plugins, has_plugins, watching, without_store, before } = acting;
        let agent = watching.agent.as_deref().unwrap_or("main");
        let has_rules = gateway::watches(&rules, agent);
        let mut options = ConversationOptions::new(workspace).agent(agent).rule_set(rules);
        if let Some(plugins) = plugins {
            options = options.plugins(plugins);
        }
        let mut limits = ConversationLimits::default();
        limits.without_store = without_store;
        let keeper = Some(match before.and_then(|before| before.keeper.as_ref()) {
            Some(before) => tidegate::gateway::Conversations::in_place_of(before, host.clone(), options, limits),
            None => tidegate::gateway::Conversations::new(host.clone(), options, limits),
        });
        let (memories, counted) = (Memories::default(), Mutex::default());
        Arc::new(Self { keeper, watching, has_rules, has_plugins, memories, counted })
    }

    /// Returns whether anything acts on answers: if not, a server passes on the received bytes.
    pub(super) fn act(&self) -> bool {
        self.keeper.is_some() && (self.has_rules || self.has_plugins)
    }

    /// Returns whether plugins act.
    pub(super) fn have_plugins(&self) -> bool {
        self.keeper.is_some() && self.has_plugins
    }

    /// Returns how many conversations are open, and what happened to the others.
    pub fn counts(&self) -> ConversationCounts {
        self.keeper.as_ref().map(|keeper| keeper.counts()).unwrap_or_default()
    }

    /// Returns whether the store did not answer when it was used last.
    pub(super) fn is_store_away(&self) -> bool {
        self.keeper.as_ref().is_some_and(|keeper| keeper.is_store_away())
    }

    /// Counts the changes since the last call, and returns the counters.
    pub(super) fn count(&self, metrics: &Metrics) -> ConversationCounts {
        let now = self.counts();
        let before = std::mem::replace(&mut *self.counted.lock().unwrap_or_else(PoisonError::into_inner), now);
        for (outcome, now, before) in [
            ("evicted", now.evicted, before.evicted),
            ("forgotten", now.forgotten, before.forgotten),
            ("branched", now.branched, before.branched),
            ("local", now.local, before.local),
            ("lost", now.lost, before.lost),
        ] {
            let more = now.saturating_sub(before);
            if more > 0 {
                metrics.gateway_conversation(outcome, more);
            }
        }
        now
    }

    /// Closes the conversations, and stores the data that is not stored yet. Call it at the end of the process.
    pub async fn close(&self) {
        if let Some(keeper) = &self.keeper {
            keeper.close().await;
        }
    }

    /// Returns how many conversations are forgotten when `next` takes the place of these.
    pub fn forgotten_by(&self, next: Option<&Self>) -> usize {
        let next = next.and_then(|next| next.keeper.as_deref());
        self.keeper.as_ref().map_or(0, |keeper| keeper.forgotten_by(next))
    }

    /// Closes the conversations whose data is stored: those that replace these continue the others.
    pub async fn leave(&self) {
        if let Some(keeper) = &self.keeper {
            keeper.leave().await;
        }
    }

    /// Checks a request whose texts cannot be given to callbacks.
    ///
    /// # Errors
    /// A plugin guards requests.
    pub(super) async fn pass_unread(&self) -> Result<(), Refusal> {
        let Some(keeper) = &self.keeper else { return Ok(()) };
        let trail = Trail::of(Wire::OpenAiChat, &Value::Null, |_| None, None, &[]).as_side_request();
        let visit = keeper.enter(trail).await.map_err(|error| Refusal::blocked(error.to_string()))?;
        match visit.conversation().caller().guards_requests() {
            Some(by) => Err(Refusal::Unread { by: by.to_string() }),
            None => Ok(()),
        }
    }

    /// Begins the exchange of a request.
    pub(super) async fn begin<'h>(
        self: &Arc<Self>,
        asked: Asked<'_>,
        header: impl Fn(&str) -> Option<&'h str>,
        (progress, gone): (&Progress, &CancellationToken),
    ) -> Result<Start, Refusal> {
        let Asked { wire, body, owner, asks } = asked;
        let request = self.read(body)?;
        let trail = Trail::of(wire, &request, header, self.watching.header.as_deref(), owner);
        let visit = self.enter(trail, asks).await?;
        let (model, is_stream) = (request["model"].as_str().unwrap_or_default(), request["stream"] == true);
        let vendor = if wire == Wire::Anthropic { "anthropic" } else { "openai" };
        let conversation = visit.conversation();
        conversation.set_model(vendor, model);
        let caller = conversation.caller();
        let Some(memory) = self.memories.of(conversation) else {
            return Err(Refusal::Store("another version of the gateway has written it".to_owned()));
        };
        if asks == Asks::Answer {
            visit.starts(vendor, model);
        }
        let show = |shown| conversation.show(shown);
        let show = conversation.shows().then_some(&show as gateway::Show<'_>);
        let prepared = within(progress, gone, prepare(&caller, &memory, wire, body, show)).await;
        let mut added = Added { body: body.clone(), notices: Vec::new() };
        if let Ok(Prepared::Ask(body)) = &prepared {
            if asks == Asks::Answer {
                visit.asked(&gateway::Asked::of(wire, body), vendor, model);
            }
            added.body = body.clone();
            // A side request, such as for a title, is not what the additions are written for.
            if asks != Asks::Answer || !visit.is_side_request() {
                let (given, state) = visit.given();
                added = add(&given, &state, &memory, (wire, model), body);
            }
        }
        let sent = added.body;
        let exchange = Exchange::new(wire, sent.clone(), model, visit.rules()).holding(self.watching.held);
        let own = Filtered::new(exchange, model, Some(caller), Arc::clone(&memory)).noting(added.notices);
        let received = Received::new(wire, is_stream);
        let route = Arc::clone(&progress.route);
        let begun = Begun { visit, own, memory, received, wire, route, _of: Arc::clone(self) };
        begun.start(prepared, sent, (asks, is_stream)).await
    }

    /// Decodes a request as the stages do, also with unpaired surrogates; what is not JSON is `null`.
    fn read(&self, body: &[u8]) -> Result<Value, Refusal> {
        // Plugins get texts. For rules, which watch the answer, the same bytes are the same conversation.
        let text = String::from_utf8_lossy(body);
        if self.has_plugins && matches!(text, Cow::Owned(_)) {
            let why = "the body of the request is not valid UTF-8, so it cannot be checked";
            return Err(Refusal::Malformed(why));
        }
        Ok(gateway::read_json(&text).unwrap_or(Value::Null))
    }

    async fn enter(&self, trail: Trail, asks: Asks) -> Result<Visit, Refusal> {
        let Some(keeper) = &self.keeper else { return Err(Refusal::blocked("nothing guards this route".to_owned())) };
        let entered = if asks == Asks::Count { keeper.enter_to_count(trail).await } else { keeper.enter(trail).await };
        entered.map_err(|error| match error {
            HostError::State(error) => Refusal::Store(error.to_string()),
            error => Refusal::blocked(error.to_string()),
        })
    }
}

impl Drop for Conversations {
    /// Closes the open conversations when they were replaced and the last exchange is over, so that their next requests find them
    /// elsewhere.
    fn drop(&mut self) {
        if let (Some(keeper), Ok(runtime)) = (self.keeper.take(), Handle::try_current()) {
            runtime.spawn(async move { keeper.leave().await });
        }
    }
}

/// The memories of conversations with exchanges under way: concurrent exchanges share one memory, so that a text is replaced in one way
/// only.
#[derive(Debug, Default)]
struct Memories(Mutex<HashMap<SessionId, Weak<Mutex<Memory>>>>);

impl Memories {
    /// Returns the memory of a conversation; `None` if the stored one cannot be read.
    fn of(&self, conversation: &Conversation) -> Option<Arc<Mutex<Memory>>> {
        // Another host can have added notes.
        let stored = remembered(conversation.memory())?;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, memory| memory.strong_count() > 0);
        if let Some(memory) = all.get(conversation.id()).and_then(Weak::upgrade) {
            memory.lock().unwrap_or_else(PoisonError::into_inner).merge(stored);
            return Some(memory);
        }
        let memory = Arc::new(Mutex::new(stored));
        all.insert(conversation.id().clone(), Arc::downgrade(&memory));
        Some(memory)
    }
}

/// A request of a conversation.
pub(super) struct Asked<'a> {
    pub(super) wire: Wire,
    pub(super) body: &'a Bytes,
    /// The owner of the client's conversations: those of different owners share nothing.
    pub(super) owner: &'a [u8],
    pub(super) asks: Asks,
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    Answer,
    /// The number of its tokens.
    Count,
    /// A summary of its conversation, with which the conversation continues and keeps its memory.
    Compaction,
}

/// The outcome of beginning an exchange.
pub(super) enum Start {
    /// The body to send upstream.
    Ask(Box<Begun>, Bytes),
    /// A plugin has answered or refused it.
    Answered { begun: Box<Begun>, body: Bytes, is_stream: bool },
}

/// An exchange in its conversation.
pub(super) struct Begun {
    visit: Visit,
    pub(super) own: Filtered,
    memory: Arc<Mutex<Memory>>,
    received: Received,
    wire: Wire,
    route: Arc<Upstream>,
    /// Closed when the last exchange drops it, so this field is dropped last.
    _of: Arc<Conversations>,
}

impl Begun {
    /// Returns how it starts, by what plugins have made of its request. `sent`: the body to send, if it is sent.
    async fn start(
        mut self,
        prepared: Result<Prepared, Refusal>,
        sent: Bytes,
        (asks, is_stream): (Asks, bool),
    ) -> Result<Start, Refusal> {
        let answer = match prepared {
            Ok(Prepared::Reply(words)) if asks == Asks::Answer => Ok(self.own.reply(&words, is_stream).await),
            Ok(Prepared::Refused { words, notice }) if asks == Asks::Answer => {
                self.visit.refused(&notice);
                Ok(self.own.refuse(&words, notice, is_stream))
            }
            Ok(Prepared::Reply(why)) => {
                Err(Refusal::Blocked { why, notice: "an extension has answered it".to_owned() })
            }
            Ok(Prepared::Refused { words, notice }) => {
                Err(Refusal::Blocked { why: words.trim_matches(['[', ']']).to_owned(), notice })
            }
            Ok(_) => return Ok(Start::Ask(Box::new(self), sent)),
            Err(refusal) => Err(refusal),
        };
        match answer {
            Ok(next) => {
                self.received.push(&next.send);
                self.end(true).await;
                Ok(Start::Answered { begun: Box::new(self), body: next.send.into(), is_stream })
            }
            Err(refusal) => {
                self.end(false).await;
                Err(refusal)
            }
        }
    }

    /// Begins the answer.
    pub(super) fn begin(&mut self, is_stream: bool) {
        self.own.begin(is_stream);
        self.received = Received::new(self.wire, is_stream);
    }

    /// Returns the id of the conversation.
    pub(super) fn conversation(&self) -> &str {
        self.visit.conversation().id().as_str()
    }

    /// Takes bytes that are sent to the client.
    pub(super) fn sends(&mut self, bytes: &[u8]) {
        self.visit.happened(self.own.take_events());
        self.received.push(bytes);
    }

    /// Ends the exchange once, logs its notices, and updates the memory of the conversation. Call this before the client gets the end of the answer, because its
    /// next request can follow at once, to another instance. `is_complete`: whether the client has all of the answer.
    pub(super) async fn end(&mut self, is_complete: bool) {
        self.visit.happened(self.own.take_events());
        self.own.finish();
        for notice in self.own.exchange().notices() {
            tracing::warn!(route = self.route.route.path, "{notice}");
        }
        let own = self.memory.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if !own.is_empty() {
            self.visit.conversation().change_memory(|before| with_notes(before, own));
        }
        let received = std::mem::replace(&mut self.received, Received::new(self.wire, true));
        let answer = is_complete.then(|| received.finish());
        if let Err(error) = self.visit.end(self.own.exchange().rules(), answer.as_ref()).await {
            tracing::warn!(
                conversation = self.conversation(),
                "what an exchange has changed is not stored yet: {error}"
            );
        }
    }
}

/// Reads the memory of a conversation; `None` if it cannot be read.
fn remembered(memory: Value) -> Option<Memory> {
    if memory.is_null() { Some(Memory::default()) } else { serde_json::from_value(memory).ok() }
}

/// Returns the memory of a conversation with the notes of an exchange added. A memory that cannot be read remains unchanged, because masked
/// texts are restored with it.
fn with_notes(before: Value, own: Memory) -> Value {
    let Some(mut all) = remembered(before.clone()) else {
        tracing::error!("what a conversation remembers cannot be read, and the notes of an exchange are not added");
        return before;
    };
    all.merge(own);
    serde_json::to_value(all).unwrap_or(before)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_cannot_be_read_is_not_replaced() {
        let notes = || remembered(json!({"text:1": "Be brief."})).unwrap();
        assert_eq!(with_notes(Value::Null, notes()), json!({"text:1": "Be brief."}));
        assert_eq!(with_notes(json!({"text:2": true}), notes()), json!({"text:1": "Be brief.", "text:2": true}));
        for other in [json!({"text:1": {"version": 2}}), json!([1]), json!("text")] {
            assert!(remembered(other.clone()).is_none(), "{other}");
            assert_eq!(with_notes(other.clone(), notes()), other);
        }
    }
}
