//! Words that a plugin chose, in what the host reports of it. A plugin that guards gets what nobody is to see, and most of what it says of a
//! failure has it: the message of a panic quotes the text, and so do an error and a log line. Of such a plugin the host reports what
//! itself knows: what was called, how it failed, and where.

use std::sync::Arc;

use flow::Reasons;

use crate::guest::Identity;
use crate::v0_1::ToolText;

/// In the place of the words.
pub(crate) const LEFT_OUT: &str = "its words are left out, because it guards; `full_diagnostics` shows them";

/// In the place of a key of its state.
const KEY: &str = "[hidden]";

impl Identity {
    /// The same plugin, once it is known whether it guards.
    pub(crate) fn discreet(self: Arc<Self>, discreet: bool) -> Arc<Self> {
        if discreet { Arc::new(Self { discreet, ..(*self).clone() }) } else { self }
    }

    /// Words of the plugin, as they are reported.
    pub(crate) fn words(&self, words: String) -> String {
        if self.discreet { LEFT_OUT.to_owned() } else { words }
    }

    /// A key of its state, as it is reported.
    pub(crate) fn key(&self, key: String) -> String {
        if self.discreet && !key.is_empty() { KEY.to_owned() } else { key }
    }
}

/// A rejected call is an answer, which the model reads.
impl Reasons for ToolText {
    fn reasons(&mut self) -> Vec<&mut String> {
        Vec::new()
    }
}
