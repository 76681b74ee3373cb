//! Names of tools and ids of calls as a provider takes them.
//!
//! A model can call a tool by any name (`functions.read_file`, a name with a part of its own template), and ids come from whoever
//! answered. What the provider takes is sent as it is. Everything else is replaced by a value that depends on nothing but the
//! original, so that it is the same in every request of the conversation.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::Hasher as _;

use flow::{Delta, StreamKind, ToolSpec};

use crate::Wire;
use crate::wires::{IdCharacters, Takes, takes};

/// Characters of the digest at the end of a name that was changed.
const DIGEST: usize = 8;

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// A tool's name as the provider takes it. Two names never become the same one: a name that is changed ends with a digest of the
/// original.
pub(crate) fn tool_name<'a>(name: &'a str, takes: &Takes) -> Cow<'a, str> {
    if !name.is_empty() && name.len() <= takes.tool_name_bytes && name.bytes().all(is_word) {
        return Cow::Borrowed(name);
    }
    let mut readable = String::new();
    for c in name.chars() {
        match u8::try_from(c) {
            Ok(byte) if is_word(byte) => readable.push(c),
            _ if readable.ends_with('_') => {}
            _ => readable.push('_'),
        }
    }
    readable.truncate(takes.tool_name_bytes.saturating_sub(DIGEST + 1));
    let readable = readable.trim_matches('_');
    let readable = if readable.is_empty() { "tool" } else { readable };
    Cow::Owned(format!("{readable}_{:08x}", digest(name, 0) >> 32))
}

/// The tools that are offered under another name than their own: the model calls them by that.
#[derive(Debug, Default)]
pub struct Renamed(Vec<(String, String)>);

impl Renamed {
    /// The tools of a request.
    pub fn new(tools: &[ToolSpec], wire: Wire) -> Self {
        let takes = takes(wire);
        let sent = tools.iter().map(|tool| (tool_name(&tool.name, takes), &tool.name));
        Self(sent.filter(|(sent, own)| *sent != ***own).map(|(sent, own)| (sent.into_owned(), own.clone())).collect())
    }

    /// Gives a call of the model the tool's own name.
    pub fn restore(&self, delta: &mut Delta) {
        if let Delta::BlockStart { kind: StreamKind::Tool { name, .. }, .. } = delta
            && let Some((_, own)) = self.0.iter().find(|(sent, _)| sent == name)
        {
            name.clone_from(own);
        }
    }
}

/// The ids of a request.
#[derive(Debug)]
pub(super) struct Ids<'t> {
    takes: &'t Takes,
    used: HashSet<String>,
}

impl<'t> Ids<'t> {
    pub(super) fn new(takes: &'t Takes) -> Self {
        Self { takes, used: HashSet::new() }
    }

    /// The id of the next call: its own where the provider takes it and no call before has it.
    pub(super) fn next(&mut self, id: &str) -> String {
        let own = self.is_taken(id).then(|| id.to_owned());
        let minted = (0_u64..).map(|number| format!("call_{:016x}", digest(id, number)));
        let mut candidates = own.into_iter().chain(minted);
        loop {
            let Some(id) = candidates.next() else { return id.to_owned() };
            if self.used.insert(id.clone()) {
                return id;
            }
        }
    }

    fn is_taken(&self, id: &str) -> bool {
        let allowed = |byte: u8| match self.takes.call_id {
            IdCharacters::Word => is_word(byte),
            IdCharacters::Graphic => byte.is_ascii_graphic(),
        };
        !id.is_empty() && id.len() <= self.takes.call_id_bytes && id.bytes().all(allowed)
    }
}

/// FNV-1a of a string and a number: the same in every version of the program.
fn digest(text: &str, number: u64) -> u64 {
    let mut hasher = fnv::FnvHasher::default();
    hasher.write(text.as_bytes());
    hasher.write(&number.to_le_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{Ids, tool_name};
    use crate::Wire;
    use crate::wires::takes;

    const WIRES: [Wire; 3] = [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses];

    #[test]
    fn names_are_valid_stable_and_distinct() {
        let long = "long".repeat(100);
        let names = [
            "functions.list_dir",
            "functions_list_dir",
            "functions/list_dir",
            "list_dir<|channel|>commentary",
            "read_file\" path=\"a.txt",
            "",
            " ",
            "_",
            "читать",
            "読む",
            "a\nb",
            "a\u{0}b",
            long.as_str(),
            &long[..200],
        ];
        for wire in WIRES {
            let takes = takes(wire);
            let sent: Vec<_> = names.iter().map(|name| tool_name(name, takes)).collect();
            for name in &sent {
                assert!((1..=takes.tool_name_bytes).contains(&name.len()), "{name}");
                assert!(name.bytes().all(super::is_word), "{name}");
            }
            assert_eq!(sent.iter().collect::<HashSet<_>>().len(), names.len(), "{sent:?}");
            assert_eq!((&*sent[1], &*sent[7]), ("functions_list_dir", "_"), "what is valid stays as it is");
            assert_eq!(sent[0], "functions_list_dir_6382462f", "the same in every version");
        }
    }

    #[test]
    fn ids_are_valid_stable_and_distinct() {
        let long = "i".repeat(100);
        let given = ["a", "a", "", "", "call:1/x", "call:1/x", "b c", "ü", &long, &long, "a"];
        for wire in WIRES {
            let takes = takes(wire);
            let sent = || {
                let mut ids = Ids::new(takes);
                given.map(|id| ids.next(id))
            };
            let first = sent();
            assert_eq!(first, sent());
            assert_eq!(first.iter().collect::<HashSet<_>>().len(), given.len(), "{first:?}");
            let ids = Ids::new(takes);
            assert!(first.iter().all(|id| ids.is_taken(id)), "{first:?}");
            assert_eq!(first[0], "a");
            assert_eq!(first[4] == "call:1/x", wire == Wire::OpenAiChat, "{first:?}");
        }
    }
}
