//! What the vendors of the wire formats take in a request, as data.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::Wire;

/// The limits of one wire format.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Takes {
    /// Bytes of the name of a tool, which consists of ASCII letters, digits, `_` and `-`.
    pub(crate) tool_name_bytes: usize,
    /// Bytes of the id of a call.
    pub(crate) call_id_bytes: usize,
    /// The characters of the id of a call.
    pub(crate) call_id: IdCharacters,
}

/// The characters of an id.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IdCharacters {
    /// ASCII letters, digits, `_` and `-`.
    Word,
    /// Every ASCII character that can be seen.
    Graphic,
}

/// The table of the program; a test reads it. Without an entry, what all formats take.
static TAKES: LazyLock<BTreeMap<String, Takes>> =
    LazyLock::new(|| toml::from_str(include_str!("wires.toml")).unwrap_or_default());

static STRICTEST: Takes = Takes { tool_name_bytes: 64, call_id_bytes: 40, call_id: IdCharacters::Word };

/// What the vendor of this format takes.
pub(crate) fn takes(wire: Wire) -> &'static Takes {
    TAKES.get(wire.as_str()).unwrap_or(&STRICTEST)
}

#[cfg(test)]
mod tests {
    use super::{STRICTEST, takes};
    use crate::Wire;

    #[test]
    fn the_table_has_every_format() {
        for wire in [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses] {
            assert!(!std::ptr::eq(takes(wire), &STRICTEST), "{wire:?}");
            assert!(takes(wire).tool_name_bytes >= STRICTEST.tool_name_bytes, "{wire:?}");
        }
    }
}
