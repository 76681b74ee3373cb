//! Where the keys of a JSON object are: its parser keeps one of each, and no places.

use std::ops::Range;
use std::sync::Arc;

use flow::{Location, SourceFile};
use serde_json::Value;

/// The keys of the outermost object, in the order of the file.
pub(crate) struct Keys(Vec<(String, Range<usize>)>);

impl Keys {
    /// The keys of a file that is valid JSON.
    pub(crate) fn of(source: &SourceFile) -> Self {
        let text = source.text.as_str();
        let (mut keys, mut depth, mut at) = (Vec::new(), 0_usize, 0);
        while let Some(byte) = text.as_bytes().get(at) {
            let end = if *byte == b'"' { at + string(&text[at..]) } else { at + 1 };
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                b'"' if depth == 1 && text[end..].trim_start().starts_with(':') => {
                    keys.extend(serde_json::from_str(&text[at..end]).ok().map(|key: String| (key, at..end)));
                }
                _ => {}
            }
            at = end;
        }
        Self(keys)
    }

    /// The place of a key, the last where there are several, and the places before it.
    pub(crate) fn places(&self, source: &Arc<SourceFile>, key: &str) -> (Location, Vec<Location>) {
        let spans = self.0.iter().filter(|(known, _)| known == key);
        let mut all: Vec<Location> = spans.map(|(_, span)| Location::new(source, span.clone())).collect();
        (all.pop().unwrap_or_else(|| Location::new(source, 0..0)), all)
    }
}

/// The length of the string at the beginning of `text`, with its quotes.
fn string(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 2)
}

/// The first place of a string.
pub(crate) fn place_of(source: &Arc<SourceFile>, text: &str) -> Location {
    let quoted = Value::from(text).to_string();
    let at = source.text.find(&quoted).map_or(0..0, |at| at..at + quoted.len());
    Location::new(source, at)
}
