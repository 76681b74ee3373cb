//! A guest whose state has another format than that of its first version.

#![forbid(unsafe_code)]

use tidegate_sdk::prelude::*;

/// The first version kept texts under `KEY`; this one keeps them under `v2/KEY`, with the version that wrote them.
struct Versioned {
    failure: String,
}

impl Extension for Versioned {
    fn new(settings: &Settings) -> Result<Self> {
        Ok(Self { failure: settings.get_or("failure", String::new())? })
    }
}

impl OnPlainText for Versioned {
    /// `KEY=VALUE` writes; the answer is all of the state, sorted.
    fn on_plain_text(&mut self, text: &str, _place: &TextPlace) -> Result<TextAnswer> {
        if let Some((key, value)) = text.trim().split_once('=') {
            state::set_bytes(&format!("v2/{key}"), value.as_bytes())?;
        }
        let mut all = Vec::new();
        for key in state::keys("")? {
            let value = state::get_bytes(&key)?.unwrap_or_default();
            all.push(format!("{key}={}", String::from_utf8_lossy(&value)));
        }
        Ok(TextAnswer::replace(all.join(" ")))
    }
}

impl Migrate for Versioned {
    fn migrate(&mut self, from: u32) -> Result<()> {
        for key in state::keys("")? {
            let value = state::get_bytes(&key)?.unwrap_or_default();
            let value = format!("{} (from {from})", String::from_utf8_lossy(&value));
            state::set_bytes(&format!("v2/{key}"), value.as_bytes())?;
            state::delete(&key)?;
            match self.failure.as_str() {
                "error" => bail!("no more"),
                "panic" => panic!("cannot"),
                "loop" => loop {
                    std::hint::spin_loop();
                },
                _ => {}
            }
        }
        Ok(())
    }
}

tidegate_sdk::export!(Versioned: OnPlainText, Migrate);
