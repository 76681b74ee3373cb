//! A guest that answers with what it was given: what a callback costs when its data passes both ways.
//! `tests/benches/extism-guest` is the same for Extism.

#![forbid(unsafe_code)]

use tidegate_sdk::prelude::*;

#[derive(Default)]
struct Echo;

impl OnInputMessages for Echo {
    fn on_input_messages(&mut self, messages: Vec<Message>) -> Result<InputAnswer> {
        Ok(InputAnswer::Replace(messages))
    }
}

impl OnPlainText for Echo {
    fn on_plain_text(&mut self, text: &str, _place: &TextPlace) -> Result<TextAnswer> {
        Ok(TextAnswer::replace(text))
    }
}

impl OnTag for Echo {
    fn tag_options(&self) -> TagOptions {
        TagOptions::new(["note"])
    }

    fn on_tag(&mut self, tag: &Tag, _place: &TagPlace) -> Result<TagAnswer> {
        Ok(TagAnswer::content(tag.content.as_str()))
    }
}

tidegate_sdk::export!(Echo: OnInputMessages, OnPlainText, OnTag);
