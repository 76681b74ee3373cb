//! Names of tags, and patterns on them.

use std::fmt;
use std::str::FromStr;

/// The most bytes of a tag's name; a longer one is text.
const MAX_NAME: usize = 64;

/// The most bytes of a pattern that an error shows.
const MAX_SHOWN: usize = 80;

/// The maximum number of patterns of one extension.
pub(crate) const MAX_TAG_PATTERNS: usize = 64;

/// Which tags are meant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TagPattern {
    /// The tag of exactly this name.
    Exact(String),
    /// Every name that begins with this (written `note-*`).
    Prefix(String),
}

/// A string is not a pattern of tags.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTagPattern {
    /// The name is longer than a tag's name can be.
    #[error("the tag pattern `{pattern}` has {bytes} bytes; a name has at most {MAX_NAME}")]
    TooLong {
        /// The start of the pattern.
        pattern: String,
        /// The size of the name, without the star.
        bytes: usize,
    },
    /// Its first character is not an ASCII letter, or there is none.
    #[error("the tag pattern `{0}` does not begin with an ASCII letter")]
    Start(String),
    /// It contains a character that no name of a tag has.
    #[error(
        "the tag pattern `{pattern}` contains {found:?}; names are made of letters, digits, `-`, `_`, `.`, `:`{}",
        hint(.found)
    )]
    Character {
        /// The start of the pattern.
        pattern: String,
        /// The first such character.
        found: char,
    },
}

fn hint(found: &char) -> &'static str {
    if *found == '*' { "; a star is only allowed at the end" } else { "" }
}

impl TagPattern {
    /// Whether a tag of this name matches.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == name,
            Self::Prefix(prefix) => name.starts_with(prefix.as_str()),
        }
    }
}

/// Returns the reason why these cannot be the patterns of an extension.
pub(crate) fn fault(patterns: &[TagPattern]) -> Option<String> {
    if patterns.is_empty() {
        return Some("on_tag is registered for no tag; give at least one name or prefix".to_owned());
    }
    if patterns.len() > MAX_TAG_PATTERNS {
        return Some(format!("on_tag has {} patterns; at most {MAX_TAG_PATTERNS} are allowed", patterns.len()));
    }
    // Code can create a pattern from any string.
    if let Some(error) = patterns.iter().find_map(|one| one.to_string().parse::<TagPattern>().err()) {
        return Some(error.to_string());
    }
    let twice = patterns.iter().enumerate().find(|(at, one)| patterns[..*at].contains(one));
    twice.map(|(_, one)| format!("on_tag names the pattern `{one}` twice"))
}

impl FromStr for TagPattern {
    type Err = InvalidTagPattern;

    /// Reads a name, or the start of one with a star behind it.
    fn from_str(text: &str) -> Result<Self, InvalidTagPattern> {
        let (name, prefix) = text.strip_suffix('*').map_or((text, false), |name| (name, true));
        let pattern = || text[..text.floor_char_boundary(MAX_SHOWN)].to_owned();
        if name.len() > MAX_NAME {
            return Err(InvalidTagPattern::TooLong { pattern: pattern(), bytes: name.len() });
        }
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(InvalidTagPattern::Start(pattern()));
        }
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
        if let Some(found) = name.chars().find(|c| !fits(*c)) {
            return Err(InvalidTagPattern::Character { pattern: pattern(), found });
        }
        Ok(if prefix { Self::Prefix(name.to_owned()) } else { Self::Exact(name.to_owned()) })
    }
}

impl fmt::Display for TagPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name),
            Self::Prefix(prefix) => write!(f, "{prefix}*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TagPattern;

    #[test]
    fn tag_patterns_are_names_or_prefixes() {
        for good in ["note", "note-*", "a.b:c_1", "N*"] {
            let pattern: TagPattern = good.parse().unwrap_or_else(|error| panic!("{good}: {error}"));
            assert_eq!(pattern.to_string(), good);
        }
        assert_eq!("note-*".parse(), Ok(TagPattern::Prefix("note-".into())));
        for (bad, why) in [
            ("", "does not begin"),
            ("*", "does not begin"),
            ("1a", "does not begin"),
            ("a*b", "a star is only allowed at the end"),
            ("a b", "contains ' '"),
            ("ä", "does not begin"),
        ] {
            assert!(bad.parse::<TagPattern>().is_err_and(|error| error.to_string().contains(why)), "{bad}");
        }
        let long = "a".repeat(65).parse::<TagPattern>();
        assert!(long.is_err_and(|error| error.to_string().contains("65 bytes")));
    }
}
