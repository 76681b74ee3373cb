//! The tokens of conditions.

use std::ops::Range;

use super::ConditionError;

/// A token, without its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'t> {
    /// A variable or keyword.
    Word(&'t str),
    /// The content of a string.
    String(&'t str),
    /// A number as written.
    Number(f64),
    Equal,
    Open,
    Close,
    /// The end of the condition.
    End,
}

impl Token<'_> {
    /// The token as messages name it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Word(word) => format!("`{word}`"),
            Self::String(_) => "a string".to_owned(),
            Self::Number(_) => "a number".to_owned(),
            Self::Equal => "`==`".to_owned(),
            Self::Open => "`(`".to_owned(),
            Self::Close => "`)`".to_owned(),
            Self::End => "the end".to_owned(),
        }
    }
}

/// Reads the token that begins at `at` or behind the white space there.
pub(super) fn next(text: &str, at: usize) -> Result<(Token<'_>, Range<usize>), ConditionError> {
    let rest = text.get(at..).unwrap_or_default();
    let start = at + (rest.len() - rest.trim_start().len());
    let rest = rest.trim_start();
    let Some(first) = rest.chars().next() else { return Ok((Token::End, text.len()..text.len())) };
    let taken = |token, bytes: usize| Ok((token, start..start + bytes));
    let run = |is: fn(char) -> bool| &rest[..rest.find(|c| !is(c)).unwrap_or(rest.len())];
    match first {
        '(' => taken(Token::Open, 1),
        ')' => taken(Token::Close, 1),
        '=' if rest.starts_with("==") => taken(Token::Equal, 2),
        '\'' | '"' => match rest[1..].find(first) {
            Some(end) => taken(Token::String(&rest[1..=end]), end + 2),
            None => Err(error(start..text.len(), "the string has no end", &format!("close it with {first}"))),
        },
        '-' | '0'..='9' => {
            let run = run(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'));
            match run.parse() {
                Ok(number) if is_number(run) => taken(Token::Number(number), run.len()),
                _ => Err(error(start..start + run.len(), "this is not a number", "write it as `5` or `0.5`")),
            }
        }
        c if c.is_ascii_alphabetic() || c == '_' => {
            let run = run(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
            taken(Token::Word(run), run.len())
        }
        other => {
            let help = match other {
                '=' => "write `==` to compare",
                '!' => "write `not A` or `not A == B`",
                '&' => "write `and`",
                '|' => "write `or`",
                _ => "variables, strings, numbers, `==`, `and`, `or`, `not` and parentheses are allowed here",
            };
            let message = format!("`{}` is not a part of conditions", other.escape_debug());
            Err(error(start..start + other.len_utf8(), &message, help))
        }
    }
}

fn is_number(run: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    let run = run.strip_prefix('-').unwrap_or(run);
    run.split_once('.').map_or(digits(run), |(whole, part)| digits(whole) && digits(part))
}

pub(super) fn error(span: Range<usize>, message: &str, help: &str) -> ConditionError {
    ConditionError { span, message: message.to_owned(), help: help.to_owned() }
}
