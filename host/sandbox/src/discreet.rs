//! Words that a plugin chose, in what the host reports of it. A plugin that guards gets what nobody is to see, and most of what it says of a
//! failure has it: the message of a panic quotes the text, and so do an error and a log line. Of such a plugin the host reports what
//! itself knows: what was called, how it failed, and where.

use std::sync::Arc;

use flow::{CallAnswer, InputAnswer, OutputAnswer, ResultAnswer, TagAnswer, TextAnswer};

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

/// An answer whose invalid parts are reported.
pub(crate) trait Reasons {
    /// Why parts of it are not valid, each in words that can have some of the plugin's.
    fn reasons(&mut self) -> Vec<&mut String>;

    /// Leaves these words out.
    fn leave_out(&mut self) {
        self.reasons().into_iter().for_each(|why| LEFT_OUT.clone_into(why));
    }
}

impl Reasons for InputAnswer {
    fn reasons(&mut self) -> Vec<&mut String> {
        if let Self::Ignored(why) = self { vec![why] } else { Vec::new() }
    }
}

impl Reasons for TextAnswer {
    fn reasons(&mut self) -> Vec<&mut String> {
        if let Self::Ignored(why) = self { vec![why] } else { Vec::new() }
    }
}

impl Reasons for TagAnswer {
    fn reasons(&mut self) -> Vec<&mut String> {
        if let Self::Ignored(why) = self { vec![why] } else { Vec::new() }
    }
}

impl Reasons for CallAnswer {
    fn reasons(&mut self) -> Vec<&mut String> {
        if let Self::Ignored(why) = self { vec![why] } else { Vec::new() }
    }
}

impl Reasons for OutputAnswer {
    fn reasons(&mut self) -> Vec<&mut String> {
        self.unusable.iter_mut().chain(&mut self.ignored).collect()
    }
}

impl Reasons for ResultAnswer {
    fn reasons(&mut self) -> Vec<&mut String> {
        self.unusable.iter_mut().chain(&mut self.ignored).collect()
    }
}

/// A rejected call is an answer, which the model reads.
impl Reasons for ToolText {
    fn reasons(&mut self) -> Vec<&mut String> {
        Vec::new()
    }
}

impl Reasons for () {
    fn reasons(&mut self) -> Vec<&mut String> {
        Vec::new()
    }
}
