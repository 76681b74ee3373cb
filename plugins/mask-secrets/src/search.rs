//! The secrets of a text.

use regex_lite::Regex;
use serde::Deserialize;
use tidegate_sdk::prelude::*;
use tidegate_secrets::{Lines, PRIVATE_KEY};

use crate::masks::has_placeholder;
use crate::personal::Personal;

/// The kind of secrets that an operator's own patterns find.
const EXTRA: &str = "value";

/// A secret in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) kind: &'static str,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The settings as the operator writes them.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Options {
    personal_data: Vec<String>,
    extra_patterns: Vec<String>,
    ignore: Vec<String>,
}

/// The patterns to search for.
pub(crate) struct Search {
    personal: Vec<Personal>,
    extra: Vec<Regex>,
    ignore: Vec<String>,
}

impl Search {
    pub(crate) fn new(options: Options) -> Result<Self> {
        let Options { personal_data, extra_patterns, mut ignore } = options;
        ignore.retain(|text| !text.is_empty());
        let personal = personal_data.iter().map(|name| Personal::named(name)).collect::<Result<_>>()?;
        let mut extra = Vec::new();
        for pattern in extra_patterns {
            let regex = Regex::new(&pattern).map_err(|error| {
                tidegate_sdk::Error::new(format_args!(
                    "setting `extra_patterns`: `{pattern}` is not a valid pattern: {error}"
                ))
            })?;
            if regex.is_match("") {
                bail!(
                    "setting `extra_patterns`: `{pattern}` matches nothing at all; let it match at least one character"
                );
            }
            extra.push(regex);
        }
        Ok(Self { personal, extra, ignore })
    }

    /// Returns the secrets of a text, in order, without overlaps.
    pub(crate) fn spans(&self, text: &str) -> Vec<Span> {
        let (mut lines, mut spans, mut from) = (Lines::default(), Vec::<Span>::new(), 0);
        for line in text.split_inclusive('\n') {
            for found in lines.take(line, "") {
                let (kind, start, end) = (found.kind, from + found.start, from + found.end);
                match spans.last_mut() {
                    // A secret over several lines is one secret.
                    Some(last) if found.continues && last.kind == kind => last.end = end,
                    _ => spans.push(Span { kind, start, end }),
                }
            }
            for regex in &self.extra {
                let of_match = |found: regex_lite::Match<'_>| (from + found.start(), from + found.end());
                let found = regex.find_iter(line).map(of_match);
                spans.extend(found.map(|(start, end)| Span { kind: EXTRA, start, end }));
            }
            for one in &self.personal {
                let found = one.find(line).into_iter();
                spans.extend(found.map(|(start, end)| Span { kind: one.kind(), start: from + start, end: from + end }));
            }
            from += line.len();
        }
        for span in &mut spans {
            // The end of its last line does not belong to it.
            span.end = span.start + text[span.start..span.end].trim_end_matches(['\r', '\n']).len();
        }
        spans.retain(|span| {
            let secret = &text[span.start..span.end];
            let is_ignored = || self.ignore.iter().any(|word| secret.contains(word.as_str()));
            !secret.trim().is_empty() && !has_placeholder(secret) && (span.kind == PRIVATE_KEY || !is_ignored())
        });
        spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
        spans.dedup_by(|next, before| {
            let is_across = next.start < before.end;
            if is_across {
                before.end = before.end.max(next.end);
            }
            is_across
        });
        spans
    }
}
