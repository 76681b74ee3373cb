//! Keeps secrets off the screen: keys, tokens and passwords in what the model writes.
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
use tidegate_sdk::prelude::*;

/// State: how many secrets of each kind were redacted in this session.
const COUNTS: &str = "counts";
/// State: the private key that is open, where one is.
const OPEN_KEY: &str = "open-key";
/// What an operator's own patterns find.
const EXTRA: &str = "secret";

struct RedactSecrets {
    replacement: String,
    extra: Vec<Regex>,
    ignore: Vec<String>,
    /// `None`: a new instance, which has to ask the state.
    open: Option<KeyBlock>,
    /// The number of the next unit where none is missed; 0 in a new instance.
    next: u32,
}

impl Extension for RedactSecrets {
    fn new(settings: &Settings) -> Result<Self> {
        let mut extra = Vec::new();
        for pattern in settings.get_or::<Vec<String>>("extra_patterns", Vec::new())? {
            let regex = Regex::new(&pattern).map_err(|error| {
                tidegate_sdk::Error::new(format_args!("setting `extra_patterns`: `{pattern}` is no pattern: {error}"))
            })?;
            if regex.is_match("") {
                bail!(
                    "setting `extra_patterns`: `{pattern}` matches nothing at all; let it match at least one character"
                );
            }
            extra.push(regex);
        }
        Ok(Self {
            replacement: settings.get_or("replacement", String::from("[redacted {kind}]"))?,
            extra,
            ignore: settings
                .get_or("ignore", Vec::<String>::new())?
                .into_iter()
                .filter(|text| !text.is_empty())
                .collect(),
            open: None,
            next: 0,
        })
    }
}

impl OnPlainText for RedactSecrets {
    const UNIT: TextUnit = TextUnit::Line;
    /// Late in the chain, so that it sees what others wrote.
    const PRIORITY: u8 = 5;
    /// A line that was not searched must not be shown.
    const ON_FAILURE: OnFailure = OnFailure::Withhold;

    fn on_plain_text(&mut self, text: &str, place: &TextPlace) -> Result<TextAnswer> {
        let before = match self.open.take() {
            Some(open) => open,
            None => state::get(OPEN_KEY)?.unwrap_or_default(),
        };
        // Lines that failed or were skipped were withheld, and this instance, or the one before it, has not seen them.
        let missed = place.unit > 0 && self.next != place.unit;
        self.next = place.unit.saturating_add(1);
        let mut open = before.clone();
        let line = open.take(text, place, missed);
        if open != before {
            state::set(OPEN_KEY, &open)?;
        }
        self.open = Some(open);
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
    state::set(COUNTS, &counts)?;
    log::info(format_args!("redacted: {}", kinds.join(", ")));
    Ok(())
}

tidegate_sdk::export!(RedactSecrets: OnPlainText);

#[cfg(test)]
mod tests;
