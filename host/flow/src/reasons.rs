//! The reasons why parts of an extension's answer are invalid.

use super::{CallAnswer, InputAnswer, OutputAnswer, ResultAnswer, TagAnswer, TextAnswer};

/// An answer whose invalid parts are reported.
pub trait Reasons {
    /// Returns the reasons, each of which can contain words of the extension.
    fn reasons(&mut self) -> Vec<&mut String>;

    /// Replaces the reasons: those of an extension that guards can quote text that nobody is allowed to see.
    fn leave_out(&mut self, instead: &str) {
        self.reasons().into_iter().for_each(|why| instead.clone_into(why));
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

impl Reasons for () {
    fn reasons(&mut self) -> Vec<&mut String> {
        Vec::new()
    }
}
