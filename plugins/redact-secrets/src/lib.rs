//! Keeps secrets off the screen: keys, tokens and passwords in what the model writes, its reasoning included.
//!
//! The unit is the line, so that the answer still streams: no secret but a private key spans lines, and for that one the
//! plugin remembers, in state, that a key is open.

#![forbid(unsafe_code)]

mod find;
mod key_block;

use std::collections::BTreeMap;

use find::Span;
use key_block::{KeyBlock, Line};
use regex_lite::Regex;
use serde::Deserialize;
use tidegate_sdk::prelude::*;

/// State: how many secrets of each kind were redacted in this session.
const COUNTS: &str = "counts";
/// State: the private key that is open in the answer, where one is.
const OPEN_KEY: &str = "open-key";
/// The same for the reasoning.
const OPEN_KEY_THINKING: &str = "open-key-thinking";
/// What an operator's own patterns find.
const EXTRA: &str = "secret";

struct RedactSecrets {
    replacement: String,
    extra: Vec<Regex>,
    ignore: Vec<String>,
    answer: Progress,
    thinking: Progress,
}

/// The progress through the lines of one stream.
#[derive(Default)]
struct Progress {
    /// `None`: a new instance, which has to ask the state.
    open: Option<KeyBlock>,
    /// The number of the next unit where none is missed; 0 in a new instance.
    next: u32,
}

impl Progress {
    /// Takes the next line of the stream.
    fn take(&mut self, key: &str, text: &str, place: &TextPlace) -> Result<Line> {
        let before = match self.open.take() {
            Some(open) => open,
            None => state::get(key)?.unwrap_or_default(),
        };
        // Lines that failed or were skipped were withheld, and this instance, or the one before it, has not seen them.
        let missed = place.unit > 0 && self.next != place.unit;
        self.next = place.unit.saturating_add(1);
        let mut open = before.clone();
        let line = open.take(text, place, missed);
        if open != before {
            state::set(key, &open)?;
        }
        self.open = Some(open);
        Ok(line)
    }
}

/// The settings as the operator writes them.
#[derive(Deserialize)]
#[serde(default)]
struct Options {
    replacement: String,
    extra_patterns: Vec<String>,
    ignore: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { replacement: "[redacted {kind}]".into(), extra_patterns: Vec::new(), ignore: Vec::new() }
    }
}

impl Extension for RedactSecrets {
    fn new(settings: &Settings) -> Result<Self> {
        let Options { replacement, extra_patterns, mut ignore } = settings.read()?;
        ignore.retain(|text| !text.is_empty());
        let mut extra = Vec::new();
        for pattern in extra_patterns {
            let regex = Regex::new(&pattern).map_err(|error| {
                tidegate_sdk::Error::new(format_args!(
                    "setting `extra_patterns`: `{pattern}` is not a valid pattern: \
                                                       {error}"
                ))
            })?;
            if regex.is_match("") {
                bail!(
                    "setting `extra_patterns`: `{pattern}` matches nothing at all; let it match at least one character"
                );
            }
            extra.push(regex);
        }
        Ok(Self { replacement, extra, ignore, answer: Progress::default(), thinking: Progress::default() })
    }
}

impl OnPlainText for RedactSecrets {
    /// Lines of everything that the user sees, late in the chain, so that it sees what others wrote. A line that was not
    /// searched must not be shown.
    fn text_options(&self) -> TextOptions {
        let options = TextOptions::new(TextUnit::Line).streams([TextStream::Answer, TextStream::Thinking]);
        options.priority(5).on_failure(OnFailure::Withhold)
    }

    fn on_plain_text(&mut self, text: &str, place: &TextPlace) -> Result<TextAnswer> {
        let line = match place.stream {
            TextStream::Thinking => self.thinking.take(OPEN_KEY_THINKING, text, place)?,
            _ => self.answer.take(OPEN_KEY, text, place)?,
        };
        match line {
            Line::Begins => {
                count(&[key_block::KIND])?;
                Ok(TextAnswer::Replace(format!("{}\n", self.shown(key_block::KIND))))
            }
            Line::Inside => Ok(TextAnswer::replace("")),
            Line::Outside => self.redact(text),
        }
    }
}

impl RedactSecrets {
    fn redact(&self, text: &str) -> Result<TextAnswer> {
        let spans = self.spans(text);
        if spans.is_empty() {
            return Ok(TextAnswer::Pass);
        }
        let mut shown = String::with_capacity(text.len());
        let mut end = 0;
        for span in &spans {
            shown.push_str(&text[end..span.start]);
            shown.push_str(&self.shown(span.kind));
            end = span.end;
        }
        shown.push_str(&text[end..]);
        count(&spans.iter().map(|span| span.kind).collect::<Vec<_>>())?;
        Ok(TextAnswer::Replace(shown))
    }

    /// The secrets of a line, in order, none within or across another.
    fn spans(&self, text: &str) -> Vec<Span> {
        let mut spans = find::secrets(text);
        for regex in &self.extra {
            spans.extend(regex.find_iter(text).map(|found| Span {
                kind: EXTRA,
                start: found.start(),
                end: found.end(),
            }));
        }
        spans.retain(|span| !self.ignore.iter().any(|word| text[span.start..span.end].contains(word.as_str())));
        spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
        let mut apart: Vec<Span> = Vec::with_capacity(spans.len());
        for span in spans {
            match apart.last_mut() {
                Some(last) if span.start < last.end => last.end = last.end.max(span.end),
                _ => apart.push(span),
            }
        }
        apart
    }

    fn shown(&self, kind: &str) -> String {
        self.replacement.replace("{kind}", kind)
    }
}

/// Adds to the session's counts, and tells the operator which kinds; never the secrets.
fn count(kinds: &[&str]) -> Result<()> {
    let mut counts: BTreeMap<String, u64> = state::get(COUNTS)?.unwrap_or_default();
    for kind in kinds {
        *counts.entry((*kind).to_owned()).or_default() += 1;
    }
    state::set_with(COUNTS, &counts, state::Keep::Session)?;
    log::info(format_args!("redacted: {}", kinds.join(", ")));
    Ok(())
}

tidegate_sdk::export!(RedactSecrets: OnPlainText);

#[cfg(test)]
mod tests;
