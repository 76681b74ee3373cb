//! Why parts of an answer of an extension are not valid.

use super::{CallAnswer, InputAnswer, OutputAnswer, ResultAnswer, TagAnswer, TextAnswer};

/// An answer whose invalid parts are reported.
pub trait Reasons {
    /// Why parts of it are not valid, each in words that can have some of the extension's.
    fn reasons(&mut self) -> Vec<&mut String>;

    /// Has other words in their place: those of an extension that guards can quote what nobody is to see.
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
