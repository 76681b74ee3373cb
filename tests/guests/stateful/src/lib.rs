//! A guest that reads or writes its state as often as the text says: what an operation of the power costs.

#![forbid(unsafe_code)]

use tidegate_sdk::prelude::*;

#[derive(Default)]
struct Stateful;

impl OnPlainText for Stateful {
    /// `get COUNT`, `set COUNT` and `keys COUNT`: reads one key so often, writes one key, or writes as many keys.
    fn on_plain_text(&mut self, text: &str, _place: &TextPlace) -> Result<TextAnswer> {
        let (what, count) = text.split_once(' ').unwrap_or((text, "0"));
        let count: u32 = count.parse()?;
        for number in 0..count {
            match what {
                "get" => drop(state::get_bytes("key")?),
                "set" => state::set_bytes("key", &[b'x'; 100])?,
                "keys" => state::set_bytes(&format!("key-{number}"), &[b'x'; 100])?,
                other => bail!("`{other}` is no word of this guest"),
            }
        }
        Ok(TextAnswer::Pass)
    }
}

tidegate_sdk::export!(Stateful: OnPlainText);
