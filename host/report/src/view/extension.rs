//! What a report says about the texts of extensions.

use record::ExtensionPrompt;

use super::{Block, Kind, View};

pub(super) fn prompt(prompt: &ExtensionPrompt) -> View<'_> {
    let view = View::new(Kind::Host, prompt.sentence().text);
    prompt.texts.iter().fold(view, |view, one| view.with(Block::new("text", one.text.as_str()).folded()))
}
