//! The settings of a chat, and its modes.

use std::fmt;
use std::sync::Arc;

use flow::Event;
use serde::{Deserialize, Serialize};

use crate::attachments::Attachments;
use crate::confirmations::{ConfirmationPolicy, Policy};
use crate::log::LogOptions;
use crate::message::ChildThread;
use crate::question::Question;
use crate::steering::SteeringOptions;

/// What a chat is doing, unless a front end derives modes of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChatMode {
    /// No turn runs, and nobody is asked.
    #[default]
    Idle,
    /// A turn runs.
    Streaming,
    /// A person is asked about a tool call.
    ConfirmingTool,
}

/// What a mode is derived from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModeInput {
    /// A turn runs.
    pub executing: bool,
    /// A question waits for the person.
    pub confirming: bool,
    /// The last turn did not complete.
    pub failed: bool,
}

/// Questions come before a running turn, and that before idle.
pub fn default_mode(input: ModeInput) -> ChatMode {
    match input {
        ModeInput { confirming: true, .. } => ChatMode::ConfirmingTool,
        ModeInput { executing: true, .. } => ChatMode::Streaming,
        ModeInput { .. } => ChatMode::Idle,
    }
}

/// Derives a front end's mode.
pub type ModeDeriver<M> = Arc<dyn Fn(ModeInput) -> M + Send + Sync>;

/// Is called with each event that a chat takes, before the chat processes it; with the child whose event it is, or `None` for the thread
/// itself. An event that the chat has had is not given again.
pub type EventHook = Arc<dyn Fn(Option<&ChildThread>, &Event) + Send + Sync>;

/// Settings of a [`ChatSession`](super::ChatSession).
#[derive(Clone)]
#[non_exhaustive]
pub struct ChatOptions<M = ChatMode> {
    /// What is shown of messages, and when.
    pub log: LogOptions,
    /// What is sent when.
    pub steering: SteeringOptions,
    /// Decides about questions before they are shown; without it all are shown.
    pub policy: Option<ConfirmationPolicy>,
    /// Derives the mode.
    pub derive_mode: ModeDeriver<M>,
    /// Is called with each event first.
    pub on_event: Option<EventHook>,
    /// What the user is allowed to attach.
    pub attachments: Attachments,
}

impl Default for ChatOptions {
    fn default() -> Self {
        Self::with_mode(default_mode)
    }
}

impl<M> ChatOptions<M> {
    /// The default settings, with modes of the front end's own.
    pub fn with_mode(derive_mode: impl Fn(ModeInput) -> M + Send + Sync + 'static) -> Self {
        Self {
            log: LogOptions::default(),
            steering: SteeringOptions::default(),
            policy: None,
            derive_mode: Arc::new(derive_mode),
            on_event: None,
            attachments: Attachments::default(),
        }
    }

    /// Sets what is shown of messages, and when.
    #[must_use]
    pub fn log(mut self, log: LogOptions) -> Self {
        self.log = log;
        self
    }

    /// Sets what is sent when.
    #[must_use]
    pub fn steering(mut self, steering: SteeringOptions) -> Self {
        self.steering = steering;
        self
    }

    /// Sets what decides about questions before they are shown.
    #[must_use]
    pub fn policy(mut self, policy: impl Fn(&Question) -> Policy + Send + Sync + 'static) -> Self {
        self.policy = Some(Arc::new(policy));
        self
    }

    /// Sets what is called with each event, before the chat processes it: for a front end that counts, logs or shows events that no primitive
    /// uses, next to the chat. See [`EventHook`].
    #[must_use]
    pub fn on_event(mut self, hook: impl Fn(Option<&ChildThread>, &Event) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(hook));
        self
    }

    /// Sets what the user is allowed to attach.
    #[must_use]
    pub fn attachments(mut self, attachments: Attachments) -> Self {
        self.attachments = attachments;
        self
    }
}

impl<M> fmt::Debug for ChatOptions<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatOptions").field("log", &self.log).field("steering", &self.steering).finish_non_exhaustive()
    }
}
