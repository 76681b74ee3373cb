//! The conditions of prompt additions: plain values, and what of them can be decided without a session.

use std::fmt;
use std::str::FromStr;

use crate::TagPattern;

/// One condition of a prompt addition. An addition with several is added where all of them pass.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// A tag that matches opens in the last user input or in the last answer, outside of code, comments and CDATA.
    TagPresent(TagPattern),
    /// The state of the plugin itself, in this session.
    StateValue {
        /// The key, as the plugin passes it to its state.
        key: String,
        /// What has to be true of the value under it.
        test: StateTest,
    },
    /// Facts of the session. Those that are given have to match, all of them.
    ContextMatch(ContextMatch),
}

/// What has to be true of a value in the state.
#[derive(Clone, Debug, PartialEq)]
pub enum StateTest {
    /// Whether there is a value.
    Exists(bool),
    /// There is a value, and it is this one.
    Equals(StateValue),
}

/// A value to compare with one in the state.
#[derive(Clone, Debug, PartialEq)]
pub enum StateValue {
    /// A string: of JSON, or the stored bytes as they are.
    Text(String),
    /// A whole number of JSON; 1 and 1.0 are equal.
    Integer(i64),
    /// A number of JSON.
    Number(f64),
    /// `true` or `false` of JSON.
    Boolean(bool),
}

/// Facts of a session that an addition can require.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextMatch {
    /// A glob on the name of the model. Letter case does not count.
    pub model: Option<String>,
    /// A glob on the name of the agent: `main`, where the session has no other. Letter case does not count.
    pub agent: Option<String>,
    /// A glob on the absolute path of the workspace. It matches the folder itself: `/w/**` matches what is below `/w`.
    pub workspace: Option<String>,
    /// The numbers of turns.
    pub turn: Option<TurnRange>,
}

/// A range of turns of a session, which are counted from 1. Both ends are included.
///
/// ```
/// use tidegate_flow::TurnRange;
/// let range: TurnRange = "2..=5".parse().unwrap();
/// assert!(range.contains(2) && range.contains(5) && !range.contains(6));
/// assert_eq!("2..".parse::<TurnRange>().unwrap().to_string(), "2..");
/// assert!("2..5".parse::<TurnRange>().is_err(), "whether 5 is meant is not clear");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnRange {
    first: u32,
    last: Option<u32>,
}

/// A string is not a range of turns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTurnRange {
    /// It is none of the forms.
    #[error("{0:?} is not a range of turns, which count from 1")]
    Malformed(String),
    /// `2..5`: languages differ in whether the end is included.
    #[error("{0:?} does not say whether its last turn is included")]
    Ambiguous(String),
    /// It contains no turn.
    #[error("the range ends with turn {last}, before its first turn {first}")]
    Empty {
        /// The first turn, as written.
        first: u32,
        /// The last turn, as written.
        last: u32,
    },
}

impl StateTest {
    /// Whether the stored bytes pass; `None` where nothing is stored.
    pub fn passes(&self, stored: Option<&[u8]>) -> bool {
        match self {
            Self::Exists(wanted) => stored.is_some() == *wanted,
            Self::Equals(value) => stored.is_some_and(|stored| value.is(stored)),
        }
    }
}

impl StateValue {
    /// Whether the stored bytes are this value. The SDK stores JSON; a string can also be stored as its bytes.
    fn is(&self, stored: &[u8]) -> bool {
        if let Self::Text(text) = self
            && stored == text.as_bytes()
        {
            return true;
        }
        let Ok(json) = serde_json::from_slice::<serde_json::Value>(stored) else { return false };
        match self {
            Self::Text(text) => json.as_str() == Some(text),
            Self::Integer(number) if json.is_f64() => json.as_f64() == Some(*number as f64),
            Self::Integer(number) => json.as_i64() == Some(*number),
            Self::Number(number) => json.as_f64() == Some(*number),
            Self::Boolean(yes) => json.as_bool() == Some(*yes),
        }
    }
}

impl TurnRange {
    /// The turn of this number alone; `None` for 0, which is no turn.
    pub fn only(turn: u32) -> Option<Self> {
        (turn > 0).then_some(Self { first: turn, last: Some(turn) })
    }

    /// Whether the turn of this number is in the range.
    pub fn contains(self, turn: u32) -> bool {
        turn >= self.first && self.last.is_none_or(|last| turn <= last)
    }
}

impl FromStr for TurnRange {
    type Err = InvalidTurnRange;

    /// Reads `3`, `2..`, `..=5` or `2..=5`.
    fn from_str(text: &str) -> Result<Self, InvalidTurnRange> {
        let malformed = || InvalidTurnRange::Malformed(text.to_owned());
        // `parse` alone would take a sign.
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let turn = |part: &str| part.parse().ok().filter(|turn| digits(part) && *turn > 0).ok_or_else(malformed);
        let Some((first, last)) = text.split_once("..") else {
            return Self::only(turn(text)?).ok_or_else(malformed);
        };
        let start = if first.is_empty() { 1 } else { turn(first)? };
        let last = match last.strip_prefix('=') {
            Some(last) => Some(turn(last)?),
            None if last.is_empty() && !first.is_empty() => None,
            None if turn(last).is_ok() => return Err(InvalidTurnRange::Ambiguous(text.to_owned())),
            None => return Err(malformed()),
        };
        match last {
            Some(last) if last < start => Err(InvalidTurnRange::Empty { first: start, last }),
            last => Ok(Self { first: start, last }),
        }
    }
}

