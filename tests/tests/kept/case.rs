//! The cases in `tests/corpus/kept`.

use std::collections::{BTreeMap, BTreeSet};

use flow::{CallId, Delta, ErrorClass, ModelError, StopReason, StreamKind};
use serde::Deserialize;
use tidegate_kit::{Script, pieces};

/// A file of cases.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub(crate) case: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) unit: Option<String>,
    pub(crate) streams: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) by: By,
    pub(crate) context: Option<String>,
    #[serde(default)]
    pub(crate) prefill: bool,
    pub(crate) rewrites: Option<String>,
    #[serde(default)]
    pub(crate) rule: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) unsaid: bool,
    #[serde(default)]
    pub(crate) file: BTreeMap<String, String>,
    pub(crate) asks: Option<String>,
    pub(crate) fail: Option<String>,
    #[serde(default)]
    words: Vec<String>,
    #[serde(default)]
    pub(crate) left: BTreeMap<String, String>,
    pub(crate) turn: Vec<Turn>,
}

/// Who decides which text is kept.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum By {
    #[default]
    Operator,
    Manifest,
    Registered,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Turn {
    pub(crate) input: String,
    pub(crate) answer: Vec<Answer>,
    #[serde(default)]
    pub(crate) cancel: bool,
    pub(crate) status: Option<String>,
    pub(crate) text: String,
    pub(crate) kept: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    pub(crate) block: Vec<Block>,
    pub(crate) fail: Option<String>,
    #[serde(default)]
    pub(crate) hangs: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Block {
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    tool: Option<String>,
    id: Option<String>,
    arguments: Option<String>,
}

impl Case {
    /// The words that nobody is to keep.
    pub(crate) fn words(&self) -> BTreeSet<String> {
        let blocks = self.turn.iter().flat_map(|turn| &turn.answer).flat_map(|answer| &answer.block);
        let texts = blocks.flat_map(|block| [&block.text, &block.thinking, &block.arguments]).flatten();
        texts.chain(self.file.values()).flat_map(|text| words(text)).chain(self.words.clone()).collect()
    }

    /// The answers of all turns, cut into chunks of `cut` characters.
    pub(crate) fn scripts(&self, cut: usize) -> Vec<Script> {
        self.turn.iter().flat_map(|turn| &turn.answer).map(|answer| answer.script(cut)).collect()
    }
}

/// The words in a text that begin with `hush-`.
pub(crate) fn words(text: &str) -> Vec<String> {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let word = |(at, _): (usize, &str)| {
        let rest = &text[at..];
        rest[..rest.find(|c| !is_of_word(c)).unwrap_or(rest.len())].to_owned()
    };
    text.match_indices("hush-").map(word).collect()
}

impl Answer {
    fn script(&self, cut: usize) -> Script {
        let mut deltas = vec![Delta::Start { model: None }];
        let mut reason = StopReason::EndTurn;
        let last = self.block.len().saturating_sub(1);
        for (number, block) in (0..).zip(&self.block) {
            let (kind, text) = block.content();
            if kind.is_tool() {
                reason = StopReason::ToolUse;
            }
            deltas.push(Delta::BlockStart { block: number, kind });
            deltas.extend(pieces(number, text, cut));
            let signed = block.signature.clone();
            deltas.extend(signed.map(|data| Delta::Signature { block: number, data, redacted: false }));
            if number as usize == last && (self.fail.is_some() || self.hangs) {
                break;
            }
            deltas.push(Delta::BlockEnd { block: number });
        }
        if self.hangs {
            return Script::Say(deltas, None);
        }
        if let Some(fail) = &self.fail {
            return Script::Say(deltas, Some(Err(ModelError::new(ErrorClass::Permanent, fail))));
        }
        deltas.push(Delta::Stop { reason });
        Script::Say(deltas, Some(Ok(())))
    }
}

impl Block {
    fn content(&self) -> (StreamKind, &str) {
        match self {
            Self { text: Some(text), .. } => (StreamKind::Text, text),
            Self { thinking: Some(text), .. } => (StreamKind::Thinking, text),
            Self { tool: Some(name), id, arguments, .. } => {
                let call = CallId::new(id.clone().unwrap_or_else(|| "1".to_owned()));
                (StreamKind::Tool { call, name: name.clone() }, arguments.as_deref().unwrap_or("{}"))
            }
            Self { .. } => panic!("a block has `text`, `thinking` or `tool`"),
        }
    }
}
