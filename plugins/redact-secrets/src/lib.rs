//! Keeps secrets off the screen: keys, tokens and passwords in what the model writes, its reasoning included, in its calls of tools, in
//! their results, and in the questions about them.
//!
//! What a secret looks like is known to `tidegate-secrets`, the one list that the host has too. The unit of the answer is the line, so that it
//! still streams; for what spans lines (a private key, a table with a column of passwords, a name whose value is on the next line) the
//! plugin keeps, in state, what the lines before have told.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use regex_lite::Regex;
use serde::Deserialize;
use tidegate_sdk::prelude::*;
use tidegate_secrets::{Found, Lines, PRIVATE_KEY};

mod tools;

/// State: how many secrets of each kind were redacted in this session.
const COUNTS: &str = "counts";
/// State: what the lines of the answer have told about those to come.
const LINES: &str = "lines";
/// The same for the reasoning.
const LINES_THINKING: &str = "lines-thinking";
/// What an operator's own patterns find.
const EXTRA: &str = "secret";

struct RedactSecrets {
    replacement: String,
    extra: Vec<Regex>,
    ignore: Vec<String>,
    answer: Progress,
    thinking: Progress,
}

/// A secret of a line, in the place of which this is shown.
struct Span {
    kind: &'static str,
    start: usize,
    end: usize,
    /// Nothing is shown: the line before has what stands for it.
    continues: bool,
}

/// The progress through the lines of one stream.
#[derive(Default)]
struct Progress {
    /// `None`: a new instance, which has to ask the state.
    lines: Option<Lines>,
    /// The number of the next unit where none is missed; 0 in a new instance.
    next: u32,
}

impl Progress {
    /// Takes the next line of the stream.
    fn take(&mut self, key: &str, text: &str, place: &TextPlace) -> Result<Vec<Found>> {
        let before = match self.lines.take() {
            Some(lines) => lines,
            None => state::get(key)?.unwrap_or_default(),
        };
        let mut lines = if place.unit == 0 { Lines::default() } else { before.clone() };
        // Lines that failed or were skipped were withheld, and this instance, or the one before it, has not seen them.
        if place.unit > 0 && self.next != place.unit {
            lines.missed();
        }
        self.next = place.unit.saturating_add(1);
        let found = lines.take(text, &place.inside.join("/"));
        if lines != before {
            state::set(key, &lines)?;
        }
        self.lines = Some(lines);
        Ok(found)
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
        let found = match place.stream {
            TextStream::Thinking => self.thinking.take(LINES_THINKING, text, place)?,
            _ => self.answer.take(LINES, text, place)?,
        };
        let mut kinds = Vec::new();
        let redacted = self.redacted(text, found, &mut kinds);
        count(&kinds)?;
        Ok(redacted.map_or(TextAnswer::Pass, TextAnswer::Replace))
    }
}

impl RedactSecrets {
    /// The line with markers in the place of these secrets and of what the operator's patterns find; `None` where there is nothing. Adds their
    /// kinds.
    fn redacted(&self, text: &str, found: Vec<Found>, kinds: &mut Vec<&'static str>) -> Option<String> {
        let spans = self.spans(text, found);
        let (mut shown, mut end) = (String::with_capacity(text.len()), 0);
        for span in &spans {
            shown.push_str(&text[end..span.start]);
            if !span.continues {
                shown.push_str(&self.marker(span.kind));
                kinds.push(span.kind);
            }
            end = span.end;
        }
        shown.push_str(&text[end..]);
        (!spans.is_empty()).then_some(shown)
    }

    /// The secrets of a line, in order, none within or across another.
    fn spans(&self, text: &str, found: Vec<Found>) -> Vec<Span> {
        let of_found = |one: Found| Span { kind: one.kind, start: one.start, end: one.end, continues: one.continues };
        let mut spans: Vec<Span> = found.into_iter().map(of_found).collect();
        for regex in &self.extra {
            let of_match = |found: regex_lite::Match<'_>| Span {
                kind: EXTRA,
                start: found.start(),
                end: found.end(),
                continues: false,
            };
            spans.extend(regex.find_iter(text).map(of_match));
        }
        let is_ignored =
            |span: &Span| self.ignore.iter().any(|word| text[span.start..span.end].contains(word.as_str()));
        // A key has no words: what is ignored by chance would show a line of it.
        spans.retain(|span| span.kind == PRIVATE_KEY || !is_ignored(span));
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

    fn marker(&self, kind: &str) -> String {
        self.replacement.replace("{kind}", kind)
    }
}

/// Adds to the session's counts, and tells the operator which kinds; never the secrets.
fn count(kinds: &[&'static str]) -> Result<()> {
    if kinds.is_empty() {
        return Ok(());
    }
    let mut counts: BTreeMap<String, u64> = state::get(COUNTS)?.unwrap_or_default();
    for kind in kinds {
        *counts.entry((*kind).to_owned()).or_default() += 1;
    }
    state::set_with(COUNTS, &counts, state::Keep::Session)?;
    log::debug(format_args!("redacted: {}", kinds.join(", ")));
    Ok(())
}

tidegate_sdk::export!(RedactSecrets: OnPlainText, OnToolCall, OnToolResult);

#[cfg(test)]
mod tests;
