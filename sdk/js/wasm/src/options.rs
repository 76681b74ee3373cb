//! The settings of an instance, as JavaScript gives them.

use chat::{ChatMessage, FlushMode, LogOptions, RenderMode, SteeringMode, SteeringOptions};
use serde::Deserialize;

/// Which primitive an instance is.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Chat,
    Log,
    Confirmations,
    Steering,
    Text,
}

/// The settings of an instance.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    pub(crate) kind: Kind,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    render_mode: RenderMode,
    #[serde(default)]
    mode: SteeringMode,
    #[serde(default)]
    flush_mode: FlushMode,
    #[serde(default)]
    auto_flush: Option<bool>,
    #[serde(default)]
    session_queue: bool,
    #[serde(default)]
    initial_messages: Vec<ChatMessage>,
    #[serde(default)]
    pub(crate) attachments: Option<AttachmentLimits>,
}

/// What can be attached to a message.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct AttachmentLimits {
    pub(crate) most: usize,
    pub(crate) types: Vec<String>,
}

impl Options {
    pub(crate) fn log(&self) -> LogOptions {
        let messages = self.initial_messages.clone();
        LogOptions::default().render_mode(self.render_mode).initial_messages(messages)
    }

    pub(crate) fn steering(&self) -> SteeringOptions {
        let options = SteeringOptions::default().mode(self.mode).flush_mode(self.flush_mode);
        let options = options.auto_flush(self.auto_flush.unwrap_or(true));
        let options = match &self.name {
            Some(name) => options.name(name.as_str()),
            None => options,
        };
        if self.session_queue { options.session_queue() } else { options }
    }
}