impl fmt::Display for TurnRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            None => write!(f, "{}..", self.first),
            Some(last) if last == self.first => write!(f, "{last}"),
            Some(last) => write!(f, "{}..={last}", self.first),
        }
    }
}

impl fmt::Display for StateValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Number(number) => write!(f, "{number:?}"),
            Self::Boolean(yes) => write!(f, "{yes}"),
        }
    }
}

impl fmt::Display for Condition {
    /// As it is written in a manifest. Different conditions are written differently.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TagPresent(pattern) => write!(f, "tag_present = \"{pattern}\""),
            Self::StateValue { key, test: StateTest::Exists(wanted) } => {
                write!(f, "state_value = {{ key = {key:?}, exists = {wanted} }}")
            }
            Self::StateValue { key, test: StateTest::Equals(value) } => {
                write!(f, "state_value = {{ key = {key:?}, equals = {value} }}")
            }
            Self::ContextMatch(wanted) => {
                let glob = |name: &str, glob: &Option<String>| glob.as_ref().map(|glob| format!("{name} = {glob:?}"));
                let globs = [
                    glob("model", &wanted.model),
                    glob("agent", &wanted.agent),
                    glob("workspace", &wanted.workspace),
                    wanted.turn.map(|turn| format!("turn = \"{turn}\"")),
                ];
                write!(f, "context_match = {{ {} }}", globs.into_iter().flatten().collect::<Vec<_>>().join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_bytes_are_compared_as_json_and_as_they_are() {
        use StateValue::{Boolean, Integer, Number, Text};
        let text = |text: &str| Text(text.to_owned());
        for (value, stored, same) in [
            (text("strict"), "\"strict\"", true),
            (text("strict"), "strict", true),
            (text("strict"), " \"str\\u0069ct\" ", true),
            (text("strict"), "Strict", false),
            (text("strict"), "[\"strict\"]", false),
            (text("3"), "3", true),
            (text("3"), "3.0", false),
            (text(""), "", true),
            (Integer(3), "3", true),
            (Integer(3), "3.0", true),
            (Integer(3), "\"3\"", false),
            (Integer(i64::MAX), "9223372036854775806", false),
            (Integer(-1), "18446744073709551615", false),
            (Number(0.5), "0.5", true),
            (Number(2.0), "2", true),
            (Number(0.5), "5e-1", true),
            (Boolean(true), "true", true),
            (Boolean(true), "1", false),
            (Boolean(false), "null", false),
            (Integer(0), "", false),
        ] {
            let passes = |stored| StateTest::Equals(value.clone()).passes(stored);
            assert_eq!(passes(Some(stored.as_bytes())), same, "{value} and {stored}");
            assert!(!passes(None), "{value} without a value");
        }
        assert!(!StateTest::Equals(text("ä")).passes(Some(b"\xE4")), "bytes that are not UTF-8");
    }

    #[test]
    fn a_value_exists_or_does_not() {
        for (wanted, stored, passes) in
            [(true, true, true), (true, false, false), (false, true, false), (false, false, true)]
        {
            assert_eq!(StateTest::Exists(wanted).passes(stored.then_some(b"".as_slice())), passes);
        }
    }

    #[test]
    fn ranges_of_turns_are_read_and_written() {
        for (text, inside, outside) in [
            ("3", vec![3], vec![2, 4]),
            ("2..", vec![2, u32::MAX], vec![1]),
            ("..=2", vec![1, 2], vec![3]),
            ("2..=5", vec![2, 5], vec![1, 6]),
            ("4..=4", vec![4], vec![3, 5]),
        ] {
            let range: TurnRange = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert!(inside.into_iter().all(|turn| range.contains(turn)), "{text}");
            assert!(!outside.into_iter().any(|turn| range.contains(turn)), "{text}");
            assert_eq!(range.to_string().parse(), Ok(range), "{text}");
        }
    }

    #[test]
    fn what_is_no_range_of_turns_says_why() {
        for bad in ["", "..", "0", "0..", "..=0", "+1", "-1", "1..=", "a", "1...", "1..=2..=3", " 1", "4294967296"] {
            assert_eq!(bad.parse::<TurnRange>(), Err(InvalidTurnRange::Malformed(bad.to_owned())), "{bad}");
        }
        assert_eq!("2..5".parse::<TurnRange>(), Err(InvalidTurnRange::Ambiguous("2..5".into())));
        assert_eq!("5..=2".parse::<TurnRange>(), Err(InvalidTurnRange::Empty { first: 5, last: 2 }));
    }
}
