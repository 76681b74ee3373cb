//! A guest that changes nothing: what a callback costs when it has nothing to say.

#![forbid(unsafe_code)]

use tidegate_sdk::prelude::*;

#[derive(Default)]
struct PassThrough;

impl OnPlainText for PassThrough {
    fn on_plain_text(&mut self, _text: &str, _place: &TextPlace) -> Result<TextAnswer> {
        Ok(TextAnswer::Pass)
    }
}

tidegate_sdk::export!(PassThrough: OnPlainText);
